//! Writes that look at the value they replace, each answer and each effect compared with the
//! model's.

use super::Driver;
use super::world::Trust;
use crate::Checked;
use crate::answer::compare_answer;
use crate::asked::Call;
use crate::generator::Expected;
use crate::model::{Answer, Change, Life, Write};
use crate::state::{Durability, shown};
use esker::Error;
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
        let Some(call) = Call::of(&write, expected, found) else { return Ok(()) };
        let key = &write.key;
        let answer = call.make(keyspace, key, &options);
        let (right, goes_ahead) = call.right(&before, model.operator(write.keyspace));
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
