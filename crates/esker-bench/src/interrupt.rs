//! Ctrl-C: the first ends the current benchmark, after which finished rows are written out; the
//! second ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of an interrupted run.
pub const EXIT_INTERRUPTED: i32 = 130;

/// Whether somebody asked the run to end. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
}

impl Interrupt {
    /// One that only [`Interrupt::request`] sets.
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// One that Ctrl-C and SIGTERM set. If the process has a handler already, it is left alone.
    pub fn from_signals() -> Interrupt {
        let interrupt = Interrupt::new();
        let shared = interrupt.clone();
        // An error means that a handler is installed already, by the program around this library.
        let _ = ctrlc::set_handler(move || {
            if shared.request() {
                std::process::exit(EXIT_INTERRUPTED);
            }
            eprintln!("\nending the current benchmark; finished rows are kept (interrupt again to leave at once)");
        });
        interrupt
    }

    /// Asks the run to end; whether that had been asked before.
    pub fn request(&self) -> bool {
        self.requested.swap(true, Ordering::SeqCst)
    }

    /// Whether the run was asked to end.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }
}
