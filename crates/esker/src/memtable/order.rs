//! The order of a memtable, made when somebody asks for it.
//!
//! Writes only append to the arena. The first reader that needs order sorts what has been appended since the last one into a new run; a run that has become
//! at least half as long as the one before it is merged with it, so that there are never more than a logarithm of runs and every entry is
//! merged a logarithm of times.

use super::arena::Arena;
use crate::base::key::{common_prefix, compare, head};
use std::sync::Arc;

/// Sorted entries of a memtable: their offsets, and the eight bytes after the prefix that their keys share.
pub struct Run {
    prefix: Vec<u8>,
    heads: Vec<u64>,
    offsets: Vec<u32>,
}

impl Run {
    fn build(arena: &Arena, offsets: Vec<u32>) -> Run {
        let key = |offset: u32| arena.stored(offset).key();
        let prefix = match offsets.first() {
            None => Vec::new(),
            Some(&first) => {
                let first = key(first);
                let shared = offsets.iter().fold(first.len(), |shared, &o| common_prefix(&first[..shared], key(o)));
                first[..shared].to_vec()
            }
        };
        let skip = prefix.len();
        let mut pairs: Vec<(u64, u32)> = offsets.iter().map(|&o| (head(key(o), skip), o)).collect();
        // A stable sort: it finds the sorted runs that sequential loads and merged runs are made of.
        pairs.sort_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| {
                let (a, b) = (arena.stored(a.1), arena.stored(b.1));
                compare(a.key(), a.sequence(), b.key(), b.sequence())
            })
        });
        let (heads, offsets) = pairs.into_iter().unzip();
        Run { prefix, heads, offsets }
    }

    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<u32> {
        self.offsets.get(index).copied()
    }

    #[inline]
    pub fn offset(&self, index: usize) -> u32 {
        self.offsets[index]
    }

    /// The first index whose entry is at or after (`key`, `sequence`).
    pub fn lower_bound(&self, arena: &Arena, key: &[u8], sequence: u64) -> usize {
        let skip = self.prefix.len();
        let start = &key[..key.len().min(skip)];
        match start.cmp(&self.prefix[..start.len()]) {
            std::cmp::Ordering::Less => return 0,
            std::cmp::Ordering::Greater => return self.len(),
            std::cmp::Ordering::Equal if start.len() < skip => return 0,
            std::cmp::Ordering::Equal => {}
        }
        let wanted = head(key, skip);
        let from = self.heads.partition_point(|&h| h < wanted);
        let ties = self.heads[from..].partition_point(|&h| h == wanted);
        from + self.offsets[from..from + ties].partition_point(|&offset| {
            let entry = arena.stored(offset);
            compare(entry.key(), entry.sequence(), key, sequence).is_lt()
        })
    }
}

/// The runs made so far, longest first.
#[derive(Default)]
pub struct Order {
    /// Arena bytes that the runs cover.
    covered: usize,
    runs: Vec<Arc<Run>>,
}

impl Order {
    /// Covers the arena up to `end`, and returns the runs.
    pub fn extend(&mut self, arena: &Arena, start: usize, end: usize) -> Vec<Arc<Run>> {
        let mut at = self.covered.max(start);
        let mut offsets = Vec::new();
        while at < end {
            let entry = arena.entry(at);
            if !entry.is_dead() {
                offsets.push((at / 8) as u32);
            }
            at = entry.end();
        }
        self.covered = at;
        while !offsets.is_empty() {
            match self.runs.last() {
                Some(last) if offsets.len() * 2 >= last.len() => {
                    let mut merged = last.offsets.clone();
                    merged.append(&mut offsets);
                    offsets = merged;
                    self.runs.pop();
                }
                _ => self.runs.push(Arc::new(Run::build(arena, std::mem::take(&mut offsets)))),
            }
        }
        self.runs.clone()
    }

    /// Bytes of the runs.
    pub fn bytes(&self) -> usize {
        self.runs.iter().map(|run| run.prefix.capacity() + 8 * run.heads.capacity() + 4 * run.offsets.capacity()).sum()
    }

    /// As `extend`, with everything in one run.
    pub fn seal(&mut self, arena: &Arena, start: usize, end: usize) -> Arc<Run> {
        let runs = self.extend(arena, start, end);
        if let [run] = runs.as_slice() {
            return Arc::clone(run);
        }
        let offsets = runs.iter().flat_map(|run| run.offsets.iter().copied()).collect();
        let run = Arc::new(Run::build(arena, offsets));
        self.runs = vec![Arc::clone(&run)];
        run
    }
}
