//! A session store: sessions expire after half an hour without use, each use extends them, and a
//! user's sessions are found by an index.
//!
//! Run it with `cargo run --example session_store`, or with a directory as its argument to keep the
//! database: a second run finds the sessions of the first.

use esker::{Db, Keyspace, KeyspaceOptions, Options, Ttl, WriteOptions};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

const IDLE: Duration = Duration::from_secs(30 * 60);
/// How often a change is tried again that met another one of the same session.
const ATTEMPTS: usize = 10;

/// The two keyspaces, in which entries expire alike.
struct Sessions {
    db: Db,
    /// By token: the user.
    users: Keyspace,
    /// By user and token: nothing more.
    index: Keyspace,
}

impl Sessions {
    fn open(directory: &Path) -> esker::Result<Sessions> {
        let db = Db::open(directory, Options::default())?;
        let expiring = || KeyspaceOptions::default().ttl(Ttl::Enabled { default: Some(IDLE) });
        Ok(Sessions { users: db.keyspace("sessions", expiring())?, index: db.keyspace("by user", expiring())?, db })
    }

    /// Begins a session. False if the token is taken.
    fn begin(&self, token: &str, user: &str) -> esker::Result<bool> {
        // Of two that come with the same token at the same time, one gets it. Session and entry are
        // one write: after a crash there is none without the other.
        self.db.transact_with(ATTEMPTS, &WriteOptions::new().sync(true), |transaction| {
            let is_free = transaction.get(&self.users, token)?.is_none();
            if is_free {
                transaction.put(&self.users, token, user)?;
                transaction.put(&self.index, format!("{user}/{token}"), "")?;
            }
            Ok(is_free)
        })
    }

    /// The user of a session, which lives half an hour longer for it.
    fn use_session(&self, token: &str) -> esker::Result<Option<String>> {
        let Some(user) = self.users.get(token)? else { return Ok(None) };
        let user = String::from_utf8_lossy(&user).into_owned();
        // One write for both: a session and its entry in the index expire at the same moment.
        let mut batch = self.db.batch();
        batch.touch(&self.users, token, IDLE)?;
        batch.touch(&self.index, format!("{user}/{token}"), IDLE)?;
        batch.commit()?;
        Ok(Some(user))
    }

    /// The tokens of a user's sessions.
    fn of_user(&self, user: &str) -> esker::Result<Vec<String>> {
        let prefix = format!("{user}/");
        let keys = self.index.prefix(&prefix).map(|pair| pair.map(|(key, _)| key));
        keys.map(|key| key.map(|key| String::from_utf8_lossy(&key[prefix.len()..]).into_owned())).collect()
    }

    /// Ends a session; whether there was one.
    fn end(&self, token: &str) -> esker::Result<bool> {
        // Of two that end it at the same time, one is told so.
        self.db.transact(ATTEMPTS, |transaction| {
            let Some(user) = transaction.get(&self.users, token)? else { return Ok(false) };
            transaction.delete(&self.users, token)?;
            transaction.delete(&self.index, [&user[..], b"/", token.as_bytes()].concat())?;
            Ok(true)
        })
    }
}

/// Begins, uses and ends sessions in the database in `directory`.
pub fn run(directory: &Path) -> Result<(), Box<dyn Error>> {
    let sessions = Sessions::open(directory)?;
    // What an earlier run has left.
    for token in sessions.of_user("ada")? {
        assert!(sessions.end(&token)?);
    }
    assert!(sessions.begin("7f3a", "ada")?);
    assert!(sessions.begin("91bc", "ada")?);
    assert!(!sessions.begin("91bc", "bob")?, "the token is taken");

    assert_eq!(sessions.use_session("7f3a")?.as_deref(), Some("ada"));
    assert_eq!(sessions.use_session("0000")?, None);
    assert_eq!(sessions.of_user("ada")?, ["7f3a", "91bc"]);

    assert!(sessions.end("91bc")?);
    assert!(!sessions.end("91bc")?);
    assert_eq!(sessions.of_user("ada")?, ["7f3a"]);
    if let Some(expiry) = sessions.users.expires_at("7f3a")? {
        println!("ada's session expires: {expiry:?}");
    }
    Ok(())
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    if let Some(directory) = std::env::args_os().nth(1) {
        return run(Path::new(&directory));
    }
    let directory = std::env::temp_dir().join(format!("esker-example-session-store-{}", std::process::id()));
    let result = run(&directory);
    std::fs::remove_dir_all(&directory)?;
    result
}
