//! What a keyspace must answer in which the operands of some keys cannot be combined: "reads of
//! that key fail with `MergeFailed`, which names keyspace, key and operator", and no others do.

use super::part::{Ended, Part, Surveyed, same};
use crate::model::MergeFails;
use crate::state::{Seen, State, seen, shown};
use esker::{Error, Slice, Snapshot, Transaction, escape_key};

/// A value, that there is none, or that operands cannot be combined.
type Expected = Result<Option<Vec<u8>>, MergeFails>;

type Pair = Option<(Slice, Slice)>;

/// The part, and which of its keys fail.
pub(super) struct Failing<'p, 'a> {
    part: &'p Part<'a>,
    /// In its order.
    entries: Vec<Seen>,
}

impl<'p, 'a> Failing<'p, 'a> {
    /// This part, if the operands of some of its keys cannot be combined.
    pub(super) fn of(part: &'p Part<'a>, index: usize, state: &State) -> Option<Failing<'p, 'a>> {
        let fails = |key: &[u8]| state.get(&(index, key.to_vec())).is_some_and(|held| held.fails);
        let seen = |(key, value): &(Vec<u8>, Vec<u8>)| (key.clone(), (!fails(key)).then(|| value.clone()));
        let entries: Vec<Seen> = part.pairs.iter().map(seen).collect();
        entries.iter().any(|(_, value)| value.is_none()).then_some(Failing { part, entries })
    }

    pub(super) fn check(&self, snapshot: &Snapshot, transaction: &mut Transaction) -> Surveyed {
        let keyspace = self.part.keyspace;
        let keys: Vec<&Vec<u8>> = self.part.probes.iter().map(|(key, _)| key).collect();
        self.same_answers("multi_get", keyspace.multi_get(&keys))?;
        self.same_answers("multi_get of a snapshot", snapshot.multi_get(keyspace, &keys)?)?;
        self.same_answers("multi_get of a transaction", transaction.multi_get(keyspace, &keys))?;
        let mut buffer = Vec::new();
        for (key, _) in &self.part.probes {
            let expected = self.expected(key);
            self.same_answer("get of a snapshot", key, &expected, snapshot.get(keyspace, key))?;
            self.same_answer("get of a transaction", key, &expected, transaction.get(keyspace, key))?;
            let found = keyspace.get_into(key, &mut buffer).map(|is_there| is_there.then(|| Slice::from(&buffer[..])));
            self.same_answer("get_into", key, &expected, found)?;
            let is_there = expected.map(|value| value.map(|_| Vec::new()));
            let found = keyspace.contains_key(key).map(|is_there| is_there.then(Slice::default));
            self.same_answer("contains_key", key, &is_there, found)?;
        }
        self.check_scans(snapshot, transaction)
    }

    fn check_scans(&self, snapshot: &Snapshot, transaction: &mut Transaction) -> Surveyed {
        let keyspace = self.part.keyspace;
        self.same_scan("a scan", keyspace.iter().map(seen))?;
        self.same_scan("a scan of a snapshot", snapshot.iter(keyspace).map(seen))?;
        self.same_scan("a scan of a transaction", transaction.iter(keyspace).map(seen))?;
        let mut backwards: Vec<Seen> = keyspace.iter().rev().map(seen).collect::<esker::Result<_>>()?;
        backwards.reverse();
        same("a scan from the back", words(&self.entries), words(&backwards))?;
        self.same_end("first", self.entries.first(), keyspace.first())?;
        self.same_end("last", self.entries.last(), keyspace.last())?;
        self.same_end("first of a snapshot", self.entries.first(), snapshot.first(keyspace))?;
        self.same_end("last of a transaction", self.entries.last(), transaction.last(keyspace))?;
        // "One key whose operands cannot be combined fails the call."
        match keyspace.count(..) {
            Err(Error::MergeFailed { .. }) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(count) => Err(Ended::Wrong(format!("{count} keys are counted, and operands of one cannot be combined"))),
        }
    }

    /// What a read of the key must yield.
    fn expected(&self, key: &[u8]) -> Expected {
        match self.entries.iter().find(|(other, _)| other == key) {
            None => Ok(None),
            Some((_, value)) => value.clone().map(Some).ok_or(MergeFails),
        }
    }

    fn same_answers(&self, what: &str, found: Vec<esker::Result<Option<Slice>>>) -> Surveyed {
        same(&format!("{what}, answers"), self.part.probes.len(), found.len())?;
        let mut answers = self.part.probes.iter().zip(found);
        answers.try_for_each(|((key, _), found)| self.same_answer(what, key, &self.expected(key), found))
    }

    fn same_answer(
        &self,
        what: &str,
        key: &[u8],
        expected: &Expected,
        found: esker::Result<Option<Slice>>,
    ) -> Surveyed {
        let what = format!("{what} of {}", shown(key));
        let value = |value: Option<&[u8]>| value.map(shown);
        match (expected, found) {
            (Err(MergeFails), Err(error)) => self.names(&what, key, error),
            (_, Err(error)) => Err(error.into()),
            (Ok(expected), Ok(found)) => same(&what, value(expected.as_deref()), value(found.as_deref())),
            (Err(MergeFails), Ok(found)) => same(&what, Err(MergeFails), Ok(value(found.as_deref()))),
        }
    }

    /// The least key, or the greatest: "a key whose operands cannot be combined is an error, and is
    /// not passed over".
    fn same_end(&self, what: &str, expected: Option<&Seen>, found: esker::Result<Pair>) -> Surveyed {
        match (expected, found) {
            (Some((key, None)), Err(error)) => self.names(what, key, error),
            (_, Err(error)) => Err(error.into()),
            (expected, Ok(found)) => {
                let found = found.map(|(key, value)| (key.to_vec(), Some(value.to_vec())));
                same(what, words(expected), words(found.as_ref()))
            }
        }
    }

    fn same_scan(&self, what: &str, found: impl Iterator<Item = esker::Result<Seen>>) -> Surveyed {
        let found: Vec<Seen> = found.collect::<esker::Result<_>>()?;
        same(what, words(&self.entries), words(&found))
    }

    /// Whether the error is the one of that key.
    fn names(&self, what: &str, key: &[u8], error: Error) -> Surveyed {
        let keyspace = self.part.keyspace;
        match error {
            Error::MergeFailed { keyspace: name, key: found, operator, .. } => {
                let expected =
                    (keyspace.name().to_string(), escape_key(key), keyspace.merge_operator().unwrap_or_default());
                same(&format!("what fails, {what}"), expected, (name, found, operator))
            }
            error => Err(error.into()),
        }
    }
}

fn words<'s>(entries: impl IntoIterator<Item = &'s Seen>) -> Vec<(String, Option<String>)> {
    entries.into_iter().map(|(key, value)| (shown(key), value.as_deref().map(shown))).collect()
}

#[cfg(test)]
mod tests {
    use crate::generator::Expected;
    use crate::model::{Change, FAILING, Operator, PANICKING, Write};
    use crate::operators::silence_panics_on_purpose;
    use crate::powerloss::option_variants;
    use crate::powerloss::progress::Progress;
    use crate::powerloss::script::{FRAGILE, Step};
    use crate::powerloss::session::{Ground, Session, run};
    use crate::state::Durability;
    use esker::env::mem::MemEnv;

    fn ground() -> Ground {
        let (_, options) = option_variants().swap_remove(0);
        Ground::new(&options, MemEnv::new())
    }

    fn merge(key: &str, operand: &[u8]) -> Write {
        Write::new(FRAGILE, key, Change::Merge(operand.to_vec()))
    }

    fn single(write: Write) -> Step {
        Step::Single(write, Durability::Sync)
    }

    /// An engine that passes such a key over, drops its operands in a compaction, fails for its
    /// neighbours too, or replaces the operator over its operands, fails here.
    #[test]
    fn a_merge_that_fails_fails_alone_and_in_every_call_until_it_is_overwritten() {
        silence_panics_on_purpose();
        let failing = [FAILING, b'x'];
        let begun = [
            single(merge("first", b"sound")),
            single(merge("k1", b"a")),
            single(merge("k1", &failing)),
            Step::Compare,
            single(merge("k1", b"longer than that")),
            single(merge("k2", &[PANICKING])),
            Step::Hold(0, FRAGILE),
            Step::Look(0, 2),
            Step::Flush,
            Step::Compact,
            Step::Look(0, 2),
            Step::Compare,
            Step::ReadBeside,
        ];
        let of_all_kinds = [
            Step::Ask(merge("k1", b"more"), Expected::Current, Durability::Sync),
            Step::Ask(merge("k3", &failing), Expected::Current, Durability::Sync),
            Step::PopFirst(FRAGILE),
            Step::PopFirst(FRAGILE),
            Step::Transaction(vec![merge("k2", b"own"), merge("k3", &failing)], Durability::Async),
            Step::DropAndReopen,
            Step::Operator(FRAGILE, Operator::Longest),
            Step::Compare,
            Step::ReadBeside,
        ];
        let healed = [
            single(Write::new(FRAGILE, "k1", Change::Put(b"put".to_vec()))),
            single(Write::new(FRAGILE, "k2", Change::Delete)),
            single(Write::new(FRAGILE, "k3", Change::Delete)),
            Step::Operator(FRAGILE, Operator::Longest),
            Step::Compare,
        ];
        let steps = [&begun[..], &of_all_kinds[..], &healed[..]].concat();
        let mut progress = Progress::default();
        run(&steps, &ground(), &mut progress, &mut |_| {}).unwrap();
        assert_eq!(progress.standing.present(FRAGILE).operator, Operator::Longest, "nothing stands against it");
    }

    /// A session in which one key fails.
    fn with_one_failing() -> (Session, Progress) {
        let mut progress = Progress::default();
        let mut session = Session::open(&ground(), &mut progress).unwrap();
        session.perform(&single(merge("k", &[FAILING, b'x'])), &mut progress).unwrap();
        (session, progress)
    }

    #[test]
    #[should_panic(expected = "expected \"never written\"")]
    fn a_lost_operand_of_a_key_that_fails_all_the_same_is_noticed() {
        let (mut session, mut progress) = with_one_failing();
        // Of this the engine knows nothing.
        progress.attempt(&[merge("k", b"never written")], Durability::Async);
        _ = session.perform(&Step::ReadBeside, &mut progress);
    }

    #[test]
    #[should_panic(expected = "expected a merge that fails")]
    fn a_key_that_is_read_though_its_merge_fails_is_noticed() {
        let (mut session, mut progress) = with_one_failing();
        // Of this the oracle knows nothing.
        session.keyspace(FRAGILE, &mut progress).unwrap().put("k", "value").unwrap();
        _ = session.perform(&Step::Compare, &mut progress);
    }

    #[test]
    #[should_panic(expected = "over operands that cannot be combined")]
    fn an_operator_that_is_replaced_over_what_fails_is_noticed() {
        let (mut session, mut progress) = with_one_failing();
        // Of this the oracle knows nothing.
        session.keyspace(FRAGILE, &mut progress).unwrap().delete("k").unwrap();
        _ = session.perform(&Step::Operator(FRAGILE, Operator::Longest), &mut progress);
    }
}
