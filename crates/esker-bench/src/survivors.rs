//! What of the acknowledged puts is there after the process that made them was killed: a process of
//! this program puts keys in order and tells how many it has done; it is killed in the middle of
//! that, and this process opens the database and looks every one of them up.
//!
//! ```text
//! standard input  := order:json "\n"           then open until the writer is to end
//! standard output := { count "\n" }            puts acknowledged so far; other lines are an engine's own
//! ```

use crate::interrupt::Interrupt;
use crate::keys::KeyBuffer;
use crate::process::{read_lines, when_input_ends};
use crate::values::{ValueCursor, ValuePool};
use esker_engines::{EngineError, EngineKind, EngineOptions, Result, Session};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The hidden subcommand of `esker study`.
pub const SUBCOMMAND: &str = "killed-writer";
/// Its argument. A program that is not this one takes it for a mistake and ends.
pub const ARGUMENT: &str = "--order-from-standard-input";

/// Puts between two reports.
const REPORT_EVERY: u64 = 64;
/// How far the writer goes beyond what is requested, in multiples of it, if the end is slow to
/// come.
const BEYOND: u64 = 8;
/// The longest silence of a writer.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the writer is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The engine.
    pub engine: String,
    /// How it is opened.
    pub options: EngineOptions,
    /// The database.
    pub directory: PathBuf,
    /// The engine's library, if it was named.
    pub library: Option<PathBuf>,
    /// Bytes in front of each key.
    pub key_prefix: usize,
    /// Digits of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// Fraction to which values shrink.
    pub compression_ratio: f64,
    /// Puts after which the writer is killed.
    pub puts: u64,
}

/// What is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survivors {
    /// Acknowledged puts that are there with their values.
    pub found: u64,
    /// Puts after these that are there too.
    pub more: u64,
}

impl Order {
    fn key(&self) -> KeyBuffer {
        KeyBuffer::new(self.key_prefix, self.key_size)
    }
}

/// Has a process of this program write, and kills it. Returns how many puts it had acknowledged,
/// `None` if the run is to end.
pub fn put_and_kill(order: &Order, interrupt: &Interrupt) -> Result<Option<u64>> {
    let failed = |what: &str, error: &dyn std::fmt::Display| EngineError(format!("{what}: {error}"));
    let program = std::env::current_exe().map_err(|e| failed("cannot tell which program this is", &e))?;
    let text = serde_json::to_string(order).map_err(|e| failed("cannot write an order as JSON", &e))?;
    let mut child = Command::new(program)
        .args(["study", SUBCOMMAND, ARGUMENT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| failed("cannot start the process that is to be killed", &e))?;
    let mut input = child.stdin.take();
    // A writer that is gone already says so by its silence.
    let _ = input.as_mut().map(|input| input.write_all(format!("{text}\n").as_bytes()));
    let lines = child.stdout.take().map(read_lines);
    let acknowledged = lines.map_or(Ok(None), |lines| kill_in_time(&mut child, &lines, order.puts, interrupt));
    drop(input);
    child.wait().map_err(|e| failed("cannot wait for the killed process", &e))?;
    acknowledged
}

fn kill_in_time(child: &mut Child, lines: &Receiver<String>, puts: u64, interrupt: &Interrupt) -> Result<Option<u64>> {
    let mut acknowledged = 0;
    let mut heard = Instant::now();
    while acknowledged < puts && !interrupt.is_requested() {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => {
                if let Some(count) = count_of(&line) {
                    acknowledged = count;
                    heard = Instant::now();
                }
            }
            Err(RecvTimeoutError::Timeout) if heard.elapsed() < PATIENCE => {}
            Err(_) => {
                let _ = child.kill();
                return Err(EngineError(format!(
                    "the process that puts keys ended, or was silent, after {acknowledged} of {puts}"
                )));
            }
        }
    }
    // On Unix that is SIGKILL: nothing of the process runs any more.
    child.kill().map_err(|error| EngineError(format!("cannot kill the process that puts keys: {error}")))?;
    // What it had said until then counts.
    acknowledged = lines.iter().filter_map(|line| count_of(&line)).last().unwrap_or(acknowledged);
    Ok((!interrupt.is_requested()).then_some(acknowledged))
}

/// The puts that a line of the writer acknowledges; other lines are passed on.
fn count_of(line: &str) -> Option<u64> {
    let count = line.trim().parse().ok();
    if count.is_none() && !line.is_empty() {
        eprintln!("{line}");
    }
    count
}

/// Looks for the first `acknowledged` keys of an order, and for more.
pub fn count(order: &Order, session: &mut dyn Session, acknowledged: u64) -> Result<Survivors> {
    let pool = ValuePool::new(order.compression_ratio);
    let (mut key, mut values, mut value) = (order.key(), pool.cursor(), Vec::new());
    let mut survivors = Survivors { found: 0, more: 0 };
    let mut is_there = |number: u64, session: &mut dyn Session| -> Result<bool> {
        key.set(number);
        let expected = values.slice(order.value_size);
        Ok(session.get(key.bytes(), &mut value)? && value == expected)
    };
    for number in 0..acknowledged {
        survivors.found += u64::from(is_there(number, session)?);
    }
    while is_there(acknowledged + survivors.more, session)? {
        survivors.more += 1;
    }
    Ok(survivors)
}

/// The writer's side. Returns the exit code of the process, which is to be killed before that.
pub fn writer_main(kinds: &[EngineKind]) -> i32 {
    match write(kinds) {
        Ok(()) => 0,
        Err(problem) => {
            eprintln!("esker study {SUBCOMMAND}: {problem}");
            2
        }
    }
}

fn write(kinds: &[EngineKind]) -> std::result::Result<(), String> {
    let mut text = String::new();
    io::stdin().lock().read_line(&mut text).map_err(|error| error.to_string())?;
    let order: Order = serde_json::from_str(&text).map_err(|error| format!("this is for studies to call: {error}"))?;
    let kind = kinds.iter().find(|kind| kind.name == order.engine).ok_or("no such engine")?;
    let library: Option<&Path> = order.library.as_deref();
    let engine = (kind.open)(&order.directory, &order.options, library).map_err(|error| error.to_string())?;
    // When standard input ends, nobody is there to kill this process.
    when_input_ends(|| std::process::exit(2));
    let pool = ValuePool::new(order.compression_ratio);
    let (mut key, mut values): (KeyBuffer, ValueCursor<'_>) = (order.key(), pool.cursor());
    let mut session = engine.session().map_err(|error| error.to_string())?;
    for number in 0..order.puts.saturating_mul(BEYOND) {
        key.set(number);
        let put = session.put(key.bytes(), values.slice(order.value_size), order.options.write_mode());
        put.map_err(|error| error.to_string())?;
        if (number + 1) % REPORT_EVERY == 0 || number + 1 == order.puts {
            println!("{}", number + 1);
        }
    }
    // Far enough. Closing the database would be another thing than being killed.
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;
    use esker_engines::WriteMode;

    fn order(directory: &Path) -> Order {
        Order {
            engine: reference::NAME.into(),
            options: EngineOptions::default(),
            directory: directory.to_path_buf(),
            library: None,
            key_prefix: 0,
            key_size: 16,
            value_size: 10,
            compression_ratio: 0.5,
            puts: 100,
        }
    }

    #[test]
    fn what_is_lost_or_changed_is_not_found() {
        let directory = tempfile::tempdir().unwrap();
        let order = order(directory.path());
        let engine = (reference::KIND.open)(directory.path(), &order.options, None).unwrap();
        let mut session = engine.session().unwrap();
        let pool = ValuePool::new(order.compression_ratio);
        let (mut key, mut values) = (order.key(), pool.cursor());
        for number in 0..110 {
            key.set(number);
            session.put(key.bytes(), values.slice(10), WriteMode::default()).unwrap();
        }
        let all = count(&order, session.as_mut(), 100).unwrap();
        assert_eq!(all, Survivors { found: 100, more: 10 });
        key.set(3);
        session.delete(key.bytes(), WriteMode::default()).unwrap();
        key.set(50);
        session.put(key.bytes(), b"another", WriteMode::default()).unwrap();
        assert_eq!(count(&order, session.as_mut(), 100).unwrap().found, 98);
    }

    #[test]
    fn another_program_is_an_error_and_not_a_wait() {
        // The test program does not know the argument and ends.
        let directory = tempfile::tempdir().unwrap();
        let problem = put_and_kill(&order(directory.path()), &Interrupt::new()).unwrap_err();
        assert!(problem.0.contains("after 0 of 100"), "{problem}");
    }
}
