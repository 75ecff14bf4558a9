//! Whether what builds and checks programs in C and C++ is here. CI insists on it; elsewhere what
//! is missing costs one line, and the tests that need it check nothing. Those of `esker-leveldb`
//! use this file too.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Whether a program is here; or, of one with flags (`cc -fsanitize=address`), whether it is a
/// compiler whose programs run when they are built with these. The first of a process that is told
/// no prints a line.
pub fn is_here(tool: &'static str) -> bool {
    static FOUND: Mutex<BTreeMap<&str, bool>> = Mutex::new(BTreeMap::new());
    // A test that has failed here must not make those that need something else fail.
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let here = *found.entry(tool).or_insert_with(|| {
        let here = match tool.split_once(' ') {
            None => Command::new(tool).arg("--version").output().is_ok(),
            Some((compiler, flags)) => builds(compiler, flags),
        };
        if !here {
            let line = format!("not tested: what needs {tool}, which is missing (scripts/test-tools)\n");
            // Not by `eprintln`, whose output is lost when the test passes.
            std::io::stderr().write_all(line.as_bytes()).ok();
        }
        here
    });
    drop(found);
    assert!(here || std::env::var("CI").as_deref() != Ok("true"), "{tool} is missing");
    here
}

/// Builds and runs a program that does nothing.
fn builds(compiler: &str, flags: &str) -> bool {
    let name = format!("esker-toolchain-{compiler}-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::remove_dir_all(&directory).ok();
    std::fs::create_dir_all(&directory).expect("the directory can be made");
    let (source, program) = (directory.join("nothing.c"), directory.join("nothing"));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("the program can be written");
    let mut compile = Command::new(compiler);
    compile.args(["-x", if compiler == "c++" { "c++" } else { "c" }]).arg(&source).args(["-x", "none"]);
    compile.args(flags.split(' ')).arg("-o").arg(&program);
    let succeeds = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    let here = succeeds(&mut compile) && succeeds(&mut Command::new(&program));
    std::fs::remove_dir_all(&directory).ok();
    here
}
