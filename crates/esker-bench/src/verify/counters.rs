//! Counters: what every key must have been added up to. Addition modulo 2^64 does not depend on the
//! order, so the sums are exact whatever order the threads' merges took.

use super::differences::{Checked, Checking, Differences};
use super::history::{Written, keys_of};
use super::parts::{on_each, part_size, zeros};
use super::scan::every_entry;
use esker_engines::Result;

/// Compares every counter; `None` if interrupted.
pub fn check(checking: &Checking<'_>) -> Result<Option<Checked>> {
    let Some(mut expected) = Expected::recompute(checking)? else { return Ok(None) };
    let count = expected.there.iter().filter(|there| **there).count() as u64;
    let mut differences = Differences::default();
    let mut session = checking.engine.session()?;
    let whole = every_entry(session.as_mut(), checking.interrupt, |key, value| {
        match checking.keys.number_of(key) {
            Some(number) if expected.take(number) => expected.compare(number, value, &mut differences),
            _ => differences.unexpected(key),
        };
    })?;
    if !whole {
        return Ok(None);
    }
    let left = expected.there.iter().enumerate().filter(|(_, there)| **there);
    left.for_each(|(number, _)| differences.missing(number as u64));
    let ops = checking.written.iter().map(|written| written.ops * u64::from(written.threads)).sum();
    Ok(Some(Checked { noun: "counters", expected: count, ops, differences }))
}

/// The sum of every key, and which keys there are.
struct Expected {
    sums: Vec<u64>,
    there: Vec<bool>,
}

impl Expected {
    fn recompute(checking: &Checking<'_>) -> Result<Option<Expected>> {
        let keys = keys_of(checking.written);
        let mut expected = Expected { sums: zeros(keys)?, there: zeros(keys)? };
        let size = part_size(keys);
        let parts = expected.sums.chunks_mut(size).zip(expected.there.chunks_mut(size)).enumerate();
        let parts = parts.map(|(part, (sums, there))| ((part * size) as u64, sums, there));
        let whole = on_each(parts, |(first, sums, there)| {
            let all = |written: &Written| {
                (0..written.threads).all(|thread| add(written, thread, checking, first, sums, there))
            };
            Ok(checking.written.iter().all(all))
        })?;
        Ok(whole.then_some(expected))
    }

    /// Whether the key is still to come; it is not afterwards.
    fn take(&mut self, number: u64) -> bool {
        let there = usize::try_from(number).ok().and_then(|number| self.there.get_mut(number));
        there.is_some_and(std::mem::take)
    }

    fn compare(&self, number: u64, value: &[u8], differences: &mut Differences) {
        let wanted = self.sums[number as usize];
        match <[u8; 8]>::try_from(value).map(u64::from_le_bytes) {
            Ok(sum) if sum == wanted => {}
            Ok(sum) => differences.wrong(number, || format!("is {sum} instead of {wanted}")),
            Err(_) => differences.wrong(number, || format!("has {} bytes instead of 8", value.len())),
        }
    }
}

/// Adds up what one thread merged into the keys from `first` on.
fn add(
    written: &Written,
    thread: u32,
    checking: &Checking<'_>,
    first: u64,
    sums: &mut [u64],
    there: &mut [bool],
) -> bool {
    written.play(thread, checking.pool, checking.interrupt, |key, operand| {
        let at = key.wrapping_sub(first) as usize;
        if let (Some(sum), Some(there)) = (sums.get_mut(at), there.get_mut(at)) {
            let operand = <[u8; 8]>::try_from(operand).map_or(0, u64::from_le_bytes);
            *sum = sum.wrapping_add(operand);
            *there = true;
        }
    })
}
