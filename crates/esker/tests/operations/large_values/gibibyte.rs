//! The longest value there is.

use super::{Scratch, keyspace};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::os::OsEnv;
use esker::{Db, Error, Options};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

/// Where the child process finds its directory.
const CHILD: &str = "ESKER_LARGE_CHILD";
const BYTES: usize = 1 << 30;
/// Memory beyond the value itself that a write and a read may need, and the process has anyway.
const SPARE_BYTES: usize = 128 << 20;

/// The greatest resident memory of this process so far; 0 where the system does not tell.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok()).map_or(0, |kib| kib << 10)
}

const PIECE_BYTES: usize = 1 << 20;

/// The pieces of the value, each of them different.
fn pieces() -> impl Iterator<Item = Vec<u8>> {
    (0..BYTES / PIECE_BYTES).map(|at| {
        let mut piece = super::value(1, PIECE_BYTES / 64).repeat(64);
        piece[at * 1000] ^= 1;
        piece
    })
}

fn is_the_value(value: &[u8]) -> bool {
    value.len() == BYTES && value.chunks_exact(PIECE_BYTES).zip(pieces()).all(|(found, piece)| found == piece)
}

/// The value is in memory once: the caller's when it is written, the one handed out when it is
/// read. In a process of its own, because the peak is the process's.
#[test]
fn a_gibibyte_is_in_memory_once() {
    if let Ok(directory) = std::env::var(CHILD) {
        return write_and_read(directory.as_ref());
    }
    let scratch = Scratch::new("gibibyte");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["large_values::gibibyte::a_gibibyte_is_in_memory_once", "--exact", "--nocapture"])
        .env(CHILD, scratch.path())
        .output()
        .unwrap();
    let output = [&child.stdout[..], &child.stderr].concat();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&output));
    println!("{}", String::from_utf8_lossy(&output));
}

fn write_and_read(directory: &std::path::Path) {
    let begin = Instant::now();
    // Without waiting for the device: how fast that is, is not the question.
    let env = FaultEnv::new(Arc::new(OsEnv));
    env.add(Rule::new(Class::Sync, 0, Action::Ignore).on_names_with(".blob").from_then_on());
    let options = || Options::default().write_buffer_bytes(1 << 20).background_threads(0).env(Arc::new(env.clone()));
    let db = Db::open(directory, options()).unwrap();
    let k = keyspace(&db);
    let mut value: Vec<u8> = Vec::with_capacity(BYTES + 1);
    pieces().for_each(|piece| value.extend_from_slice(&piece));
    k.put("a", &value).unwrap();
    value.push(0);
    assert!(matches!(k.put("b", &value), Err(Error::InvalidArgument { .. })));
    drop(value);
    assert!(is_the_value(&k.get("a").unwrap().unwrap()));
    println!("written and read after {:?}, peak {} MiB", begin.elapsed(), peak_bytes() >> 20);
    // Through a table; compaction does not touch it.
    db.compact().unwrap();
    drop(k);
    db.close().unwrap();
    let db = Db::open(directory, options()).unwrap();
    let mut cursor = keyspace(&db).cursor().unwrap();
    cursor.seek_to_first().unwrap();
    assert!(is_the_value(cursor.value()));
    drop(cursor);
    assert!(peak_bytes() < BYTES + SPARE_BYTES, "{} MiB at the peak", peak_bytes() >> 20);
    println!("done after {:?}, peak {} MiB", begin.elapsed(), peak_bytes() >> 20);
}
