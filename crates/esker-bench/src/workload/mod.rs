//! The benchmarks: one table of all of them, and one file per family with what their operations do.

pub mod crash;
mod delete;
mod expiring;
mod fill;
mod known;
mod mixed;
mod queue;
mod read;
mod scan;
mod tombstones;
mod update_merge;
mod ycsb;

pub(crate) use update_merge::one_operand;

use crate::engine::{Result, Session};
use crate::flags::config::{Config, MergeOperand};
use crate::worker::{Job, Worker};

/// What a client thread does from its start to its finish.
pub type ThreadBody = fn(&mut Worker<'_>, &mut dyn Session) -> Result<()>;

/// How a benchmark touches the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It writes.
    Write,
    /// It merges, and needs a merge operator.
    Merge,
    /// It looks single keys up.
    Read,
    /// It steps through the keys; latencies are sampled.
    Scan,
    /// It puts entries that expire, and needs an engine that has that.
    Expire,
    /// Neither.
    Neither,
}

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Every counter, after `mergerandom`.
    Merges,
    /// Every key and value, after `updaterandom`.
    Updates,
}

/// What a benchmark consists of.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// All client threads do the same.
    Threads(ThreadBody),
    /// Client threads, and one more, the first, that writes until they are done and is not counted.
    BesideWriter(ThreadBody, ThreadBody),
    /// One thread writes every key once, in random order.
    EveryKeyOnce(ThreadBody),
    /// Compacts everything: one operation.
    Compact,
    /// Closes and opens the database.
    Open,
    /// Closes the database and opens it; only the opening counts.
    Reopen,
    /// Removes the database and opens a new one; only the opening counts.
    Create,
    /// One thread puts entries, and the process dies: [`Body::Recover`] in the next one tells what opening the database took then.
    Crash(ThreadBody),
    /// The opening with which this run began, and the first lookup.
    Recover,
    /// Another process puts keys and is killed; then they are looked up.
    Survivors,
    /// Prints a property of the engine; takes no time and makes no row.
    Property(&'static str),
    /// Waits until background work is done: one operation. Not a thread of db_bench, so thread seeds do not move.
    WaitIdle,
    /// Compares what the database holds with what the benchmarks before must have left in it. Not a thread of db_bench either.
    Check(Check),
    /// Known, but not for this program.
    Refused(&'static str),
}

/// One benchmark.
#[derive(Clone, Copy)]
pub struct Benchmark {
    /// Its name.
    pub name: &'static str,
    /// What one operation is.
    pub meaning: &'static str,
    /// Whether it starts with an empty database.
    pub fresh: bool,
    /// How it touches the database.
    pub access: Access,
    /// What one thread does, untimed, before the others start.
    pub before: Option<ThreadBody>,
    /// What it consists of.
    pub body: Body,
    /// What each thread is to do.
    pub job: fn(&Config) -> Job,
}

const LARGE_VALUE: usize = 100_000;
const BATCH: u64 = 1000;
const OPENS: u64 = 20;
const COUNTER: usize = 8;

const fn fill(name: &'static str, body: ThreadBody, job: fn(&Config) -> Job, meaning: &'static str) -> Benchmark {
    Benchmark { name, meaning, fresh: true, access: Access::Write, before: None, body: Body::Threads(body), job }
}

const fn write(name: &'static str, body: ThreadBody, job: fn(&Config) -> Job, meaning: &'static str) -> Benchmark {
    Benchmark { name, meaning, fresh: false, access: Access::Write, before: None, body: Body::Threads(body), job }
}

const fn read(name: &'static str, body: ThreadBody, job: fn(&Config) -> Job, meaning: &'static str) -> Benchmark {
    Benchmark { name, meaning, fresh: false, access: Access::Read, before: None, body: Body::Threads(body), job }
}

const fn scan(name: &'static str, body: ThreadBody, meaning: &'static str) -> Benchmark {
    Benchmark { name, meaning, fresh: false, access: Access::Scan, before: None, body: Body::Threads(body), job: reads }
}

const fn merge(name: &'static str, body: ThreadBody, job: fn(&Config) -> Job, meaning: &'static str) -> Benchmark {
    Benchmark { name, meaning, fresh: false, access: Access::Merge, before: None, body: Body::Threads(body), job }
}

const fn single(name: &'static str, body: Body, job: fn(&Config) -> Job, meaning: &'static str) -> Benchmark {
    Benchmark { name, meaning, fresh: false, access: Access::Neither, before: None, body, job }
}

fn writes(config: &Config) -> Job {
    Job::new(config, config.writes.unwrap_or(config.num))
}

fn thousandth_of_writes(config: &Config) -> Job {
    Job::new(config, config.writes.unwrap_or((config.num / 1000).max(1)))
}

fn hundredth_synced(config: &Config) -> Job {
    let few = (config.num / 100).max(1);
    Job::new(config, config.writes.unwrap_or(few)).keys(few).synced()
}

fn large_of_few(config: &Config) -> Job {
    let few = (config.num / 1000).max(1);
    thousandth_of_writes(config).keys(few).value_size(LARGE_VALUE)
}

fn reads(config: &Config) -> Job {
    Job::new(config, config.reads)
}

fn updates(config: &Config) -> Job {
    Job::new(config, config.writes.map_or(config.reads.max(config.num), |w| w.max(config.reads)))
}

fn merges(config: &Config) -> Job {
    // `--writes` alone sets the operations; db_bench takes the larger of reads and writes, which then is num.
    Job::new(config, config.writes.unwrap_or(config.reads.max(config.num))).keys(config.merge_keys)
}

fn thousandth_of_reads(config: &Config) -> Job {
    Job::new(config, (config.reads / 1000).max(1))
}

/// Operations that are neither reads nor writes alone: `--writes` if given, else `--reads`.
fn requests(config: &Config) -> Job {
    Job::new(config, config.writes.unwrap_or(config.reads))
}

fn counters(config: &Config) -> Job {
    let mut job = merges(config).value_size(COUNTER).zipfian();
    job.merge_operand = MergeOperand::One;
    job
}

fn deletes(config: &Config) -> Job {
    Job::new(config, config.deletes)
}

fn one(config: &Config) -> Job {
    Job::new(config, 1)
}

/// Every benchmark, in the order of `--list`.
pub const BENCHMARKS: &[Benchmark] = &[
    fill("fillseq", fill::sequential, writes, "put key i, i = 0, 1, ..."),
    fill("fillrandom", fill::random, writes, "put a random key; 63 % of the keys come up"),
    Benchmark {
        name: "filluniquerandom",
        meaning: "put every key once, in random order (one thread)",
        fresh: true,
        access: Access::Write,
        before: None,
        body: Body::EveryKeyOnce(fill::permuted),
        job: |config| Job::new(config, config.num),
    },
    fill(
        "fillshuffled",
        fill::shuffled,
        writes,
        "put every key once, in an order that looks random; for sets of any size",
    ),
    write("overwrite", fill::random, writes, "put a random key into the existing database"),
    fill(
        "fillsync",
        fill::random,
        |c| thousandth_of_writes(c).synced(),
        "num/1000 puts of random keys, each waiting for the device",
    ),
    fill("fillseqsync", fill::sequential, hundredth_synced, "num/100 puts in key order, each waiting for the device"),
    fill(
        "fillrandsync",
        fill::random,
        hundredth_synced,
        "num/100 puts of random keys of num/100, each waiting for the device",
    ),
    fill("fillbatch", fill::sequential, |c| writes(c).batch(BATCH), "put in key order, 1000 entries per batch"),
    fill("fillseqbatch", fill::sequential, |c| writes(c).batch(BATCH), "the same as fillbatch"),
    fill("fillrandbatch", fill::random, |c| writes(c).batch(BATCH), "put random keys, 1000 entries per batch"),
    write(
        "overwritebatch",
        fill::random,
        |c| writes(c).batch(BATCH),
        "put random keys into the existing database, 1000 per batch",
    ),
    fill(
        "fill100K",
        fill::random,
        |c| thousandth_of_writes(c).value_size(LARGE_VALUE),
        "num/1000 puts of 100,000 bytes at random keys",
    ),
    fill("fillseq100K", fill::sequential, large_of_few, "num/1000 puts of 100,000 bytes in key order"),
    fill("fillrand100K", fill::random, large_of_few, "num/1000 puts of 100,000 bytes at random keys of num/1000"),
    scan("readseq", scan::forward, "one step of an iterator from the first key"),
    scan("readreverse", scan::backward, "one step back of an iterator from the last key"),
    read("readrandom", read::random, reads, "get a random key"),
    read("readrandomsmall", read::random, |c| Job::new(c, c.reads / 1000), "the same, a thousandth as often"),
    Benchmark {
        job: thousandth_of_reads,
        ..scan("readseq100K", scan::forward, "one step of an iterator from the first key; num/1000 of them")
    },
    read(
        "readrand100K",
        read::random,
        |c| thousandth_of_reads(c).keys((c.num / 1000).max(1)),
        "get a random key of num/1000, num/1000 times",
    ),
    read("readmissing", read::missing, reads, "get a key that is never there but lies between those that are"),
    read(
        "readhot",
        read::unreported,
        |c| reads(c).keys(c.num.div_ceil(100)),
        "get a random one of the lowest hundredth of the keys",
    ),
    read(
        "readpresent",
        known::present,
        known::job,
        "get a random key that fillrandom wrote (--fill_num); keys are drawn until one is",
    ),
    read("readabsent", known::absent, known::job, "get a random key that fillrandom left out (--fill_num)"),
    read("seekrandom", scan::seek_random, reads, "make an iterator, seek a random key"),
    read("seekordered", scan::seek_ordered, reads, "seek the next of ascending keys with one iterator"),
    write("deleteseq", delete::sequential, deletes, "delete key i, i = 0, 1, ..."),
    write("deleterandom", delete::random, deletes, "delete a random key"),
    Benchmark {
        name: "readwhilewriting",
        meaning: "get a random key while one more thread puts random keys",
        fresh: false,
        access: Access::Read,
        before: None,
        body: Body::BesideWriter(read::random, mixed::write_until_readers_end),
        job: reads,
    },
    Benchmark {
        name: "scanwhilewriting",
        meaning: "seek a random key and fetch 100 entries while one more thread puts random keys; num/100 times",
        fresh: false,
        access: Access::Read,
        before: None,
        body: Body::BesideWriter(scan::ranges, mixed::write_until_readers_end),
        job: |c| Job::new(c, (c.reads / scan::RANGE_ENTRIES).max(1)),
    },
    write("seekafterwrite", scan::write_then_seek, writes, "put a random key, then make an iterator and seek another"),
    write(
        "zipfian",
        mixed::read_or_put,
        |c| writes(c).zipfian(),
        "get or put a key, half and half, some keys far more often than others",
    ),
    write("updaterandom", update_merge::update, updates, "get a random key, then put it"),
    merge("mergerandom", update_merge::merge, merges, "merge an operand into a random key"),
    merge(
        "readrandommergerandom",
        mixed::read_or_merge,
        merges,
        "merge into a random key, or get it (--mergereadpercent)",
    ),
    merge(
        "zipfiancounters",
        update_merge::merge_popular,
        counters,
        "add 1 to one of num counters of 8 bytes, some far more often than others, by a merge (needs --merge_operator=uint64add)",
    ),
    write(
        "ycsba",
        ycsb::a,
        |c| requests(c).zipfian(),
        "YCSB's mix A on a full load: get or put a popular key, half and half",
    ),
    write(
        "ycsbb",
        ycsb::b,
        |c| requests(c).zipfian(),
        "YCSB's mix B: get a popular key, in 5 % of the requests put one",
    ),
    read("ycsbc", ycsb::c, |c| requests(c).zipfian(), "YCSB's mix C: get a popular key"),
    write(
        "ycsbd",
        ycsb::d,
        |c| requests(c).zipfian().inserting(c.num, c.threads),
        "YCSB's mix D: get one of the keys inserted last, in 5 % insert one",
    ),
    write(
        "ycsbe",
        ycsb::e,
        |c| requests(c).zipfian().inserting(c.num.saturating_mul(2), c.threads),
        "YCSB's mix E: scan 1 to 100 entries from a popular key on, in 5 % insert one",
    ),
    write(
        "ycsbf",
        ycsb::f,
        |c| requests(c).zipfian(),
        "YCSB's mix F: get a popular key, and in half of the requests put it then",
    ),
    fill(
        "queue",
        queue::put_and_take,
        requests,
        "put an entry at the tail of a queue, or find the one at the head by a seek and delete it",
    ),
    Benchmark {
        name: "prefixtombstones",
        meaning: "scan a random prefix of 100 keys of which 95 have been deleted before the timed part, one after another; num/10 times",
        fresh: false,
        access: Access::Write,
        before: Some(tombstones::delete_most),
        body: Body::Threads(tombstones::scan_prefixes),
        job: |c| Job::new(c, (c.reads / 10).max(1)),
    },
    Benchmark {
        name: "ttlchurn",
        meaning: "scan a range of 10,000 keys while one more thread puts random ones that expire after --ttl_ms; num/1000 times",
        fresh: true,
        access: Access::Expire,
        before: Some(expiring::put_for_one_life),
        body: Body::BesideWriter(expiring::scan_ranges, expiring::put_until_readers_end),
        job: |c| Job::new(c, (c.reads / expiring::READS_PER_SCAN).max(1)),
    },
    single("compact", Body::Compact, one, "flush and compact everything; the figure is the whole duration"),
    single("waitidle", Body::WaitIdle, one, "wait until no background work is left"),
    single(
        "verifymerges",
        Body::Check(Check::Merges),
        one,
        "compare every counter with what mergerandom before it must have added up to; a difference is a failure",
    ),
    single(
        "verifyupdates",
        Body::Check(Check::Updates),
        one,
        "compare every key and value with what the threads of updaterandom before it wrote; a difference is a failure",
    ),
    single(
        "open",
        Body::Open,
        |c| Job::new(c, (c.num / 10_000).max(1)),
        "close and open the database, num/10000 times",
    ),
    Benchmark {
        name: "killedfill",
        meaning: "a process of its own puts num keys in order and is killed; one operation is a put that it had acknowledged, found is how many of these are there",
        fresh: true,
        access: Access::Write,
        before: None,
        body: Body::Survivors,
        job: writes,
    },
    single("reopen", Body::Reopen, |c| Job::new(c, OPENS), "open the closed database, 20 times; closing is not timed"),
    Benchmark {
        name: "crash",
        meaning: "put --writes entries behind the loaded ones, then kill this process without closing; makes no row",
        fresh: false,
        access: Access::Write,
        before: None,
        body: Body::Crash(crash::put),
        job: writes,
    },
    single(
        "recover",
        Body::Recover,
        writes,
        "what opening the database took when this run began, and the first get: after `crash` in another process, with the same --num and --writes and --use_existing_db",
    ),
    single("create", Body::Create, |c| Job::new(c, OPENS), "create an empty database, 20 times"),
    single("stats", Body::Property("stats"), one, "print the engine's statistics"),
    single("sstables", Body::Property("sstables"), one, "print the engine's table files"),
    single("levelstats", Body::Property("levelstats"), one, "print the engine's levels"),
    single("crc32c", Body::Threads(mixed::checksum), |c| Job::new(c, 128_000), "checksum 4096 bytes, 500 MiB in all"),
    single("snappycomp", Body::Refused(CODEC), one, ""),
    single("snappyuncomp", Body::Refused(CODEC), one, ""),
    single("zstdcomp", Body::Refused(CODEC), one, ""),
    single("zstduncomp", Body::Refused(CODEC), one, ""),
    single("heapprofile", Body::Refused("heap profiling not supported"), one, ""),
    single("acquireload", Body::Refused("it measures the processor, not an engine"), one, ""),
];

const CODEC: &str = "it measures a codec, not an engine";

/// The benchmark with this name.
pub fn find(name: &str) -> Option<&'static Benchmark> {
    BENCHMARKS.iter().find(|benchmark| benchmark.name == name)
}

/// The benchmark whose name is nearest to one that does not exist.
pub fn nearest(name: &str) -> Option<&'static str> {
    let best = BENCHMARKS.iter().map(|b| (strsim::damerau_levenshtein(b.name, name), b.name)).min();
    best.filter(|(distance, _)| *distance <= 3).map(|(_, name)| name)
}

impl Benchmark {
    /// Whether its writes wait for the device whatever `--sync` says.
    pub fn is_synced(&self, config: &Config) -> bool {
        self.writes() && (self.job)(config).mode.sync
    }

    /// Whether it writes.
    pub fn writes(&self) -> bool {
        matches!(self.access, Access::Write | Access::Merge | Access::Expire)
            || matches!(self.body, Body::BesideWriter(..))
    }

    /// Whether it consists of operations that can be done at a rate.
    pub fn has_rate(&self) -> bool {
        matches!(self.body, Body::Threads(_) | Body::BesideWriter(..) | Body::EveryKeyOnce(_))
    }

    /// Whether it only reads.
    pub fn only_reads(&self) -> bool {
        matches!(self.access, Access::Read | Access::Scan) && !self.writes()
    }
}
