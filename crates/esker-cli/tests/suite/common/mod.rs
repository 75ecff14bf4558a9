//! What the tests of the command share: a directory of their own, and running the built binary in
//! it.
#![allow(dead_code, clippy::unwrap_used)]

#[cfg(feature = "serve")]
pub mod served;
#[cfg(all(unix, feature = "bench"))]
pub mod small_disk;
#[cfg(feature = "import")]
pub mod sources;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory that goes away with the test.
pub struct Sandbox(PathBuf);

impl Sandbox {
    pub fn new(name: &str) -> Sandbox {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{name}-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        Sandbox(directory)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The command, with nothing of the caller's environment that would change its answers.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(arguments).env_remove("ESKER_DB").env("RUST_BACKTRACE", "1").stdin(Stdio::null());
    command
}

pub fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

pub fn spawn_piped(arguments: &[&str]) -> Child {
    let mut command = command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub fn run_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = spawn_piped(arguments);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // The command may end before it has read everything.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// Runs, expects success and silence on standard error, and returns standard output.
#[track_caller]
pub fn ok(arguments: &[&str]) -> String {
    succeeded(arguments, run(arguments))
}

#[track_caller]
pub fn ok_with_input(arguments: &[&str], input: &[u8]) -> String {
    succeeded(arguments, run_with_input(arguments, input))
}

#[track_caller]
fn succeeded(arguments: &[&str], output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}, {stderr}", output.status);
    assert_eq!(stderr, "", "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs, expects that exit code and one orderly line on standard error, and returns the line.
#[track_caller]
pub fn fails(code: i32, arguments: &[&str]) -> String {
    failed(code, arguments, &run(arguments))
}

#[track_caller]
pub fn failed(code: i32, arguments: &[&str], output: &Output) -> String {
    let line = orderly_line(arguments, output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {line}");
    line
}

/// The one line of a failure with any exit code.
#[track_caller]
pub fn orderly_line(arguments: &[&str], output: &Output) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    // A slow machine may see progress first.
    let stderr: String =
        stderr.lines().filter(|line| !line.ends_with(" a second")).map(|line| format!("{line}\n")).collect();
    assert!(output.status.code().is_some(), "{arguments:?} died of a signal: {}, {stderr}", output.status);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    assert!(!stderr.contains("panicked") && !stderr.contains("RUST_BACKTRACE"), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("esker"), "{arguments:?}: {stderr}");
    stderr.trim_end().to_owned()
}

/// Every file below a directory with its content.
pub fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

pub fn copy_directory(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    for (path, content) in files(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, content).unwrap();
    }
}

/// `count` TSV lines with keys in order: `prefix00000`, `prefix00001`, ...
pub fn lines(prefix: &str, count: usize) -> String {
    (0..count).map(|number| format!("{prefix}{number:05}\tvalue of {number}\n")).collect()
}

/// Retries until the function yields something; panics after five minutes and what the attempts
/// take.
#[track_caller]
pub fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6000 {
        if let Some(found) = poll() {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("waited in vain for {what}");
}
