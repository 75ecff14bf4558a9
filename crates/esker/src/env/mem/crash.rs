//! What a machine may find on its disk after the power was lost.
//!
//! Each file and each directory chooses for itself, so changes of different files are reordered
//! freely. Inside a file the unit of damage is the sector: every sector that a pending write
//! touches may be as it was, as it became after any number of those writes, or, for the bytes they
//! cover, zeroes or garbage. Bytes that no pending change covers never change: the disk is assumed
//! not to harm the rest of a sector that it rewrites.

use super::content::{Content, PAGE};
use super::earlier::SECTOR;
use super::state::{Change, Directory, Entry, FileData, Inode, NameChange, Names, State};
use crate::base::random::Random;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Which of the changes that were not durable a power loss leaves.
///
/// ```
/// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
/// # use std::path::Path;
/// # let env = MemEnv::new();
/// env.create(Path::new("note"))?; // neither synced nor its name
/// assert!(!env.crash(&CrashMode::LoseAll, 0).exists(Path::new("note"))?);
/// assert!(env.crash(&CrashMode::KeepAll, 0).exists(Path::new("note"))?);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CrashMode {
    /// None: exactly what was synced.
    LoseAll,
    /// All of them.
    KeepAll,
    /// Names and lengths survive, bytes do not: what a file grew by reads as zeroes, what it
    /// overwrote is as before.
    OnlyMetadata,
    /// Bytes and lengths of files survive, names do not.
    OnlyData,
    /// Each item by itself, chosen by the seed: lost, kept, torn, zeroed, turned into garbage,
    /// reordered.
    Random,
    /// As `Random`, by a disk that also harms the neighbours of what it rewrites: units of that
    /// many bytes that it was writing are garbage as a whole. No database promises to survive that
    /// whole; it must not give wrong answers.
    TornNeighbours(usize),
}

impl CrashMode {
    /// The modes that do not depend on the seed.
    ///
    /// ```
    /// # use esker::env::{Env, mem::{CrashMode, MemEnv, SyncFailure}};
    /// # use std::path::Path;
    /// # let env = MemEnv::new();
    /// for mode in CrashMode::FIXED {
    ///     let after = env.crash(&mode, 0);
    ///     assert!(after.files().is_empty());
    /// }
    /// ```
    pub const FIXED: [CrashMode; 4] =
        [CrashMode::LoseAll, CrashMode::KeepAll, CrashMode::OnlyMetadata, CrashMode::OnlyData];
}

/// One possible state of the disk after a power loss; everything in it is durable.
pub(super) fn image(state: &State, mode: CrashMode, seed: u64) -> State {
    let (next_inode, mapped, remembers) = (state.next_inode, state.mapped, state.remembers);
    let mut after = State { next_inode, mapped, remembers, ..State::default() };
    // A file may have several names, also in different directories.
    let mut files: HashMap<u64, Arc<Inode>> = HashMap::new();
    for (order, (path, directory)) in state.directories.iter().enumerate() {
        // Parents come first. A directory whose own name was lost takes its contents with it.
        if !is_reachable(&after, path) {
            continue;
        }
        let mut names = surviving_names(directory, mode, &mut Random::derived(seed, !(order as u64)));
        for entry in names.values_mut() {
            if let Entry::File(inode) = entry {
                let settled = files.entry(inode.number).or_insert_with(|| {
                    let data = inode.data.lock();
                    let content = surviving_content(&data, mode, &mut Random::derived(seed, inode.number));
                    let earlier = data.earlier_under(&content);
                    Inode::new(inode.number, FileData { earlier, ..FileData::settled(content) })
                });
                *entry = Entry::File(settled.clone());
            }
        }
        let settled = Directory { visible: names.clone(), durable: names, pending: Vec::new() };
        after.directories.insert(path.clone(), settled);
    }
    after
}

fn is_reachable(after: &State, path: &std::path::Path) -> bool {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return true;
    };
    let parent = after.directories.get(parent);
    parent.is_some_and(|parent| matches!(parent.visible.get(name), Some(Entry::Directory)))
}

fn surviving_names(directory: &Directory, mode: CrashMode, random: &mut Random) -> Names {
    let mut names = directory.durable.clone();
    let pending = &directory.pending;
    match mode {
        CrashMode::LoseAll | CrashMode::OnlyData => {}
        CrashMode::KeepAll | CrashMode::OnlyMetadata => pending.iter().for_each(|change| change.apply(&mut names)),
        CrashMode::Random | CrashMode::TornNeighbours(_) => {
            let kept = random_subset(pending, random);
            kept.into_iter().for_each(|change| change.apply(&mut names));
        }
    }
    names
}

/// Half of the time a prefix, as a journal would leave; else every change by itself.
fn random_subset<'a>(pending: &'a [NameChange], random: &mut Random) -> Vec<&'a NameChange> {
    if random.index(2) == 0 {
        return pending[..random.index(pending.len() + 1)].iter().collect();
    }
    let kept_of_eight = random.pick(&[1, 4, 7]);
    pending.iter().filter(|_| random.index(8) < kept_of_eight).collect()
}

fn surviving_content(data: &FileData, mode: CrashMode, random: &mut Random) -> Content {
    let mut content = data.durable.clone();
    if data.pending.is_empty() {
        return content;
    }
    match mode {
        CrashMode::LoseAll => {}
        CrashMode::KeepAll | CrashMode::OnlyData => apply_all(&mut content, &data.pending),
        CrashMode::OnlyMetadata => data.pending.iter().for_each(|change| change.apply_length(&mut content)),
        CrashMode::Random => match random.index(6) {
            0 => {}
            1 => apply_all(&mut content, &data.pending),
            2 => torn_prefix(&mut content, &data.pending, random),
            _ => scattered(&mut content, &data.pending, random),
        },
        CrashMode::TornNeighbours(unit) => {
            scattered(&mut content, &data.pending, random);
            torn_neighbours(&mut content, &data.pending, unit.max(1), random);
        }
    }
    content
}

fn apply_all(content: &mut Content, changes: &[Change]) {
    changes.iter().for_each(|change| change.apply(content));
}

/// Changes in order up to one that is cut: an append at any byte, a write in place at a sector
/// boundary.
fn torn_prefix(content: &mut Content, pending: &[Change], random: &mut Random) {
    let whole = random.index(pending.len());
    apply_all(content, &pending[..whole]);
    if let Change::Write { offset, bytes, append } = &pending[whole] {
        let mut cut = random.index(bytes.len() + 1);
        if !append {
            let boundary = (offset + cut) / SECTOR * SECTOR;
            cut = boundary.saturating_sub(*offset);
        }
        content.write(*offset, &bytes[..cut]);
    }
}

/// Every touched sector, or every touched page, goes its own way.
fn scattered(content: &mut Content, pending: &[Change], random: &mut Random) {
    // Setting the length is a step of its own: what came before a surviving one is decided by it,
    // what comes after one that was lost is lost with it.
    let steps: Vec<usize> =
        (0..pending.len()).filter(|&i| matches!(pending[i], Change::Resize(_))).map(|i| i + 1).collect();
    let survived = random.index(steps.len() + 1);
    let start = if survived == 0 { 0 } else { steps[survived - 1] };
    let end = steps.get(survived).map_or(pending.len(), |next| next - 1);
    apply_all(content, &pending[..start]);
    let writes: Vec<(usize, &[u8])> = pending[start..end]
        .iter()
        .filter_map(|change| match change {
            Change::Write { offset, bytes, .. } if !bytes.is_empty() => Some((*offset, &bytes[..])),
            _ => None,
        })
        .collect();

    let old_len = content.len();
    let new_len = writes.iter().map(|(offset, bytes)| offset + bytes.len()).fold(old_len, usize::max);
    let len = match random.index(4) {
        0 => old_len,
        1 => old_len + random.index(new_len - old_len + 1),
        _ => new_len,
    };
    content.resize(new_len);
    let unit = random.pick(&[SECTOR, PAGE]);
    let mut touched: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, (offset, bytes)) in writes.iter().enumerate() {
        for number in offset / unit..=(offset + bytes.len() - 1) / unit {
            touched.entry(number).or_default().push(index);
        }
    }
    let kept_of_eight = random.pick(&[1, 4, 7]);
    // Without damage the image is one that an orderly page cache could leave, which finds other
    // mistakes.
    let outcomes = if random.index(2) == 0 { 2 } else { 4 };
    for (number, indexes) in touched {
        let range = number * unit..(number + 1) * unit;
        let kept = if random.index(8) < kept_of_eight { indexes.len() } else { random.index(indexes.len()) };
        let outcome = if kept == indexes.len() { 0 } else { random.index(outcomes) };
        for (position, index) in indexes.into_iter().enumerate() {
            let (offset, bytes) = clip(writes[index], &range);
            match outcome {
                0 if position < kept => content.write(offset, bytes),
                2 => content.write(offset, &vec![0; bytes.len()]),
                3 => content.write(offset, &random.noise(bytes.len())),
                _ => {}
            }
        }
    }
    content.resize(len);
}

/// Half of the units that pending writes touch are garbage from end to end, as far as the file
/// reaches.
fn torn_neighbours(content: &mut Content, pending: &[Change], unit: usize, random: &mut Random) {
    let mut touched = BTreeSet::new();
    for change in pending {
        if let Change::Write { offset, bytes, .. } = change
            && !bytes.is_empty()
        {
            touched.extend(offset / unit..=(offset + bytes.len() - 1) / unit);
        }
    }
    for number in touched {
        let end = ((number + 1) * unit).min(content.len());
        if number * unit < end && random.index(2) == 0 {
            content.write(number * unit, &random.noise(end - number * unit));
        }
    }
}

/// The part of a write that lies in a range.
fn clip<'a>((offset, bytes): (usize, &'a [u8]), range: &Range<usize>) -> (usize, &'a [u8]) {
    let start = offset.max(range.start);
    let end = (offset + bytes.len()).min(range.end);
    (start, &bytes[start - offset..end - offset])
}
