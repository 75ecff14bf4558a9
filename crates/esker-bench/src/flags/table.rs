//! Every flag of `esker bench` in one table: the parser, the help text and the record of a run are made from it.

use clap::{Arg, ArgAction, Command};

/// What values a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `--name`, `--name=0/1/true/false`, `--noname`.
    Boolean,
    /// A number that is not negative.
    Unsigned,
    /// A number.
    Signed,
    /// A number with a fraction.
    Fraction,
    /// Anything.
    Text,
}

/// What the program does with a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It is obeyed.
    Obeyed,
    /// It is handed to the engines, which obey it where they have such a setting.
    Engine,
    /// An older name: obeyed as the text says, with a warning.
    Mapped(&'static str),
    /// Accepted so that old command lines still run; changes nothing, for the reason given, with a warning.
    Ignored(&'static str),
}

/// One flag.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name without dashes.
    pub name: &'static str,
    /// What values it takes.
    pub shape: Shape,
    /// The value when it is not given; empty where the meaning says what happens then.
    pub default: &'static str,
    /// What is done with it.
    pub used: Use,
    /// What it means, for the help text.
    pub meaning: &'static str,
}

const fn obeyed(name: &'static str, shape: Shape, default: &'static str, meaning: &'static str) -> Flag {
    Flag { name, shape, default, used: Use::Obeyed, meaning }
}

const fn engine(name: &'static str, shape: Shape, meaning: &'static str) -> Flag {
    Flag { name, shape, default: "", used: Use::Engine, meaning }
}

const fn mapped(name: &'static str, shape: Shape, note: &'static str, meaning: &'static str) -> Flag {
    Flag { name, shape, default: "", used: Use::Mapped(note), meaning }
}

const fn ignored(name: &'static str, shape: Shape, reason: &'static str, meaning: &'static str) -> Flag {
    Flag { name, shape, default: "", used: Use::Ignored(reason), meaning }
}

use Shape::{Boolean, Fraction, Signed, Text, Unsigned};

/// The benchmarks of a run without `--benchmarks`: LevelDB's list without its codec loops.
pub const DEFAULT_BENCHMARKS: &str = "fillseq,fillsync,fillrandom,overwrite,readrandom,readrandom,readseq,readreverse,compact,readrandom,readseq,readreverse,fill100K,crc32c";

/// All flags, grouped as the help text shows them.
pub const GROUPS: [(&str, &[Flag]); 6] = [
    ("What to run", WHAT),
    ("Size of the work", SIZE),
    ("How to measure", MEASURE),
    ("Where results go", OUTPUT),
    ("Settings of the engines (each obeys those it has; standard error and reports say what is in force)", ENGINE),
    ("Accepted for old command lines", OLD),
];

const WHAT: &[Flag] = &[
    obeyed("engine", Text, "esker", "engines to measure, one after another: names joined by commas, or `all`"),
    obeyed("lib", Text, "", "the shared library of an engine; may be given several times"),
    obeyed(
        "benchmarks",
        Text,
        DEFAULT_BENCHMARKS,
        "benchmarks, run in this order; --list shows all. Default: db_bench's list, from fillseq to crc32c",
    ),
    obeyed(
        "db",
        Text,
        "",
        "each engine gets a sub-directory of it. Default: $TEST_TMPDIR/dbbench or esker-bench-UID/dbbench in the temporary directory",
    ),
    obeyed("use_existing_db", Boolean, "0", "keep the databases; benchmarks that need an empty one are skipped"),
    obeyed("list", Boolean, "0", "show engines and benchmarks, then end"),
];

const SIZE: &[Flag] = &[
    obeyed("num", Unsigned, "1000000", "entries; also the number of different keys"),
    obeyed("reads", Signed, "-1", "reads per thread of read benchmarks; negative: num"),
    obeyed("writes", Signed, "-1", "writes per thread of write benchmarks; negative: as the benchmark defines"),
    obeyed("deletes", Signed, "-1", "deletes per thread; negative: num"),
    obeyed("threads", Unsigned, "1", "client threads; each does the full number of operations"),
    obeyed("value_size", Unsigned, "100", "bytes of a value"),
    obeyed("key_size", Unsigned, "16", "digits of a key, at least 16"),
    obeyed("key_prefix", Unsigned, "0", "bytes `a` in front of every key"),
    obeyed("compression_ratio", Fraction, "0.5", "fraction to which LZ codecs shrink the values; 1: not at all"),
    obeyed("merge_keys", Signed, "-1", "different keys of merge benchmarks; negative: num"),
    obeyed(
        "writes_per_second",
        Fraction,
        "0",
        "rate of the thread that writes beside the readers of readwhilewriting and scanwhilewriting; 0: as fast as it can",
    ),
    obeyed(
        "rate",
        Fraction,
        "0",
        "operations a second of all threads together, each at a time fixed beforehand; latencies count from these times, so that what an engine that stalls keeps waiting is late too. 0: each operation starts when the one before it has ended",
    ),
    obeyed("ttl_ms", Unsigned, "200", "milliseconds that entries of ttlchurn live"),
    obeyed("mergereadpercent", Unsigned, "70", "merges per hundred operations of readrandommergerandom"),
    obeyed(
        "scale",
        Fraction,
        "1",
        "multiplies num, reads, writes, deletes, merge_keys and the buffer, cache, file and level sizes, which keeps the shape of the tree. Far below 0.1 the cost of file creation dominates",
    ),
];

const MEASURE: &[Flag] = &[
    obeyed(
        "repeat",
        Unsigned,
        "1",
        "repetitions of the whole list, engines interleaved; every one starts with an empty database and the same keys",
    ),
    obeyed(
        "histogram",
        Text,
        "",
        "latencies. 1: of every operation, and print the distribution. 0: none. Not given: of every operation, except scans (readseq, readreverse), where one in 64 is measured. Measuring every operation costs one clock read each, 25 to 45 ns, which is part of the printed figures",
    ),
    obeyed(
        "latency_every",
        Unsigned,
        "",
        "measure the latency of one operation in N in every benchmark; overrides --histogram's choice. Maxima between samples are not seen",
    ),
    obeyed(
        "comparisons",
        Boolean,
        "0",
        "print the number of key comparisons after each benchmark, of LevelDB and RocksDB, which then compare through a counting function",
    ),
    obeyed(
        "statistics",
        Boolean,
        "0",
        "print the engine's counters after each benchmark; RocksDB counts only then, which costs it time",
    ),
    obeyed(
        "stats_interval",
        Unsigned,
        "0",
        "a line on standard error every N operations of a thread; 0: growing intervals",
    ),
    obeyed(
        "stats_per_interval",
        Boolean,
        "0",
        "print the engine's own statistics with each of those lines of thread 0",
    ),
    obeyed(
        "keygen",
        Text,
        "leveldb",
        "key sequence: `leveldb` (thread seeds count on through the process) or `rocksdb` (64-bit Mersenne Twister, thread seeds start anew in each benchmark)",
    ),
    obeyed(
        "row_form",
        Text,
        "leveldb",
        "form of the printed rows: `leveldb`, or `rocksdb` as in 2013 (micros/op of wall time, and ops/sec)",
    ),
    obeyed(
        "merge_operand",
        Text,
        "random",
        "operand of merges: `random` (the next value_size bytes of the pool) or `one` (the number 1, little endian)",
    ),
    obeyed("seed", Unsigned, "0", "base of the thread seeds; 0: 1000"),
    obeyed(
        "fill_num",
        Unsigned,
        "",
        "--num of the fillrandom that made the database, first benchmark of its process and of one thread; for readpresent and readabsent. Default: num",
    ),
    obeyed("fill_seed", Unsigned, "0", "--seed of that fillrandom; 0: 1000"),
    obeyed(
        "max_seconds",
        Fraction,
        "0",
        "end each benchmark after so many seconds, with the operations done until then; 0: no limit",
    ),
    obeyed("wait_idle_before_read", Boolean, "0", "wait for background work before each benchmark that only reads"),
    obeyed("drop_caches", Boolean, "0", "drop the system's file cache before each benchmark; needs root"),
    obeyed(
        "fresh_process",
        Boolean,
        "0",
        "before each benchmark close and reopen the database and restart the thread seeds, as with a process per benchmark",
    ),
];

const OUTPUT: &[Flag] = &[
    obeyed("json", Text, "", "file for one JSON object per row, written as rows finish"),
    obeyed("csv", Text, "", "file for the rows as CSV, written as rows finish"),
    obeyed("html", Text, "", "file for a self-contained report"),
    obeyed("quiet", Boolean, "0", "no progress on standard error"),
];

const ENGINE: &[Flag] = &[
    obeyed("write_buffer_size", Unsigned, "4194304", "bytes of the write buffer (memtable), 16 KiB to 1 GiB"),
    obeyed("cache_size", Signed, "-1", "bytes of the block or page cache; negative: the engine's default"),
    obeyed("block_size", Unsigned, "4096", "uncompressed bytes of a block"),
    obeyed(
        "max_file_size",
        Unsigned,
        "",
        "bytes of a table file made by compaction, 16 KiB to 1 GiB. Default: the engine's",
    ),
    mapped("target_file_size_base", Unsigned, "--max_file_size", "RocksDB's name of --max_file_size"),
    obeyed(
        "bloom_bits",
        Signed,
        "",
        "filter bits per key; 0 or negative: no filter, but in LevelDB 0 is a filter of one probe, as in its db_bench. Default: what the engine recommends",
    ),
    obeyed("compression", Text, "1", "0 or none: stored as is; 1 or a codec's name: the engine's LZ-class codec"),
    mapped(
        "compression_type",
        Text,
        "--compression=0 for `none`, --compression=1 for a codec",
        "RocksDB's form of --compression",
    ),
    obeyed("open_files", Signed, "0", "files kept open; 0 or negative: the engine's default"),
    obeyed("merge_operator", Text, "", "uint64add, put, max or stringappend; without it merge benchmarks are skipped"),
    obeyed("disable_wal", Boolean, "0", "no log: writes survive neither a crash of the machine nor of the process"),
    obeyed("sync", Boolean, "0", "every write waits for the device"),
    engine("num_levels", Unsigned, "levels of the tree"),
    engine("level0_file_num_compaction_trigger", Unsigned, "level-0 files that start a compaction"),
    engine("level0_slowdown_writes_trigger", Unsigned, "level-0 files at which writes are slowed"),
    engine("level0_stop_writes_trigger", Unsigned, "level-0 files at which writes wait"),
    engine("max_bytes_for_level_base", Unsigned, "bytes of level 1"),
    engine("max_bytes_for_level_multiplier", Unsigned, "how much larger each further level is"),
    engine("max_compaction_bytes", Unsigned, "bytes one compaction may read"),
    engine("min_level_to_compress", Signed, "levels below this number are stored as they are"),
    engine("max_background_jobs", Unsigned, "background flushes and compactions at a time"),
    engine("compaction_style", Unsigned, "0 leveled, 1 tiered (universal), 2 FIFO, 3 none"),
    engine("mmap_read", Boolean, "read tables through a memory mapping"),
    engine("wal_plain", Boolean, "Esker: append to the log by write calls instead of through a memory mapping"),
    engine("wal_bytes_per_sync", Unsigned, "start writing the log back every so many bytes"),
    engine("bytes_per_sync", Unsigned, "start writing tables back every so many bytes"),
    engine("page_size", Unsigned, "SQLite, Kyoto Cabinet: bytes of a page"),
    engine("num_pages", Unsigned, "SQLite: pages of the cache"),
    engine("WAL_enabled", Boolean, "SQLite: write-ahead log instead of a rollback journal"),
    engine("use_rowids", Boolean, "SQLite: a table with row ids and a separate index"),
];

const OLD: &[Flag] = &[
    mapped(
        "max_background_compactions",
        Unsigned,
        "--max_background_jobs, at most twice the number of cores",
        "parallel compactions",
    ),
    mapped(
        "base_background_compactions",
        Unsigned,
        "--max_background_jobs, at most twice the number of cores",
        "compactions normally allowed",
    ),
    mapped(
        "max_grandparent_overlap_factor",
        Unsigned,
        "--max_compaction_bytes: the factor times the target file size",
        "overlap that ends an output file",
    ),
    ignored("disable_seek_compaction", Boolean, "no engine here offers the switch", "no compaction caused by reads"),
    ignored(
        "delete_obsolete_files_period_micros",
        Unsigned,
        "dead files are removed at once",
        "how often dead files are looked for",
    ),
    ignored(
        "no_transaction",
        Boolean,
        "SQLite's single writes are transactions of their own anyway",
        "SQLite: no explicit transactions",
    ),
    ignored("reuse_logs", Boolean, "no engine here offers the switch", "LevelDB: append to the old log on open"),
    ignored("cache_numshardbits", Signed, "engines shard their caches as they see fit", "RocksDB: shards of the cache"),
    ignored("verify_checksum", Boolean, "engines verify as they do by default", "RocksDB: verify checksums on read"),
    ignored("disable_data_sync", Boolean, "removed from RocksDB", "RocksDB: no sync of table files"),
    ignored(
        "source_compaction_factor",
        Unsigned,
        "removed from RocksDB",
        "RocksDB: size of the source of a compaction",
    ),
    ignored(
        "max_write_buffer_number",
        Unsigned,
        "buffers are set by their size alone",
        "RocksDB: number of write buffers",
    ),
];

/// The flag with this name.
pub fn find(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.name == name)
}

/// All flags.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    GROUPS.iter().flat_map(|(_, flags)| flags.iter())
}

/// The name nearest to one that does not exist.
pub fn nearest(name: &str) -> Option<&'static str> {
    all()
        .map(|flag| (strsim::damerau_levenshtein(flag.name, name), flag.name))
        .min()
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3)
        .map(|(_, candidate)| candidate)
}

impl Flag {
    /// As an argument of the command line.
    fn argument(&'static self, group: &'static str) -> Arg {
        let mut meaning = self.meaning.to_owned();
        match self.used {
            Use::Obeyed | Use::Engine => {}
            Use::Mapped(note) => meaning.push_str(&format!(" (becomes {note})")),
            Use::Ignored(reason) => meaning.push_str(&format!(" (no effect: {reason})")),
        }
        // A switch is off unless given, and a long default is told in words.
        if self.shape != Shape::Boolean && !self.default.is_empty() && self.default.len() < 20 {
            meaning.push_str(&format!(" [{}]", self.default));
        }
        let value = match (self.name, self.shape) {
            (_, Shape::Boolean) => "0|1",
            (_, Shape::Unsigned | Shape::Signed | Shape::Fraction) => "N",
            ("engine" | "benchmarks", _) => "NAMES",
            ("lib", _) => "NAME=PATH",
            ("db", _) => "DIR",
            ("json" | "csv" | "html", _) => "FILE",
            ("merge_operator" | "keygen" | "merge_operand" | "row_form", _) => "NAME",
            _ => "TEXT",
        };
        let action = if self.name == "lib" { ArgAction::Append } else { ArgAction::Set };
        let argument = Arg::new(self.name).long(self.name).value_name(value).help(meaning).help_heading(group);
        let argument = argument.action(action).require_equals(true).value_parser(move |text: &str| check(self, text));
        if self.shape == Shape::Boolean { argument.num_args(0..=1).default_missing_value("1") } else { argument }
    }
}

/// A command line of all flags, of which the last of several values counts.
pub fn command() -> Command {
    let command = Command::new("esker bench").no_binary_name(true).args_override_self(true).max_term_width(120);
    GROUPS.iter().fold(command, |command, (group, flags)| command.args(flags.iter().map(|flag| flag.argument(group))))
}

/// Checks a value against its flag's shape and returns it in its plain form.
pub fn check(flag: &Flag, value: &str) -> Result<String, String> {
    let fits = match flag.shape {
        Shape::Boolean => {
            return match value.to_ascii_lowercase().as_str() {
                "1" | "true" | "t" | "yes" | "y" => Ok("1".into()),
                "0" | "false" | "f" | "no" | "n" => Ok("0".into()),
                _ => Err(format!("--{}: '{value}' is neither true nor false", flag.name)),
            };
        }
        Shape::Unsigned => value.parse::<u64>().is_ok(),
        Shape::Signed => value.parse::<i64>().is_ok(),
        Shape::Fraction => value.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0),
        Shape::Text => true,
    };
    let wanted = match flag.shape {
        Shape::Unsigned => "a whole number that is not negative",
        Shape::Signed => "a whole number",
        _ => "a number that is not negative",
    };
    if fits { Ok(value.to_string()) } else { Err(format!("--{}: '{value}' is not {wanted}", flag.name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_defaults_parse() {
        let mut names: Vec<&str> = all().map(|flag| flag.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for flag in all().filter(|flag| !flag.default.is_empty()) {
            assert!(check(flag, flag.default).is_ok(), "{}", flag.name);
        }
    }

    #[test]
    fn the_nearest_name_is_close() {
        assert_eq!(nearest("benchmark"), Some("benchmarks"));
        assert_eq!(nearest("write_bufer_size"), Some("write_buffer_size"));
        assert_eq!(nearest("zzzzzzzzzzzzzzzzzzz"), None);
    }
}
