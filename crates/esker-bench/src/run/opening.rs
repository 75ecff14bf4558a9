//! What takes a database to open: closed ones, new ones, and those whose process died or was
//! killed.

use super::Runner;
use crate::flags::config::Config;
use crate::process::Consumption;
use crate::survivors::{self, Order};
use crate::threads::{Crew, CrewResult};
use crate::times::{Times, new_histogram};
use crate::workload::crash;
use esker_engines::{EngineError, Result};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1));
}

impl Runner<'_> {
    /// The opening with which a run begins, for [`Runner::look_at_recovery`].
    pub(super) fn open_first(&mut self) -> Result<()> {
        // Only some engines are in a library of their own: finding and loading that is no part of
        // opening a database.
        let library = self.setup.config.libraries.get(self.setup.kind.name);
        (self.setup.kind.probe)(library.map(|path| path.as_path()))?;
        let (began, start) = (Consumption::begin(), Instant::now());
        self.open_engine(self.open_synced)?;
        self.opened = (start.elapsed(), began.until_now());
        Ok(())
    }

    pub(super) fn time_opens(&mut self, times: u64) -> Result<CrewResult> {
        let start = Instant::now();
        let mut done = 0;
        while done < times && !self.setup.interrupt.is_requested() {
            self.close_engine()?;
            self.open_engine(self.open_synced)?;
            done += 1;
        }
        Ok(Times { stopped: done < times, ..Times::of_one(done, start, start.elapsed()) }.into())
    }

    /// Opens, and nothing else, each with its own latency. `create`: each begins without a
    /// database.
    pub(super) fn time_each_open(&mut self, times: u64, create: bool) -> Result<CrewResult> {
        let (mut histogram, mut all) = (new_histogram(), Duration::ZERO);
        let (began, mut done) = (Instant::now(), 0);
        while done < times && !self.setup.interrupt.is_requested() {
            self.close_engine()?;
            if create {
                self.empty_directory()?;
            }
            let start = Instant::now();
            self.open_engine(self.open_synced)?;
            let took = start.elapsed();
            record(&mut histogram, took);
            all += took;
            done += 1;
        }
        let (histogram, stopped) = (Some(histogram), done < times);
        Ok(Times { histogram, stopped, ..Times::of_one(done, began, all) }.into())
    }

    /// What the first opening took, with the first lookup, in case the engine has put work off
    /// until then. Then, untimed: is everything there?
    pub(super) fn look_at_recovery(&self, crew: &Crew<'_>) -> Result<CrewResult> {
        let promised = self.engine()?.description.durability;
        crew.alone(|worker, session| {
            let (began, start) = (Consumption::begin(), Instant::now());
            worker.key.set(worker.job.num);
            session.get(worker.key.bytes(), &mut worker.value)?;
            let (opening, consumed) = self.opened;
            let took = opening + start.elapsed();
            let consumed = consumed.and(began.until_now());
            let (found, sample) = crash::find(worker, session, promised)?;
            let mut histogram = new_histogram();
            record(&mut histogram, took);
            Ok(CrewResult {
                times: Times { histogram: Some(histogram), ..Times::of_one(1, start, took) },
                consumed: Some(consumed),
                found: Some(found),
                message: format!("({found} of {sample} sampled entries are there)"),
                ..CrewResult::default()
            })
        })
    }

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
