//! What readers of the changes are to be told: every commit, every call behind one and every other
//! setting, once and in order.

use super::commits::NAMES;
use crate::Checked;
use crate::feed::{check_places, is_operation};
use crate::model::{Operator, Order, Ttl, Write};
use crate::operators::supply;
use crate::orders::order_of;
use crate::state::lives;
use esker::{Change, ChangeBatch, ChangeOperation};
use std::ops::Bound;
use std::sync::Arc;

/// One event of the changes.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// Writes that took effect together.
    Batch(Batch),
    /// A load into the keyspace of that name.
    Load(&'static str),
    /// The keyspace of that name was dropped.
    Drop(&'static str),
    /// A keyspace has that name, and these settings.
    Alter { former: &'static str, name: &'static str, settings: (Operator, Ttl) },
}

/// Writes that took effect together, and what the keyspaces were then.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// Without those that write nothing.
    pub(super) writes: Vec<Write>,
    /// The names of the keyspaces.
    pub(super) names: [&'static str; 6],
    /// In which of them entries can expire.
    pub(super) expires: [bool; 6],
}

impl Batch {
    /// The keyspace of a change, and what was done there.
    fn placed<'c>(&self, change: &'c Change) -> Checked<(usize, &'c ChangeOperation)> {
        let keyspace = self.names.iter().position(|name| *change.keyspace == **name);
        let keyspace = keyspace.ok_or_else(|| format!("{:?} is no keyspace", change.keyspace))?;
        Ok((keyspace, &change.operation))
    }

    /// Where nothing expires, each write is an operation. Where something does, there may be more
    /// of them, to the same keys: to make a value live longer, what it consists of is written
    /// again.
    fn check(&self, changes: &[Change]) -> Checked<()> {
        let found = changes.iter().map(|change| self.placed(change)).collect::<Checked<Vec<_>>>()?;
        let (expiring, exact): (Vec<_>, Vec<_>) = found.iter().partition(|(keyspace, _)| self.expires[*keyspace]);
        let (expiring_due, exact_due): (Vec<&Write>, Vec<&Write>) =
            self.writes.iter().partition(|write| self.expires[write.keyspace]);
        if exact.len() != exact_due.len() || expiring.len() < expiring_due.len() {
            return Err(format!("{self:?} is due"));
        }
        for (write, (keyspace, operation)) in exact_due.into_iter().zip(exact) {
            let order = order_of(NAMES[write.keyspace]);
            let is_it = is_operation(write, order, operation) && has_bounds(write, order, operation);
            if keyspace != write.keyspace || !is_it {
                return Err(format!("{write:?} is {operation:?} in keyspace {keyspace}"));
            }
        }
        check_places(&self.writes, &found)
    }
}

/// Whether a delete of a range is told with its bounds. Here no contents tell, as in `feed.rs`.
fn has_bounds(write: &Write, order: Order, operation: &ChangeOperation) -> bool {
    let ChangeOperation::DeleteRange { start, end } = operation else { return true };
    let (low, high) = order.bounds(&write.touched());
    let high = match high {
        // In this order the place right behind a key is a key.
        Bound::Included(key) if order == Order::Bytewise => Bound::Excluded([&key[..], &[0][..]].concat()),
        high => high,
    };
    [start, end].map(|bound| bound.as_ref().map(|key| key.to_vec())) == [low, high]
}

impl Told {
    fn check(&self, batch: &ChangeBatch) -> Checked<()> {
        let of = |change: &Change, name: &str, operation: ChangeOperation| {
            *change.keyspace == *name && change.operation == operation
        };
        let is_it = match (self, batch.changes.as_slice()) {
            (Told::Batch(due), changes) => {
                return due.check(changes).map_err(|what| format!("the changes have {batch:?}: {what}"));
            }
            (Told::Load(name), [change]) => of(change, name, ChangeOperation::Load),
            (Told::Drop(name), [change]) => of(change, name, ChangeOperation::DropKeyspace),
            (Told::Alter { former, name, settings: (operator, ttl) }, [change]) => {
                let merge_operator = supply(*operator).map(|operator| Arc::<str>::from(operator.name()));
                let former_name = Arc::from(*former);
                of(change, name, ChangeOperation::AlterKeyspace { former_name, merge_operator, ttl: lives(*ttl) })
            }
            _ => false,
        };
        if is_it { Ok(()) } else { Err(format!("the changes have {batch:?}, where {self:?} is due")) }
    }
}

/// Whether these batches are those that are due, or where `some_are_gone` the last of them. Whether
/// the very last is there is not known where it `may_be_missing`.
pub(super) fn compare(due: &[Told], may_be_missing: bool, found: &[ChangeBatch], some_are_gone: bool) -> Checked<()> {
    let all = compare_all(due, found, some_are_gone);
    match due.split_last() {
        Some((_, others)) if may_be_missing && all.is_err() => compare_all(others, found, some_are_gone).or(all),
        _ => all,
    }
}

fn compare_all(due: &[Told], found: &[ChangeBatch], some_are_gone: bool) -> Checked<()> {
    let gone = due.len().checked_sub(found.len()).filter(|&gone| gone == 0 || some_are_gone && !found.is_empty());
    let outcome = due[gone.unwrap_or(0)..].iter().zip(found).try_for_each(|(due, found)| due.check(found));
    match gone {
        Some(_) => outcome,
        None => {
            let what = format!("the changes have {} batches, {} are due", found.len(), due.len());
            Err(outcome.map_or_else(|first| format!("{what}: {first}"), |()| what.clone()))
        }
    }
}
