//! A flush that finds another one at its work.

use crate::common::{DIRECTORY, files, keyspace, simulated};
use crate::interrupting::Interrupting;
use esker::env::mem::MemEnv;
use esker::{Db, WriteOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Seen: a flush of writes without log returned while another thread, which had written the table,
/// still made the manifest in whose first record it is safe. Trigger: power lost right then, by a
/// disk that harms what stands beside the bytes that it writes. Cost: the writes.
#[test]
fn writes_without_log_are_in_a_manifest_of_their_own_when_any_flush_returns() {
    let env = MemEnv::new();
    let is_manifest = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST"));
    // The second flush is to wait for the first, so it does not end before this does.
    let interrupting = Interrupting::new(&env, is_manifest, Duration::from_millis(300));
    let db = Db::open(DIRECTORY, simulated(&env).env(Arc::new(interrupting.clone()))).unwrap();
    let names = keyspace(&db, "names");
    names.put_with("a", "1", &WriteOptions::new().disable_wal(true)).unwrap();

    let (returned, at_return) = channel();
    let (other, its_env) = (db.clone(), env.clone());
    interrupting.interrupt_with(move || {
        other.flush().unwrap();
        returned.send(files(&its_env).remove("CURRENT")).unwrap();
    });
    db.flush().unwrap();
    assert!(interrupting.has_interrupted());
    let current = at_return.recv_timeout(Duration::from_secs(300)).unwrap();
    assert_eq!(current, files(&env).remove("CURRENT"), "the manifest is not the one of the flush");
}
