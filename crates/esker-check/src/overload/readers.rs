//! Thousands of iterators and snapshots held while writers overwrite what they see, and flushes and
//! merges go on.
//!
//! A writer overwrites all of its keys in one batch, again and again, each time with the number of
//! the batch. A snapshot or iterator must show one number for all keys of a writer: between the
//! batches that were acknowledged before it was taken, and those begun before that was done. A
//! snapshot reads that number at once, and must not change its mind.

use super::machine::bytes_ending;
use super::share::{Share, eventually, failed};
use crate::Checked;
use crate::state::shown;
use esker::{Db, Iter, Keyspace, KeyspaceOptions, Options, Snapshot};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Instant;

const WRITERS: usize = 2;
const KEYS: u64 = 16;
const VALUE_BYTES: usize = 100;

/// How far a writer is.
#[derive(Debug, Default)]
struct Progress {
    begun: AtomicU64,
    acknowledged: AtomicU64,
}

/// Batches of each writer that a snapshot or iterator may show.
type Bounds = [(u64, u64); WRITERS];

enum View {
    Snapshot(Snapshot),
    // It is large, and there are thousands.
    Iter(Box<Iter>),
}

struct Held {
    view: View,
    bounds: Bounds,
}

fn key(writer: usize, key: u64) -> Vec<u8> {
    format!("{writer}/{key:04}").into_bytes()
}

fn value(writer: usize, key: u64, number: u64) -> Vec<u8> {
    let mut value = vec![writer as u8 ^ key as u8; VALUE_BYTES];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

fn write(db: &Db, keyspace: &Keyspace, writer: usize, progress: &Progress, stop: &AtomicBool) -> Checked<()> {
    while !stop.load(SeqCst) {
        let number = progress.acknowledged.load(SeqCst) + 1;
        progress.begun.store(number, SeqCst);
        let mut batch = db.batch();
        for at in 0..KEYS {
            batch.put(keyspace, key(writer, at), value(writer, at, number)).map_err(failed("a put"))?;
        }
        batch.commit().map_err(failed("a batch"))?;
        progress.acknowledged.store(number, SeqCst);
    }
    Ok(())
}

/// Compares all that a snapshot or iterator shows.
fn check(pairs: impl Iterator<Item = esker::Result<(Vec<u8>, Vec<u8>)>>, bounds: &Bounds) -> Checked<()> {
    let mut pairs = pairs;
    for (writer, (least, most)) in bounds.iter().enumerate() {
        let mut shows = None;
        for at in 0..KEYS {
            let pair = pairs.next().transpose().map_err(|error| format!("a view fails: {error}"))?;
            let Some((found, bytes)) = pair else { return Err("a view ends too soon".to_string()) };
            let number = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let number_before = *shows.get_or_insert(number);
            let right = found == key(writer, at) && bytes == value(writer, at, number);
            if !right || number != number_before || number < *least || number > *most {
                let found = shown(&found);
                return Err(format!("{found} of batch {number} beside {number_before}, allowed {least} to {most}"));
            }
        }
    }
    match pairs.next() {
        None => Ok(()),
        Some(_) => Err("a view shows more than was written".to_string()),
    }
}

impl Held {
    fn take(db: &Db, keyspace: &Keyspace, number: u64, progress: &[Progress; WRITERS]) -> Checked<Held> {
        let least = [0, 1].map(|writer| progress[writer].acknowledged.load(SeqCst));
        let mut view = match number % 3 {
            0 => View::Iter(Box::new(keyspace.iter())),
            1 => View::Iter(Box::new(db.snapshot().iter(keyspace))),
            _ => View::Snapshot(db.snapshot()),
        };
        let most = [0, 1].map(|writer| progress[writer].begun.load(SeqCst));
        let mut bounds = [0, 1].map(|writer| (least[writer], most[writer]));
        if let View::Snapshot(snapshot) = &mut view {
            for (writer, (least, most)) in bounds.iter_mut().enumerate() {
                let found = snapshot.get(keyspace, key(writer, 0)).map_err(failed("a get"))?;
                let number = found.and_then(|bytes| bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)));
                match number {
                    Some(number) if (*least..=*most).contains(&number) => (*least, *most) = (number, number),
                    _ => return Err(format!("a snapshot shows batch {number:?}, allowed {least} to {most}")),
                }
            }
        }
        Ok(Held { view, bounds })
    }

    fn check(self, keyspace: &Keyspace) -> Checked<()> {
        let iter = match self.view {
            View::Iter(iter) => *iter,
            View::Snapshot(snapshot) => snapshot.iter(keyspace),
        };
        check(iter.map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec()))), &self.bounds)
    }
}

/// Takes snapshots and iterators, each of other batches than the one before, and holds them until
/// the time is up.
fn hold(db: &Db, keyspace: &Keyspace, share: &Share, progress: &[Progress; WRITERS]) -> Checked<Vec<Held>> {
    let started = Instant::now();
    let batches = || progress.iter().map(|writer| writer.acknowledged.load(SeqCst)).sum::<u64>();
    let mut held = Vec::new();
    let mut before = 0;
    eventually(|| {
        if progress.iter().all(|writer| writer.acknowledged.load(SeqCst) > 0) {
            Ok(())
        } else {
            Err("no writes".to_string())
        }
    })?;
    while (held.len() as u64) < share.readers {
        // More of them would not fit if the machine is slow: at least some, then until the time is
        // up.
        if started.elapsed() > share.time && held.len() > 10 {
            break;
        }
        let more = || if batches() > before { Ok(()) } else { Err("the writers stand still".to_string()) };
        if more().is_err() {
            eventually(more)?;
        }
        before = batches();
        held.push(Held::take(db, keyspace, held.len() as u64, progress)?);
    }
    while started.elapsed() < share.time {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Ok(held)
}

fn tend(db: &Db, stop: &AtomicBool) -> Checked<u64> {
    let mut merges = 0;
    while !stop.load(SeqCst) {
        db.flush().map_err(failed("a flush"))?;
        if merges % 8 == 7 {
            db.compact().map_err(failed("a merge"))?;
        }
        merges += 1;
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Ok(merges)
}

/// Versions kept for the snapshots are dropped with them: one version of each key is left, and no
/// table that nobody needs.
fn reclaimed(db: &Db) -> Checked<()> {
    db.compact().map_err(failed("a merge"))?;
    let stats = db.stats();
    let (entries, files) = (stats.keyspaces[0].entries, bytes_ending(db.path(), ".table")?);
    let expected = WRITERS as u64 * KEYS;
    if entries != expected || stats.live_snapshots != 0 || files != stats.table_bytes {
        return Err(format!(
            "{entries} entries are left of {expected}, {} snapshots, {files} bytes of tables of {}",
            stats.live_snapshots, stats.table_bytes
        ));
    }
    Ok(())
}

pub(super) fn run(share: &Share) -> Checked<String> {
    let path = share.directory.join("db");
    let options = Options::default().write_buffer_bytes(1 << 20).target_file_bytes(1 << 20).wal_segment_bytes(1 << 20);
    let db = Db::open(&path, options.clone()).map_err(failed("open"))?;
    let keyspace = db.keyspace("k", KeyspaceOptions::default()).map_err(failed("a new keyspace"))?;
    let progress: [Progress; WRITERS] = Default::default();
    let stop = AtomicBool::new(false);
    let (held, tended) = std::thread::scope(|scope| {
        let (db, keyspace, stop) = (&db, &keyspace, &stop);
        let mut threads = Vec::new();
        for (writer, progress) in progress.iter().enumerate() {
            threads.push(scope.spawn(move || write(db, keyspace, writer, progress, stop)));
        }
        let tending = scope.spawn(move || tend(db, stop));
        let held = hold(db, keyspace, share, &progress);
        stop.store(true, SeqCst);
        let panicked = |_| Err("a thread panicked".to_string());
        let wrote: Checked<Vec<()>> =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect();
        let tended = tending.join().unwrap_or_else(|_| Err("a thread panicked".to_string()));
        (held.and_then(|held| wrote.map(|_| held)), tended)
    });
    let (held, tended) = (held?, tended?);
    let (views, stats) = (held.len(), db.stats());
    held.into_iter().try_for_each(|held| held.check(&keyspace))?;
    eventually(|| reclaimed(&db))?;
    let last = [0, 1].map(|writer| progress[writer].acknowledged.load(SeqCst));
    drop((keyspace, db));
    let db = Db::open(&path, options).map_err(failed("open"))?;
    let keyspace = db.existing_keyspace("k").map_err(failed("the keyspace"))?;
    let pairs = keyspace.iter().map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec())));
    check(pairs, &last.map(|number| (number, number)))?;
    Ok(format!(
        "{views} views held, each its own; {} batches, {tended} flushes asked for, {} entries kept for views, {} after",
        last.iter().sum::<u64>(),
        stats.keyspaces[0].entries,
        WRITERS as u64 * KEYS
    ))
}

#[cfg(test)]
mod tests {
    use super::{KEYS, WRITERS, check, key, value};

    fn shown(numbers: [u64; WRITERS]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let of = |writer: usize| (0..KEYS).map(move |at| (key(writer, at), value(writer, at, numbers[writer])));
        (0..WRITERS).flat_map(of).collect()
    }

    #[test]
    fn a_view_that_is_not_its_own_is_noticed() {
        let check = |pairs: Vec<(Vec<u8>, Vec<u8>)>| check(pairs.into_iter().map(Ok), &[(3, 4), (9, 9)]);
        assert_eq!(check(shown([3, 9])), Ok(()));
        assert_eq!(check(shown([4, 9])), Ok(()));
        assert!(check(shown([5, 9])).is_err());
        assert!(check(shown([3, 8])).is_err());
        let mut torn = shown([3, 9]);
        torn[5] = (key(0, 5), value(0, 5, 4));
        assert!(check(torn).is_err());
        let mut lost = shown([3, 9]);
        lost.remove(20);
        assert!(check(lost).is_err());
        let mut more = shown([3, 9]);
        more.push((key(1, KEYS), value(1, KEYS, 9)));
        assert!(check(more).is_err());
    }
}
