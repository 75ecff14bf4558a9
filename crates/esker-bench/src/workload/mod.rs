//! The benchmarks: one table of all of them, and one file per family with what their operations do.

pub(crate) mod crash;
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

use crate::flags::config::{Config, MergeOperand};
use crate::worker::{Job, Worker};
use esker_engines::{Result, Session};
use std::collections::BTreeMap;
use std::sync::LazyLock;

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
    /// One thread puts entries, and the process dies: [`Body::Recover`] in the next one tells what
    /// opening the database took then.
    Crash(ThreadBody),
    /// The opening with which this run began, and the first lookup.
    Recover,
    /// Another process puts keys and is killed; then they are looked up.
    Survivors,
    /// Prints a property of the engine; takes no time and makes no row.
    Property(&'static str),
    /// Waits until background work is done: one operation. Not a thread of db_bench, so thread
    /// seeds do not move.
    WaitIdle,
    /// Compares what the database holds with what the benchmarks before must have left in it. Not a
    /// thread of db_bench either.
    Check(Check),
    /// Known, but not for this program.
    Refused(&'static str),
}

/// One benchmark.
#[derive(Clone, Copy)]
pub struct Benchmark {
    /// Its name.
    pub name: &'static str,
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

type MakeJob = fn(&Config) -> Job;

/// What each operation of the benchmarks is, by their names.
static MEANINGS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    toml::from_str(include_str!("../../data/benchmarks.toml")).expect("it is part of the program, and a test reads it")
});

const fn of(name: &'static str, access: Access, body: Body, job: MakeJob) -> Benchmark {
    Benchmark { name, fresh: false, access, before: None, body, job }
}

const fn fresh(benchmark: Benchmark) -> Benchmark {
    Benchmark { fresh: true, ..benchmark }
}

const fn write(name: &'static str, body: ThreadBody, job: MakeJob) -> Benchmark {
    of(name, Access::Write, Body::Threads(body), job)
}

const fn fill(name: &'static str, body: ThreadBody, job: MakeJob) -> Benchmark {
    fresh(write(name, body, job))
}

const fn read(name: &'static str, body: ThreadBody, job: MakeJob) -> Benchmark {
    of(name, Access::Read, Body::Threads(body), job)
}

const fn scan(name: &'static str, body: ThreadBody, job: MakeJob) -> Benchmark {
    of(name, Access::Scan, Body::Threads(body), job)
}

const fn merge(name: &'static str, body: ThreadBody, job: MakeJob) -> Benchmark {
    of(name, Access::Merge, Body::Threads(body), job)
}

const fn single(name: &'static str, body: Body, job: MakeJob) -> Benchmark {
    of(name, Access::Neither, body, job)
}

fn writes(config: &Config) -> Job {
    Job::new(config, config.writes.unwrap_or(config.num))
}

fn batches(config: &Config) -> Job {
    Job { batch: BATCH, ..writes(config) }
}

fn thousandth_of_writes(config: &Config) -> Job {
    Job::new(config, config.writes.unwrap_or((config.num / 1000).max(1)))
}

fn hundredth_synced(config: &Config) -> Job {
    let few = (config.num / 100).max(1);
    Job { keys: few, ..Job::new(config, config.writes.unwrap_or(few)).synced() }
}

fn large(config: &Config) -> Job {
    Job { value_size: LARGE_VALUE, ..thousandth_of_writes(config) }
}

fn large_of_few(config: &Config) -> Job {
    Job { keys: (config.num / 1000).max(1), ..large(config) }
}

fn reads(config: &Config) -> Job {
    Job::new(config, config.reads)
}

fn updates(config: &Config) -> Job {
    Job::new(config, config.writes.map_or(config.reads.max(config.num), |w| w.max(config.reads)))
}

fn merges(config: &Config) -> Job {
    // `--writes` alone sets the operations; db_bench takes the larger of reads and writes, which
    // then is num.
    let ops = config.writes.unwrap_or(config.reads.max(config.num));
    Job { keys: config.merge_keys, ..Job::new(config, ops) }
}

fn thousandth_of_reads(config: &Config) -> Job {
    Job::new(config, (config.reads / 1000).max(1))
}

/// Operations that are neither reads nor writes alone: `--writes` if given, else `--reads`.
fn requests(config: &Config) -> Job {
    Job::new(config, config.writes.unwrap_or(config.reads))
}

fn counters(config: &Config) -> Job {
    Job { value_size: COUNTER, merge_operand: MergeOperand::One, ..merges(config).zipfian() }
}

fn deletes(config: &Config) -> Job {
    Job::new(config, config.deletes)
}

fn one(config: &Config) -> Job {
    Job::new(config, 1)
}

/// Every benchmark, in the order of `--list`.
pub const BENCHMARKS: &[Benchmark] = &[
    fill("fillseq", fill::sequential, writes),
    fill("fillrandom", fill::random, writes),
    fresh(of("filluniquerandom", Access::Write, Body::EveryKeyOnce(fill::permuted), |config| {
        Job::new(config, config.num)
    })),
    fill("fillshuffled", fill::shuffled, writes),
    write("overwrite", fill::random, writes),
    fill("fillsync", fill::random, |c| thousandth_of_writes(c).synced()),
    fill("fillseqsync", fill::sequential, hundredth_synced),
    fill("fillrandsync", fill::random, hundredth_synced),
    fill("fillbatch", fill::sequential, batches),
    fill("fillseqbatch", fill::sequential, batches),
    fill("fillrandbatch", fill::random, batches),
    write("overwritebatch", fill::random, batches),
    fill("fill100K", fill::random, large),
    fill("fillseq100K", fill::sequential, large_of_few),
    fill("fillrand100K", fill::random, large_of_few),
    scan("readseq", scan::forward, reads),
    scan("readreverse", scan::backward, reads),
    read("readrandom", read::random, reads),
    read("readrandomsmall", read::random, |c| Job::new(c, c.reads / 1000)),
    scan("readseq100K", scan::forward, thousandth_of_reads),
    read("readrand100K", read::random, |c| Job { keys: (c.num / 1000).max(1), ..thousandth_of_reads(c) }),
    read("readmissing", read::missing, reads),
    read("readhot", read::unreported, |c| Job { keys: c.num.div_ceil(100), ..reads(c) }),
    read("readpresent", known::present, known::job),
    read("readabsent", known::absent, known::job),
    read("seekrandom", scan::seek_random, reads),
    read("seekordered", scan::seek_ordered, reads),
    write("deleteseq", fill::delete_sequential, deletes),
    write("deleterandom", fill::delete_random, deletes),
    of("readwhilewriting", Access::Read, Body::BesideWriter(read::random, mixed::write_until_readers_end), reads),
    of("scanwhilewriting", Access::Read, Body::BesideWriter(scan::ranges, mixed::write_until_readers_end), |c| {
        Job::new(c, (c.reads / scan::RANGE_ENTRIES).max(1))
    }),
    write("seekafterwrite", scan::write_then_seek, writes),
    write("zipfian", mixed::read_or_put, |c| writes(c).zipfian()),
    write("updaterandom", update_merge::update, updates),
    merge("mergerandom", update_merge::merge, merges),
    merge("readrandommergerandom", mixed::read_or_merge, merges),
    merge("zipfiancounters", update_merge::merge_popular, counters),
    write("ycsba", |w, s| ycsb::run(ycsb::A, w, s), |c| requests(c).zipfian()),
    write("ycsbb", |w, s| ycsb::run(ycsb::B, w, s), |c| requests(c).zipfian()),
    read("ycsbc", |w, s| ycsb::run(ycsb::C, w, s), |c| requests(c).zipfian()),
    write("ycsbd", |w, s| ycsb::run(ycsb::D, w, s), |c| requests(c).zipfian().inserting(c.num, c.threads)),
    write(
        "ycsbe",
        |w, s| ycsb::run(ycsb::E, w, s),
        |c| requests(c).zipfian().inserting(c.num.saturating_mul(2), c.threads),
    ),
    write("ycsbf", |w, s| ycsb::run(ycsb::F, w, s), |c| requests(c).zipfian()),
    fill("queue", queue::put_and_take, requests),
    Benchmark {
        before: Some(tombstones::delete_most),
        ..of("prefixtombstones", Access::Write, Body::Threads(tombstones::scan_prefixes), |c| {
            Job::new(c, (c.reads / 10).max(1))
        })
    },
    Benchmark {
        before: Some(expiring::put_for_one_life),
        ..fresh(of(
            "ttlchurn",
            Access::Expire,
            Body::BesideWriter(expiring::scan_ranges, expiring::put_until_readers_end),
            |c| Job::new(c, (c.reads / expiring::READS_PER_SCAN).max(1)),
        ))
    },
    single("compact", Body::Compact, one),
    single("waitidle", Body::WaitIdle, one),
    single("verifymerges", Body::Check(Check::Merges), one),
    single("verifyupdates", Body::Check(Check::Updates), one),
    single("open", Body::Open, |c| Job::new(c, (c.num / 10_000).max(1))),
    fresh(of("killedfill", Access::Write, Body::Survivors, writes)),
    single("reopen", Body::Reopen, |c| Job::new(c, OPENS)),
    of("crash", Access::Write, Body::Crash(crash::put), writes),
    single("recover", Body::Recover, writes),
    single("create", Body::Create, |c| Job::new(c, OPENS)),
    single("stats", Body::Property("stats"), one),
    single("sstables", Body::Property("sstables"), one),
    single("levelstats", Body::Property("levelstats"), one),
    single("crc32c", Body::Threads(mixed::checksum), |c| Job::new(c, 128_000)),
    single("snappycomp", Body::Refused(CODEC), one),
    single("snappyuncomp", Body::Refused(CODEC), one),
    single("zstdcomp", Body::Refused(CODEC), one),
    single("zstduncomp", Body::Refused(CODEC), one),
    single("heapprofile", Body::Refused("heap profiling not supported"), one),
    single("acquireload", Body::Refused("it measures the processor, not an engine"), one),
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
    /// What one operation is; `None` if this program refuses it.
    pub fn meaning(&self) -> Option<&'static str> {
        MEANINGS.get(self.name).map(String::as_str)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_refused_has_a_meaning() {
        for benchmark in BENCHMARKS {
            let is_refused = matches!(benchmark.body, Body::Refused(_));
            assert_eq!(benchmark.meaning().is_none(), is_refused, "{}", benchmark.name);
        }
        assert!(MEANINGS.keys().all(|name| find(name).is_some()));
    }
}
