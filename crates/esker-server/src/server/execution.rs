//! Commands on the database: those of a batch share a transaction of the engine, and a sync.

use super::shared::{Shared, now_ms};
use super::watches::Watches;
use crate::commands::DataFunction;
use crate::protocol::Reply;
use crate::store::{Blocked, Context, Effects, Failure, Keyspaces, Kind, OpenError, Outcome, Random};
use bytes::Bytes;
use esker::{Db, ManualClock, Options, Transaction, WriteOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The database, and the transaction of the batch that is being executed.
///
/// The engine's clock shows the time of the batch: a key expires for all commands of a batch, and
/// for the engine, at the same moment.
#[derive(Debug)]
pub struct Execution {
    keyspaces: Keyspaces,
    transaction: Option<Transaction>,
    clock: Arc<ManualClock>,
    now_ms: u64,
    seeds: Random,
    /// What the batch has written so far and nobody was told yet.
    effects: Effects,
    /// Why the batch cannot be committed.
    failure: Option<String>,
    /// From when on the next command is timed.
    timed_from: Instant,
    /// Whether the batch, and all before it, is to be durable when it is committed.
    wants_sync: bool,
    /// Whether something was committed that was not synced.
    is_dirty: Arc<AtomicBool>,
    /// The keys that connections watch.
    pub watches: Watches,
    /// Connections that are not to wait any longer, and whether with an error.
    pub unblocked: Vec<(u64, bool)>,
    shared: Arc<Shared>,
}

impl Execution {
    /// Opens the database of the server.
    ///
    /// # Errors
    /// Those of [`Keyspaces::open`].
    pub fn open(shared: Arc<Shared>, seed: u64) -> Result<Execution, OpenError> {
        let mut options = Options::default();
        if let Some(bytes) = shared.config.memory_budget_bytes {
            options = options.memory_budget_bytes(bytes);
        }
        Execution::with_options(shared, options, (now_ms(), seed))
    }

    /// As [`Execution::open`], with options of the engine.
    pub fn with_options(
        shared: Arc<Shared>,
        options: Options,
        (now_ms, seed): (u64, u64),
    ) -> Result<Execution, OpenError> {
        let clock = Arc::new(ManualClock::new(now_ms));
        let options = options.clock(Arc::<ManualClock>::clone(&clock));
        let mut seeds = Random::new(seed);
        let keyspaces = Keyspaces::open(&shared.config.directory, options, shared.config.databases, seeds.next())?;
        Ok(Execution::new(shared, keyspaces, clock, (now_ms, seeds)))
    }

    /// An execution that only reads, on the state of a replica in that transaction.
    pub fn view(
        shared: Arc<Shared>,
        keyspaces: Keyspaces,
        transaction: Transaction,
        (now_ms, seed): (u64, u64),
    ) -> Execution {
        let clock = Arc::new(ManualClock::new(now_ms));
        let mut view = Execution::new(shared, keyspaces, clock, (now_ms, Random::new(seed)));
        view.transaction = Some(transaction);
        view
    }

    fn new(
        shared: Arc<Shared>,
        keyspaces: Keyspaces,
        clock: Arc<ManualClock>,
        (now_ms, seeds): (u64, Random),
    ) -> Execution {
        Execution {
            keyspaces,
            transaction: None,
            now_ms,
            clock,
            seeds,
            effects: Effects::default(),
            failure: None,
            timed_from: Instant::now(),
            wants_sync: false,
            is_dirty: Arc::default(),
            watches: Watches::default(),
            unblocked: Vec::new(),
            shared,
        }
    }

    /// The keyspaces.
    pub fn keyspaces(&self) -> &Keyspaces {
        &self.keyspaces
    }

    /// The time of the batch, in milliseconds since the epoch.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Begins a batch at the present time.
    pub fn begin(&mut self) {
        self.begin_at(now_ms());
        self.timed_from = Instant::now();
    }

    /// Begins a batch at a time in milliseconds since the epoch. Time does not go back, also where
    /// the system's clock does: what has expired stays so, as its elements may be gone.
    fn begin_at(&mut self, now_ms: u64) {
        self.now_ms = now_ms.max(self.now_ms);
        self.clock.set(self.now_ms);
        self.keyspaces.thresholds.clone_from(&self.shared.settings.read().thresholds);
    }

    /// Executes what `function` does on a context of the logical database.
    ///
    /// # Errors
    /// What the client has to wait for.
    pub fn run(
        &mut self,
        database: usize,
        function: impl FnOnce(&mut Context<'_>) -> Outcome,
    ) -> Result<Reply, Blocked> {
        if let Some(failure) = &self.failure {
            return Ok(Reply::error(failure.clone()));
        }
        let seed = self.seeds.next();
        let writes = self.effects.writes;
        let transaction = self.transaction.get_or_insert_with(|| self.keyspaces.transaction());
        let place = (database, self.now_ms, seed);
        let outcome = Context::new(transaction, &mut self.keyspaces, &mut self.effects, place)
            .and_then(|mut context| function(&mut context));
        match outcome {
            Ok(reply) => Ok(reply),
            Err(Failure::Refused(text)) => Ok(Reply::Error(text)),
            Err(Failure::Blocked(blocked)) => Err(blocked),
            Err(Failure::Engine(error)) => {
                let text = engine_error(&error);
                tracing::error!(%error, "a command failed in the engine");
                if self.effects.writes != writes {
                    // A part of its writes is in the transaction.
                    self.failure = Some(text.clone());
                }
                Ok(Reply::error(text))
            }
        }
    }

    /// Whether a key of a logical database holds a value of that type.
    pub fn holds(&mut self, (database, key): &(usize, Bytes), kind: Kind) -> bool {
        let is_kind = |context: &mut Context<'_>| Ok(context.entry(key)?.is_some_and(|entry| entry.kind() == kind));
        let found = self.run(*database, |context| is_kind(context).map(Reply::Boolean));
        matches!(found, Ok(Reply::Boolean(true)))
    }

    /// Executes a command of the table.
    ///
    /// # Errors
    /// As [`Execution::run`].
    pub fn call(&mut self, database: usize, function: DataFunction, arguments: &[Bytes]) -> Result<Reply, Blocked> {
        self.run(database, |context| function(context, arguments))
    }

    /// Tells those that watch what was written, and returns the keys that were filled and the
    /// logical databases that were emptied or swapped.
    pub fn take_filled(&mut self) -> (Vec<(usize, Bytes)>, Vec<usize>) {
        if !self.watches.is_empty() {
            for key in &self.effects.modified {
                self.watches.touch(key);
            }
            for &database in &self.effects.replaced {
                self.watches.touch_all(database);
            }
        }
        self.effects.modified.clear();
        (std::mem::take(&mut self.effects.filled), std::mem::take(&mut self.effects.replaced))
    }

    /// How many keys were looked up and found, and not found, since the last call.
    pub fn take_lookups(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.effects.found_keys), std::mem::take(&mut self.effects.missed_keys))
    }

    /// How much time has gone by since the last call, or since the batch has begun.
    pub fn take_time(&mut self) -> Duration {
        let now = Instant::now();
        now.saturating_duration_since(std::mem::replace(&mut self.timed_from, now))
    }

    /// How many bytes the batch has written so far.
    pub fn written_bytes(&self) -> usize {
        self.effects.written_bytes
    }

    /// Has the commit of the batch sync the log, also where the batch has written nothing.
    pub fn request_sync(&mut self) {
        self.wants_sync = true;
    }

    /// Commits the batch.
    ///
    /// # Errors
    /// The text of the error that every command of the batch gets: nothing of it was written.
    pub fn commit(&mut self, is_synced: bool) -> Result<(), String> {
        self.effects = Effects::default();
        let wants_sync = std::mem::take(&mut self.wants_sync);
        let transaction = self.transaction.take().filter(|transaction| !transaction.is_empty());
        let outcome = match (self.failure.take(), transaction) {
            (Some(failure), _) => Err(failure),
            (None, None) if wants_sync => self.syncer().sync(true),
            (None, None) => Ok(()),
            (None, Some(transaction)) => self.commit_transaction(transaction, is_synced || wants_sync),
        };
        if outcome.is_err()
            && let Err(error) = self.keyspaces.reload()
        {
            tracing::error!(%error, "the numbers of the databases were not read again");
        }
        outcome
    }

    fn commit_transaction(&self, transaction: Transaction, is_synced: bool) -> Result<(), String> {
        self.shared.statistics.batches.add(1);
        let outcome = transaction.commit_with(&WriteOptions::new().sync(is_synced));
        if is_synced && outcome.is_ok() {
            self.shared.synced_seconds.store(now_ms() / 1000, Ordering::Relaxed);
        } else {
            // After the commit: a sync that has begun before it may not have the batch in it, and
            // takes the flag back. A commit that failed may have left something in the log.
            self.is_dirty.store(true, Ordering::Release);
        }
        outcome.map_err(|error| {
            tracing::error!(%error, "a batch was not committed");
            engine_error(&error)
        })
    }

    /// Removes what is left of expired collections, up to `limit` of them, and returns how many
    /// there were.
    pub fn sweep(&mut self, limit: usize) -> usize {
        let mut count = 0;
        // A sweep waits for nothing, and its error was logged.
        let _ = self.run(0, |context| {
            count = context.sweep(limit)?;
            Ok(Reply::OK)
        });
        count
    }

    /// What syncs the log.
    pub fn syncer(&self) -> Syncer {
        let (db, is_dirty) = (self.keyspaces.db().clone(), Arc::clone(&self.is_dirty));
        Syncer { db, is_dirty, shared: Arc::clone(&self.shared) }
    }

    /// Closes the database.
    ///
    /// # Errors
    /// Those of [`esker::Db::close`].
    pub fn close(self) -> Result<(), esker::Error> {
        self.keyspaces.db().clone().close()
    }
}

/// Syncs the log, beside the commands.
#[derive(Clone, Debug)]
pub struct Syncer {
    db: Db,
    is_dirty: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

impl Syncer {
    /// Syncs the log, if something was committed since the last time, or in any case.
    ///
    /// # Errors
    /// The text of the engine's error.
    pub fn sync(&self, is_forced: bool) -> Result<(), String> {
        if self.is_dirty.swap(false, Ordering::AcqRel) || is_forced {
            if let Err(error) = self.db.sync() {
                self.is_dirty.store(true, Ordering::Release);
                return Err(engine_error(&error));
            }
            self.shared.synced_seconds.store(now_ms() / 1000, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn engine_error(error: &esker::Error) -> String {
    format!("ERR the storage engine failed: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{Handler, find};
    use crate::server::config::Config;
    use crate::store::Body;
    use esker::env::Env;
    use esker::env::fault::{Action, Class, FaultEnv, Rule};
    use esker::env::mem::{CrashMode, MemEnv};
    use std::io::ErrorKind;

    /// When the tests begin. An open at a later time would drop what has expired until then.
    const BEGIN_MS: u64 = 1_700_000_000_000;

    fn execution(env: Arc<dyn Env>) -> Execution {
        let shared = Arc::new(Shared::new(Config::new("data"), 1));
        Execution::with_options(shared, Options::default().env(env), (BEGIN_MS, 7)).unwrap()
    }

    fn call(execution: &mut Execution, line: &str) -> Reply {
        let arguments: Vec<Bytes> = line.split(' ').map(|word| Bytes::from(word.to_string())).collect();
        let Handler::Data(function) = find(&arguments[0]).unwrap().handler else { panic!("{line} is not on data") };
        execution.call(0, function, &arguments).unwrap_or_else(|blocked| blocked.otherwise)
    }

    /// All that is stored, in all keyspaces.
    fn stored(execution: &Execution) -> Vec<(String, Vec<u8>, Vec<u8>)> {
        let db = execution.keyspaces.db();
        let mut names = db.keyspaces();
        names.sort();
        let mut all = Vec::new();
        for name in names {
            for pair in db.existing_keyspace(&name).unwrap().iter() {
                let (key, value) = pair.unwrap();
                all.push((name.clone(), key.to_vec(), value.to_vec()));
            }
        }
        all
    }

    const TEMPLATES: [&str; 30] = [
        "SET K V",
        "SET K V PX 500",
        "GET K",
        "INCR K",
        "APPEND K V",
        "DEL K",
        "PEXPIRE K 300",
        "PERSIST K",
        "PTTL K",
        "RENAME K K",
        "COPY K K",
        "HSET K V V",
        "HINCRBY K V 1",
        "HRANDFIELD K",
        "HGETALL K",
        "SADD K V V",
        "SPOP K",
        "SPOP K 2",
        "SRANDMEMBER K -3",
        "SMEMBERS K",
        "ZADD K 1 V 2 V",
        "ZRANDMEMBER K 2",
        "ZPOPMIN K",
        "RPUSH K V V",
        "LPOP K",
        "LRANGE K 0 -1",
        "LMOVE K K LEFT RIGHT",
        "RANDOMKEY",
        "SCAN 0",
        "SUNIONSTORE K K K",
    ];

    fn random_line(random: &mut Random) -> String {
        let template = TEMPLATES[random.below(TEMPLATES.len() as u64) as usize];
        let word = |word: &str| match word {
            "K" => char::from(b'a' + random.below(20) as u8).to_string(),
            "V" => random.below(9).to_string(),
            word => word.to_string(),
        };
        template.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }

    fn seed() -> u64 {
        let seed = std::env::var("ESKER_SEED").map_or(1, |seed| seed.parse().unwrap());
        println!("ESKER_SEED={seed}");
        seed
    }

    /// Two nodes that apply the same commands at the same times, in other batches and with other
    /// flushes, give the same replies and hold the same bytes.
    #[test]
    fn commands_are_deterministic() {
        let mut random = Random::new(seed());
        let (mut first, mut second) = (execution(Arc::new(MemEnv::new())), execution(Arc::new(MemEnv::new())));
        let mut now_ms = BEGIN_MS;
        for _ in 0..6000 {
            now_ms += random.below(40);
            let line = random_line(&mut random);
            let replies = [&mut first, &mut second].map(|execution| {
                execution.begin_at(now_ms);
                call(execution, &line)
            });
            assert_eq!(replies[0], replies[1], "{line}");
            first.commit(false).unwrap();
            if random.below(10) == 0 {
                second.commit(false).unwrap();
            }
            if random.below(500) == 0 {
                second.commit(false).unwrap();
                second.keyspaces.db().compact().unwrap();
            }
        }
        for execution in [&mut first, &mut second] {
            execution.begin_at(now_ms);
            execution.sweep(usize::MAX);
            execution.commit(false).unwrap();
        }
        let (first, second) = (stored(&first), stored(&second));
        assert!(first.len() > 20, "{first:?}");
        assert_eq!(first, second);
    }

    /// Every collection has as many elements as its entry says, and no others are there.
    fn check_elements(execution: &mut Execution) {
        let mut expected = 0;
        let mut entries = Vec::new();
        let _ = execution.run(0, |context| {
            context.scan_keys(&[], |_, key, entry| {
                entries.push((Bytes::copy_from_slice(key), entry));
                true
            })?;
            Ok(Reply::OK)
        });
        for (key, entry) in entries {
            let Body::Collection(collection) = entry.body else { continue };
            let elements = execution.keyspaces.db().existing_keyspace("0.elements").unwrap();
            let found = elements.prefix(collection.generation.to_be_bytes()).count() as u64;
            let each = if collection.kind == Kind::SortedSet { 2 } else { 1 };
            assert_eq!(found, collection.count * each, "{key:?} {collection:?}");
            expected += found;
        }
        let all = execution.keyspaces.db().existing_keyspace("0.elements").unwrap().count(..).unwrap();
        assert_eq!(all, expected);
    }

    /// After a power failure a synced batch is there, and any other one as a whole or not at all.
    #[test]
    fn batches_survive_power_failures() {
        let seed = seed();
        let mut random = Random::new(seed);
        let env = MemEnv::new();
        let mut running = execution(Arc::new(env.clone()));
        let mut now_ms = BEGIN_MS;
        for round in 0..120 {
            now_ms += random.below(40);
            running.begin_at(now_ms);
            for _ in 0..random.below(8) {
                call(&mut running, &random_line(&mut random));
            }
            // A sync is that of a write; one that only reads syncs nothing.
            call(&mut running, "INCR writes");
            let is_synced = random.below(2) == 0;
            running.sweep(usize::MAX);
            running.commit(is_synced).unwrap();
            let mode = if is_synced { CrashMode::LoseAll } else { CrashMode::Random };
            let mut found = execution(Arc::new(env.crash(&mode, seed + round)));
            found.begin_at(now_ms);
            if is_synced {
                assert_eq!(stored(&found), stored(&running), "round {round}");
            }
            found.sweep(usize::MAX);
            found.commit(false).unwrap();
            check_elements(&mut found);
        }
    }

    /// What was swept is not seen again when the clock goes back, without a restart or with one;
    /// also if it was renamed. What took its key is not swept.
    #[test]
    fn what_was_swept_stays_away() {
        let env = MemEnv::new();
        let mut running = execution(Arc::new(env.clone()));
        running.begin_at(BEGIN_MS);
        for line in [
            "RPUSH l a",
            "PEXPIRE l 100",
            "SADD from a",
            "PEXPIRE from 100",
            "RENAME from to",
            "SADD from kept",
            "ZADD z 1 a",
            "PEXPIRE z 100",
        ] {
            call(&mut running, line);
        }
        running.commit(false).unwrap();
        running.begin_at(BEGIN_MS + 200);
        call(&mut running, "ZADD z 1 kept");
        assert_eq!(running.sweep(usize::MAX), 3);
        running.commit(true).unwrap();
        running.begin_at(BEGIN_MS + 50);
        assert_eq!(running.now_ms(), BEGIN_MS + 200);
        let restarted = execution(Arc::new(env.crash(&CrashMode::LoseAll, 1)));
        for mut execution in [running, restarted] {
            execution.begin_at(BEGIN_MS + 50);
            assert_eq!(call(&mut execution, "EXISTS l to"), Reply::Integer(0));
            assert_eq!(call(&mut execution, "EXISTS from z"), Reply::Integer(2));
            check_elements(&mut execution);
        }
    }

    /// A batch that the disk refuses is not there at all; what was before it is.
    #[test]
    fn a_batch_is_written_whole_or_not() {
        for class in [Class::Sync, Class::LogWrite] {
            let env = Arc::new(FaultEnv::new(Arc::new(MemEnv::new())));
            let mut execution = execution(Arc::<FaultEnv>::clone(&env));
            execution.begin();
            assert_eq!(call(&mut execution, "SET before 1"), Reply::OK);
            execution.commit(true).unwrap();
            env.add(Rule::new(class, 0, Action::Fail(ErrorKind::StorageFull)).from_then_on());
            call(&mut execution, "SET a 1");
            call(&mut execution, "RPUSH l x y");
            let error = execution.commit(true).unwrap_err();
            assert!(error.starts_with("ERR the storage engine failed"), "{error}");
            assert!(env.fired() > 0, "{class:?}");
            env.clear();
            execution.begin();
            assert_eq!(call(&mut execution, "GET before"), Reply::bulk("1"));
            let found = call(&mut execution, "EXISTS a l");
            assert!(matches!(found, Reply::Integer(0 | 2)), "{class:?}: {found:?}");
        }
    }
}
