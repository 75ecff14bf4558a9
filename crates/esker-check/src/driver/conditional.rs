//! Writes that look at the value they replace, each answer and each effect compared with the
//! model's.

use super::Driver;
use super::world::Trust;
use crate::Checked;
use crate::answer::compare_answer;
use crate::generator::Expected;
use crate::model::{Answer, Change, Life, Write};
use crate::state::{Durability, shown};
use esker::{CompareAndSwap, Error, Slice};
use std::time::Duration;

impl Driver {
    /// `write` as the conditional write of its kind: a put if absent or as a swap, a delete as a
    /// take or a swap, a merge with its result.
    pub(super) fn write_on_value(&mut self, write: &Write, expected: Expected, durability: Durability) -> Checked<()> {
        let trusted = self.world.trust(write.keyspace, false) == Trust::All;
        if !trusted || self.world.back || write.change.is_range() || write.change == Change::Expire {
            return Ok(());
        }
        let options = self.write_options(durability);
        let keyspace = &self.opened.as_ref().ok_or("the database is not open")?.keyspaces[write.keyspace];
        // No conditional put takes an absolute time.
        let life = if matches!(write.life, Life::For(_)) { write.life } else { Life::Usual };
        let write = write.clone().living(life);
        let options = match life {
            Life::For(milliseconds) => options.ttl(Duration::from_millis(milliseconds)),
            _ => options,
        };
        let model = &self.world.model;
        let before: Answer = model.get(write.keyspace, &write.key, model.present());
        let found = before.as_ref().ok().and_then(|value| value.as_deref());
        let other = b"another value".to_vec();
        let wanted = match expected {
            Expected::Current => found,
            Expected::Absent => None,
            Expected::Other => Some(other.as_slice()),
        };
        let key = &write.key;
        // The answer, and the one that is right; whether the write goes ahead.
        let (answer, right, goes_ahead) = match (&write.change, expected) {
            (Change::Put(value), Expected::Absent) => {
                (keyspace.put_if_absent_with(key, value, &options), before.clone(), before == Ok(None))
            }
            (Change::Delete, Expected::Current) => (keyspace.take_with(key, &options), before.clone(), found.is_some()),
            (Change::Merge(operand), _) => {
                let right = before.clone().and_then(|_| model.operator(write.keyspace).combine(found, operand));
                let goes_ahead = right.is_ok();
                let right = right.map(|value| value.map(|value| value.as_slice().into()));
                (keyspace.merge_and_get_with(key, operand, &options), right, goes_ahead)
            }
            (change, _) => {
                let new = if let Change::Put(value) = change { Some(value.as_slice()) } else { None };
                let swapped = keyspace.compare_and_swap_with(key, wanted, new, &options);
                // What is unequal is told; of a swap, the value that was expected.
                let answer = swapped.map(|swapped| match swapped {
                    CompareAndSwap::Swapped => wanted.map(|value| Slice::from(value.to_vec())),
                    CompareAndSwap::Unequal { current } => current,
                });
                (answer, before.clone(), before.is_ok() && found == wanted)
            }
        };
        if let Err(Error::WriteStalled { .. }) = &answer {
            return Ok(());
        }
        if let Err(Error::InvalidArgument { .. }) = &answer
            && model.refuses(&write)
        {
            return Ok(());
        }
        if model.refuses(&write) {
            return Err("a write that must be refused was accepted".to_string());
        }
        compare_answer(&right, answer).map_err(|what| format!("at {}: {what}", shown(key)))?;
        if goes_ahead {
            self.world.model.commit(&[write]);
            self.note_commit(durability);
        }
        Ok(())
    }
}
