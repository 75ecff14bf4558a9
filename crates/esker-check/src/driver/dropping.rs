//! Keyspaces that are dropped and created again, and calls on the handles of before.

use super::Driver;
use super::world::World;
use crate::Checked;
use crate::model::{Change, Operator, Ttl, Write};
use crate::state::{Durability, drop_and_create, shown, write_batch, write_one};
use esker::Error;

/// So many dropped keyspaces are looked at; a run that would have more leaves the drop out.
const MOST_DROPPED: usize = 12;

/// Whether the answer is that the keyspace was dropped.
fn must_be_dropped<T: std::fmt::Debug>(name: &str, answer: esker::Result<T>) -> Checked<()> {
    match answer {
        Err(Error::KeyspaceDropped { keyspace }) if keyspace == name => Ok(()),
        other => Err(format!("{name} was dropped, and the answer is {other:?}")),
    }
}

impl Driver {
    pub(super) fn drop_keyspace(&mut self, keyspace: usize, settings: (Operator, Ttl)) -> Checked<()> {
        let World { cast, model, supplied, .. } = &mut self.world;
        let shelved = [cast[keyspace].operator, settings.0].contains(&Operator::Shelved);
        if shelved && !*supplied || model.dropped_count() == MOST_DROPPED {
            return Ok(());
        }
        let opened = self.opened.as_mut().ok_or("the database is not open")?;
        (cast[keyspace].operator, cast[keyspace].ttl) = settings;
        let options = cast[keyspace].options(self.openings);
        drop_and_create(&opened.db, &mut opened.keyspaces, model, keyspace, (settings, options))
    }

    pub(super) fn clear(&mut self, keyspace: usize) -> Checked<()> {
        let opened = self.opened.as_ref().ok_or("the database is not open")?;
        opened.keyspaces[keyspace].clear().map_err(|error| format!("clear failed: {error}"))?;
        let all = Write::delete_range(keyspace, std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        self.world.model.commit(&[all]);
        self.forget();
        Ok(())
    }

    /// One of the calls on the last handle of before.
    pub(super) fn use_dropped(&self, keyspace: usize, call: usize, write: &Write) -> Checked<()> {
        let Some(index) = self.world.model.last_dropped(keyspace) else { return Ok(()) };
        let opened = self.opened()?;
        let (old, key) = (&opened.keyspaces[index], write.key.as_slice());
        let is = |answer: esker::Result<()>| must_be_dropped(&old.name(), answer);
        // Of what is wrong besides nothing is promised.
        let refused = self.world.model.refuses(&Write { keyspace: index, ..write.clone() });
        let durability = [Durability::Async, Durability::Sync, Durability::Unlogged][call % 3];
        match call % 16 {
            0 => is(old.get(key).map(drop))?,
            1 => is(old.contains_key(key).map(drop)).and_then(|()| is(old.expires_at(key).map(drop)))?,
            2 => is(old.first().map(drop)).and_then(|()| is(old.last().map(drop)))?,
            3 => is(old.count(..).map(drop)).and_then(|()| is(old.approximate_size(..).map(drop)))?,
            4 => old.multi_get([key, b"other"]).into_iter().try_for_each(|answer| is(answer.map(drop)))?,
            5 => is(old.iter().next().map_or(Ok(()), |pair| pair.map(drop)))?,
            6 => is(old.cursor().map(drop))?,
            7..=9 if !refused => is(write_one(old, write, durability.options()))?,
            10 if !refused && !write.change.is_range() && write.change != Change::Expire => {
                is(old.put_if_absent(key, "12345678").map(drop))?;
                is(old.compare_and_swap(key, Some(b"12345678"), None).map(drop))?;
                is(old.take(key).map(drop))?;
            }
            11 => is(old.pop_first().map(drop)).and_then(|()| is(old.clear()))?,
            12 => is(old.compact()).and_then(|()| is(old.compact_range(..)))?,
            13 => is(old.ingest([("a", "12345678")]).map(drop))?,
            14 => {
                is(opened.db.snapshot().get(old, key).map(drop))?;
                is(opened.db.transaction().get(old, key).map(drop))?;
            }
            _ => self.new_handle_by_old_snapshots(keyspace, key)?,
        }
        Ok(())
    }

    /// "A keyspace created later is empty in it."
    fn new_handle_by_old_snapshots(&self, keyspace: usize, key: &[u8]) -> Checked<()> {
        let opened = self.opened()?;
        let new = &opened.keyspaces[keyspace];
        for (snapshot, at) in self.snapshots.iter().flatten() {
            if self.world.model.incarnation(keyspace, at.sequence) == keyspace {
                continue;
            }
            let found = (snapshot.get(new, key), snapshot.iter(new).next());
            if !matches!(found, (Ok(None), None)) {
                return Err(format!("a snapshot sees a later keyspace at {}: {found:?}", shown(key)));
            }
        }
        Ok(())
    }

    /// A batch with an operation on the last handle of before writes nothing.
    pub(super) fn batch_on_dropped(&self, keyspace: usize, writes: &[Write]) -> Checked<()> {
        let Some(index) = self.world.model.last_dropped(keyspace) else { return Ok(()) };
        let opened = self.opened()?;
        let mut writes = writes.to_vec();
        if let Some(first) = writes.first_mut() {
            *first = Write { keyspace: index, ..first.clone() };
        }
        let nothing = |write: &Write| {
            let order = self.world.model.order(write.keyspace);
            write.change.is_range() && !order.meets(&write.touched(), &write.touched())
        };
        let refused = writes.iter().any(|write| self.world.model.refuses(write));
        if refused || writes.first().is_none_or(nothing) || self.world.back {
            return Ok(());
        }
        let outcome = write_batch(&opened.db, &opened.keyspaces, &writes, Durability::Async.options());
        must_be_dropped(&opened.keyspaces[index].name(), outcome)
    }
}
