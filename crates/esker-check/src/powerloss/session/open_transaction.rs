//! A transaction that is open: what it must see, and whether it must commit.

use crate::model::{Answer, Change, Life, MergeFails, Model, Write};
use crate::powerloss::asking::{write_options, wrong};
use crate::powerloss::progress::{Interference, Progress};
use crate::state::{Durability, shown, time};
use esker::{Error, Keyspace, Transaction};
use std::time::Duration;

/// What a transaction must see of a key until it ends.
pub(super) struct Sight {
    keyspace: Keyspace,
    key: Vec<u8>,
    value: Answer,
}

/// A transaction that is held open.
pub(super) struct Open {
    pub(super) transaction: Transaction,
    /// What it has written, without ranges that can hold no key, which write nothing.
    pub(super) own: Vec<Write>,
    pub(super) sights: Vec<Sight>,
    /// So many commits there were when it began.
    pub(super) since: usize,
    /// Keyspaces that were dropped meanwhile.
    pub(super) dropped: Vec<usize>,
}

impl Open {
    pub(super) fn note_dropped(&mut self, keyspace: usize) {
        self.dropped.push(keyspace);
    }

    /// Whether a keyspace in which it has written was dropped.
    fn meets_a_drop(&self) -> bool {
        self.own.iter().any(|write| self.dropped.contains(&write.keyspace))
    }
}

/// Commits one that was open while others may have written, which must succeed if and only if
/// none of them has written where it has.
pub(super) fn commit(mut open: Open, durability: Durability, progress: &mut Progress) -> esker::Result<()> {
    // Its snapshot is the same as ever, whatever was written, flushed and compacted.
    for sight in &open.sights {
        compare(&mut open.transaction, sight)?;
    }
    let met = progress.interference(open.since, &open.own);
    let meets_a_drop = open.meets_a_drop();
    let Open { transaction, own, .. } = open;
    let options = write_options(durability, progress);
    // Changes of the expiry of keys without value may leave nothing to sync.
    let promised = if own.iter().all(|write| write.change == Change::Expire) { Durability::Async } else { durability };
    let before = progress.clone();
    if !own.is_empty() {
        progress.attempt_transaction(&own, durability);
    }
    match transaction.commit_with(&options) {
        // "A transaction that wrote nothing always commits": there is nothing to note, but that
        // with a sync everything before it is durable, as behind an empty batch.
        Ok(()) if own.is_empty() => {
            if durability == Durability::Sync {
                progress.note_log_synced();
            }
        }
        Ok(()) if met != Interference::Certain && !meets_a_drop => progress.acknowledge(promised),
        Err(Error::WriteStalled { .. }) => progress.take_back(before),
        Err(Error::Conflict { .. }) if met != Interference::None => progress.take_back(before),
        Err(Error::KeyspaceDropped { .. }) if meets_a_drop => progress.take_back(before),
        outcome @ (Ok(()) | Err(Error::Conflict { .. } | Error::KeyspaceDropped { .. })) => wrong(format!(
            "the commit of a transaction yields {outcome:?}; interference: {met:?}, with a dropped keyspace: \
             {meets_a_drop}; it wrote {own:?}"
        )),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Reads every key before it writes it, and compares the answers with the model, where the contents
/// are known. What must be seen of all of them from then on.
pub(super) fn read_and_write(
    transaction: &mut Transaction,
    placed: &[(Keyspace, Write)],
    mut view: Option<Model>,
) -> esker::Result<Vec<Sight>> {
    for (keyspace, write) in placed {
        if !write.change.is_range() {
            match view.as_ref().map(|view| sight(view, keyspace, write)) {
                Some(sight) => compare(transaction, &sight)?,
                None => _ = transaction.get(keyspace, &write.key)?,
            }
        }
        add_to(transaction, keyspace, write)?;
        if let Some(view) = &mut view {
            view.commit(std::slice::from_ref(write));
        }
    }
    let Some(view) = view else { return Ok(Vec::new()) };
    let single = placed.iter().filter(|(_, write)| !write.change.is_range());
    Ok(single.map(|(keyspace, write)| sight(&view, keyspace, write)).collect())
}

/// What must be seen of the key of a write.
fn sight(view: &Model, keyspace: &Keyspace, write: &Write) -> Sight {
    let value = view.get(write.keyspace, &write.key, view.present());
    Sight { keyspace: keyspace.clone(), key: write.key.clone(), value }
}

fn compare(transaction: &mut Transaction, sight: &Sight) -> esker::Result<()> {
    let found = match transaction.get(&sight.keyspace, &sight.key) {
        Err(Error::MergeFailed { .. }) => Err(MergeFails),
        found => Ok(found?),
    };
    let found = found.as_ref().map(|value| value.as_deref()).map_err(|fails| *fails);
    let expected = sight.value.as_ref().map(|value| value.as_deref()).map_err(|fails| *fails);
    if found == expected {
        return Ok(());
    }
    let [found, expected] = [found, expected].map(|answer| answer.map(|value| value.map(shown)));
    let (name, key) = (sight.keyspace.name(), shown(&sight.key));
    wrong(format!("a transaction finds {found:?} at {name}/{key}, expected {expected:?}"))
}

fn add_to(transaction: &mut Transaction, keyspace: &Keyspace, write: &Write) -> esker::Result<()> {
    let key = &write.key;
    match (&write.change, write.life) {
        (Change::Put(value), Life::For(life)) => {
            transaction.put_with_ttl(keyspace, key, value, Duration::from_millis(life))
        }
        (Change::Put(value), Life::Until(at)) => transaction.put_until(keyspace, key, value, time(at)),
        (Change::Put(value), _) => transaction.put(keyspace, key, value),
        (Change::Delete, _) => transaction.delete(keyspace, key),
        (Change::Merge(operand), Life::For(life)) => {
            transaction.merge_with_ttl(keyspace, key, operand, Duration::from_millis(life))
        }
        (Change::Merge(operand), _) => transaction.merge(keyspace, key, operand),
        (Change::Expire, Life::For(life)) => transaction.touch(keyspace, key, Duration::from_millis(life)),
        (Change::Expire, Life::Until(at)) => transaction.expire_at(keyspace, key, time(at)),
        (Change::Expire, _) => transaction.persist(keyspace, key),
        (Change::DeleteRange(low, high), _) => transaction.delete_range(keyspace, (low.clone(), high.clone())),
        (Change::DeletePrefix(prefix), _) => transaction.delete_prefix(keyspace, prefix),
    }
}
