//! What the writing process does, and what it says about it.
//!
//! A commit is a function of the seed, of the number of cuts before it and of its own number, so
//! the parent knows the contents after any number of commits. The number of cuts is part of it so
//! that a commit that was lost is unlike the one that has its number later.

use crate::Checked;
use crate::model::{Change, Operator, Ttl, Write};
use crate::random::Random;
use crate::state::{Durability, keyspace_options, write_batch};
use esker::{Db, Keyspace, Options, WalMode};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::Path;

/// The keyspaces.
pub(super) const KEYSPACES: [(&str, Operator); 2] = [("values", Operator::None), ("counters", Operator::UInt64Add)];
/// Their names.
pub(super) const NAMES: [&str; 2] = [KEYSPACES[0].0, KEYSPACES[1].0];
const COUNTER: &[u8] = b"~commits";

/// One life of the writing process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) seed: u64,
    /// Cuts before it.
    pub(super) cuts: u64,
}

/// What the writer reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// A commit returned: it survives the process.
    Committed(u64),
    /// Everything up to this commit is promised to survive the machine.
    Synced(u64),
    /// A checkpoint of that many commits was made.
    Checkpoint(u64),
}

/// Bytes of a report in the pipe.
pub(super) const REPORT_BYTES: usize = 9;

impl Report {
    fn encode(self) -> [u8; REPORT_BYTES] {
        let (kind, number) = match self {
            Report::Committed(number) => (0, number),
            Report::Synced(number) => (1, number),
            Report::Checkpoint(number) => (2, number),
        };
        let mut bytes = [kind; REPORT_BYTES];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    /// Reads what [`Report::encode`] wrote.
    pub(super) fn decode(bytes: [u8; REPORT_BYTES]) -> Option<Report> {
        let [kind, number @ ..] = bytes;
        let number = u64::from_le_bytes(number);
        match kind {
            0 => Some(Report::Committed(number)),
            1 => Some(Report::Synced(number)),
            2 => Some(Report::Checkpoint(number)),
            _ => None,
        }
    }
}

/// Whether a database gets its promises from [`Db::sync`], behind commits that ask for none: no
/// segment of its log is filled with zeroes then, and the first sync of each block has to record it
/// as written. A database keeps one seed, and with it this.
fn syncs_apart(seed: u64) -> bool {
    seed % 5 < 2
}

/// The options of both sides: small, so that everything happens often. A database keeps one seed,
/// and with it its kind of log.
pub(super) fn options(seed: u64) -> Options {
    let options = Options::default()
        .write_buffer_bytes(48 << 10)
        .target_file_bytes(64 << 10)
        .block_bytes(1 << 10)
        .wal_segment_bytes(64 << 10)
        .min_blob_size(2000)
        .background_threads(1);
    if seed % 4 == 3 { options.wal_mode(WalMode::Plain) } else { options }
}

/// How a commit is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Batch(Durability),
    Ingest,
}

/// The writes of commit `number`, counting from 1.
pub(super) fn commit_of(life: Life, number: u64) -> (Vec<Write>, Way) {
    let mut random = Random::derived(life.seed, &[life.cuts, number]);
    let counter = Write::new(0, COUNTER, Change::Put(number.to_le_bytes().to_vec()));
    if random.below(150) == 0 {
        let count = random.between(1, 60);
        let pairs: BTreeMap<_, _> = (0..count).map(|_| (key(&mut random), value(&mut random))).collect();
        let mut writes: Vec<Write> = pairs.into_iter().map(|(key, value)| Write::new(0, key, value)).collect();
        // Its key comes after all others: an ingest takes ascending ones.
        writes.push(counter);
        return (writes, Way::Ingest);
    }
    let mut writes = Vec::new();
    for _ in 0..random.between(1, 6) {
        let keyspace = random.below(KEYSPACES.len());
        let key = key(&mut random);
        let change = match (keyspace, random.below(10)) {
            (_, 0..=1) => Change::Delete,
            (0, _) => value(&mut random),
            (_, 2..=3) => Change::Put(random.next().to_le_bytes().to_vec()),
            _ => Change::Merge((random.below(1000) as u64).to_le_bytes().to_vec()),
        };
        writes.push(Write::new(keyspace, key, change));
    }
    writes.push(counter);
    // Lives with few syncs, where a sync has much to cover, and lives with many.
    let percent = [1, 5, 40][(life.cuts % 3) as usize];
    (writes, Way::Batch(if random.percent(percent) { Durability::Sync } else { Durability::Async }))
}

fn key(random: &mut Random) -> Vec<u8> {
    format!("key{:04}", random.below(1200)).into_bytes()
}

fn value(random: &mut Random) -> Change {
    let length = if random.percent(4) { random.between(1000, 12_000) } else { random.between(0, 120) };
    Change::Put(random.bytes(length))
}

/// How many commits a database holds.
pub(super) fn counter(db: &Db) -> Checked<u64> {
    let Ok(keyspace) = db.existing_keyspace(NAMES[0]) else { return Ok(0) };
    match keyspace.get(COUNTER).map_err(|error| format!("the counter cannot be read: {error}"))? {
        None => Ok(0),
        Some(bytes) => bytes[..].try_into().map(u64::from_le_bytes).map_err(|_| "the counter is damaged".to_string()),
    }
}

fn open(path: &Path, seed: u64) -> esker::Result<(Db, Vec<Keyspace>)> {
    let db = Db::open(path, options(seed))?;
    let keyspaces = KEYSPACES.iter().map(|(name, operator)| db.keyspace(name, keyspace_options(*operator, Ttl::Off)));
    let keyspaces = keyspaces.collect::<esker::Result<Vec<_>>>()?;
    Ok((db, keyspaces))
}

/// The directory of the checkpoint of so many commits, beside the database.
pub(super) fn checkpoint_name(cuts: u64, number: u64) -> String {
    format!("checkpoint-{cuts}-{number}")
}

fn commit(db: &Db, keyspaces: &[Keyspace], writes: &[Write], way: Way) -> esker::Result<()> {
    let durability = match way {
        Way::Batch(durability) => durability,
        Way::Ingest => {
            let pairs = writes.iter().filter_map(|write| match &write.change {
                Change::Put(value) => Some((&write.key, value)),
                _ => None,
            });
            return keyspaces[0].ingest(pairs).map(|_| ());
        }
    };
    write_batch(db, keyspaces, writes, durability.options())
}

/// Writes until it is killed or a call fails. Reports go to standard output.
pub(super) fn write(path: &Path, life: Life) -> Checked<()> {
    let failed = |error: esker::Error| format!("the writer failed: {error}");
    // Not through `Stdout`, which buffers: every report must be with the system before the next
    // call begins.
    let output = std::io::stdout().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    let mut output = File::from(output);
    let mut tell = |report: Report| output.write_all(&report.encode()).map_err(|error| format!("no reader: {error}"));
    let mut random = Random::derived(life.seed, &[u64::MAX, life.cuts]);
    let (mut db, mut keyspaces) = open(path, life.seed).map_err(failed)?;
    let mut number = counter(&db)?;
    loop {
        number += 1;
        let (writes, way) = commit_of(life, number);
        if way == Way::Batch(Durability::Sync) && syncs_apart(life.seed) {
            commit(&db, &keyspaces, &writes, Way::Batch(Durability::Async)).map_err(failed)?;
            db.sync().map_err(failed)?;
        } else {
            commit(&db, &keyspaces, &writes, way).map_err(failed)?;
        }
        tell(if way == Way::Batch(Durability::Async) { Report::Committed(number) } else { Report::Synced(number) })?;
        match random.below(600) {
            0..=1 => db.flush().map_err(failed)?,
            2 => db.compact().map_err(failed)?,
            3 => db.sync().map_err(failed)?,
            4 => {
                let directory = path.with_file_name(checkpoint_name(life.cuts, number));
                db.checkpoint(directory).map_err(failed)?;
                tell(Report::Checkpoint(number))?;
                continue;
            }
            5 => {
                drop(keyspaces);
                db.close().map_err(failed)?;
                // A closed database is safe before it is opened again.
                tell(Report::Synced(number))?;
                (db, keyspaces) = open(path, life.seed).map_err(failed)?;
            }
            _ => continue,
        }
        tell(Report::Synced(number))?;
    }
}
