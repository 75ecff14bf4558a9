//! The whole engine under a coverage-guided fuzzer: its bytes are the choices that a seed makes
//! elsewhere.

pub mod corpus;

use crate::campaign::run_operations;
use crate::cast::Features;
use crate::generator::Generator;
use crate::option_sets::OPTION_SETS;
use crate::random::Random;
use crate::simulated::Place;
use esker::env::mem::MemEnv;
use esker::internals::decoders::DECODERS;
use esker::{CompactionStyle, Compression, Db, Error, KeyspaceOptions, Options, Profile, ReadMode, WalMode};
use std::sync::Arc;

/// Something that is fuzzed, by its name: it takes any bytes, and panics if something is wrong.
pub type Target = (&'static str, fn(&[u8]));

/// Everything that is fuzzed.
pub fn targets() -> Vec<Target> {
    let decoders = DECODERS.iter().map(|decoder| (decoder.name, decoder.run));
    decoders.chain([("engine", engine as fn(&[u8])), ("options", options)]).collect()
}

/// Operators that panic would end the fuzzer, which takes every panic for a finding.
const FEATURES: Features = Features { custom: false, clock_back: true, ..Features::ALL };

/// How many bytes choose an operation, about.
const BYTES_PER_OPERATION: usize = 8;

/// Runs the operations that these bytes choose, in a simulated environment, and compares every
/// answer with the model.
///
/// # Panics
/// If an answer is wrong.
pub fn engine(bytes: &[u8]) {
    let mut random = Random::of_bytes(bytes);
    let sets: Vec<_> = OPTION_SETS.iter().filter(|set| !set.on_disk).collect();
    let set = *sets[random.below(sets.len())];
    let mut generator = Generator::choosing(random, FEATURES);
    let operations = generator.operations(1 + bytes.len() / BYTES_PER_OPERATION);
    if let Err((reached, what)) = run_operations(set, Place::memory(), generator.cast(), &operations) {
        panic!("option set {}: {what}\nafter {:#?}", set.name, &operations[..=reached.min(operations.len() - 1)]);
    }
}

/// Opens a database with options of any value, which must be refused or work.
///
/// # Panics
/// If they do neither.
pub fn options(bytes: &[u8]) {
    let mut random = Random::of_bytes(bytes);
    let mut options = Options::default().env(Arc::new(MemEnv::new())).background_threads(random.below(3));
    let styles = [
        CompactionStyle::LazyLeveling,
        CompactionStyle::Leveled,
        CompactionStyle::Tiered,
        CompactionStyle::Fifo { max_bytes: magnitude(&mut random) },
    ];
    let style = styles[random.below(4)];
    for _ in 0..random.below(8) {
        let number = magnitude(&mut random);
        let size = number as usize;
        let compression = match number % 4 {
            0 | 2 => Compression::None,
            3 if Compression::Zstd.is_available() => Compression::Zstd,
            _ => Compression::Lz4,
        };
        options = match random.below(14) {
            0 => options.write_buffer_bytes(size),
            1 => options.block_cache_bytes(size),
            2 => options.block_bytes(size),
            3 => options.compression(compression),
            4 => options.upper_compression(compression),
            5 => options.filter_bits_per_key(number as u32),
            6 => options.target_file_bytes(number),
            7 => options.min_blob_size(size),
            // The simulated environment keeps files in memory.
            8 => options.wal_segment_bytes(number % (64 << 20)),
            9 => options.wal_mode([WalMode::Mapped, WalMode::Plain][size % 2]),
            10 => options.read_mode([ReadMode::Mmap, ReadMode::Pread, ReadMode::MmapChecked][size % 3]),
            11 => options.compaction_bytes_per_second(number),
            12 => options.memory_budget_bytes(size),
            _ => options.profile([Profile::Counters, Profile::ReadHeavy, Profile::LargeValues][size % 3]),
        };
    }
    match use_all(&options, style, &mut random) {
        Ok(()) | Err(Error::InvalidArgument { .. }) => {}
        Err(error) => panic!("{error}\nwith {options:?}"),
    }
}

/// A number of any size.
fn magnitude(random: &mut Random) -> u64 {
    let bits = random.below(65) as u32;
    let number = random.next() | 1 << 63;
    number.checked_shr(u64::BITS - bits).unwrap_or(0)
}

fn use_all(options: &Options, style: CompactionStyle, random: &mut Random) -> esker::Result<()> {
    for _ in 0..2 {
        let db = Db::open("data", options.clone())?;
        let keyspace = db.keyspace("k", KeyspaceOptions::default().compaction_style(style))?;
        for _ in 0..random.below(40) {
            let (key, value) = ([random.below(50) as u8], vec![7; random.below(3000)]);
            keyspace.put(key, &value)?;
            let got = keyspace.get(key)?;
            // Old tables are dropped when there is too much, and with tiny ones that is at once.
            let may_drop = matches!(style, CompactionStyle::Fifo { .. });
            assert!(got.as_deref() == Some(&value[..]) || (may_drop && got.is_none()), "what was just put is {got:?}");
        }
        db.flush()?;
        keyspace.compact()?;
        keyspace.iter().try_for_each(|pair| pair.map(drop))?;
        db.verify()?;
        db.close()?;
    }
    Ok(())
}
