//! Benchmarks and studies that cannot run: one line each, and nothing on standard output.
#![allow(clippy::unwrap_used)]

use crate::common::{Sandbox, orderly_line, run};

#[test]
fn benchmarks_that_cannot_run() {
    let sandbox = Sandbox::new("bench");
    let db = &sandbox.text("bench");
    let base = ["bench", "--db", db, "--num", "10", "--quiet"];
    for (rest, expected) in [
        (&["--benchmarks", "nosuch"][..], "nosuch"),
        (&["--no_such_flag"], "no_such_flag"),
        (&["--num", "many"], "many"),
        (&["--engine", "nosuch"], "nosuch"),
        (&["--engine", "rocksdb", "--lib", "rocksdb=/nonexistent/lib.so", "--benchmarks", "fillseq"], "/nonexistent"),
    ] {
        let arguments = [&base[..], rest].concat();
        let line = orderly_line(&arguments, &run(&arguments));
        assert!(line.contains(expected), "{rest:?}: {line}");
    }
    let arguments = ["study", "nosuch"];
    assert!(orderly_line(&arguments, &run(&arguments)).contains("nosuch"));
}
