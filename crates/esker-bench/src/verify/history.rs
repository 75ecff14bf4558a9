//! What has been written to a database since it was empty, as far as that can be recomputed.

use crate::flags::config::{Config, MergeOperand};
use crate::interrupt::Interrupt;
use crate::random::{KeyGeneration, KeyRandom};
use crate::threads::{Crew, thread_seed};
use crate::values::ValuePool;
use crate::worker::Job;
use crate::workload::{Benchmark, Check, one_operand};

/// Operations between two looks whether to go on.
const INTERRUPT_EVERY: u64 = 1 << 20;

/// One benchmark that wrote, with all that its random numbers depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Its name.
    pub benchmark: &'static str,
    /// Its client threads.
    pub threads: u32,
    /// Operations of each.
    pub ops: u64,
    /// Keys are below this.
    pub keys: u64,
    /// Bytes of a value or operand.
    pub value_size: usize,
    /// Whether every thread did all of its operations.
    pub whole: bool,
    operand: MergeOperand,
    operator: Option<String>,
    generation: KeyGeneration,
    seed: u64,
    created: u64,
}

impl Written {
    /// A benchmark that is about to run, where `created` threads were made before.
    pub fn new(benchmark: &Benchmark, config: &Config, job: &Job, created: u64) -> Written {
        Written {
            benchmark: benchmark.name,
            threads: Crew::size(config, benchmark),
            ops: job.ops,
            keys: job.keys,
            value_size: job.value_size,
            whole: false,
            operand: job.merge_operand,
            operator: config.options.merge_operator.clone(),
            generation: config.key_generation,
            seed: config.seed,
            created,
        }
    }

    /// Draws once more what one thread drew: `each` gets the key and the value of every operation.
    /// Whether it was not interrupted.
    pub fn play(&self, thread: u32, pool: &ValuePool, interrupt: &Interrupt, mut each: impl FnMut(u64, &[u8])) -> bool {
        let mut random = KeyRandom::new(self.generation, thread_seed(self.generation, self.seed, self.created, thread));
        let mut values = pool.cursor();
        let one = one_operand(self.value_size);
        // Only merges can have another operand than the next bytes of the pool.
        let always_one = self.benchmark == MERGES && self.operand == MergeOperand::One;
        let mut done = 0;
        while done < self.ops {
            if interrupt.is_requested() {
                return false;
            }
            let until = self.ops.min(done + INTERRUPT_EVERY);
            for _ in done..until {
                let key = random.uniform(self.keys);
                each(key, if always_one { &one } else { values.slice(self.value_size) });
            }
            done = until;
        }
        true
    }
}

const MERGES: &str = "mergerandom";
const UPDATES: &str = "updaterandom";

/// The benchmarks that wrote to the open database.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    began_empty: bool,
    written: Vec<Written>,
}

impl History {
    /// For a database that was just opened.
    pub fn new(began_empty: bool) -> History {
        History { began_empty, written: Vec::new() }
    }

    /// The database was emptied.
    pub fn clear(&mut self) {
        *self = History::new(true);
    }

    /// Something wrote.
    pub fn add(&mut self, written: Written) {
        self.written.push(written);
    }

    /// All that wrote.
    pub fn written(&self) -> &[Written] {
        &self.written
    }

    /// The load that ended early, if one did.
    pub fn short_load(&self) -> Option<&'static str> {
        let short = |written: &&Written| !written.whole && written.benchmark.starts_with("fill");
        self.written.iter().find(short).map(|written| written.benchmark)
    }

    /// Why a check cannot be made on a machine with so many bytes of memory (0: not known); `None`
    /// if it can.
    pub fn reason_against(&self, check: Check, memory_bytes: u64) -> Option<String> {
        let wanted = match check {
            Check::Merges => MERGES,
            Check::Updates => UPDATES,
        };
        if !self.began_empty {
            return Some("what the existing database held before is not known".into());
        }
        let Some(first) = self.written.first() else { return Some(format!("there was no {wanted} before")) };
        for written in &self.written {
            if written.benchmark != wanted {
                return Some(format!("{} wrote too, and only {wanted} can be recomputed", written.benchmark));
            }
            if !written.whole {
                return Some(format!("{wanted} ended early, so what it wrote is not known"));
            }
        }
        if check == Check::Merges {
            if first.operator.as_deref() != Some("uint64add") {
                return Some("--merge_operator is not uint64add".into());
            }
            if let Some(other) = self.written.iter().find(|written| written.value_size != 8) {
                return Some(format!("--value_size is {}, and a counter has 8 bytes", other.value_size));
            }
        }
        let needed = self.keys().saturating_mul(super::parts::BYTES_PER_KEY);
        (memory_bytes > 0 && needed > memory_bytes / 2)
            .then(|| format!("recomputing {} keys needs more than half of the memory", self.keys()))
    }

    /// Whether every key below `num` was put, and nothing that deletes such keys came after.
    pub fn holds_every_key(&self, num: u64) -> bool {
        let whole = |written: &Written| {
            let puts = match written.benchmark {
                "fillseq" | "fillbatch" | "fillseqbatch" | "filluniquerandom" => written.ops,
                "fillshuffled" if written.keys == num => written.ops.saturating_mul(u64::from(written.threads)),
                _ => 0,
            };
            written.whole && puts >= num
        };
        let deletes = |written: &Written| {
            matches!(written.benchmark, "deleteseq" | "deleterandom" | "queue" | "prefixtombstones" | "ttlchurn")
        };
        let last_load = self.written.iter().rposition(whole);
        last_load.is_some_and(|load| !self.written[load..].iter().any(deletes))
    }

    fn keys(&self) -> u64 {
        keys_of(&self.written)
    }
}

/// Every key of these is below this.
pub fn keys_of(written: &[Written]) -> u64 {
    written.iter().map(|written| written.keys).max().unwrap_or(0)
}
