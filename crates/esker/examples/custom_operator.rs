//! A merge operator of your own: the average response time of each service, from one merge for each
//! request.
//!
//! Run it with `cargo run --example custom_operator`, or with a directory as its argument to keep
//! the database.

use esker::merge::check_laws;
use esker::{Db, KeyspaceOptions, MergeError, MergeOperator, Options};
use std::error::Error;
use std::path::Path;

/// Adds up how many requests there were and how long they took. From both follows the average;
/// averages themselves could not be combined.
struct Timings;

/// What operands and values are: the number of requests, and their microseconds together.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Timing {
    requests: u64,
    micros: u64,
}

impl Timing {
    fn encode(self) -> Vec<u8> {
        [self.requests.to_le_bytes(), self.micros.to_le_bytes()].concat()
    }

    /// Operators see whatever was written. What they do not understand is an error, never a panic
    /// and never a guess.
    fn decode(bytes: &[u8]) -> Result<Timing, MergeError> {
        let wrong = || MergeError(format!("a timing has 16 bytes, this one has {}", bytes.len()));
        let (requests, micros) = bytes.split_at_checked(8).ok_or_else(wrong)?;
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).map_err(|_| wrong());
        Ok(Timing { requests: number(requests)?, micros: number(micros)? })
    }

    fn plus(self, other: Timing) -> Timing {
        Timing { requests: self.requests.wrapping_add(other.requests), micros: self.micros.wrapping_add(other.micros) }
    }
}

impl MergeOperator for Timings {
    /// Stored with the keyspace. Another meaning of the same bytes should have another name.
    fn name(&self) -> &str {
        "timings-1"
    }

    /// The value after some operands. `None` as the result would delete the key.
    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        let mut sum = Timing { requests: 0, micros: 0 };
        for part in existing.into_iter().chain(operands.iter().copied()) {
            sum = sum.plus(Timing::decode(part)?);
        }
        Ok(Some(sum.encode()))
    }

    /// Two operands as one, where the value is not known. An operator that cannot do this says
    /// `None`, and works all the same.
    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(Timing::decode(older).ok()?.plus(Timing::decode(newer).ok()?).encode())
    }

    /// Mistakes are best found where they are made: at the merge, not at some later read.
    fn check_operand(&self, operand: &[u8]) -> Result<(), MergeError> {
        Timing::decode(operand).map(|_| ())
    }
}

/// Measures in the database in `directory`.
pub fn run(directory: &Path) -> Result<(), Box<dyn Error>> {
    // The engine combines operands when it suits it. This test, for your own tests, tells whether
    // that can be noticed.
    let samples = [(0, 0), (1, 250), (3, u64::MAX)].map(|(requests, micros)| Timing { requests, micros }.encode());
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    check_laws(&Timings, &samples, &[b"not a timing"])?;

    let db = Db::open(directory, Options::default())?;
    // An operator that is not built in is supplied at each open. Until then, merged keys of the
    // keyspace cannot be read.
    let timings = db.keyspace("timings", KeyspaceOptions::default().merge_operator(Timings))?;
    timings.delete("search")?;
    for micros in [250, 350, 900] {
        timings.merge("search", Timing { requests: 1, micros }.encode())?;
    }
    let value = timings.get("search")?.ok_or("it was merged")?;
    let timing = Timing::decode(&value).map_err(|why| why.to_string())?;
    assert_eq!(timing, Timing { requests: 3, micros: 1500 });
    println!("search: {} requests, {} us on average", timing.requests, timing.micros / timing.requests);

    assert!(timings.merge("search", "250").is_err(), "refused by `check_operand`");

    // A put is not checked. Reads of that key then fail, with everything that is needed to find out
    // why; nothing else does.
    timings.put("broken", "250")?;
    timings.merge("broken", Timing { requests: 1, micros: 1 }.encode())?;
    println!("as it should: {}", timings.get("broken").expect_err("it cannot be combined"));
    assert!(timings.get("search").is_ok());
    assert!(db.health().writable);
    // A put or delete heals it.
    timings.delete("broken")?;
    assert!(timings.get("broken")?.is_none());

    drop(timings);
    db.close()?;
    Ok(())
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    if let Some(directory) = std::env::args_os().nth(1) {
        return run(Path::new(&directory));
    }
    let directory = std::env::temp_dir().join(format!("esker-example-custom-operator-{}", std::process::id()));
    let result = run(&directory);
    std::fs::remove_dir_all(&directory)?;
    result
}
