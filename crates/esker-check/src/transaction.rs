//! Random transactions, with writes by others while they run, and what must become of them.
//!
//! A transaction reads its snapshot with its own writes on top, and sees none of the others'
//! writes. It must conflict if it wrote something, and somebody has written, whatever that changed,
//! to a key or range that it read or wrote; otherwise it must commit. Either is right where a scan
//! or a count has failed, and nobody wrote anywhere else.
//!
//! A change of an expiry in it is a write to the key, whether that has a value or not. One by
//! others on a key without value writes nothing, and nothing conflicts with it. The clock may move
//! while the transaction runs: it goes on seeing what was alive when it began, and the times of
//! what it writes count from the commit. After the commit, or without one, every key that it wrote
//! must hold what the model says, for as long as the model says.

use crate::Checked;
use crate::answer::{compare_answer, compare_entry, compare_expiry, compare_known, shown_entry};
use crate::generator::TransactionStep;
use crate::model::{Change, Entry, Life, Model, Span, Told, Write};
use crate::state::{Durability, drop_and_create, shown, time, write_batch, write_one};
use esker::{Db, Error, Expiry, Keyspace, KeyspaceOptions, ManualClock, Slice, Transaction};
use std::ops::Bound;
use std::time::Duration;

/// Whether a transaction must conflict, as far as that is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Commits,
    Conflicts,
    Either,
}

/// What a transaction looked at and changed, and what others changed meanwhile.
#[derive(Debug, Default)]
struct Footprint {
    read: Vec<(usize, Span)>,
    /// Looked at so far as the engine pleases.
    perhaps_read: Vec<(usize, Span)>,
    /// Without ranges that can hold no key, which write nothing.
    own: Vec<Write>,
    /// Without those that wrote nothing.
    outside: Vec<Write>,
    /// Keyspaces that were dropped meanwhile.
    dropped: Vec<usize>,
}

/// Whether a write is to any key.
fn changes(model: &Model, write: &Write) -> bool {
    model.order(write.keyspace).meets(&write.touched(), &write.touched())
}

impl Footprint {
    fn fate(&self, model: &Model) -> Fate {
        let touches = |keyspace: usize, span: &Span| {
            let order = model.order(keyspace);
            self.outside.iter().any(|write| write.keyspace == keyspace && order.meets(span, &write.touched()))
        };
        let any = |spans: &[(usize, Span)]| spans.iter().any(|(keyspace, span)| touches(*keyspace, span));
        match () {
            // "A transaction that wrote nothing always commits" (semantics.md).
            () if self.own.is_empty() => Fate::Commits,
            () if any(&self.read) => Fate::Conflicts,
            () if self.own.iter().any(|write| touches(write.keyspace, &write.touched())) => Fate::Conflicts,
            () if any(&self.perhaps_read) => Fate::Either,
            () => Fate::Commits,
        }
    }

    /// Whether the commit must find that a keyspace of its own was dropped ([`Fate::Conflicts`]).
    fn meets_a_drop(&self) -> Fate {
        let any = |spans: &[(usize, Span)]| spans.iter().any(|(keyspace, _)| self.dropped.contains(keyspace));
        match () {
            () if self.own.is_empty() => Fate::Commits,
            () if any(&self.read) => Fate::Conflicts,
            () if self.own.iter().any(|write| self.dropped.contains(&write.keyspace)) => Fate::Conflicts,
            () if any(&self.perhaps_read) => Fate::Either,
            () => Fate::Commits,
        }
    }

    /// Whether the transaction has written the key, and has not deleted it with a range since.
    fn has_written(&self, model: &Model, keyspace: usize, key: &[u8]) -> bool {
        let order = model.order(keyspace);
        let touches = |write: &&Write| write.keyspace == keyspace && order.contains(&write.touched(), key);
        self.own.iter().rev().find(touches).is_some_and(|last| !last.change.is_range())
    }

    /// Notes a read. What the transaction's own writes answer is among those anyway.
    fn read_key(&mut self, keyspace: usize, key: &[u8]) {
        self.read.push((keyspace, Write::new(keyspace, key, Change::Delete).touched()));
    }

    /// Notes that the first pair was read, or the last: all keys up to it, or all that there can
    /// be.
    fn read_end(&mut self, keyspace: usize, first: bool, found: Option<&Entry>) {
        let span = match (found.map(|(key, _)| Bound::Included(key.to_vec())), first) {
            (None, _) => Span::All,
            (Some(bound), true) => Span::Range(Bound::Unbounded, bound),
            (Some(bound), false) => Span::Range(bound, Bound::Unbounded),
        };
        self.read.push((keyspace, span));
    }
}

/// What a transaction needs of the driver.
pub struct Stage<'d> {
    /// The database.
    pub db: &'d Db,
    /// Its keyspaces, and behind them those that were dropped.
    pub keyspaces: &'d mut Vec<Keyspace>,
    /// The model of it; changed by the writes of others, and by the commit.
    pub model: &'d mut Model,
    /// With what a keyspace is created again.
    pub options: &'d dyn Fn(usize) -> KeyspaceOptions,
    /// Its clock, which is where the model's is.
    pub clock: &'d ManualClock,
}

impl Stage<'_> {
    /// What happens beside the transaction.
    fn meanwhile(&mut self, step: &TransactionStep, footprint: &mut Footprint) -> Checked<()> {
        match step {
            TransactionStep::Outside(writes) => self.write_outside(writes, footprint)?,
            TransactionStep::Drop(keyspace) if !footprint.dropped.contains(keyspace) => {
                let again = (self.model.settings(*keyspace), (self.options)(*keyspace));
                drop_and_create(self.db, self.keyspaces, self.model, *keyspace, again)?;
                footprint.dropped.push(*keyspace);
            }
            TransactionStep::Clock(tick) => {
                // What expires is only known while the clock goes ahead.
                let now = self.model.present().now;
                if let Some(then) = tick.target(self.model).filter(|then| *then >= now) {
                    self.clock.set(then);
                    self.model.set_now(then);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn write_outside(&mut self, writes: &[Write], footprint: &mut Footprint) -> Checked<()> {
        let model = &mut *self.model;
        let writes: Vec<Write> = writes.iter().map(|write| settled(write, model.present().now)).collect();
        // Of what was generated none is; of a list that was shortened that need not be so.
        if writes.iter().any(|write| model.refuses(write)) {
            return Ok(());
        }
        let options = Durability::Async.options();
        let outcome = match writes.as_slice() {
            [write] => write_one(&self.keyspaces[write.keyspace], write, options),
            writes => write_batch(self.db, self.keyspaces, writes, options),
        };
        outcome.map_err(|error| format!("the write failed: {error}"))?;
        // A change of the expiry of what an earlier write of the batch has put there does not count
        // here; that earlier write does.
        footprint.outside.extend(writes.iter().filter(|write| model.is_told(write)).cloned());
        model.commit(&writes);
        Ok(())
    }

    /// Commits, and compares the outcome.
    fn commit(&mut self, transaction: Transaction, footprint: &Footprint) -> Checked<()> {
        match (transaction.commit(), footprint.fate(self.model), footprint.meets_a_drop()) {
            (Ok(()), Fate::Commits | Fate::Either, Fate::Commits | Fate::Either) => {
                self.model.commit(&footprint.own);
                self.model.retell(|told| if let Told::Batch(writes) = told { Told::Transaction(writes) } else { told });
                Ok(())
            }
            (Err(Error::Conflict { .. }), Fate::Conflicts | Fate::Either, _) => Ok(()),
            (Err(Error::KeyspaceDropped { .. }), _, Fate::Conflicts | Fate::Either) => Ok(()),
            (outcome, fate, dropped) => {
                Err(format!("the commit yields {outcome:?}; expected: {fate:?}, of drops {dropped:?}; {footprint:?}"))
            }
        }
    }
}

/// The write with an absolute time instead of one around the present.
fn settled(write: &Write, now: u64) -> Write {
    write.clone().living(write.life.settled(now))
}

/// Runs the steps and compares every answer and the outcome.
pub fn run(mut stage: Stage<'_>, steps: &[TransactionStep], commit: bool) -> Checked<()> {
    let mut transaction = stage.db.transaction();
    // The handles of its beginning.
    let handles = stage.keyspaces.clone();
    // What the transaction must see.
    let mut view = stage.model.copy_at(stage.model.present());
    let mut footprint = Footprint::default();
    for (number, step) in steps.iter().enumerate() {
        let outcome = match step {
            TransactionStep::Write(write) => {
                let write = settled(write, stage.model.present().now);
                write_own(&mut transaction, &handles, write, &mut view, &mut footprint)
            }
            TransactionStep::Outside(_) | TransactionStep::Drop(_) | TransactionStep::Clock(_) => {
                stage.meanwhile(step, &mut footprint)
            }
            _ => read(&mut transaction, &handles, step, &mut view, &mut footprint),
        };
        outcome.map_err(|what| format!("step {number}, {step:?}: {what}"))?;
    }
    match commit {
        true => stage.commit(transaction, &footprint)?,
        false if steps.len().is_multiple_of(2) => transaction.rollback(),
        false => drop(transaction),
    }
    compare_written(stage.keyspaces, stage.model, &footprint.own)
}

/// Performs a write of the transaction's own.
fn write_own(
    transaction: &mut Transaction,
    keyspaces: &[Keyspace],
    write: Write,
    view: &mut Model,
    footprint: &mut Footprint,
) -> Checked<()> {
    // As with those of others.
    if view.refuses(&write) {
        return Ok(());
    }
    write_within(transaction, &keyspaces[write.keyspace], &write)
        .map_err(|error| format!("the write failed: {error}"))?;
    view.commit(std::slice::from_ref(&write));
    if changes(view, &write) {
        footprint.own.push(write);
    }
    Ok(())
}

/// Compares what the keys of these writes hold, and until when: what the writes made of them if
/// they took effect, and what was there if they did not.
fn compare_written(keyspaces: &[Keyspace], model: &Model, writes: &[Write]) -> Checked<()> {
    for write in writes.iter().filter(|write| !write.change.is_range()) {
        let (keyspace, key, at) = (&keyspaces[write.keyspace], &write.key, model.present());
        let place = |what: String| format!("behind the transaction, {}/{}: {what}", write.keyspace, shown(key));
        let value = model.get(write.keyspace, key, at);
        compare_answer(&value, keyspace.get(key)).map_err(place)?;
        let expiry = model.expires_at(write.keyspace, key, at);
        compare_expiry(expiry, value.is_err(), &keyspace.expires_at(key)).map_err(place)?;
    }
    Ok(())
}

/// Performs a step that reads, and compares what it yields with what the transaction must see.
fn read(
    transaction: &mut Transaction,
    keyspaces: &[Keyspace],
    step: &TransactionStep,
    view: &mut Model,
    footprint: &mut Footprint,
) -> Checked<()> {
    match step {
        TransactionStep::Get(keyspace, key) => {
            let expected = view.get(*keyspace, key, view.present());
            let handle = &keyspaces[*keyspace];
            let found = if key.len().is_multiple_of(2) {
                transaction.get(handle, key)
            } else {
                let mut value = b"of another key".to_vec();
                transaction.get_into(handle, key, &mut value).map(|found| found.then(|| Slice::from(value)))
            };
            compare_answer(&expected, found)?;
            footprint.read_key(*keyspace, key);
        }
        TransactionStep::Contains(keyspace, key) => {
            let expected = view.get(*keyspace, key, view.present()).map(|value| value.is_some());
            compare_known(&expected, transaction.contains_key(&keyspaces[*keyspace], key))?;
            footprint.read_key(*keyspace, key);
        }
        TransactionStep::ExpiresAt(keyspace, key) => {
            let found = transaction.expires_at(&keyspaces[*keyspace], key);
            compare_own_expiry(found, view, footprint, (*keyspace, &key[..]))?;
            footprint.read_key(*keyspace, key);
        }
        TransactionStep::End(keyspace, first) => {
            let handle = &keyspaces[*keyspace];
            let found = if *first { transaction.first(handle) } else { transaction.last(handle) };
            let expected = view.end(*keyspace, *first, view.present());
            compare_entry(&expected, found.transpose())?;
            footprint.read_end(*keyspace, *first, expected.as_ref());
        }
        TransactionStep::Count(keyspace, span) => {
            let expected = view.count(*keyspace, span, view.present());
            let found = transaction.count(&keyspaces[*keyspace], view.order(*keyspace).bounds(span));
            compare_known(&expected, found)?;
            let spans = if expected.is_ok() { &mut footprint.read } else { &mut footprint.perhaps_read };
            spans.push((*keyspace, span.clone()));
        }
        TransactionStep::PopFirst(keyspace) => {
            let expected = view.end(*keyspace, true, view.present());
            let found = transaction.pop_first(&keyspaces[*keyspace]);
            compare_entry(&expected, found.transpose())?;
            footprint.read_end(*keyspace, true, expected.as_ref());
            if let Some((key, Ok(_))) = &expected {
                let delete = Write::new(*keyspace, &key[..], Change::Delete);
                view.commit(std::slice::from_ref(&delete));
                footprint.own.push(delete);
            }
        }
        TransactionStep::Scan(keyspace, span) => {
            let whole = scan(transaction, &keyspaces[*keyspace], *keyspace, span, view)?;
            let spans = if whole { &mut footprint.read } else { &mut footprint.perhaps_read };
            spans.push((*keyspace, span.clone()));
        }
        TransactionStep::Write(_)
        | TransactionStep::Outside(_)
        | TransactionStep::Drop(_)
        | TransactionStep::Clock(_) => {}
    }
    Ok(())
}

/// Compares the expiry that the transaction tells of a key: that of what it sees, which it does not
/// know of what it has written.
fn compare_own_expiry(
    found: esker::Result<Option<Expiry>>,
    view: &Model,
    footprint: &Footprint,
    (keyspace, key): (usize, &[u8]),
) -> Checked<()> {
    if !footprint.has_written(view, keyspace, key) {
        let at = view.present();
        let fails = view.get(keyspace, key, at).is_err();
        return compare_expiry(view.expires_at(keyspace, key, at), fails, &found);
    }
    match found {
        Err(Error::InvalidArgument { .. }) => Ok(()),
        other => Err(format!("it was written, and expires at {other:?}")),
    }
}

/// Adds one write to a transaction.
pub(crate) fn write_within(transaction: &mut Transaction, keyspace: &Keyspace, write: &Write) -> esker::Result<()> {
    match (&write.change, write.life) {
        (Change::Put(value), Life::For(life)) => {
            transaction.put_with_ttl(keyspace, &write.key, value, Duration::from_millis(life))
        }
        (Change::Put(value), Life::Until(expiry)) => transaction.put_until(keyspace, &write.key, value, time(expiry)),
        (Change::Put(value), _) => transaction.put(keyspace, &write.key, value),
        (Change::Delete, _) => transaction.delete(keyspace, &write.key),
        (Change::Merge(operand), Life::For(life)) => {
            transaction.merge_with_ttl(keyspace, &write.key, operand, Duration::from_millis(life))
        }
        (Change::Merge(operand), _) => transaction.merge(keyspace, &write.key, operand),
        (Change::DeleteRange(low, high), _) => transaction.delete_range(keyspace, (low.clone(), high.clone())),
        (Change::DeletePrefix(prefix), _) => transaction.delete_prefix(keyspace, prefix),
        (Change::Expire, Life::For(life)) => transaction.touch(keyspace, &write.key, Duration::from_millis(life)),
        (Change::Expire, Life::Until(expiry)) => transaction.expire_at(keyspace, &write.key, time(expiry)),
        (Change::Expire, _) => transaction.persist(keyspace, &write.key),
    }
}

/// Scans all of a span and compares; false if it met the failure that it had to meet, and ended
/// there.
fn scan(transaction: &mut Transaction, keyspace: &Keyspace, index: usize, span: &Span, view: &Model) -> Checked<bool> {
    let mut found = match span {
        Span::All => transaction.iter(keyspace),
        Span::Prefix(prefix) => transaction.prefix(keyspace, prefix),
        Span::Range(low, high) => transaction.range(keyspace, (low.clone(), high.clone())),
    };
    for (key, expected) in view.scan(index, span, view.present()) {
        match (found.next(), expected) {
            (Some(Err(Error::MergeFailed { .. })), Err(_)) => return Ok(false),
            (Some(Ok((found_key, value))), Ok(expected)) if found_key[..] == key[..] && value[..] == expected[..] => {}
            (found, _) => return Err(format!("the scan yields {}, expected {}", shown_entry(found), shown(&key))),
        }
    }
    match found.next() {
        None => Ok(true),
        more => Err(format!("the scan yields {}, expected its end", shown_entry(more))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cast::Features;
    use crate::generator::{Generator, Operation, Tick};
    use crate::model::{Operator, Ttl};
    use crate::state::keyspace_options;
    use esker::Options;
    use esker::env::mem::MemEnv;
    use std::slice::from_ref;
    use std::sync::Arc;

    fn put(key: &str) -> Write {
        Write::new(0, key, Change::Put(Vec::new()))
    }

    fn range(low: &str, high: &str) -> Write {
        Write::delete_range(0, Bound::Included(low.into()), Bound::Excluded(high.into()))
    }

    fn fate(read: &[&str], own: &[Write], outside: &[Write]) -> Fate {
        let model = Model::new(&[Operator::None]);
        let mut footprint = Footprint { own: own.to_vec(), outside: outside.to_vec(), ..Footprint::default() };
        for key in read {
            footprint.read_key(0, key.as_bytes());
        }
        footprint.fate(&model)
    }

    fn expire(key: &str, life: Life) -> Write {
        Write::new(0, key, Change::Expire).living(life)
    }

    #[test]
    fn a_transaction_conflicts_where_others_wrote_what_it_read_or_wrote() {
        assert_eq!(fate(&["a"], &[put("b")], &[put("c")]), Fate::Commits);
        assert_eq!(fate(&["a"], &[put("b")], &[put("a")]), Fate::Conflicts);
        assert_eq!(fate(&["a"], &[put("b")], &[put("b")]), Fate::Conflicts);
        assert_eq!(fate(&["b"], &[put("x")], &[range("a", "c")]), Fate::Conflicts);
        assert_eq!(fate(&["b"], &[put("x")], &[range("c", "a")]), Fate::Commits, "an empty range changes nothing");
        assert_eq!(fate(&[], &[range("a", "c")], &[put("b")]), Fate::Conflicts);
        assert_eq!(fate(&[], &[range("a", "c")], &[range("b", "d")]), Fate::Conflicts);
        assert_eq!(fate(&[], &[range("a", "c")], &[put("c")]), Fate::Commits);
        assert_eq!(fate(&["b"], &[range("a", "c")], &[put("b")]), Fate::Conflicts, "the range has the key");
        assert_eq!(fate(&["a"], &[], &[put("a")]), Fate::Commits, "it writes nothing");
        let touch = expire("b", Life::For(5));
        assert_eq!(fate(&["a"], from_ref(&touch), &[put("b")]), Fate::Conflicts, "a change of an expiry is a write");
        assert_eq!(fate(&["a"], from_ref(&touch), &[put("a")]), Fate::Conflicts);
        assert_eq!(fate(&["b"], &[put("x")], &[touch]), Fate::Conflicts);
    }

    #[test]
    fn a_scan_that_failed_may_conflict_where_nothing_else_does() {
        let model = Model::new(&[Operator::None]);
        let perhaps_read = vec![(0, Span::All)];
        let mut footprint = Footprint { perhaps_read, outside: vec![put("a")], ..Footprint::default() };
        assert_eq!(footprint.fate(&model), Fate::Commits, "it writes nothing");
        footprint.own.push(put("b"));
        assert_eq!(footprint.fate(&model), Fate::Either);
        footprint.own.push(put("a"));
        assert_eq!(footprint.fate(&model), Fate::Conflicts);
    }

    #[test]
    fn the_drop_of_a_keyspace_ends_a_transaction_that_wrote_and_used_it() {
        let used = |read: &[usize], perhaps_read: &[usize], own: &[Write]| {
            let all = |keyspaces: &[usize]| -> Vec<(usize, Span)> {
                keyspaces.iter().map(|&keyspace| (keyspace, Span::All)).collect()
            };
            let footprint = Footprint {
                read: all(read),
                perhaps_read: all(perhaps_read),
                own: own.to_vec(),
                dropped: vec![1],
                ..Footprint::default()
            };
            footprint.meets_a_drop()
        };
        assert_eq!(used(&[0], &[0], &[put("a")]), Fate::Commits);
        assert_eq!(used(&[1], &[], &[put("a")]), Fate::Conflicts);
        assert_eq!(used(&[], &[], &[Write::new(1, "a", Change::Delete)]), Fate::Conflicts);
        assert_eq!(used(&[], &[1], &[put("a")]), Fate::Either);
        assert_eq!(used(&[1], &[1], &[]), Fate::Commits, "it writes nothing");
    }

    #[test]
    fn what_a_transaction_has_written_is_known_up_to_a_range_that_it_deletes() {
        let model = Model::new(&[Operator::None]);
        let mut footprint = Footprint { own: vec![expire("b", Life::For(5))], ..Footprint::default() };
        assert!(footprint.has_written(&model, 0, b"b") && !footprint.has_written(&model, 0, b"a"));
        footprint.own.push(range("a", "c"));
        assert!(!footprint.has_written(&model, 0, b"b"));
        footprint.own.push(put("b"));
        assert!(footprint.has_written(&model, 0, b"b"));
    }

    /// A database with a keyspace in which entries expire and are joined, the model of it, and
    /// their clock.
    struct Expiring {
        db: Db,
        keyspaces: Vec<Keyspace>,
        model: Model,
        clock: Arc<ManualClock>,
    }

    const SETTINGS: (Operator, Ttl) = (Operator::StringAppend, Ttl::On(None));

    impl Expiring {
        fn new() -> Expiring {
            let clock = Arc::new(ManualClock::new(1000));
            let options = Options::default().env(Arc::new(MemEnv::new())).clock(clock.clone()).background_threads(0);
            let db = Db::open("db", options).expect("open");
            let keyspaces = vec![db.keyspace("k", keyspace_options(SETTINGS.0, SETTINGS.1)).expect("a keyspace")];
            let mut model = Model::with_ttl(&[SETTINGS]);
            model.set_now(1000);
            Expiring { db, keyspaces, model, clock }
        }

        fn run(&mut self, steps: &[TransactionStep], commit: bool) -> Checked<()> {
            let options = |_: usize| keyspace_options(SETTINGS.0, SETTINGS.1);
            let Expiring { db, keyspaces, model, clock } = self;
            run(Stage { db, keyspaces, model, options: &options, clock }, steps, commit)
        }

        /// The value of a key, and until when it is there.
        fn held(&self, key: &str) -> (Option<Vec<u8>>, Option<Expiry>) {
            let value = self.keyspaces[0].get(key).expect("get").map(|value| value.to_vec());
            (value, self.keyspaces[0].expires_at(key).expect("expiry"))
        }
    }

    fn own(change: Change, life: Life) -> TransactionStep {
        TransactionStep::Write(Write::new(0, "k", change).living(life))
    }

    #[test]
    fn changes_of_an_expiry_keep_what_is_there_and_count_from_the_commit() {
        let mut expiring = Expiring::new();
        let until = |milliseconds| Some(Expiry::At(time(milliseconds)));
        let get = || TransactionStep::Get(0, b"k".to_vec());
        let ahead = || TransactionStep::Clock(Tick::Ahead(10));
        let put = [own(Change::Put(b"a".to_vec()), Life::Usual), own(Change::Merge(b"b".to_vec()), Life::Usual)];
        expiring.run(&put, true).expect("right");
        let touch = [own(Change::Expire, Life::For(50)), ahead(), get(), TransactionStep::ExpiresAt(0, b"k".to_vec())];
        expiring.run(&touch, true).expect("right");
        assert_eq!(expiring.held("k"), (Some(b"a,b".to_vec()), until(1060)));
        let merged = own(Change::Merge(b"c".to_vec()), Life::Usual);
        expiring.run(&[own(Change::Expire, Life::Around(200)), merged, get()], true).expect("right");
        assert_eq!(expiring.held("k"), (Some(b"a,b,c".to_vec()), until(1210)));
        expiring.run(&[own(Change::Expire, Life::Usual)], false).expect("right");
        assert_eq!(expiring.held("k").1, until(1210), "it was rolled back");
        expiring.run(&[own(Change::Expire, Life::Usual)], true).expect("right");
        assert_eq!(expiring.held("k").1, Some(Expiry::Never));
        expiring.run(&[own(Change::Expire, Life::Around(-1)), get()], true).expect("right");
        assert_eq!(expiring.held("k"), (None, None));
    }

    #[test]
    fn what_expires_before_the_commit_stays_expired_without_a_conflict() {
        let mut expiring = Expiring::new();
        expiring.run(&[own(Change::Put(b"a".to_vec()), Life::For(5))], true).expect("right");
        let get = TransactionStep::Get(0, b"k".to_vec());
        let steps = [get.clone(), own(Change::Expire, Life::Usual), TransactionStep::Clock(Tick::ToExpiry(0)), get];
        expiring.run(&steps, true).expect("right");
        assert_eq!(expiring.held("k"), (None, None));
    }

    #[test]
    fn a_change_by_others_conflicts_where_there_is_a_value_alone() {
        let mut expiring = Expiring::new();
        let steps = |key: &str| {
            [
                TransactionStep::Get(0, key.into()),
                TransactionStep::Write(put("x")),
                TransactionStep::Outside(vec![expire(key, Life::For(5))]),
            ]
        };
        expiring.run(&steps("absent"), true).expect("it commits");
        assert!(expiring.held("x").0.is_some());
        let both = [TransactionStep::Write(put("k")), TransactionStep::Write(expire("x", Life::For(7)))];
        expiring.run(&both, true).expect("right");
        let before = expiring.held("x");
        expiring.run(&steps("k"), true).expect("it conflicts");
        assert_eq!(expiring.held("x"), before);
    }

    #[test]
    fn a_range_that_a_transaction_deletes_is_written_and_one_without_keys_is_not() {
        let mut expiring = Expiring::new();
        let steps = |low: &str, high: &str| {
            [
                TransactionStep::Get(0, b"k".to_vec()),
                TransactionStep::Write(range(low, high)),
                TransactionStep::Outside(vec![put("k")]),
            ]
        };
        let deletes = steps("a", "z");
        expiring.run(&deletes[1..], true).expect("it conflicts");
        assert!(expiring.held("k").0.is_some());
        expiring.run(&steps("z", "a"), true).expect("it commits");
        let drops = [TransactionStep::Get(0, b"k".to_vec()), TransactionStep::Drop(0)];
        expiring.run(&drops, true).expect("it commits");
    }

    #[test]
    fn another_value_or_expiry_than_the_models_is_noticed_behind_the_transaction() {
        let expiring = Expiring::new();
        let keyspace = &expiring.keyspaces[0];
        let writes = [put("k"), expire("k", Life::For(50))];
        let noticed = |model: &Model| compare_written(&expiring.keyspaces, model, &writes).is_err();
        let mut model = expiring.model.clone();
        model.commit(&writes);
        assert!(noticed(&model), "nothing was written");
        keyspace.put("k", "").expect("put");
        assert!(noticed(&model), "it has no expiry");
        keyspace.touch("k", Duration::from_millis(51)).expect("touch");
        assert!(noticed(&model), "it has another one");
        keyspace.touch("k", Duration::from_millis(50)).expect("touch");
        assert!(!noticed(&model));
        keyspace.put_with_ttl("k", "other", Duration::from_millis(50)).expect("put");
        assert!(noticed(&model), "it has another value");
    }

    /// How often the steps change the expiry of a key that the transaction has changed so before.
    fn changes_behind(steps: &[TransactionStep], is_before: fn(&Change) -> bool) -> usize {
        let own = |step: &TransactionStep| match step {
            TransactionStep::Write(write) => Some(write.clone()),
            _ => None,
        };
        let writes: Vec<Write> = steps.iter().filter_map(own).collect();
        let is_behind = |(index, write): &(usize, &Write)| {
            let is_same = |other: &&Write| (other.keyspace, &other.key) == (write.keyspace, &write.key);
            let mut before = writes[..*index].iter().filter(is_same);
            write.change == Change::Expire && before.any(|other| is_before(&other.change))
        };
        writes.iter().enumerate().filter(is_behind).count()
    }

    #[test]
    fn generated_transactions_change_expiries_of_every_kind() {
        let mut counts = [0; 7];
        for seed in 0..60 {
            for operation in Generator::new(seed, Features::ALL).operations(2000) {
                let Operation::Transaction(steps, _) = operation else { continue };
                let count = |is_one: fn(&TransactionStep) -> bool| steps.iter().filter(|step| is_one(step)).count();
                let changes = |is_one: fn(Life) -> bool| {
                    let is_change = |step: &&TransactionStep| match step {
                        TransactionStep::Write(write) => write.change == Change::Expire && is_one(write.life),
                        _ => false,
                    };
                    steps.iter().filter(is_change).count()
                };
                let of_run = [
                    changes(|life| matches!(life, Life::For(_))),
                    changes(|life| matches!(life, Life::Until(_) | Life::Around(_))),
                    changes(|life| life == Life::Usual),
                    count(|step| matches!(step, TransactionStep::Clock(_))),
                    count(|step| matches!(step, TransactionStep::ExpiresAt(..))),
                    changes_behind(&steps, |change| matches!(change, Change::Merge(_))),
                    changes_behind(&steps, |change| matches!(change, Change::Put(value) if value.len() > 32 << 10)),
                ];
                counts.iter_mut().zip(of_run).for_each(|(count, more)| *count += more);
            }
        }
        assert!(counts.iter().all(|&count| count >= 3), "{counts:?}");
    }
}
