//! The reference engine with something wrong with it: what the benchmarks check must be seen to
//! fail.

use esker_bench::process::Consumption;
use esker_bench::reference;
use esker_engines::{Engine, EngineKind, EngineOptions, Iteration, Opened, Result, Session, WriteMode};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is wrong.
#[derive(Clone, Copy, PartialEq)]
pub enum Wrong {
    /// One put, the 500th, takes 100 ms.
    StallsOnce,
    /// The 100th put is acknowledged, and lost.
    LosesAPut,
    /// The 100th delete is acknowledged, and not done.
    IgnoresADelete,
    /// Deletes key 47 with the delete of key 46.
    DeletesTwo,
    /// Making its second session panics.
    PanicsAtSession,
    /// A put panics.
    PanicsAtPut,
    /// A lookup panics.
    PanicsAtGet,
    /// Every lookup takes half a millisecond of CPU time.
    LooksUpSlowly,
    /// A time to live is accepted, and nothing expires.
    NothingExpires,
    /// A time to live is accepted, and the entry is gone at once.
    ExpiresAtOnce,
}

/// How long [`Wrong::StallsOnce`] stalls.
pub const STALL: Duration = Duration::from_millis(100);

/// How long [`Wrong::LooksUpSlowly`] takes for a lookup.
pub const SLOW: Duration = Duration::from_micros(500);

/// When the lookups of [`Wrong::LooksUpSlowly`] began.
pub static LOOKUPS: Mutex<Vec<Moment>> = Mutex::new(Vec::new());

/// What time it was, and how much CPU time this process had taken.
#[derive(Clone, Copy)]
pub struct Moment {
    pub at: Instant,
    pub cpu: Consumption,
}

impl Moment {
    pub fn now() -> Moment {
        Moment { at: Instant::now(), cpu: Consumption::now() }
    }
}

macro_rules! openers {
    ($($wrong:ident),*) => {
        /// The registry row of the engine; it goes by the reference engine's name.
        pub fn kind(wrong: Wrong) -> EngineKind {
            $(fn $wrong(directory: &Path, options: &EngineOptions, _: Option<&Path>) -> Result<Opened> {
                open(Wrong::$wrong, directory, options)
            })*
            let open = match wrong {
                $(Wrong::$wrong => $wrong,)*
            };
            EngineKind { open, probe: |_| Ok("altered".into()), ..reference::KIND }
        }
    };
}

#[allow(non_snake_case)]
mod opening {
    use super::*;
    openers!(
        StallsOnce,
        LosesAPut,
        IgnoresADelete,
        DeletesTwo,
        PanicsAtSession,
        PanicsAtPut,
        PanicsAtGet,
        LooksUpSlowly,
        NothingExpires,
        ExpiresAtOnce
    );
}

pub use opening::kind;

fn open(wrong: Wrong, directory: &Path, options: &EngineOptions) -> Result<Opened> {
    let Opened { engine, mut description } = (reference::KIND.open)(directory, options, None)?;
    description.capabilities.ttl = matches!(wrong, Wrong::NothingExpires | Wrong::ExpiresAtOnce);
    let altered =
        Altered { engine, wrong, sessions: AtomicU64::new(0), puts: AtomicU64::new(0), deletes: AtomicU64::new(0) };
    Ok(Opened::new(altered, description))
}

struct Altered {
    engine: Box<dyn Engine>,
    wrong: Wrong,
    sessions: AtomicU64,
    puts: AtomicU64,
    deletes: AtomicU64,
}

impl Engine for Altered {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        assert!(self.wrong != Wrong::PanicsAtSession || number != 1, "no second session");
        Ok(Box::new(AlteredSession { engine: self, session: self.engine.session()? }))
    }
}

struct AlteredSession<'e> {
    engine: &'e Altered,
    session: Box<dyn Session + 'e>,
}

impl Session for AlteredSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        let number = self.engine.puts.fetch_add(1, Ordering::Relaxed);
        match self.engine.wrong {
            Wrong::StallsOnce if number == 500 => std::thread::sleep(STALL),
            Wrong::LosesAPut if number == 100 => return Ok(()),
            Wrong::PanicsAtPut if number == 700 => panic!("no put"),
            _ => {}
        }
        self.session.put(key, value, mode)
    }
    fn put_ttl(&mut self, key: &[u8], value: &[u8], _: Duration, mode: WriteMode) -> Result<()> {
        if self.engine.wrong == Wrong::ExpiresAtOnce { Ok(()) } else { self.session.put(key, value, mode) }
    }
    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        let number = self.engine.deletes.fetch_add(1, Ordering::Relaxed);
        if self.engine.wrong == Wrong::IgnoresADelete && number == 100 {
            return Ok(());
        }
        if self.engine.wrong == Wrong::DeletesTwo && key.ends_with(b"0046") {
            self.session.delete(&[&key[..key.len() - 1], b"7"].concat(), mode)?;
        }
        self.session.delete(key, mode)
    }
    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()> {
        self.session.merge(key, operand, mode)
    }
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        assert!(self.engine.wrong != Wrong::PanicsAtGet, "no\nlookup");
        if self.engine.wrong == Wrong::LooksUpSlowly {
            let began = Moment::now();
            while began.at.elapsed() < SLOW {}
            LOOKUPS.lock().unwrap().push(began);
        }
        self.session.get(key, value)
    }
    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        self.session.iterate()
    }
}
