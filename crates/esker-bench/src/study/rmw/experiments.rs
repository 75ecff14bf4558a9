//! What is varied.

use clap::ValueEnum;

/// One of the study's questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// The same counters and blocks with each engine as it is recommended today.
    Recommended,
    /// The published flags.
    Seed,
    /// Buffers of full size whatever the number of counters.
    Unscaled,
    /// Other numbers of threads: the page says one.
    Threads,
    /// Blocks that are cheap to read.
    SmallBlocks,
    /// The published blocks, read once only.
    Cached,
    /// What is merged.
    Operand,
    /// What reading costs afterwards.
    Deferred,
}

/// How a cell counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// Get and put.
    Update,
    /// Merge.
    Merge,
}

impl Counting {
    /// Its benchmark.
    pub fn benchmark(self) -> &'static str {
        match self {
            Counting::Update => "updaterandom",
            Counting::Merge => "mergerandom",
        }
    }

    /// The benchmark that checks what it left.
    pub fn check(self) -> &'static str {
        match self {
            Counting::Update => "verifyupdates",
            Counting::Merge => "verifymerges",
        }
    }
}

/// How a cell differs from the published run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Threads.
    pub threads: u32,
    /// Update or merge.
    pub counting: Counting,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Whether buffers shrink with the number of counters.
    pub scaled_buffers: bool,
    /// Whether the cache holds everything.
    pub cache_all: bool,
    /// `--merge_operand`.
    pub operand: &'static str,
    /// Whether the counters are read afterwards.
    pub reads: bool,
    /// Whether the engine has its recommended settings, and memory for all counters, in place of the published flags.
    pub recommended: bool,
    /// What varies within the experiment, besides what always does.
    pub variables: Vec<(&'static str, &'static str)>,
}

const PUBLISHED_BLOCK_BYTES: u64 = 64 << 10;
const SMALL_BLOCK_BYTES: u64 = 4 << 10;

impl Shape {
    fn published(counting: Counting) -> Shape {
        Shape {
            threads: 10,
            counting,
            block_bytes: PUBLISHED_BLOCK_BYTES,
            scaled_buffers: true,
            cache_all: false,
            operand: "random",
            reads: false,
            recommended: false,
            variables: vec![("benchmark", counting.benchmark())],
        }
    }

    fn with(mut self, variable: &'static str, value: &'static str) -> Shape {
        self.variables.push((variable, value));
        self
    }
}

impl Experiment {
    /// Its name in cells.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::Seed => "seed",
            Experiment::Unscaled => "unscaled",
            Experiment::Threads => "threads",
            Experiment::SmallBlocks => "small blocks",
            Experiment::Cached => "cached",
            Experiment::Operand => "operand",
            Experiment::Deferred => "deferred",
            Experiment::Recommended => "recommended",
        }
    }

    /// Its cells, for one engine.
    pub fn shapes(self) -> Vec<Shape> {
        if self == Experiment::Operand {
            let merge =
                |operand| Shape { operand, variables: vec![("operand", operand)], ..Shape::published(Counting::Merge) };
            return vec![merge("one"), merge("random")];
        }
        let both = [Counting::Update, Counting::Merge].into_iter();
        both.flat_map(|counting| self.shapes_of(Shape::published(counting))).collect()
    }

    fn shapes_of(self, published: Shape) -> Vec<Shape> {
        match self {
            Experiment::Seed | Experiment::Operand => vec![published],
            Experiment::Unscaled => vec![Shape { scaled_buffers: false, ..published }],
            Experiment::Threads => [1, 2].map(|threads| Shape { threads, ..published.clone() }).to_vec(),
            Experiment::SmallBlocks => {
                let small = Shape { block_bytes: SMALL_BLOCK_BYTES, ..published };
                vec![small.clone().with("cache", "8 MiB"), Shape { cache_all: true, ..small }.with("cache", "all")]
            }
            Experiment::Cached => vec![Shape { cache_all: true, ..published }.with("cache", "all")],
            // The rows of these cells have names of their own.
            Experiment::Deferred => vec![Shape { reads: true, variables: Vec::new(), ..published }],
            Experiment::Recommended => vec![Shape { recommended: true, ..published }],
        }
    }
}
