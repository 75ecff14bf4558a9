//! Loads that are refused: "strictly ascending pairs become visible and durable together, or not at
//! all".

use super::Session;
use crate::model::Order;
use crate::operators::{ON_PURPOSE, silence_panics_on_purpose};
use crate::orders::order_of;
use crate::powerloss::asking::wrong;
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{NAMES, Refusal, loaded};
use esker::{Error, IngestReport, Keyspace};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};

type Pair = (Vec<u8>, Vec<u8>);

impl Session {
    /// Tries a load, which must be refused for that reason. Nothing is noted but which keys it was
    /// to change: whatever looks at the contents later finds them as they were.
    pub(super) fn refuse_load(
        &mut self,
        index: usize,
        pairs: &[Pair],
        why: Refusal,
        progress: &mut Progress,
    ) -> esker::Result<()> {
        progress.note_tried(&loaded(index, pairs));
        let keyspace = self.keyspace(index, progress)?;
        silence_panics_on_purpose();
        let tried = AssertUnwindSafe(|| try_load(&keyspace, pairs, why, order_of(NAMES[index])));
        match (catch_unwind(tried), why) {
            (Err(payload), Refusal::Panic) if payload.downcast_ref::<&str>() == Some(&ON_PURPOSE) => Ok(()),
            (Err(payload), _) => resume_unwind(payload),
            (Ok(Ok(report)), _) => wrong(format!("{report:?} of a load that is to be refused: {why:?}")),
            (Ok(Err(Error::InvalidArgument { .. })), Refusal::Twice | Refusal::OutOfOrder | Refusal::TooLong) => Ok(()),
            (Ok(Err(error)), _) => Err(error),
        }
    }
}

/// Loads the pairs, and behind them what the load is to be refused for.
fn try_load(keyspace: &Keyspace, pairs: &[Pair], why: Refusal, order: Order) -> esker::Result<IngestReport> {
    let behind = match why {
        Refusal::Twice => pairs.last().cloned(),
        Refusal::OutOfOrder => pairs.first().cloned(),
        Refusal::TooLong => Some((too_long(order), Vec::new())),
        Refusal::Panic => None,
    };
    let end = std::iter::from_fn(|| if why == Refusal::Panic { panic_any(ON_PURPOSE) } else { None });
    keyspace.ingest(pairs.iter().cloned().chain(behind).chain(end))
}

/// A key that is too long by a byte, behind all others but for a few short ones.
fn too_long(order: Order) -> Vec<u8> {
    let byte = if order == Order::Reverse { 0 } else { u8::MAX };
    vec![byte; order.longest_key() + 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Change, Write};
    use crate::powerloss::option_variants;
    use crate::powerloss::script::Step;
    use crate::powerloss::session::{Ground, run};
    use crate::state::Durability;
    use esker::env::mem::MemEnv;

    fn pairs() -> Vec<Pair> {
        ["a", "b", "c"].map(|key| (key.as_bytes().to_vec(), vec![b'v'; 500])).to_vec()
    }

    /// If a refused load changed what is there, or the handle were of no use behind it, this would
    /// fail.
    #[test]
    fn the_database_goes_on_behind_a_load_that_was_refused() {
        let put =
            |key: &str| Step::Single(Write::new(0, key, Change::Put(b"before or behind".to_vec())), Durability::Async);
        for (name, options) in option_variants() {
            for why in Refusal::ALL {
                let load = Step::RefusedIngest(0, pairs(), why);
                let steps = [put("b"), load.clone(), Step::Compare, put("c"), load, Step::DropAndReopen, Step::Compare];
                run(&steps, &Ground::new(&options, MemEnv::new()), &mut Progress::default(), &mut |_| {})
                    .unwrap_or_else(|error| panic!("{name}, {why:?}: {error}"));
            }
        }
    }

    #[test]
    #[should_panic(expected = "of a load that is to be refused")]
    fn a_load_that_is_not_refused_is_noticed() {
        let (_, options) = option_variants().swap_remove(0);
        let mut progress = Progress::default();
        let mut session = Session::open(&Ground::new(&options, MemEnv::new()), &mut progress).unwrap();
        // No key comes twice where there is none.
        _ = session.perform(&Step::RefusedIngest(0, Vec::new(), Refusal::Twice), &mut progress);
    }
}
