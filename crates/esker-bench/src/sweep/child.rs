//! A process of its own for each engine's part of a study: what an engine keeps in memory, or does
//! to the process when it crashes, then concerns that engine alone.
//!
//! ```text
//! standard input  := task:json "\n"           then open until the task is to end: its end is an interrupt
//! standard output := { event:json "\n" }      other lines are passed on to standard error
//! exit code       := 0 the task was done, or its events say why not; 2 the task could not be read
//! ```

use super::task::{Event, Sink, Surroundings, Task};
use crate::exit::{EXIT_OK, EXIT_USAGE};
use crate::interrupt::Interrupt;
use crate::process::{read_lines, when_input_ends};
use crate::progress::Display;
use esker_engines::EngineKind;
use std::io::{self, BufRead, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// The hidden subcommand of `esker study`.
pub const SUBCOMMAND: &str = "child";

/// What a process that is to die dies of.
const SIGKILL: i32 = nix::sys::signal::Signal::SIGKILL as i32;

/// How long an interrupted child may take to end its benchmark.
const GRACE: Duration = Duration::from_secs(60);

/// Where tasks are done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Place {
    /// In this process.
    #[default]
    Here,
    /// Each in a process of this program, `esker`.
    Children(PathBuf),
}

impl Place {
    /// Children of the program that is running; in this process if the system does not say which
    /// that is.
    pub fn children() -> Place {
        std::env::current_exe().map_or(Place::Here, Place::Children)
    }

    /// Does a task. The error is one line.
    pub fn perform(&self, task: &Task, around: &Surroundings<'_>, sink: &mut Sink<'_>) -> Result<(), String> {
        match self {
            Place::Here if task.dies() => sink(Event::Failed("`crash` needs a process of its own, which dies".into())),
            Place::Here => task.perform(around, sink),
            Place::Children(program) => perform_in(command(program), task, around.interrupt, sink),
        }
    }
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["study", SUBCOMMAND]);
    command
}

/// Does a task in a process started by `command`, which speaks the protocol. The error is one line.
pub fn perform_in(mut command: Command, task: &Task, interrupt: &Interrupt, sink: &mut Sink<'_>) -> Result<(), String> {
    let text = serde_json::to_string(task).map_err(|error| format!("cannot write a task as JSON: {error}"))?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start a process for the engine: {error}"))?;
    let mut input = child.stdin.take();
    // A child that is gone already says more by its exit status than by the broken pipe.
    let _ = input.as_mut().map(|input| input.write_all(format!("{text}\n").as_bytes()));
    let lines = child.stdout.take().map(read_lines);
    let mut result = Ok(());
    let (mut ended, mut dying) = (false, false);
    let mut asked: Option<Instant> = None;
    while let Some(lines) = &lines {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => match serde_json::from_str::<Event>(&line) {
                Ok(Event::Dying) => dying = true,
                Ok(event) => {
                    ended |= matches!(event, Event::Interrupted | Event::Failed(_));
                    if result.is_ok() {
                        result = sink(event);
                    }
                }
                Err(_) if line.is_empty() => {}
                Err(_) => eprintln!("{line}"),
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if asked.is_none() && (interrupt.is_requested() || result.is_err()) {
            drop(input.take());
            asked = Some(Instant::now());
        }
        if asked.is_some_and(|since| since.elapsed() > GRACE) {
            // It does not listen. Nothing of it is needed any more.
            let _ = child.kill();
            break;
        }
    }
    drop(input);
    let status = child.wait().map_err(|error| format!("cannot wait for the engine's process: {error}"))?;
    result?;
    // A child that was killed without announcing it was killed by another process, perhaps by the
    // system because memory ran out.
    if status.success() || ended || task.dies() && dying && status.signal() == Some(SIGKILL) {
        return Ok(());
    }
    if interrupt.is_requested() {
        return sink(Event::Interrupted);
    }
    sink(Event::Failed(format!("its process ended early: {status}")))
}

/// The child's side: reads a task, does it, and says what happened. Returns the exit code of the
/// process.
pub fn main(kinds: &[EngineKind]) -> i32 {
    let mut text = String::new();
    let task = match io::stdin().lock().read_line(&mut text) {
        Ok(_) => serde_json::from_str::<Task>(&text).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let task = task.and_then(|task| {
        let kind = kinds.iter().find(|kind| kind.name == task.engine);
        kind.map(|kind| (task.clone(), kind)).ok_or_else(|| format!("no engine {}", task.engine))
    });
    let (task, kind) = match task {
        Ok(found) => found,
        Err(problem) => {
            eprintln!("esker study {SUBCOMMAND}: this is for other studies to call: {problem}");
            return EXIT_USAGE;
        }
    };
    let interrupt = Interrupt::from_signals();
    let parent = interrupt.clone();
    when_input_ends(move || {
        parent.request();
    });
    let around = Surroundings { kind, display: Display::detect(), interrupt: &interrupt };
    if let Err(problem) = task.perform(&around, &mut say) {
        // Nobody reads any more, or the task makes no sense: then this may still be heard.
        let _ = say(Event::Failed(problem));
    }
    EXIT_OK
}

fn say(event: Event) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot report: {error}");
    let text = serde_json::to_string(&event).map_err(|error| failed(&error))?;
    let mut out = io::stdout().lock();
    // A new line first: a library may have printed something without one.
    out.write_all(format!("\n{text}\n").as_bytes()).and_then(|()| out.flush()).map_err(|error| failed(&error))
}
