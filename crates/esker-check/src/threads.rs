//! Writers, readers, maintenance and losses at the same time, on the simulated environment.
//!
//! Every commit of a writer raises its own number in two keyspaces and adds one to a common sum. So
//! in every snapshot, and after every loss, the two numbers of each writer are equal and their
//! total is the sum: any torn, reordered or missing batch shows. A few commits count a vote
//! besides, in the same way. Which interleavings happen is up to the machine; the seed fixes the
//! rest.
//!
//! Another thread creates a keyspace and drops it, again and again (`threads/passing.rs`); others
//! have a lease in turn, by conditional writes (`threads/leases.rs`); one gives a keyspace other
//! names, settings and loads, and the sum and the votes other settings (`threads/altering.rs`); and
//! some put jobs into queues and take them out, through typed handles (`threads/queues.rs`). A
//! follower and, with odd seeds, a reader of the changes read along (`threads/reading_along.rs`).
//!
//! Before that, threads meet disks that are full for a while (`threads/full_disk.rs`).

mod altering;
mod full_disk;
mod leases;
mod passing;
mod queues;
mod reading_along;
mod stored;
mod together;

use crate::Checked;
use crate::random::Random;
use crate::settings::Settings;
use crate::simulated::MEMORY_PATH;
use altering::Altering;
use esker::env::mem::{CrashMode, MemEnv};
use esker::merge::UInt64Add;
use esker::{
    ChangeRetention, Db, Keyspace, KeyspaceOptions, ManualClock, Options, Slice, Snapshot, StallPolicy, Ttl,
    WriteOptions,
};
use leases::Leases;
use queues::Queues;
use reading_along::ChangesReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use stored::{NOW, number};
use together::{join, start};

const WRITERS: usize = 4;
const READERS: usize = 2;
/// Threads that have the lease in turn.
const HOLDERS: usize = 2;
/// Threads that put jobs into queues and take them out.
const WORKERS: usize = 2;
const SUM: &[u8] = b"sum";
/// So many commits have one vote.
const VOTES: usize = 500;

/// What was done.
#[derive(Debug, Default)]
pub struct Totals {
    /// Commits acknowledged.
    pub commits: AtomicU64,
    /// Commits refused because writes were stalled, and made again.
    pub refused: AtomicU64,
    /// Snapshots checked.
    pub snapshots: AtomicU64,
    /// Images after a loss, opened and checked.
    pub images: AtomicU64,
    /// Keyspaces dropped.
    pub drops: AtomicU64,
    /// Leases taken and given back.
    pub leases: AtomicU64,
    /// Loads into the altered keyspace, each behind another name.
    pub loads: AtomicU64,
    /// Merge operators that took the place of others.
    pub operators: AtomicU64,
    /// Jobs popped.
    pub popped: AtomicU64,
    /// Tasks taken in transactions.
    pub done: AtomicU64,
    /// How often the follower had caught up, and was checked.
    pub followed: AtomicU64,
    /// Batches in the changes.
    pub told: AtomicU64,
    /// Disks that were full for a while.
    pub full_disks: AtomicU64,
    /// Calls that were refused there.
    pub without_room: AtomicU64,
    /// Handles that took no more writes after that.
    pub read_only: AtomicU64,
}

/// Numbers below which no writer's number may fall.
type Floor = [u64; WRITERS];

/// What a reader or an image must have.
struct Least {
    numbers: Floor,
    /// Numbers up to this one are in no keyspace any more.
    dropped: u64,
    ticket: u64,
    altering: altering::Least,
    queues: queues::Least,
}

#[derive(Default)]
struct Shared {
    acknowledged: [AtomicU64; WRITERS],
    synced: [AtomicU64; WRITERS],
    /// Numbers up to this one are in no keyspace any more.
    dropped: AtomicU64,
    leases: Leases,
    altering: Altering,
    queues: Queues,
    /// Whether a thread reads the changes.
    keeps_changes: bool,
    stop: AtomicBool,
    totals: Totals,
}

impl Shared {
    /// What survives from now on: the end of the process, or also a loss of power.
    fn least(&self, lost_power: bool) -> Least {
        let (ticket, synced_ticket) = self.leases.tickets();
        Least {
            numbers: floor(if lost_power { &self.synced } else { &self.acknowledged }),
            dropped: self.dropped.load(Ordering::Acquire),
            ticket: if lost_power { synced_ticket } else { ticket },
            altering: self.altering.least(lost_power),
            queues: self.queues.least(lost_power),
        }
    }

    /// Whether each thread has done its work once: a machine may be slow.
    fn is_each_done(&self) -> bool {
        let [popped, done] = self.queues.handed_out();
        let (followed, told) = (&self.totals.followed, &self.totals.told);
        let told = if self.keeps_changes { told.load(Ordering::Acquire) } else { 1 };
        let least = [popped, done, self.leases.tickets().0, followed.load(Ordering::Acquire), told];
        self.altering.is_each_done() && least.iter().all(|&count| count > 0)
    }

    /// Takes over what the threads have counted themselves.
    fn count(&self) {
        let [popped, done] = self.queues.handed_out();
        self.totals.leases.store(self.leases.tickets().0, Ordering::Release);
        self.totals.loads.store(self.altering.loads(), Ordering::Release);
        self.totals.operators.store(self.altering.operators(), Ordering::Release);
        self.totals.popped.store(popped, Ordering::Release);
        self.totals.done.store(done, Ordering::Release);
    }
}

fn floor(numbers: &[AtomicU64; WRITERS]) -> Floor {
    std::array::from_fn(|writer| numbers[writer].load(Ordering::Acquire))
}

struct Opened {
    db: Db,
    numbers: Keyspace,
    copies: Keyspace,
    sums: Keyspace,
    votes: Keyspace,
    leases: Keyspace,
    altered: Keyspace,
    queues: queues::Handles,
}

fn options(env: &MemEnv, keeps_changes: bool) -> Options {
    let options = Options::default()
        .env(Arc::new(env.clone()))
        .clock(Arc::new(ManualClock::new(NOW)))
        .write_buffer_bytes(16 << 10)
        .block_bytes(512)
        .target_file_bytes(8 << 10)
        .wal_segment_bytes(16 << 10)
        .background_threads(1);
    if keeps_changes { options.keep_changes(ChangeRetention::Bytes(1 << 20)) } else { options }
}

fn open(env: &MemEnv, keeps_changes: bool) -> esker::Result<Opened> {
    let db = Db::open(MEMORY_PATH, options(env, keeps_changes))?;
    let numbers = db.keyspace("numbers", KeyspaceOptions::default())?;
    let copies = db.keyspace("copies", KeyspaceOptions::default())?;
    // The settings may be others by now, which an open has to name as they are.
    let counting = |name: &str| match db.existing_keyspace(name) {
        Err(esker::Error::NotFound { .. }) => db.keyspace(name, KeyspaceOptions::default().merge_operator(UInt64Add)),
        found => found,
    };
    let (sums, votes) = (counting("sums")?, counting("votes")?);
    let expiring = KeyspaceOptions::default().ttl(Ttl::Enabled { default: None });
    let leases = db.keyspace("leases", expiring.merge_operator(UInt64Add))?;
    let (altered, queues) = (altering::open(&db)?, queues::Handles::open(&db)?);
    Ok(Opened { db, numbers, copies, sums, votes, leases, altered, queues })
}

fn name(writer: usize) -> Vec<u8> {
    format!("writer{writer}").into_bytes()
}

/// The key of the number of votes.
fn ballot(writer: usize) -> Vec<u8> {
    format!("ballot{writer}").into_bytes()
}

impl Opened {
    /// Whether a snapshot, which was made before this call, shows one moment, not before that of
    /// `least`.
    fn check(&self, shared: &Shared, snapshot: &Snapshot, least: &Least) -> Checked<altering::Seen> {
        self.check_numbers(snapshot, &least.numbers)?;
        shared.queues.check(&self.queues, snapshot, &least.queues)?;
        shared.altering.check(&self.altered, snapshot, &least.altering)
    }

    fn check_numbers(&self, snapshot: &Snapshot, floor: &Floor) -> Checked<()> {
        let (mut total, mut votes) = (0u64, 0u64);
        for (writer, least) in floor.iter().enumerate() {
            let count = number(snapshot.get(&self.numbers, name(writer)))?;
            let copy = number(snapshot.get(&self.copies, name(writer)))?;
            if count != copy {
                return Err(format!("half a batch is visible: writer {writer} is at {count} and at {copy}"));
            }
            if count < *least {
                return Err(format!("writer {writer} is at {count}, {least} was acknowledged"));
            }
            total += count;
            votes += number(snapshot.get(&self.numbers, ballot(writer)))?;
        }
        for (keyspace, total) in [(&self.sums, total), (&self.votes, votes)] {
            let sum = number(snapshot.get(keyspace, SUM))?;
            if sum != total {
                return Err(format!("the sum is {sum} in {}, the numbers add up to {total}", keyspace.name()));
            }
        }
        Ok(())
    }

    /// Both directions yield the same entries, in order.
    fn check_scan(&self, snapshot: &Snapshot) -> Checked<()> {
        let keys = |entries: &mut dyn Iterator<Item = esker::Result<(Slice, Slice)>>| {
            let keys = entries.map(|entry| entry.map(|(key, _)| key.to_vec())).collect::<esker::Result<Vec<_>>>();
            keys.map_err(|error| format!("a scan failed: {error}"))
        };
        let forward = keys(&mut snapshot.iter(&self.numbers))?;
        let mut backward = keys(&mut snapshot.iter(&self.numbers).rev())?;
        backward.reverse();
        if forward != backward {
            return Err(format!("{} keys forward, {} backward", forward.len(), backward.len()));
        }
        if !forward.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err("a scan is out of order".to_string());
        }
        Ok(())
    }

    fn write(&self, shared: &Shared, writer: usize, mut random: Random) -> Checked<()> {
        let mut count = number(self.numbers.get(name(writer)))?;
        let mut votes = number(self.numbers.get(ballot(writer)))?;
        while !shared.stop.load(Ordering::Acquire) {
            count += 1;
            let sync = random.percent(5);
            let mut batch = self.db.batch();
            let filler = format!("filler{writer}-{}", random.below(60));
            let length = random.below(200);
            let mut outcome = batch
                .put(&self.numbers, name(writer), count.to_le_bytes())
                .and_then(|()| batch.put(&self.numbers, &filler, random.bytes(length)))
                .and_then(|()| batch.merge(&self.sums, SUM, 1u64.to_le_bytes()))
                .and_then(|()| batch.delete(&self.numbers, format!("filler{writer}-{}", random.below(60))))
                .and_then(|()| batch.put(&self.copies, name(writer), count.to_le_bytes()));
            if random.below(VOTES) == 0 {
                votes += 1;
                outcome = outcome
                    .and_then(|()| batch.put(&self.numbers, ballot(writer), votes.to_le_bytes()))
                    .and_then(|()| batch.merge(&self.votes, SUM, 1u64.to_le_bytes()));
            }
            outcome.map_err(|error| format!("an addition to a batch failed: {error}"))?;
            // One that is refused is made again: had it been written, the sum would be too high.
            loop {
                let policy = match random.below(3) {
                    0 => StallPolicy::Wait,
                    1 => StallPolicy::Fail,
                    _ => StallPolicy::For(Duration::from_micros(random.below(2000) as u64)),
                };
                match batch.commit_and_clear(&WriteOptions::new().sync(sync).stall(policy)) {
                    Ok(()) => break,
                    Err(esker::Error::WriteStalled { .. }) if policy != StallPolicy::Wait => {
                        shared.totals.refused.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => return Err(format!("a commit failed: {error}")),
                }
            }
            shared.acknowledged[writer].store(count, Ordering::Release);
            if sync {
                shared.synced[writer].store(count, Ordering::Release);
            }
            shared.totals.commits.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn read(&self, shared: &Shared, mut random: Random) -> Checked<()> {
        while !shared.stop.load(Ordering::Acquire) {
            let before = shared.least(false);
            let writer = random.below(WRITERS);
            if number(self.numbers.get(name(writer)))? < before.numbers[writer] {
                return Err(format!("a get does not see what writer {writer} was told is written"));
            }
            let snapshot = self.db.snapshot();
            self.check(shared, &snapshot, &before)?;
            if random.percent(20) {
                self.check_scan(&snapshot)?;
                altering::check_names(&self.db)?;
            }
            shared.totals.snapshots.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Flushes, compacts, and takes images of what would be found if something died now.
    fn disturb(&self, env: &MemEnv, shared: &Shared, mut random: Random, settings: &Settings) -> Checked<()> {
        let failed = |error: esker::Error| format!("maintenance failed: {error}");
        for number in 0.. {
            let is_enough = settings.enough(number) && shared.is_each_done();
            if is_enough || shared.stop.load(Ordering::Acquire) {
                break;
            }
            std::thread::sleep(Duration::from_millis(random.below(20) as u64));
            let (acknowledged, synced) = (shared.least(false), shared.least(true));
            match random.below(8) {
                0 => self.db.flush().map_err(failed)?,
                1 => self.db.compact().map_err(failed)?,
                2 => _ = self.db.verify().map_err(failed)?,
                3..=4 => {
                    check_image(&env.kill(), &acknowledged, shared).map_err(|what| format!("killed: {what}"))?;
                }
                _ => {
                    let (mode, seed) = (CrashMode::Random, random.next());
                    let image = env.crash(&mode, seed);
                    check_image(&image, &synced, shared).map_err(|what| format!("power lost ({seed}): {what}"))?;
                }
            }
        }
        Ok(())
    }
}

/// Follows the writers: what was acknowledged before a catch-up is there behind it, and no batch in
/// parts.
fn follow(env: &MemEnv, shared: &Shared) -> Checked<()> {
    let failed = |error: esker::Error| format!("the follower failed: {error}");
    let follower = loop {
        match Db::open_follower(MEMORY_PATH, options(env, false)) {
            // The manifest changes all the time.
            Err(esker::Error::Stalled { .. }) if !shared.stop.load(Ordering::Acquire) => {}
            Err(esker::Error::Stalled { .. }) => return Ok(()),
            opened => break opened.map_err(failed)?,
        }
    };
    let keyspace = |name| follower.db().existing_keyspace(name).map_err(failed);
    let opened = Opened {
        db: follower.db().clone(),
        numbers: keyspace("numbers")?,
        copies: keyspace("copies")?,
        sums: keyspace("sums")?,
        votes: keyspace("votes")?,
        leases: keyspace("leases")?,
        altered: altering::existing(follower.db()).map_err(failed)?,
        queues: queues::Handles::existing(follower.db()).map_err(failed)?,
    };
    let acknowledged = || shared.least(false);
    reading_along::follow(&follower, &shared.stop, acknowledged, |before| {
        let snapshot = opened.db.snapshot();
        let seen = opened.check(shared, &snapshot, &before)?;
        altering::check_settings(&opened.db, &opened.altered, &seen, &before.altering)?;
        opened.check_scan(&snapshot)?;
        shared.totals.followed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
}

fn check_image(image: &MemEnv, least: &Least, shared: &Shared) -> Checked<()> {
    let opened = open(image, false).map_err(|error| format!("the image does not open: {error}"))?;
    let snapshot = opened.db.snapshot();
    let seen = opened.check(shared, &snapshot, least)?;
    altering::check_settings(&opened.db, &opened.altered, &seen, &least.altering)?;
    opened.check_passing(least.dropped)?;
    leases::check(&opened.leases, least.ticket)?;
    opened.check_scan(&snapshot)?;
    shared.totals.images.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Runs until the time is up, then opens once more.
pub fn run(settings: Settings) -> Checked<Totals> {
    let disks = full_disk::run(&settings)?;
    let totals = run_together(settings)?;
    totals.full_disks.store(disks.full, Ordering::Release);
    totals.without_room.store(disks.refused, Ordering::Release);
    totals.read_only.store(disks.read_only, Ordering::Release);
    Ok(totals)
}

fn run_together(settings: Settings) -> Checked<Totals> {
    let env = MemEnv::new();
    let keeps_changes = settings.seed % 2 == 1;
    let shared = Shared { keeps_changes, ..Shared::default() };
    let opened = open(&env, keeps_changes).map_err(|error| format!("open failed: {error}"))?;
    let random = |thread: usize| Random::derived(settings.seed, &[thread as u64]);
    let mut changes = keeps_changes.then(|| ChangesReader::new((0..WRITERS).map(name).collect()));
    let (opened_here, shared_here, env_here, changes_here) = (&opened, &shared, &env, changes.as_mut());
    let stop_here = &shared.stop;
    let outcome = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let random = random(writer);
            threads.push(start(scope, stop_here, move || opened_here.write(shared_here, writer, random)));
        }
        for reader in 0..READERS {
            let random = random(WRITERS + reader);
            threads.push(start(scope, stop_here, move || opened_here.read(shared_here, random)));
        }
        let passing = random(WRITERS + READERS + 1);
        threads.push(start(scope, stop_here, move || opened_here.pass(shared_here, passing)));
        for holder in 0..HOLDERS {
            let random = random(WRITERS + READERS + 2 + holder);
            let handles = (&opened_here.db, &opened_here.leases);
            let take_turns = move || shared_here.leases.take_turns(handles, holder as u64, &shared_here.stop, random);
            threads.push(start(scope, stop_here, take_turns));
        }
        for worker in 0..WORKERS {
            let random = random(WRITERS + READERS + 2 + HOLDERS + worker);
            let handles = (&opened_here.db, &opened_here.queues);
            let work = move || shared_here.queues.work(handles, &shared_here.stop, random);
            threads.push(start(scope, stop_here, work));
        }
        let altering = random(WRITERS + READERS + 2 + HOLDERS + WORKERS);
        let handles = (&opened_here.db, &opened_here.altered, [&opened_here.votes, &opened_here.sums]);
        let alter = move || shared_here.altering.alter(handles, &shared_here.stop, altering);
        threads.push(start(scope, stop_here, alter));
        threads.push(start(scope, stop_here, move || follow(env_here, shared_here)));
        if let Some(changes) = changes_here {
            let told = &shared_here.totals.told;
            let read = move || changes.read_along(&opened_here.db, &shared_here.stop, told);
            threads.push(start(scope, stop_here, read));
        }
        let random = random(WRITERS + READERS);
        threads.push(start(scope, stop_here, move || opened_here.disturb(env_here, shared_here, random, &settings)));
        join(threads)
    });
    outcome?;
    shared.count();
    shared.queues.check_end()?;
    let everything = shared.least(false);
    if let Some(changes) = &mut changes {
        let finished = shared.altering.finished();
        changes.check_end(&opened.db, &everything.numbers, finished, &shared.totals.told)?;
    }
    opened.check(&shared, &opened.db.snapshot(), &everything)?;
    drop(opened);
    check_image(&env, &everything, &shared).map_err(|what| format!("opened again: {what}"))?;
    Ok(shared.totals)
}
