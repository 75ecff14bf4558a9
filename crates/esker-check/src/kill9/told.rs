//! What readers of the changes are to be told: every commit, every call behind one and every other
//! setting, once and in order.

use super::commits::{ALTERED, COUNTER, NAMES, RATES, VALUES};
use crate::Checked;
use crate::model::{Operator, Ttl};
use crate::operators::supply;
use crate::state::lives;
use esker::{Change, ChangeBatch, ChangeOperation};
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

/// How many operations a batch has.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    /// The number of the commit, if it is one.
    pub(super) number: Option<u64>,
    /// Exactly so many where nothing expires.
    pub(super) exact: usize,
    /// At least so many where something does: to make a value live longer, what it consists of is
    /// written again.
    pub(super) least: usize,
    /// Whether entries of [`ALTERED`] can expire.
    pub(super) altered_expires: bool,
}

/// The number of the commit that these changes are; none if they are no commit's.
fn number_in(changes: &[Change]) -> Checked<Option<u64>> {
    let counter = changes.iter().find_map(|change| match &change.operation {
        ChangeOperation::Put { key, value, .. } if *change.keyspace == *NAMES[VALUES] && **key == *COUNTER => {
            Some(value)
        }
        _ => None,
    });
    let Some(value) = counter else { return Ok(None) };
    value[..].try_into().map(u64::from_le_bytes).map(Some).map_err(|_| format!("a counter {value:?}"))
}

impl Batch {
    fn is(&self, changes: &[Change]) -> Checked<bool> {
        let is_write = |change: &Change| {
            let operation = &change.operation;
            matches!(operation, ChangeOperation::Put { .. } | ChangeOperation::Delete { .. })
                || matches!(operation, ChangeOperation::Merge { .. } | ChangeOperation::DeleteRange { .. })
        };
        let can_expire = |change: &&Change| {
            *change.keyspace == *NAMES[RATES] || self.altered_expires && *change.keyspace == *NAMES[ALTERED]
        };
        let expiring = changes.iter().filter(can_expire).count();
        let suffices = expiring >= self.least && (self.least > 0 || expiring == 0);
        let is_exact = changes.len() - expiring == self.exact;
        Ok(changes.iter().all(is_write) && suffices && is_exact && number_in(changes)? == self.number)
    }
}

impl Told {
    fn check(&self, batch: &ChangeBatch) -> Checked<()> {
        let of = |change: &Change, name: &str, operation: ChangeOperation| {
            *change.keyspace == *name && change.operation == operation
        };
        let is_it = match (self, batch.changes.as_slice()) {
            (Told::Batch(expected), changes) => expected.is(changes)?,
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
