//! Updates: which keys there must be, and which values they may have. The order in which threads
//! came to a key is not known, but whichever write was the last was its thread's last write to that
//! key: each value must be one of those.

use super::differences::{Checked, Checking, Differences};
use super::history::{Written, keys_of};
use super::parts::{on_each, part_size, zeros};
use super::scan::every_entry;
use esker_engines::Result;
use twox_hash::XxHash3_128;

/// Compares every key and value; `None` if interrupted.
pub fn check(checking: &Checking<'_>) -> Result<Option<Checked>> {
    let mut differences = Differences::default();
    let Some(found) = read(checking, &mut differences)? else { return Ok(None) };
    let mut keys: Vec<Key> = zeros(keys_of(checking.written))?;
    let size = part_size(keys.len() as u64);
    let parts = keys.chunks_mut(size).zip(found.chunks(size)).enumerate();
    let whole = on_each(parts, |(part, (keys, found))| explain(checking, (part * size) as u64, keys, found))?;
    if !whole {
        return Ok(None);
    }
    let mut name = checking.keys.clone();
    for (number, (key, found)) in keys.iter().zip(&found).enumerate() {
        let number = number as u64;
        match (key.written, *found != ABSENT) {
            (true, false) => differences.missing(number),
            (false, true) => {
                name.set(number);
                differences.unexpected(name.bytes());
            }
            (true, true) if !key.explained => {
                differences.wrong(number, || "has a value that no thread wrote last".into())
            }
            _ => {}
        }
    }
    let expected = keys.iter().filter(|key| key.written).count() as u64;
    let ops = checking.written.iter().map(|written| written.ops * u64::from(written.threads)).sum();
    Ok(Some(Checked { noun: "values", expected, ops, differences }))
}

/// What is known of a key.
#[derive(Clone, Copy, Default)]
struct Key {
    written: bool,
    explained: bool,
    /// Written by the benchmark that is being played.
    again: bool,
}

const ABSENT: u64 = 0;

/// A value in 8 bytes, never [`ABSENT`]. Values of other sizes are told apart by a hash.
fn fingerprint(value: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(value) {
        Ok(bytes) => u64::from_le_bytes(bytes).max(1),
        Err(_) => (XxHash3_128::oneshot(value) as u64).max(1),
    }
}

/// The fingerprints of the values there are, by key; `None` if interrupted.
fn read(checking: &Checking<'_>, differences: &mut Differences) -> Result<Option<Vec<u64>>> {
    let mut found: Vec<u64> = zeros(keys_of(checking.written))?;
    let mut session = checking.engine.session()?;
    let whole = every_entry(session.as_mut(), checking.interrupt, |key, value| {
        let number = checking.keys.number_of(key).and_then(|number| usize::try_from(number).ok());
        match number.and_then(|number| found.get_mut(number)) {
            Some(slot) if *slot == ABSENT => *slot = fingerprint(value),
            _ => differences.unexpected(key),
        }
    })?;
    Ok(whole.then_some(found))
}

/// Plays every thread over the keys from `first` on, and marks those whose value is what some
/// thread wrote last.
fn explain(checking: &Checking<'_>, first: u64, keys: &mut [Key], found: &[u64]) -> Result<bool> {
    let mut last: Vec<u64> = zeros(keys.len() as u64)?;
    for written in checking.written {
        keys.iter_mut().for_each(|key| key.again = false);
        for thread in 0..written.threads {
            if !play(checking, written, thread, first, &mut last) {
                return Ok(false);
            }
            for ((key, found), last) in keys.iter_mut().zip(found).zip(&mut last) {
                if *last != ABSENT {
                    // This benchmark has replaced what earlier ones wrote to the key.
                    let explained = key.again && key.explained || last == found;
                    *key = Key { written: true, explained, again: true };
                    *last = ABSENT;
                }
            }
        }
    }
    Ok(true)
}

fn play(checking: &Checking<'_>, written: &Written, thread: u32, first: u64, last: &mut [u64]) -> bool {
    written.play(thread, checking.pool, checking.interrupt, |key, value| {
        if let Some(last) = last.get_mut(key.wrapping_sub(first) as usize) {
            *last = fingerprint(value);
        }
    })
}
