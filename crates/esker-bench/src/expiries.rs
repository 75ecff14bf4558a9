//! When the entries of a benchmark with a time to live expire, as far as the program that puts them
//! can know: the engine reads the clock somewhere between the beginning and the end of the put. All
//! entries live equally long, so a later put never shortens a life.

use esker_engines::{EngineError, Result};
use std::result::Result as StdResult;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A put that is under way may expire at any time from now on.
const UNKNOWN: u64 = u64::MAX;

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// What is known of one key. Times are milliseconds since the Unix epoch; 0 while nothing was put.
#[derive(Debug, Default)]
struct Life {
    /// Alive before this time.
    from_ms: AtomicU64,
    /// Expired from this time on.
    until_ms: AtomicU64,
}

/// What is known of the keys 0, 1, ...; one thread puts, any number look.
#[derive(Debug, Default)]
pub struct Expiries {
    lives: Vec<Life>,
}

/// What became of a range of keys during a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Entries that the scan returned.
    pub returned: u64,
    /// Keys that had expired before the scan began.
    pub hidden: u64,
    /// Keys that expired while it went on.
    pub meanwhile: u64,
}

impl Expiries {
    /// For so many keys. An error if there is no memory for them.
    pub fn new(keys: u64) -> Result<Expiries> {
        let mut lives = Vec::new();
        let count = usize::try_from(keys).unwrap_or(usize::MAX);
        let reserved = lives.try_reserve_exact(count);
        reserved
            .map_err(|_| EngineError(format!("no memory to note when {keys} keys expire; use fewer with --num")))?;
        lives.resize_with(count, Life::default);
        Ok(Expiries { lives })
    }

    /// Puts a key by `put`, which gives it `ttl`, and notes when it expires.
    pub fn put<E>(&self, number: u64, ttl: Duration, put: impl FnOnce() -> StdResult<(), E>) -> StdResult<(), E> {
        let Some(life) = self.lives.get(number as usize) else { return put() };
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(UNKNOWN);
        life.until_ms.store(UNKNOWN, Ordering::SeqCst);
        let before = now_ms();
        put()?;
        let after = now_ms();
        life.from_ms.store(before.saturating_add(ttl_ms), Ordering::SeqCst);
        life.until_ms.store(after.saturating_add(ttl_ms), Ordering::SeqCst);
        Ok(())
    }

    /// Begins a scan of the keys from `first` on, at most `count`.
    pub fn look(&self, first: u64, count: u64) -> Look<'_> {
        let range = self.lives.iter().skip(first as usize).take(count as usize);
        let alive_ms = range.map(|life| life.from_ms.load(Ordering::SeqCst)).collect();
        Look { expiries: self, first, alive_ms, began_ms: now_ms(), seen: Seen::default() }
    }
}

/// A scan that is being checked.
#[derive(Debug)]
pub struct Look<'a> {
    expiries: &'a Expiries,
    first: u64,
    /// Until when each key of the range is there for certain; 0 for those that were returned.
    alive_ms: Vec<u64>,
    began_ms: u64,
    seen: Seen,
}

impl Look<'_> {
    /// The number behind the last key of the range.
    pub fn end(&self) -> u64 {
        self.first + self.alive_ms.len() as u64
    }

    /// The scan returned a key of the range. The error says what is wrong with that.
    pub fn returned(&mut self, number: u64) -> StdResult<(), String> {
        let place = number.wrapping_sub(self.first) as usize;
        let (Some(alive), Some(life)) = (self.alive_ms.get_mut(place), self.expiries.lives.get(number as usize)) else {
            return Err(format!("key {number} was returned, which nobody put"));
        };
        // Later than this the key can only have been put again: what is certain here was certain
        // when the entry was returned.
        let until = life.until_ms.load(Ordering::SeqCst);
        if until <= self.began_ms {
            let late = self.began_ms - until;
            return Err(format!("key {number} was returned by a scan that began {late} ms after it had expired"));
        }
        *alive = 0;
        self.seen.returned += 1;
        Ok(())
    }

    /// The scan has ended. The error says which key it should have returned.
    pub fn end_of_scan(mut self) -> StdResult<Seen, String> {
        let ended_ms = now_ms();
        let range = self.expiries.lives.iter().skip(self.first as usize);
        for ((place, alive), life) in self.alive_ms.iter().enumerate().zip(range) {
            if *alive > ended_ms {
                let number = self.first + place as u64;
                return Err(format!("key {number} was not returned, though it lives for {} ms more", alive - ended_ms));
            }
            let until = life.until_ms.load(Ordering::SeqCst);
            if until != 0 && until <= self.began_ms {
                self.seen.hidden += 1;
            } else if until != 0 && until <= ended_ms {
                self.seen.meanwhile += 1;
            }
        }
        Ok(self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(expiries: &Expiries, number: u64, ttl_ms: u64) {
        expiries.put(number, Duration::from_millis(ttl_ms), || Ok::<(), ()>(())).unwrap();
    }

    #[test]
    fn an_expired_key_must_not_come_and_a_living_one_must() {
        let expiries = Expiries::new(4).unwrap();
        put(&expiries, 1, 0);
        put(&expiries, 2, 3_600_000);
        std::thread::sleep(Duration::from_millis(3));
        let mut look = expiries.look(0, 100);
        assert_eq!(look.end(), 4);
        assert!(look.returned(1).unwrap_err().contains("expired"));
        assert!(look.returned(0).unwrap_err().contains("expired"), "a key that nobody put");
        assert!(look.returned(9).is_err());
        look.returned(2).unwrap();
        assert_eq!(look.end_of_scan(), Ok(Seen { returned: 1, hidden: 1, meanwhile: 0 }));
        assert!(expiries.look(2, 1).end_of_scan().unwrap_err().contains("key 2 was not returned"));
        assert_eq!(expiries.look(3, 1).end_of_scan(), Ok(Seen::default()));
    }

    #[test]
    fn a_key_that_is_being_put_may_come_or_not() {
        let expiries = Expiries::new(1).unwrap();
        put(&expiries, 0, 0);
        std::thread::sleep(Duration::from_millis(3));
        let mut during = None;
        let result: StdResult<(), ()> = expiries.put(0, Duration::from_millis(5), || {
            let mut look = expiries.look(0, 1);
            look.returned(0).unwrap();
            during = Some((look.end_of_scan(), expiries.look(0, 1).end_of_scan()));
            Ok(())
        });
        assert!(result.is_ok());
        let (with, without) = during.unwrap();
        assert_eq!((with.unwrap().returned, without.unwrap()), (1, Seen::default()));
    }
}
