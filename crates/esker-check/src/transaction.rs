//! Random transactions, with writes by others while they run, and what must become of them.
//!
//! A transaction reads its snapshot with its own writes on top, and sees none of the others'
//! writes. It must conflict if somebody has written, whatever that changed, to a key or range that
//! it read, or to a key that it wrote; otherwise it must commit. Either is right where only a range
//! that it deleted was written to, or where it wrote nothing.

use crate::Checked;
use crate::answer::{compare_answer, compare_entry, compare_known, shown_entry};
use crate::generator::TransactionStep;
use crate::model::{Change, Entry, Life, Model, Span, Told, Write};
use crate::state::{Durability, drop_and_create, shown, write_batch, write_one};
use esker::{Db, Error, Keyspace, KeyspaceOptions, Slice, Transaction};
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
    own: Vec<Write>,
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
        let touches = |spans: &[(usize, Span)]| {
            self.outside.iter().any(|write| {
                let touched = write.touched();
                let order = model.order(write.keyspace);
                spans.iter().any(|(keyspace, span)| *keyspace == write.keyspace && order.meets(span, &touched))
            })
        };
        let is_range = |write: &&Write| write.change.is_range();
        let spans = |writes: Vec<&Write>| -> Vec<(usize, Span)> {
            writes.into_iter().map(|write| (write.keyspace, write.touched())).collect()
        };
        let keys = spans(self.own.iter().filter(|write| !is_range(write)).collect());
        let ranges = spans(self.own.iter().filter(is_range).collect());
        // A range without keys is not a write: it does not even meet itself.
        if !self.own.iter().any(|write| changes(model, write)) {
            let any = touches(&self.read) || touches(&self.perhaps_read);
            return if any { Fate::Either } else { Fate::Commits };
        }
        match () {
            () if touches(&self.read) || touches(&keys) => Fate::Conflicts,
            () if touches(&self.perhaps_read) || touches(&ranges) => Fate::Either,
            () => Fate::Commits,
        }
    }

    /// Whether the commit must find that a keyspace of its own was dropped ([`Fate::Conflicts`]).
    fn meets_a_drop(&self, model: &Model) -> Fate {
        let is_dropped = |keyspace: &usize| self.dropped.contains(keyspace);
        let changes = |write: &&Write| changes(model, write);
        let written = self.own.iter().filter(changes).any(|write| is_dropped(&write.keyspace));
        let read = self.read.iter().any(|(keyspace, _)| is_dropped(keyspace));
        let perhaps = self.perhaps_read.iter().any(|(keyspace, _)| is_dropped(keyspace));
        let perhaps = perhaps || self.own.iter().any(|write| is_dropped(&write.keyspace));
        match () {
            () if written || read && self.own.iter().any(|write| changes(&write)) => Fate::Conflicts,
            () if read || perhaps => Fate::Either,
            () => Fate::Commits,
        }
    }

    /// Notes a read. What the transaction's own writes answer need not be noted by the engine.
    fn read_key(&mut self, model: &Model, keyspace: usize, key: &[u8]) {
        let order = model.order(keyspace);
        let span = Write::new(keyspace, key, Change::Delete).touched();
        let deleted = |write: &Write| {
            write.change.is_range() && write.keyspace == keyspace && order.contains(&write.touched(), key)
        };
        let spans = if self.own.iter().any(deleted) { &mut self.perhaps_read } else { &mut self.read };
        spans.push((keyspace, span));
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
}

/// Whether a transaction can make the write, and its outcome is known. What was generated is sound;
/// of a list that was shortened that need not be so.
fn is_sound(model: &Model, write: &Write) -> bool {
    let known = match (&write.change, write.life) {
        (Change::Expire, _) => false,
        (Change::Put(_) | Change::Merge(_), Life::For(_)) => true,
        (_, life) => life == Life::Usual,
    };
    known && !model.refuses(write)
}

/// Runs the steps and compares every answer and the outcome.
pub fn run(stage: Stage<'_>, steps: &[TransactionStep], commit: bool) -> Checked<()> {
    let Stage { db, keyspaces, model, options } = stage;
    let mut transaction = db.transaction();
    // The handles of its beginning.
    let handles = keyspaces.clone();
    // What the transaction must see.
    let mut view = model.copy_at(model.present());
    let mut footprint = Footprint::default();
    for (number, step) in steps.iter().enumerate() {
        let place = |what: String| format!("step {number}, {step:?}: {what}");
        match step {
            TransactionStep::Write(write) => {
                if !is_sound(&view, write) {
                    continue;
                }
                write_within(&mut transaction, &handles[write.keyspace], write)
                    .map_err(|error| place(format!("the write failed: {error}")))?;
                view.commit(std::slice::from_ref(write));
                footprint.own.push(write.clone());
            }
            TransactionStep::Outside(writes) => {
                if !writes.iter().all(|write| is_sound(model, write)) {
                    continue;
                }
                let outcome = match writes.as_slice() {
                    [write] => write_one(&keyspaces[write.keyspace], write, Durability::Async.options()),
                    writes => write_batch(db, keyspaces, writes, Durability::Async.options()),
                };
                outcome.map_err(|error| place(format!("the write failed: {error}")))?;
                model.commit(writes);
                footprint.outside.extend_from_slice(writes);
            }
            TransactionStep::Drop(keyspace) => {
                if footprint.dropped.contains(keyspace) {
                    continue;
                }
                let again = (model.settings(*keyspace), options(*keyspace));
                drop_and_create(db, keyspaces, model, *keyspace, again).map_err(place)?;
                footprint.dropped.push(*keyspace);
            }
            _ => read(&mut transaction, &handles, step, &mut view, &mut footprint).map_err(place)?,
        }
    }
    if !commit {
        if steps.len().is_multiple_of(2) {
            transaction.rollback()
        } else {
            drop(transaction)
        }
        return Ok(());
    }
    match (transaction.commit(), footprint.fate(model), footprint.meets_a_drop(model)) {
        (Ok(()), Fate::Commits | Fate::Either, Fate::Commits | Fate::Either) => {
            model.commit(&footprint.own);
            model.retell(|told| if let Told::Batch(writes) = told { Told::Transaction(writes) } else { told });
            Ok(())
        }
        (Err(Error::Conflict { .. }), Fate::Conflicts | Fate::Either, _) => Ok(()),
        (Err(Error::KeyspaceDropped { .. }), _, Fate::Conflicts | Fate::Either) => Ok(()),
        (outcome, fate, dropped) => {
            Err(format!("the commit yields {outcome:?}; expected: {fate:?}, of drops {dropped:?}; {footprint:?}"))
        }
    }
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
            footprint.read_key(view, *keyspace, key);
        }
        TransactionStep::Contains(keyspace, key) => {
            let expected = view.get(*keyspace, key, view.present()).map(|value| value.is_some());
            compare_known(&expected, transaction.contains_key(&keyspaces[*keyspace], key))?;
            footprint.read_key(view, *keyspace, key);
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
        TransactionStep::Write(_) | TransactionStep::Outside(_) | TransactionStep::Drop(_) => {}
    }
    Ok(())
}

fn write_within(transaction: &mut Transaction, keyspace: &Keyspace, write: &Write) -> esker::Result<()> {
    match (&write.change, write.life) {
        (Change::Put(value), Life::For(life)) => {
            transaction.put_with_ttl(keyspace, &write.key, value, Duration::from_millis(life))
        }
        (Change::Put(value), _) => transaction.put(keyspace, &write.key, value),
        (Change::Delete, _) => transaction.delete(keyspace, &write.key),
        (Change::Merge(operand), Life::For(life)) => {
            transaction.merge_with_ttl(keyspace, &write.key, operand, Duration::from_millis(life))
        }
        (Change::Merge(operand), _) => transaction.merge(keyspace, &write.key, operand),
        (Change::DeleteRange(low, high), _) => transaction.delete_range(keyspace, (low.clone(), high.clone())),
        (Change::DeletePrefix(prefix), _) => transaction.delete_prefix(keyspace, prefix),
        // Where there is no value, it is not a write: what conflicts with it is not known here.
        (Change::Expire, _) => unreachable!("sound writes only"),
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

    fn put(key: &str) -> Write {
        Write::new(0, key, Change::Put(Vec::new()))
    }

    fn range(low: &str, high: &str) -> Write {
        Write::delete_range(0, Bound::Included(low.into()), Bound::Excluded(high.into()))
    }

    fn fate(read: &[&str], own: &[Write], outside: &[Write]) -> Fate {
        let model = Model::new(&[crate::model::Operator::None]);
        let mut footprint = Footprint { own: own.to_vec(), outside: outside.to_vec(), ..Footprint::default() };
        for key in read {
            footprint.read_key(&model, 0, key.as_bytes());
        }
        footprint.fate(&model)
    }

    #[test]
    fn a_transaction_conflicts_where_others_wrote_what_it_read_or_wrote() {
        assert_eq!(fate(&["a"], &[put("b")], &[put("c")]), Fate::Commits);
        assert_eq!(fate(&["a"], &[put("b")], &[put("a")]), Fate::Conflicts);
        assert_eq!(fate(&["a"], &[put("b")], &[put("b")]), Fate::Conflicts);
        assert_eq!(fate(&["b"], &[put("x")], &[range("a", "c")]), Fate::Conflicts);
        assert_eq!(fate(&["b"], &[put("x")], &[range("c", "a")]), Fate::Commits, "an empty range changes nothing");
        assert_eq!(fate(&[], &[range("a", "c")], &[put("b")]), Fate::Either);
        assert_eq!(fate(&["a"], &[], &[put("a")]), Fate::Either, "it writes nothing");
    }
}
