//! Threads that put jobs into two queues and take them out, through typed handles.
//!
//! Job n is put into both queues by one batch, which counts it, behind job n - 1. One queue is
//! emptied by `pop_first`, the other one by transactions that count what they take. So at each
//! moment a queue has the jobs from some number on up to the last that was counted, and the second
//! one those behind the number of counted ones. No job is handed out twice, and a thread never gets
//! one behind a later one.

use crate::Checked;
use crate::random::Random;
use esker::{
    Batch, Counters, Db, Error, Keyspace, KeyspaceOptions, Snapshot, Transaction, TypedKeyspace, WriteOptions,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The names of the queues, and of the counters.
const NAMES: [&str; 3] = ["queue", "tasks", "counts"];
const PUT: &str = "put";
const DONE: &str = "done";
/// The most jobs in a queue.
const LONGEST: u64 = 40;
/// Only the other threads that take jobs are a cause of conflicts.
const ATTEMPTS: usize = 1000;

/// The keyspaces, by their types.
pub(super) struct Handles {
    queue: TypedKeyspace<u64, u64>,
    tasks: TypedKeyspace<u64, u64>,
    counts: Counters<String>,
}

impl Handles {
    /// Of a database that may be new.
    pub(super) fn open(db: &Db) -> esker::Result<Handles> {
        let [queue, tasks, counts] = NAMES;
        Ok(Handles {
            queue: TypedKeyspace::open(db, queue, KeyspaceOptions::default())?,
            tasks: TypedKeyspace::open(db, tasks, KeyspaceOptions::default())?,
            counts: Counters::open(db, counts, KeyspaceOptions::default())?,
        })
    }

    /// Of one that cannot be written.
    pub(super) fn existing(db: &Db) -> esker::Result<Handles> {
        let [queue, tasks, counts]: [esker::Result<Keyspace>; 3] = NAMES.map(|name| db.existing_keyspace(name));
        let (queue, tasks) = (TypedKeyspace::new(queue?), TypedKeyspace::new(tasks?));
        Ok(Handles { queue, tasks, counts: Counters::new(counts?)? })
    }
}

/// What must be there: the numbers of the last jobs that were put, popped and done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Least {
    put: u64,
    popped: u64,
    done: u64,
}

/// What the threads know of each other.
#[derive(Default)]
pub(super) struct Queues {
    /// The last job; held while the next one is put.
    last: Mutex<u64>,
    begun: AtomicU64,
    put: AtomicU64,
    put_synced: AtomicU64,
    popped: AtomicU64,
    done: AtomicU64,
    done_synced: AtomicU64,
    /// All that were handed out, by each queue.
    handed_out: [Mutex<BTreeSet<u64>>; 2],
}

/// A poisoned lock is that of a thread that has panicked, which is reported.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(error: Error) -> String {
    format!("a call on the queues failed: {error}")
}

/// What is stored with a job.
fn content(job: u64) -> u64 {
    job.wrapping_mul(job) ^ job
}

fn add(handles: &Handles, batch: &mut Batch, job: u64) -> esker::Result<()> {
    handles.queue.in_batch(batch).put(job, content(job))?;
    handles.tasks.in_batch(batch).put(job, content(job))?;
    handles.counts.in_batch(batch).add(PUT, 1)
}

/// Takes the first task, with its content and the number of those that were done before.
fn take(handles: &Handles, transaction: &mut Transaction) -> esker::Result<Option<(u64, u64, u64)>> {
    let done = handles.counts.in_transaction(transaction).get(DONE)?;
    let Some((task, content)) = handles.tasks.in_transaction(transaction).pop_first()? else { return Ok(None) };
    handles.counts.in_transaction(transaction).add(DONE, 1)?;
    Ok(Some((task, content, done)))
}

/// The jobs that a snapshot shows.
fn jobs(queue: &TypedKeyspace<u64, u64>, snapshot: &Snapshot) -> Checked<Vec<u64>> {
    let job = |pair: esker::Result<(u64, u64)>| match pair.map_err(failed)? {
        (job, found) if found == content(job) => Ok(job),
        (job, found) => Err(format!("job {job} has {found}")),
    };
    queue.at(snapshot).iter().map(job).collect()
}

impl Queues {
    /// What survives from now on: the end of the process, or also a loss of power.
    pub(super) fn least(&self, lost_power: bool) -> Least {
        let of = |number: &AtomicU64| number.load(Ordering::Acquire);
        if lost_power {
            return Least { put: of(&self.put_synced), popped: 0, done: of(&self.done_synced) };
        }
        Least { put: of(&self.put), popped: of(&self.popped), done: of(&self.done) }
    }

    /// How many jobs were popped, and how many tasks done.
    pub(super) fn handed_out(&self) -> [u64; 2] {
        [&self.popped, &self.done].map(|number| number.load(Ordering::Acquire))
    }

    /// Puts jobs and takes them, again and again.
    pub(super) fn work(&self, (db, handles): (&Db, &Handles), stop: &AtomicBool, mut random: Random) -> Checked<()> {
        let mut last = [0; 2];
        while !stop.load(Ordering::Acquire) {
            self.put(db, handles, &mut random)?;
            self.pop(handles, &mut last[0])?;
            self.finish(db, handles, &mut last[1], random.percent(5))?;
            std::thread::sleep(Duration::from_micros(random.below(300) as u64));
        }
        Ok(())
    }

    fn put(&self, db: &Db, handles: &Handles, random: &mut Random) -> Checked<()> {
        let mut last = lock(&self.last);
        let [popped, done] = self.handed_out();
        if last.saturating_sub(popped.min(done)) >= LONGEST {
            return Ok(());
        }
        let (job, sync) = (*last + 1, random.percent(3));
        self.begun.store(job, Ordering::Release);
        let mut batch = db.batch();
        add(handles, &mut batch, job).map_err(failed)?;
        batch.commit_with(&WriteOptions::new().sync(sync)).map_err(failed)?;
        *last = job;
        self.put.store(job, Ordering::Release);
        if sync {
            self.put_synced.store(job, Ordering::Release);
        }
        Ok(())
    }

    fn pop(&self, handles: &Handles, last: &mut u64) -> Checked<()> {
        let Some((job, found)) = handles.queue.pop_first().map_err(failed)? else { return Ok(()) };
        self.hand_out(0, (job, found), last)?;
        // Those before it went before it.
        self.popped.fetch_max(job, Ordering::AcqRel);
        Ok(())
    }

    fn finish(&self, db: &Db, handles: &Handles, last: &mut u64, sync: bool) -> Checked<()> {
        let options = WriteOptions::new().sync(sync);
        let taken = db.transact_with(ATTEMPTS, &options, |transaction| take(handles, transaction));
        let Some((task, found, done)) = taken.map_err(failed)? else { return Ok(()) };
        if task != done + 1 {
            return Err(format!("task {task} is handed out where {done} were done"));
        }
        self.hand_out(1, (task, found), last)?;
        self.done.fetch_max(task, Ordering::AcqRel);
        if sync {
            self.done_synced.fetch_max(task, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Notes what a queue has handed out to a thread that had `last` before.
    fn hand_out(&self, queue: usize, (job, found): (u64, u64), last: &mut u64) -> Checked<()> {
        let before = std::mem::replace(last, job);
        let is_new = lock(&self.handed_out[queue]).insert(job);
        if found == content(job) && before < job && is_new {
            return Ok(());
        }
        Err(format!("{} hands out {job} with {found} behind {before}; for the first time: {is_new}", NAMES[queue]))
    }

    /// Whether a snapshot, which was made before this call, shows one moment, not before that of
    /// `least`.
    pub(super) fn check(&self, handles: &Handles, snapshot: &Snapshot, least: &Least) -> Checked<()> {
        let begun = self.begun.load(Ordering::Acquire);
        let [put, done] = [PUT, DONE].map(|counter| handles.counts.get_at(snapshot, counter));
        let (put, done) = (put.map_err(failed)?, done.map_err(failed)?);
        let (queue, tasks) = (jobs(&handles.queue, snapshot)?, jobs(&handles.tasks, snapshot)?);
        let popped = queue.first().map_or(put, |first| first - 1);
        let are_whole = queue.iter().copied().eq(popped + 1..=put) && tasks.iter().copied().eq(done + 1..=put);
        let are_known = put >= least.put && popped >= least.popped && done >= least.done && put <= begun;
        if are_whole && are_known {
            return Ok(());
        }
        Err(format!(
            "{put} jobs were put and {done} tasks done, the queue has {queue:?}, the tasks are {tasks:?}; \
             {begun} was begun, and before there was {least:?}"
        ))
    }

    /// Whether each job up to the last one was handed out, when all threads have ended.
    pub(super) fn check_end(&self) -> Checked<()> {
        for (queue, last) in self.handed_out().into_iter().enumerate() {
            let all = lock(&self.handed_out[queue]);
            if !all.iter().copied().eq(1..=last) {
                return Err(format!("{} has handed out {} jobs, the last was {last}", NAMES[queue], all.len()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker::Options;
    use esker::env::mem::MemEnv;
    use std::sync::Arc;

    struct World {
        db: Db,
        handles: Handles,
        queues: Queues,
    }

    /// So many jobs were put; one was popped, and two are done.
    fn world(jobs: u64) -> World {
        let db = Db::open("/db", Options::default().env(Arc::new(MemEnv::new()))).unwrap();
        let handles = Handles::open(&db).unwrap();
        let world = World { db, handles, queues: Queues::default() };
        let mut random = Random::new(1);
        (0..jobs).for_each(|_| world.queues.put(&world.db, &world.handles, &mut random).unwrap());
        world.queues.pop(&world.handles, &mut 0).unwrap();
        let mut last = 0;
        (0..2).for_each(|_| world.queues.finish(&world.db, &world.handles, &mut last, false).unwrap());
        world
    }

    impl World {
        fn check(&self) -> Checked<()> {
            self.check_least(&self.queues.least(false))
        }

        fn check_least(&self, least: &Least) -> Checked<()> {
            self.queues.check(&self.handles, &self.db.snapshot(), least)
        }
    }

    #[test]
    fn queues_of_one_moment_are_accepted_and_no_others() {
        let world = world(5);
        world.check().unwrap();
        world.queues.check_end().unwrap();
        let Handles { queue, tasks, counts } = &world.handles;
        type Change<'a> = (&'a str, &'a dyn Fn(), &'a dyn Fn());
        let changes: [Change<'_>; 6] = [
            ("a gap", &|| queue.delete(3).unwrap(), &|| queue.put(3, content(3)).unwrap()),
            ("another content", &|| queue.put(4, 4).unwrap(), &|| queue.put(4, content(4)).unwrap()),
            ("a task that is not counted", &|| tasks.delete(3).unwrap(), &|| tasks.put(3, content(3)).unwrap()),
            ("a task that is done", &|| tasks.put(2, content(2)).unwrap(), &|| tasks.delete(2).unwrap()),
            ("a job that came back", &|| queue.put(1, content(1)).unwrap(), &|| queue.delete(1).unwrap()),
            ("half a batch", &|| counts.add(PUT, 1).unwrap(), &|| counts.set(PUT, 5).unwrap()),
        ];
        for (what, change, undo) in changes {
            change();
            assert!(world.check().is_err(), "{what}");
            undo();
            world.check().unwrap();
        }
    }

    #[test]
    fn jobs_that_were_put_popped_or_done_must_be_found_so() {
        let world = world(5);
        for least in [
            Least { put: 6, ..Least::default() },
            Least { popped: 2, ..Least::default() },
            Least { done: 3, ..Least::default() },
        ] {
            assert!(world.check_least(&least).is_err(), "{least:?}");
        }
        world.queues.begun.store(4, Ordering::Release);
        assert!(world.check().is_err(), "a job that nobody has put");
    }

    #[test]
    fn a_job_that_is_handed_out_twice_or_late_is_noticed() {
        let queues = Queues::default();
        let mut last = 0;
        queues.hand_out(0, (2, content(2)), &mut last).unwrap();
        assert!(queues.hand_out(0, (2, content(2)), &mut 0).is_err(), "twice");
        assert!(queues.hand_out(0, (1, content(1)), &mut last).is_err(), "late");
        assert!(queues.hand_out(0, (3, 3), &mut 0).is_err(), "with another content");
        let queues = Queues::default();
        queues.hand_out(0, (2, content(2)), &mut 0).unwrap();
        queues.popped.store(2, Ordering::Release);
        assert!(queues.check_end().is_err(), "the first one is missing");
    }
}
