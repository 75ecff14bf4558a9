//! Lookups of which it is known beforehand whether they find something, so that hits and misses can
//! be timed apart.

use crate::filled::Filled;
use crate::flags::config::Config;
use crate::worker::{Job, Worker};
use esker_engines::{EngineError, Result, Session};

/// The most keys that are remembered, one bit each.
const MOST_KEYS: u64 = 1 << 33;

/// Random keys of those that the fill wrote, or left out.
pub fn job(config: &Config) -> Job {
    if config.num.max(config.fill_num) > MOST_KEYS {
        return Job::new(config, config.reads);
    }
    let filled = Filled::replay(config.key_generation, config.fill_seed, config.fill_num, config.num);
    Job { filled: Some(filled), ..Job::new(config, config.reads) }
}

/// Gets random keys that are there.
pub fn present(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    get_known(worker, session, true)
}

/// Gets random keys that are not there, though they lie among those that are.
pub fn absent(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    get_known(worker, session, false)
}

fn get_known(worker: &mut Worker<'_>, session: &mut dyn Session, there: bool) -> Result<()> {
    let job = worker.job;
    let Some(filled) = job.filled.as_ref().filter(|filled| filled.count(there) > 0) else {
        let kind = if there { "written" } else { "left out" };
        let problem =
            format!("no key below {} was {kind} by the fill that --fill_num tells of, or there are too many", job.keys);
        return Err(EngineError(problem));
    };
    let (mut done, mut found) = (0, 0);
    while worker.goes_on(done) {
        let mut number = worker.random.uniform(job.keys);
        while filled.has(number) != there {
            number = worker.random.uniform(job.keys);
        }
        worker.key.set(number);
        found += u64::from(session.get(worker.key.bytes(), &mut worker.value)?);
        worker.meter.finished(0);
        done += 1;
    }
    worker.report_found(found);
    // A measurement of hits that are misses would be one of something else.
    if found == if there { done } else { 0 } {
        return Ok(());
    }
    Err(EngineError(format!(
        "{found} of {done} keys were there that {} have been: --fill_num and --fill_seed must be the --num and --seed of the fillrandom that \
         made the database",
        if there { "should all" } else { "should not" }
    )))
}
