//! Interrupts of callbacks, and the calls of the engine that raise them.
//!
//! The engine calls comparators and merge operators, which cannot end its calls. An exception that
//! ends programs, such as `KeyboardInterrupt`, is kept in its thread until the call of the engine
//! returns, and is raised there. The callback is called again meanwhile: whoever pressed the key
//! has not asked for keys in another order.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};

/// How often a callback is called that is interrupted each time.
const ATTEMPTS: usize = 8;

thread_local! {
    /// How many calls of the engine are under way in this thread, each from a callback of the one
    /// before.
    static CALLS: Cell<u32> = const { Cell::new(0) };
    /// How many callbacks are under way in it.
    static CALLBACKS: Cell<u32> = const { Cell::new(0) };
    /// Whether the innermost call was interrupted. Apart, since it is asked for at each call.
    static IS_INTERRUPTED: Cell<bool> = const { Cell::new(false) };
    /// By which exception, the first one.
    static INTERRUPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// A call under way, until it is dropped.
struct Call {
    /// The interrupt of the call that is around this one.
    outer: Option<PyErr>,
}

impl Call {
    #[inline]
    fn begin() -> Call {
        CALLS.set(CALLS.get() + 1);
        Call { outer: take_interrupt() }
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        CALLS.set(CALLS.get() - 1);
        if let Some(outer) = self.outer.take() {
            INTERRUPT.set(Some(outer));
            IS_INTERRUPTED.set(true);
        }
    }
}

#[inline]
fn take_interrupt() -> Option<PyErr> {
    if IS_INTERRUPTED.replace(false) { INTERRUPT.take() } else { None }
}

/// Does something that may call callbacks, with the interpreter released. What it returns, and the
/// interrupt.
#[inline]
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> (T, Option<PyErr>) {
    let _call = Call::begin();
    let result = py.detach(work);
    (result, take_interrupt())
}

/// A callback under way, until it is dropped.
struct Callback(());

impl Callback {
    fn begin() -> Callback {
        CALLBACKS.set(CALLBACKS.get() + 1);
        Callback(())
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        CALLBACKS.set(CALLBACKS.get() - 1);
    }
}

/// Whether this thread is in a callback of the engine.
pub fn is_in_callback() -> bool {
    CALLBACKS.get() > 0
}

/// Whether an exception is none that programs handle as an error.
pub fn ends_programs(py: Python<'_>, exception: &PyErr) -> bool {
    !exception.is_instance_of::<PyException>(py)
}

/// Runs a callback, again if it is interrupted.
///
/// # Errors
/// What it raised, and whether that is an interrupt, of which the program is told.
pub fn callback<T>(
    py: Python<'_>,
    is_interrupt: fn(Python<'_>, &PyErr) -> bool,
    mut run: impl FnMut() -> PyResult<T>,
) -> Result<T, (PyErr, bool)> {
    let _callback = Callback::begin();
    let mut attempt = 1;
    loop {
        let exception = match run() {
            Ok(result) => return Ok(result),
            Err(exception) => exception,
        };
        if !is_interrupt(py, &exception) {
            return Err((exception, false));
        }
        if CALLS.get() > 0 {
            if !IS_INTERRUPTED.replace(true) {
                INTERRUPT.set(Some(exception.clone_ref(py)));
            }
        } else if attempt == 1 {
            // In a thread of the engine no call of the program can raise it.
            exception.clone_ref(py).write_unraisable(py, None);
        }
        if attempt == ATTEMPTS {
            return Err((exception, true));
        }
        attempt += 1;
    }
}
