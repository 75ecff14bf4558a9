//! A run with one failure in it, and what is found after it.

use super::fault::{Armed, Fault};
use super::possible::Possible;
use super::program::Program;
use crate::Checked;
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{NAMES, Step};
use crate::powerloss::session::{Ground, Session};
use crate::powerloss::{add, put};
use crate::state::{Durability, database_state};
use esker::Options;
use esker::env::fault::FaultEnv;
use esker::env::mem::{CrashMode, MemEnv};
use std::sync::Arc;

/// An empty disk. Tables are mapped, as they are by default, or every read of one is a call.
pub fn disk(mapped: bool) -> MemEnv {
    let memory = MemEnv::new();
    if mapped {
        memory.map_files();
    }
    memory
}

/// The steps on that disk without a fault, which must succeed; the environment knows how many calls
/// there were.
pub fn undisturbed(steps: &[Step], options: &Options, memory: MemEnv) -> Checked<FaultEnv> {
    let faulty = FaultEnv::new(Arc::new(memory.clone()));
    Program::new(Ground::new(options, faulty.clone()), memory, None).run(steps)?;
    Ok(faulty)
}

/// The steps on that disk with one fault at one call, by a program that goes on; then everything
/// that the next one may find.
pub fn run_exactly(steps: &[Step], options: &Options, memory: MemEnv, (fault, nth): (Fault, u64)) -> Checked<Program> {
    let faulty = FaultEnv::new(Arc::new(memory.clone()));
    let armed = Armed::new(fault, nth, &faulty, &memory);
    let mut program = Program::new(Ground::new(options, faulty), memory.clone(), Some(armed));
    program.run(steps)?;
    memory.set_capacity(None);
    let possible = program.possible();
    check_reopened(&memory.kill(), options, possible, possible.history.len() - 1)
        .map_err(|what| format!("reopened without faults: {what}"))?;
    for (mode, seed) in [(CrashMode::LoseAll, 0), (CrashMode::Random, nth)] {
        check_reopened(&memory.crash(&mode, seed), options, possible, possible.synced)
            .map_err(|what| format!("reopened after a power loss ({mode:?}, {seed}): {what}"))?;
    }
    Ok(program)
}

fn check_reopened(env: &MemEnv, options: &Options, possible: &Possible, least: usize) -> Checked<()> {
    let ground = Ground::new(options, env.clone());
    let mut progress = Progress::unknown(0, possible.now, possible.damaged);
    let session = Session::open(&ground, &mut progress).map_err(|error| format!("open failed: {error}"))?;
    let state = database_state(session.db(), &NAMES)?;
    possible.check(&state, least)?;
    session.db().verify().map_err(|error| format!("verification failed: {error}"))?;
    Program::opened(ground, env.clone(), session, state, possible.now).run(&[
        Step::Batch(vec![put("after", "1"), add("after", 1)], Durability::Sync),
        Step::Flush,
        Step::Single(put("after", "2"), Durability::Async),
        Step::DropAndReopen,
    ])
}
