//! The hashes of earlier states, which are computed beside the entries that follow.

use crate::error::Result;
use crate::range_hash::RangeHash;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The newest hashes that are kept; those before are forgotten.
const KEPT: usize = 4;

/// The hashes of the states after some entries, by index.
#[derive(Default)]
pub(crate) struct Marks {
    marks: Mutex<BTreeMap<u64, Mark>>,
}

enum Mark {
    /// They will come.
    Pending(Receiver<Result<Vec<RangeHash>>>),
    /// They are there.
    Done(Vec<RangeHash>),
}

impl Marks {
    /// Takes what will be sent as the hashes of the state after that entry.
    pub fn expect(&self, index: u64) -> Sender<Result<Vec<RangeHash>>> {
        let (sender, receiver) = channel();
        let mut marks = self.marks.lock();
        marks.insert(index, Mark::Pending(receiver));
        while marks.len() > KEPT {
            marks.pop_first();
        }
        sender
    }

    /// The hashes of the state after that entry; waits for them. Nothing if they were not
    /// requested, not computed to their end, or are not kept any more.
    pub fn get(&self, index: u64) -> Result<Option<Vec<RangeHash>>> {
        let mut marks = self.marks.lock();
        let hashes = match marks.get(&index) {
            None => return Ok(None),
            Some(Mark::Done(hashes)) => return Ok(Some(hashes.clone())),
            Some(Mark::Pending(receiver)) => match receiver.recv() {
                Ok(hashes) => hashes?,
                // Nobody sends any more: the runtime ended first.
                Err(_) => return Ok(None),
            },
        };
        marks.insert(index, Mark::Done(hashes.clone()));
        Ok(Some(hashes))
    }
}
