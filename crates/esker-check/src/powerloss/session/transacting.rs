//! Steps with transactions: committed at once, abandoned, met by the writes of others, or held open
//! over other steps.

use super::Session;
use super::open_transaction::{Open, commit, read_and_write};
use crate::model::Write;
use crate::powerloss::asking::{make, write_options, write_single};
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{Step, contended, count};
use crate::state::Durability;
use esker::{Keyspace, Transaction};

impl Session {
    /// Performs a step with a transaction.
    pub(super) fn transact(&mut self, step: &Step, progress: &mut Progress) -> esker::Result<()> {
        match step {
            Step::Transaction(writes, durability) => self.commit_at_once(writes, *durability, progress),
            Step::Abandon(writes) => self.abandon(writes, progress),
            Step::Contend(writes) => self.contend(writes, progress),
            Step::Begin(slot, writes) => self.begin(*slot, writes, progress),
            Step::Commit(slot, durability) => match self.open[*slot].take() {
                Some(open) => commit(open, *durability, progress),
                None => Ok(()),
            },
            Step::Rollback(slot) => {
                if let Some(Open { transaction, .. }) = self.open[*slot].take() {
                    transaction.rollback();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The writes, each with its keyspace.
    fn with_keyspaces(&mut self, writes: &[Write], progress: &mut Progress) -> esker::Result<Vec<(Keyspace, Write)>> {
        let mut placed = Vec::new();
        for write in writes {
            placed.push((self.keyspace(write.keyspace, progress)?, write.clone()));
        }
        Ok(placed)
    }

    fn commit_at_once(
        &mut self,
        writes: &[Write],
        durability: Durability,
        progress: &mut Progress,
    ) -> esker::Result<()> {
        let writes = [&progress.allowed(writes)[..], &[count(progress.next_number())]].concat();
        let placed = self.with_keyspaces(&writes, progress)?;
        let options = write_options(durability, progress);
        // Every other one by the call that commits by itself.
        let by_itself = progress.next_number().is_multiple_of(2);
        let view = progress.view();
        let fill = |transaction: &mut Transaction| read_and_write(transaction, &placed, view.clone()).map(drop);
        let attempt = |progress: &mut Progress| progress.attempt_transaction(&writes, durability);
        let made = if by_itself {
            make(progress, attempt, || self.db.transact_with(1, &options, fill))?
        } else {
            let mut transaction = self.db.transaction();
            fill(&mut transaction)?;
            make(progress, attempt, || transaction.commit_with(&options))?
        };
        if made.is_some() {
            progress.acknowledge(durability);
        }
        Ok(())
    }

    /// Begins one and makes its writes. What it does is noted as tried, and as nothing else.
    fn begun(&mut self, writes: &[Write], progress: &mut Progress) -> esker::Result<Open> {
        progress.note_tried(writes);
        let placed = self.with_keyspaces(writes, progress)?;
        let mut transaction = self.db.transaction();
        let sights = read_and_write(&mut transaction, &placed, progress.view())?;
        let own = writes.iter().filter(|write| progress.has_keys(write)).cloned().collect();
        Ok(Open { transaction, own, sights, since: progress.attempted(), dropped: Vec::new() })
    }

    /// One of which nothing is ever visible: not the commit counter either, which is compared with
    /// all else.
    fn abandon(&mut self, writes: &[Write], progress: &mut Progress) -> esker::Result<()> {
        let writes = [&progress.allowed(writes)[..], &[count(progress.next_number())]].concat();
        let Open { transaction, .. } = self.begun(&writes, progress)?;
        if writes.len().is_multiple_of(2) {
            transaction.rollback();
        }
        // Otherwise it is dropped, which is the same.
        Ok(())
    }

    /// One that must not commit, as somebody else writes to a key of its own.
    fn contend(&mut self, writes: &[Write], progress: &mut Progress) -> esker::Result<()> {
        let writes = progress.allowed(writes);
        let Some(outside) = contended(&writes).cloned() else { return self.abandon(&writes, progress) };
        let with_counter = [&writes[..], &[count(progress.next_number())]].concat();
        let open = self.begun(&with_counter, progress)?;
        let keyspace = self.keyspace(outside.keyspace, progress)?;
        write_single(&keyspace, &outside, Durability::Async, false, progress)?;
        if progress.attempted() == open.since {
            // It was refused, as writes are stalled.
            return Ok(());
        }
        commit(open, Durability::Async, progress)
    }

    /// One that is held open. Without the commit counter, to which every batch writes.
    fn begin(&mut self, slot: usize, writes: &[Write], progress: &mut Progress) -> esker::Result<()> {
        self.open[slot] = None;
        let open = self.begun(&progress.allowed(writes), progress)?;
        self.open[slot] = Some(open);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Change;
    use crate::powerloss::script::NAMES;
    use crate::powerloss::session::{Ground, run};
    use crate::powerloss::{option_variants, put};
    use crate::state::{Place, database_state};
    use esker::Options;
    use esker::env::mem::MemEnv;

    fn options() -> Options {
        let (_, options) = option_variants().swap_remove(0);
        options
    }

    /// Runs the steps, compares everything at their end, and yields what the keys hold then.
    fn held_after(steps: &[Step], keys: [&str; 2]) -> [Option<String>; 2] {
        let ground = Ground::new(&options(), MemEnv::new());
        let mut progress = Progress::default();
        run(&[steps, &[Step::Compare]].concat(), &ground, &mut progress, &mut |_| {}).unwrap();
        let session = Session::open(&ground, &mut progress).unwrap();
        let state = database_state(session.db(), &NAMES).unwrap();
        keys.map(|key| {
            let place: Place = (0, key.as_bytes().to_vec());
            state.get(&place).map(|held| String::from_utf8(held.value.clone()).unwrap())
        })
    }

    fn own() -> Vec<Write> {
        vec![put("a", "own"), put("b", "own")]
    }

    fn single(key: &str) -> Step {
        Step::Single(put(key, "others"), Durability::Async)
    }

    #[test]
    fn a_transaction_that_is_held_open_commits_unless_others_write_to_its_keys() {
        let (value, commit) = (|value: &str| Some(value.to_string()), Step::Commit(0, Durability::Sync));
        let begin = Step::Begin(0, own());
        let elsewhere = [single("z"), begin.clone(), single("c"), Step::Flush, Step::Compact, commit.clone()];
        assert_eq!(held_after(&elsewhere, ["a", "b"]), [value("own"), value("own")]);
        let there = [begin.clone(), single("a"), Step::Flush, Step::Compact, commit.clone()];
        assert_eq!(held_after(&there, ["a", "b"]), [value("others"), None]);
        let rolled_back = [begin.clone(), Step::Rollback(0), commit.clone()];
        assert_eq!(held_after(&rolled_back, ["a", "b"]), [None, None]);
        let reopened = [begin.clone(), Step::DropAndReopen, commit.clone()];
        assert_eq!(held_after(&reopened, ["a", "b"]), [None, None], "it ends with the handle");
        let replaced = [begin, Step::Begin(0, vec![put("b", "second")]), commit];
        assert_eq!(held_after(&replaced, ["a", "b"]), [None, value("second")]);
    }

    #[test]
    fn nothing_of_an_abandoned_or_conflicting_transaction_is_visible() {
        assert_eq!(held_after(&[Step::Abandon(own())], ["a", "b"]), [None, None]);
        assert_eq!(held_after(&[Step::Abandon(vec![put("a", "own")])], ["a", "b"]), [None, None]);
        // What others write is the first write of its own.
        let contended = held_after(&[Step::Contend(own())], ["a", "b"]);
        assert_eq!(contended, [Some("own".to_string()), None]);
    }

    #[test]
    fn a_transaction_of_a_keyspace_that_is_dropped_does_not_commit() {
        let write = Write::new(2, "k", Change::Put(b"own".to_vec()));
        let steps = [
            Step::Begin(1, vec![write, put("a", "own")]),
            Step::DropKeyspace(2),
            Step::Create(2),
            Step::Commit(1, Durability::Async),
        ];
        assert_eq!(held_after(&steps, ["a", "b"]), [None, None]);
    }

    /// A progress that knows of other contents than there are.
    fn mistaken() -> (Session, Progress) {
        let ground = Ground::new(&options(), MemEnv::new());
        let mut progress = Progress::default();
        let mut session = Session::open(&ground, &mut progress).unwrap();
        session.perform(&single("a"), &mut progress).unwrap();
        progress.attempt(&[put("a", "never written")], Durability::Async);
        (session, progress)
    }

    #[test]
    #[should_panic(expected = "a transaction finds")]
    fn a_wrong_answer_within_a_transaction_is_noticed() {
        let (mut session, mut progress) = mistaken();
        _ = session.perform(&Step::Transaction(own(), Durability::Async), &mut progress);
    }

    #[test]
    #[should_panic(expected = "the commit of a transaction yields")]
    fn a_conflict_that_is_not_found_is_noticed() {
        let (mut session, mut progress) = mistaken();
        session.perform(&Step::Begin(0, vec![put("b", "own")]), &mut progress).unwrap();
        // Of this the engine knows nothing.
        progress.attempt(&[put("b", "never written")], Durability::Async);
        _ = session.perform(&Step::Commit(0, Durability::Async), &mut progress);
    }

    #[test]
    #[should_panic(expected = "the commit of a transaction yields")]
    fn a_conflict_without_cause_is_noticed() {
        let (mut session, mut progress) = mistaken();
        session.perform(&Step::Begin(0, vec![put("b", "own")]), &mut progress).unwrap();
        let keyspace = session.keyspace(0, &mut progress).unwrap();
        // Of this the oracle knows nothing.
        keyspace.put("b", "unknown").unwrap();
        _ = session.perform(&Step::Commit(0, Durability::Async), &mut progress);
    }
}
