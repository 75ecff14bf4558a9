//! A delayed job queue: jobs become due at a time, each is given to one worker at a time, and comes
//! back if that worker does not finish it.
//!
//! Run it with `cargo run --example job_queue`, or with a directory as its argument to keep the
//! database: a second run goes on with what the first has left.

use esker::{Counters, Db, Keyspace, KeyspaceOptions, Options, WriteOptions};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

/// How long a worker may take for a job before another gets it.
const LEASE: Duration = Duration::from_secs(30);
/// Attempts that a transaction makes if others come in between.
const ATTEMPTS: usize = 100;

struct Queue {
    db: Db,
    /// By the time at which it is due and its number, both big-endian: the next one is the first.
    waiting: Keyspace,
    /// By number: the job's place in `waiting`, which is after the end of the lease.
    leased: Keyspace,
    /// The number of the last job.
    numbers: Counters<String>,
}

/// A job that a worker has.
struct Job {
    number: u64,
    work: String,
    /// Where it is in `waiting`: the lease is the worker's for as long as that is its place.
    lease: [u8; 16],
}

/// A key of `waiting`.
fn place(due_ms: u64, number: u64) -> [u8; 16] {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&due_ms.to_be_bytes());
    place[8..].copy_from_slice(&number.to_be_bytes());
    place
}

impl Queue {
    fn open(directory: &Path) -> esker::Result<Queue> {
        let db = Db::open(directory, Options::default())?;
        Ok(Queue {
            waiting: db.keyspace("waiting", KeyspaceOptions::default())?,
            leased: db.keyspace("leased", KeyspaceOptions::default())?,
            numbers: Counters::open(&db, "numbers", KeyspaceOptions::default())?,
            db,
        })
    }

    /// Adds a job that is due at that time. It is not lost when this has returned, whatever fails.
    fn add(&self, due_ms: u64, work: &str) -> esker::Result<u64> {
        let number = self.numbers.add_and_get("last", 1)?;
        self.waiting.put_with(place(due_ms, number), work, &WriteOptions::new().sync(true))?;
        Ok(number)
    }

    /// A job that is due, for one worker alone, until its lease ends.
    fn take(&self, now_ms: u64) -> esker::Result<Option<Job>> {
        self.db.transact(ATTEMPTS, |transaction| -> esker::Result<Option<Job>> {
            let Some((key, work)) = transaction.first(&self.waiting)? else { return Ok(None) };
            if *key > place(now_ms, u64::MAX)[..] {
                return Ok(None);
            }
            let number = key[8..].try_into().map_or(0, u64::from_be_bytes);
            // It stays in the queue, behind the end of the lease: a worker that dies leaves nothing
            // to be cleaned up.
            let again = place(now_ms + LEASE.as_millis() as u64, number);
            transaction.delete(&self.waiting, &key)?;
            transaction.put(&self.waiting, again, &work)?;
            transaction.put(&self.leased, number.to_be_bytes(), again)?;
            Ok(Some(Job { number, work: String::from_utf8_lossy(&work).into_owned(), lease: again }))
        })
    }

    /// Ends a job. False if it was finished before, or another worker has it, because the lease had
    /// ended: what this one has done is then to be undone, or to have no effect if done twice.
    fn finish(&self, job: &Job) -> esker::Result<bool> {
        self.db.transact(ATTEMPTS, |transaction| -> esker::Result<bool> {
            if transaction.get(&self.leased, job.number.to_be_bytes())?.as_deref() != Some(&job.lease[..]) {
                return Ok(false);
            }
            transaction.delete(&self.waiting, job.lease)?;
            transaction.delete(&self.leased, job.number.to_be_bytes())?;
            Ok(true)
        })
    }
}

/// Adds, takes and finishes jobs in the database in `directory`.
pub fn run(directory: &Path) -> Result<(), Box<dyn Error>> {
    let queue = Queue::open(directory)?;
    // A clock of its own, so that nobody has to wait.
    let now_ms = 1_000_000;
    queue.waiting.clear()?;
    queue.leased.clear()?;
    queue.add(now_ms + 60_000, "send the reminder")?;
    queue.add(now_ms, "resize the picture")?;
    queue.add(now_ms - 1, "send the receipt")?;

    let first = queue.take(now_ms)?.ok_or("a job is due")?;
    let second = queue.take(now_ms)?.ok_or("another one is due")?;
    assert_eq!((first.work.as_str(), second.work.as_str()), ("send the receipt", "resize the picture"));
    assert!(queue.take(now_ms)?.is_none(), "the third is not due yet");
    assert!(queue.finish(&first)?);
    assert!(!queue.finish(&first)?, "once");

    // The worker of the second has died: another one gets it, and the first one comes too late.
    let later_ms = now_ms + LEASE.as_millis() as u64;
    let again = queue.take(later_ms)?.ok_or("its lease has ended")?;
    assert_eq!(again.number, second.number);
    assert!(!queue.finish(&second)?);
    assert!(queue.finish(&again)?);

    // Of many workers each gets jobs of its own.
    for number in 0..50 {
        queue.add(now_ms, &format!("job {number}"))?;
    }
    let done: usize = std::thread::scope(|threads| {
        let worker = || -> esker::Result<usize> {
            let mut done = 0;
            while let Some(job) = queue.take(now_ms)? {
                assert!(queue.finish(&job)?);
                done += 1;
            }
            Ok(done)
        };
        let workers: Vec<_> = (0..4).map(|_| threads.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no worker panics")).sum::<esker::Result<usize>>()
    })?;
    assert_eq!(done, 50);
    assert_eq!(queue.waiting.count(..)?, 1, "the reminder");
    println!("{done} jobs done by four workers, and one is not due yet");
    Ok(())
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    if let Some(directory) = std::env::args_os().nth(1) {
        return run(Path::new(&directory));
    }
    let directory = std::env::temp_dir().join(format!("esker-example-job-queue-{}", std::process::id()));
    let result = run(&directory);
    std::fs::remove_dir_all(&directory)?;
    result
}
