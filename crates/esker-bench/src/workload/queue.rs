//! A queue: entries are put at the tail, and taken from the head, which a consumer finds by a seek,
//! because it does not know what others have taken. What was deleted lies before the head and has
//! to be stepped over until the engine has cleared it away.

use crate::keys::KeyBuffer;
use crate::worker::Worker;
use esker_engines::{EngineError, Result, Session};
use std::hint::black_box;
use std::time::Instant;

/// A queue is never longer.
const LONGEST: u64 = 1000;

/// Each thread has a queue of its own in so many numbers.
const NUMBERS: u64 = 1_000_000_000_000;

/// One thread's queue: the numbers of its entries.
struct Queue {
    first: u64,
    head: u64,
    tail: u64,
}

/// Puts at the tail or takes from the head, at random; the backlog wanders between nothing and
/// [`LONGEST`]. An entry that is lost, or comes a second time, is an error.
pub fn put_and_take(worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
    let (size, mode) = (worker.job.value_size, worker.job.mode);
    let first = u64::from(worker.index) * NUMBERS;
    let mut queue = Queue { first, head: first, tail: first };
    let mut done = 0;
    while worker.goes_on(done) {
        let backlog = queue.tail - queue.head;
        let puts = backlog == 0 || backlog < LONGEST && worker.random.uniform(2) == 0;
        let bytes = if puts {
            worker.key.set(queue.tail);
            session.put(worker.key.bytes(), worker.values.slice(size), mode)?;
            queue.tail += 1;
            worker.key.bytes().len() + size
        } else {
            queue.take(worker, session)?
        };
        worker.meter.finished(bytes);
        done += 1;
    }
    let done_at = Instant::now();
    queue.check(worker, session)?;
    worker.meter.leave_out_since(done_at);
    let (put, taken) = (queue.tail - first, queue.head - first);
    worker.message = format!("(put:{put} taken:{taken} left:{})", put - taken);
    Ok(())
}

impl Queue {
    /// Finds the head by a seek and deletes it; its bytes.
    fn take(&mut self, worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<usize> {
        worker.key.set(self.first);
        let mut iteration = session.iterate()?;
        let there = iteration.seek(worker.key.bytes())?;
        worker.key.set(self.head);
        if !there || iteration.key() != worker.key.bytes() {
            return Err(self.wrong(&worker.key, there.then(|| iteration.key())));
        }
        let bytes = worker.key.bytes().len() + black_box(iteration.value()).len();
        drop(iteration);
        session.delete(worker.key.bytes(), worker.job.mode)?;
        self.head += 1;
        Ok(bytes)
    }

    fn wrong(&self, form: &KeyBuffer, found: Option<&[u8]>) -> EngineError {
        let head = self.head;
        EngineError(match found.map(|key| form.number_of(key).ok_or(key)) {
            Some(Ok(number)) if number < head => format!("the queue's entry {number} was taken and came back"),
            Some(Ok(number)) => format!("the queue's entry {head} is lost; the first is {number}"),
            Some(Err(key)) => format!("the queue's entry {head} is lost; the first key is {}", key.escape_ascii()),
            None => format!("the queue's entry {head} is lost; nothing is left"),
        })
    }

    /// What is left is what was put and not taken.
    fn check(&self, worker: &mut Worker<'_>, session: &mut dyn Session) -> Result<()> {
        worker.key.set(self.first);
        let mut iteration = session.iterate()?;
        let mut there = iteration.seek(worker.key.bytes())?;
        let mut left = Queue { first: self.first, head: self.head, tail: self.tail };
        while left.head < left.tail {
            worker.key.set(left.head);
            if !there || iteration.key() != worker.key.bytes() {
                return Err(left.wrong(&worker.key, there.then(|| iteration.key())));
            }
            left.head += 1;
            there = iteration.next()?;
        }
        match there.then(|| worker.key.number_of(iteration.key())).flatten() {
            Some(number) if number < self.first + NUMBERS => {
                Err(EngineError(format!("the queue has an entry {number} that nobody put")))
            }
            _ => Ok(()),
        }
    }
}
