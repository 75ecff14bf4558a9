//! Which acknowledged writes are there after the process that made them was killed.

use super::Runner;
use crate::engine::{EngineError, Result};
use crate::flags::config::Config;
use crate::survivors::{self, Order};
use crate::threads::CrewResult;
use crate::times::Times;
use std::time::Instant;

impl Runner<'_> {
    /// Has another process put keys until it is killed, and counts which of those that it had
    /// acknowledged are there.
    pub(super) fn kill_and_count(&mut self, config: &Config, puts: u64) -> Result<CrewResult> {
        self.close_engine()?;
        let order = Order {
            engine: self.setup.kind.name.into(),
            options: self.open_options(self.open_synced),
            directory: self.directory.database(),
            library: config.libraries.get(self.setup.kind.name).cloned(),
            key_prefix: config.key_prefix,
            key_size: config.key_size,
            value_size: config.value_size,
            compression_ratio: config.compression_ratio,
            puts,
        };
        let start = Instant::now();
        let acknowledged = survivors::put_and_kill(&order, self.setup.interrupt)?;
        let took = start.elapsed();
        self.open_engine(self.open_synced)
            .map_err(|error| EngineError(format!("opening after the writer was killed: {error}")))?;
        let Some(acknowledged) = acknowledged else {
            return Ok(Times { stopped: true, ..Times::of_one(0, start, took) }.into());
        };
        let left = survivors::count(&order, self.engine()?.session()?.as_mut(), acknowledged)?;
        Ok(CrewResult {
            times: Times::of_one(acknowledged, start, took),
            found: Some(left.found),
            message: format!("({} of {acknowledged} acknowledged puts found, and {} more)", left.found, left.more),
            ..CrewResult::default()
        })
    }
}
