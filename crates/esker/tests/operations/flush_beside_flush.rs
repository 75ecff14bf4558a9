//! A flush that finds another one at its work.

use crate::callbacks::FOR_EVER;
use crate::common::{DIRECTORY, files, keyspace, simulated, wait_until};
use crate::interrupting::Interrupting;
use esker::env::mem::MemEnv;
use esker::internals::waiting_threads;
use esker::{Db, WriteOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// Seen: a flush of writes without log returned while another thread, which had written the table,
/// still made the manifest in whose first record it is safe. Trigger: power lost right then, by a
/// disk that harms what stands beside the bytes that it writes. Cost: the writes.
#[test]
fn writes_without_log_are_in_a_manifest_of_their_own_when_any_flush_returns() {
    let env = MemEnv::new();
    let is_manifest = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST"));
    let interrupting = Interrupting::new(&env, is_manifest, FOR_EVER);
    let db = Db::open(DIRECTORY, simulated(&env).env(Arc::new(interrupting.clone()))).unwrap();
    let names = keyspace(&db, "names");
    names.put_with("a", "1", &WriteOptions::new().disable_wal(true)).unwrap();

    let (began, begun) = channel();
    let (other, its_env) = (db.clone(), env.clone());
    interrupting.interrupt_with(move || {
        let flushing = other.clone();
        let second = std::thread::spawn(move || {
            flushing.flush().unwrap();
            files(&its_env).remove("CURRENT")
        });
        wait_until("the second flush waits for the first, or has returned", || {
            waiting_threads(&other) > 0 || second.is_finished()
        });
        began.send(second).unwrap();
    });
    db.flush().unwrap();
    assert!(interrupting.has_interrupted());
    let current = begun.recv_timeout(FOR_EVER).unwrap().join().unwrap();
    assert_eq!(current, files(&env).remove("CURRENT"), "the manifest is not the one of the flush");
}
