//! What is kept for readers of changes: fields 13 to 17 of doc/format/manifest.md, and the log.

use crate::bytes::{Read, ensure};
use crate::chain;
use crate::compare::{expiry_ms, ttl_number};
use crate::directory::Database;
use crate::manifest::Event;
use crate::operation::{Kind, Operation};
use crate::order::Order;
use esker::{Change, ChangeOperation, Db, Slice};
use std::ops::Bound;

/// A change: its number, its keyspace with the name of then, and the rest as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    sequence: u64,
    keyspace: u64,
    name: String,
    what: String,
}

impl Database {
    /// The batches of changes that are kept, in order; none if no changes are kept.
    pub fn changes(&self) -> Read<Option<Vec<Vec<Line>>>> {
        let Some((first, segment)) = self.manifest.changes else { return Ok(None) };
        let mut batches = Vec::new();
        for (number, _) in chain::links(&self.segments, segment)? {
            for batch in self.segments[&number].contents(&|_, _| true)?.batches {
                let numbered = (batch.sequence..).zip(&batch.operations);
                let lines = numbered.map(|(sequence, operation)| self.line(sequence, operation));
                batches.push(lines.collect::<Read<Vec<_>>>()?);
            }
        }
        batches.extend(self.manifest.events.iter().map(|event| vec![self.line_of_event(event)]));
        batches.retain(|batch| batch[0].sequence >= first);
        batches.sort_by_key(|batch| batch[0].sequence);
        Ok(Some(batches))
    }

    /// The next event behind a write that says what the keyspace was until then.
    fn next_settings(&self, sequence: u64, keyspace: u64) -> Option<&Event> {
        let events = self.manifest.events.iter();
        events.filter(|event| event.keyspace == keyspace && event.tag != 14).find(|event| event.sequence > sequence)
    }

    /// Name, operator and time to live from a write on.
    fn settings(&self, sequence: u64, keyspace: u64) -> (String, String, u64) {
        match (self.next_settings(sequence, keyspace), self.manifest.keyspaces.get(&keyspace)) {
            (Some(Event { former, .. }), _) => (former.name.clone(), former.operator.clone(), former.ttl),
            (None, Some(now)) => (now.name.clone(), now.operator.clone(), now.ttl),
            (None, None) => Default::default(),
        }
    }

    fn order(&self, keyspace: u64) -> Read<Order> {
        let now = self.manifest.keyspaces.get(&keyspace).map(|keyspace| &keyspace.comparator);
        let mut of_keyspace = self.manifest.events.iter().filter(|event| event.keyspace == keyspace);
        let dropped = of_keyspace.find_map(|event| event.former.comparator.as_ref());
        Order::named(now.or(dropped).ok_or_else(|| format!("keyspace {keyspace} is not there"))?)
    }

    fn line(&self, sequence: u64, operation: &Operation) -> Read<Line> {
        let keyspace = operation.keyspace();
        let order = self.order(keyspace)?;
        let what = match operation {
            Operation::DeleteRange { start, end, .. } => {
                format!("delete range {} {}", bound(order, start, true), bound(order, end, false))
            }
            Operation::Write { kind, key, expiry, value, .. } => {
                let key = order.key(key)?;
                match kind {
                    Kind::Put => format!("put {key:?} {value:?} {expiry}"),
                    Kind::PutBlob => format!("put {key:?} {:?} {expiry}", self.value(value)?),
                    Kind::Delete => format!("delete {key:?}"),
                    Kind::Merge => format!("merge {key:?} {value:?} {expiry} false"),
                    Kind::MergeOntoNothing => format!("merge {key:?} {value:?} {expiry} true"),
                }
            }
        };
        ensure!(!self.settings(sequence, keyspace).0.is_empty(), "keyspace {keyspace} has no name at {sequence}");
        Ok(Line { sequence, keyspace, name: self.settings(sequence, keyspace).0, what })
    }

    fn line_of_event(&self, event: &Event) -> Line {
        let (name, operator, ttl) = self.settings(event.sequence, event.keyspace);
        let (name, what) = match event.tag {
            14 => (name, "load".into()),
            16 => (name, format!("alter {} {operator} {ttl}", event.former.name)),
            _ => (event.former.name.clone(), "drop".into()),
        };
        Line { sequence: event.sequence, keyspace: event.keyspace, name, what }
    }
}

/// A bound of a deleted range, as `Change` has it.
fn bound(order: Order, stored: &[u8], is_start: bool) -> String {
    match (stored, order) {
        ([], _) => "Unbounded".into(),
        (_, Order::Bytewise) if is_start => format!("{:?}", Bound::Included(stored)),
        (_, Order::Bytewise) => format!("{:?}", Bound::Excluded(stored)),
        // 2 is the place behind the key.
        ([key @ .., 2], _) if is_start => format!("{:?}", Bound::Excluded(key)),
        ([key @ .., _], _) if is_start => format!("{:?}", Bound::Included(key)),
        ([key @ .., 2], _) => format!("{:?}", Bound::Included(key)),
        ([key @ .., _], _) => format!("{:?}", Bound::Excluded(key)),
    }
}

/// The same by the account of the database.
pub fn answered(db: &Db) -> Vec<Vec<Line>> {
    let batches = db.changes(0).unwrap().map(Result::unwrap);
    batches.map(|batch| batch.changes.iter().map(line).collect()).collect()
}

fn line(change: &Change) -> Line {
    let what = match &change.operation {
        ChangeOperation::Put { key, value, expiry } => {
            format!("put {:?} {:?} {}", &**key, &**value, expiry_ms(*expiry))
        }
        ChangeOperation::Delete { key } => format!("delete {:?}", &**key),
        ChangeOperation::Merge { key, operand, expiry, is_first } => {
            format!("merge {:?} {:?} {} {is_first}", &**key, &**operand, expiry_ms(*expiry))
        }
        ChangeOperation::DeleteRange { start, end } => {
            let plain = |bound: &Bound<Slice>| format!("{:?}", bound.as_ref().map(|key| key.to_vec()));
            format!("delete range {} {}", plain(start), plain(end))
        }
        ChangeOperation::Load => "load".into(),
        ChangeOperation::DropKeyspace => "drop".into(),
        ChangeOperation::AlterKeyspace { former_name, merge_operator, ttl } => {
            let operator = merge_operator.as_deref().unwrap_or_default();
            format!("alter {former_name} {operator} {}", ttl_number(*ttl))
        }
        other => format!("{other:?}"),
    };
    let (sequence, keyspace) = (change.sequence, change.keyspace_id);
    Line { sequence, keyspace, name: change.keyspace.to_string(), what }
}
