//! The rate, by a clock that only waiting moves: what takes a machine long counts for nothing.

use super::world::{World, about, contents, quick};
use crate::create::create;
use crate::restore::restore;
use crate::verify::verify;
use crate::{Error, Transfers};
use object_store::memory::InMemory;
use std::num::NonZeroU64;
use std::time::Duration;

/// Bytes per second.
const RATE: u64 = 10;

/// How long it takes to copy a version, to check it, and to bring it back.
fn durations(transfers: &Transfers) -> [Duration; 3] {
    let world = World::with_own_clock();
    let (store, files, directory) = (InMemory::new(), world.files(1), world.new_directory());
    let begun = world.now();
    world.on(&store, transfers, async |store| create(store, files, &about(1)).await.map(drop)).unwrap();
    let created = world.now();
    world.on(&store, transfers, async |store| verify(store, None).await.map(drop)).unwrap();
    let verified = world.now();
    world.on(&store, transfers, async |store| restore(store, None, u64::MAX, &directory).await.map(drop)).unwrap();
    [created - begun, verified - created, world.now() - verified]
}

#[test]
fn every_transfer_keeps_to_the_rate() {
    let lengths: Vec<u64> = contents(1).values().map(|bytes| bytes.len() as u64).collect();
    let (all, longest) = (lengths.iter().sum::<u64>(), lengths.iter().max().unwrap());
    // The first bytes go at once, and nothing waits for the last ones.
    let least = Duration::from_secs((all - longest) / RATE);
    // Timers count whole milliseconds.
    let most = Duration::from_secs(all.div_ceil(RATE)) + Duration::from_millis(100);
    for parallel in [1, 4] {
        for part in [5, 1 << 20] {
            let transfers = quick().parallel(parallel).part_bytes(part).bytes_per_second(NonZeroU64::new(RATE));
            for (what, time) in ["create", "verify", "restore"].iter().zip(durations(&transfers)) {
                assert!((least..=most).contains(&time), "{what}, {parallel} at a time: {time:?}, {least:?}..={most:?}");
            }
        }
    }
    assert!(durations(&quick()).iter().all(|time| *time < Duration::from_millis(10)), "nothing waits without a rate");
}

/// What was not used of the rate is not made up for.
#[test]
fn a_pause_allows_no_more_bytes_than_the_rate_afterwards() {
    let world = World::with_own_clock();
    let transfers = quick().bytes_per_second(NonZeroU64::new(RATE));
    let begun = world.now();
    world.on(&InMemory::new(), &transfers, async |store| {
        store.pace(10).await.unwrap();
        World::pass(Duration::from_secs(60)).await;
        for _ in 0..3 {
            store.pace(10).await.unwrap();
        }
    });
    let seconds = (world.now() - begun).as_secs_f64() - 60.0;
    assert!((2.0..2.1).contains(&seconds), "{seconds}");
}

/// A million bytes take eleven days.
#[test]
fn waiting_for_the_rate_ends_when_it_is_cancelled() {
    let world = World::with_own_clock();
    let cancel = crate::Cancel::default();
    let transfers = quick().bytes_per_second(NonZeroU64::new(1)).cancel(&cancel);
    let begun = world.now();
    world.on(&InMemory::new(), &transfers, async |store| {
        store.pace(1_000_000).await.unwrap();
        let ending = async {
            World::pass(Duration::from_secs(7)).await;
            cancel.cancel();
        };
        let (outcome, ()) = futures_util::future::join(store.pace(1), ending).await;
        assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?}");
    });
    let seconds = (world.now() - begun).as_secs_f64();
    assert!((7.0..7.1).contains(&seconds), "{seconds}");
}
