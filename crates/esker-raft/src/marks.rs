//! The hashes of earlier states, which are computed beside the entries that follow.

use crate::error::Result;
use crate::range_hash::RangeHash;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The newest hashes that are kept; those before are forgotten.
const KEPT: usize = 4;

/// The hashes of the states after some entries, by index.
#[derive(Default)]
pub(crate) struct Marks {
    /// Each with a lock of its own, so that who waits for one holds up no other.
    marks: Mutex<BTreeMap<u64, Arc<Mutex<Mark>>>>,
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
        marks.insert(index, Arc::new(Mutex::new(Mark::Pending(receiver))));
        while marks.len() > KEPT {
            marks.pop_first();
        }
        sender
    }

    /// The hashes of the state after that entry; waits for them. Nothing if they were not
    /// requested, not computed to their end, or are not kept any more.
    pub fn get(&self, index: u64) -> Result<Option<Vec<RangeHash>>> {
        let Some(mark) = self.marks.lock().get(&index).cloned() else { return Ok(None) };
        let mut mark = mark.lock();
        let hashes = match &*mark {
            Mark::Done(hashes) => return Ok(Some(hashes.clone())),
            Mark::Pending(receiver) => match receiver.recv() {
                Ok(hashes) => hashes?,
                // Nobody sends any more: the runtime ended first.
                Err(_) => return Ok(None),
            },
        };
        *mark = Mark::Done(hashes.clone());
        Ok(Some(hashes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_hashes_holds_up_no_other_entry() {
        let marks = Marks::default();
        let first = marks.expect(1);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| marks.get(1));
            // Until it waits, with the lock of its mark. With that of all marks this never ends.
            while marks.marks.lock()[&1].try_lock().is_some() {
                std::thread::yield_now();
            }
            marks.expect(2).send(Ok(Vec::new())).unwrap();
            assert_eq!(marks.get(2).unwrap(), Some(Vec::new()));
            // The one that is waited for may even be forgotten.
            for index in 3..3 + KEPT as u64 {
                drop(marks.expect(index));
            }
            assert_eq!(marks.get(1).unwrap(), None);
            first.send(Ok(Vec::new())).unwrap();
            assert_eq!(waiting.join().unwrap().unwrap(), Some(Vec::new()));
        });
    }
}
