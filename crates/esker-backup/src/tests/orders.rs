//! Creates and prunes at the same time, whose calls come in random orders, and of which some end in
//! the middle. After each call all backups that exist are whole.

use super::store::{Plan, Planned};
use super::world::{State, World, about, is_planned, quick};
use crate::create::create;
use crate::prune::prune;
use crate::store::Store;
use crate::{Error, Prune};
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all};
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The uploads of all backups that existed at any moment.
type Existed = Arc<Mutex<BTreeSet<String>>>;

fn look(seed: u64, existed: Existed) -> impl Fn(&InMemory) + Send + Sync {
    move |inner| {
        let state = State::of(inner);
        existed.lock().unwrap().extend(state.existing().iter().map(|backup| backup.upload.clone()));
        let missing: Vec<_> = state.named().difference(&state.objects).cloned().collect();
        assert!(missing.is_empty(), "seed {seed}: a backup lacks {missing:?}");
    }
}

/// Runs four creates and three prunes at once, and returns how many of the creates succeeded.
fn round(world: &World, seed: u64) -> u64 {
    let inner = Arc::new(InMemory::new());
    let succeeded = AtomicU64::new(0);
    let existed = Existed::default();
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    world.create(&*inner, 1, &quick()).unwrap();
    let transfers = quick();
    let prefix = ObjectPath::from("some/where");
    let mut work: Vec<LocalBoxFuture<'_, ()>> = Vec::new();
    for actor in 0..7 {
        let plan = match below(5) {
            0 => Plan::FailFrom(below(30)),
            1 => Plan::AnswerLostFrom(below(30)),
            2 => Plan::AnswerLostAt(below(30)),
            _ => Plan::Fine,
        };
        let store =
            Planned::shuffled(Arc::clone(&inner), plan, seed * 31 + actor, Box::new(look(seed, Arc::clone(&existed))));
        let existed = &existed;
        let (transfers, prefix, succeeded, version) = (&transfers, &prefix, &succeeded, 1 + below(3));
        // Some take every upload for one that has ended, some none.
        let grace = Duration::from_secs(below(2) * 3600);
        let policy = Prune::default().keep_last(below(3) as usize).grace(grace);
        work.push(
            async move {
                // Twice, so that one actor comes to rely on what it saw before.
                for turn in 0..2 {
                    let store = Store::new(&store, prefix, transfers);
                    let outcome = match actor % 7 {
                        0..4 => create(&store, world.files(version + turn), &about(version + turn))
                            .await
                            .map(|created| Some(created.record.upload)),
                        _ => prune(&store, &policy).await.map(|_| None),
                    };
                    match outcome {
                        Ok(None) => {}
                        Ok(Some(upload)) => {
                            assert!(existed.lock().unwrap().contains(&upload), "seed {seed}: made, and never there");
                            succeeded.fetch_add(1, Relaxed);
                        }
                        Err(error) => assert!(
                            is_planned(&error) || matches!(error, Error::Contended),
                            "seed {seed}, {plan:?}: {error}"
                        ),
                    }
                }
            }
            .boxed_local(),
        );
    }
    world.runtime.block_on(join_all(work));
    world.check_whole(&*inner);
    world.check_clean(&inner);
    world.create(&*inner, 2, &quick()).unwrap();
    world.check_whole(&*inner);
    succeeded.into_inner()
}

#[test]
fn concurrent_creates_and_prunes_in_any_order_leave_every_backup_whole() {
    let given = std::env::var("ESKER_BACKUP_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let world = World::new();
    let seeds = given.map_or(1..301, |seed| seed..seed + 1);
    println!("seeds {seeds:?}; one of them again with ESKER_BACKUP_SEED");
    let is_one = given.is_some();
    let succeeded: u64 = seeds.map(|seed| round(&world, seed)).sum();
    println!("{succeeded} backups");
    assert!(is_one || succeeded > 600, "only {succeeded} creates succeeded");
}
