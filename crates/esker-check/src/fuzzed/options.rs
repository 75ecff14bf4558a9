//! Databases with options of any value, which a fuzzer's bytes choose.

use crate::random::Random;
use esker::env::mem::MemEnv;
use esker::{
    ChangeRetention, CompactionStyle, Comparator, Compression, Db, Error, EventListener, FilterPolicy, KeyspaceOptions,
    ManualClock, Options, Profile, ReadMode, WalMode,
};
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// How many options are drawn one by one: all but the environment and the number of threads.
const SETTERS: usize = 22;
/// A retention of so many bytes gives up nothing of what is written here.
const MORE_THAN_IS_WRITTEN: u64 = 1 << 32;

/// What the bytes have chosen.
struct Drawn {
    options: Options,
    style: CompactionStyle,
    /// What the answers of a database with these options depend on.
    creates: bool,
    refuses_existing: bool,
    kept: Option<ChangeRetention>,
    comparator: Option<Arc<dyn Comparator>>,
}

/// Opens a database with options of any value, which must be refused or work.
///
/// # Panics
/// If they do neither.
pub fn options(bytes: &[u8]) {
    let mut random = Random::of_bytes(bytes);
    let drawn = draw(&mut random);
    match use_all(&drawn, &mut random) {
        Ok(()) | Err(Error::InvalidArgument { .. }) => {}
        Err(error) => panic!("{error}\nwith {:?}", drawn.options),
    }
}

fn draw(random: &mut Random) -> Drawn {
    let options = Options::default().env(Arc::new(MemEnv::new())).background_threads(random.below(3));
    let styles = [
        CompactionStyle::LazyLeveling,
        CompactionStyle::Leveled,
        CompactionStyle::Tiered,
        CompactionStyle::Fifo { max_bytes: magnitude(random) },
    ];
    let style = styles[random.below(4)];
    let mut drawn = Drawn { options, style, creates: true, refuses_existing: false, kept: None, comparator: None };
    for _ in 0..random.below(8) {
        let number = magnitude(random);
        drawn = set(drawn, random.below(SETTERS), number);
    }
    drawn
}

/// A number of any size.
fn magnitude(random: &mut Random) -> u64 {
    let bits = random.below(65) as u32;
    let number = random.next() | 1 << 63;
    number.checked_shr(u64::BITS - bits).unwrap_or(0)
}

/// Sets one of the options to what the number stands for.
fn set(mut drawn: Drawn, setter: usize, number: u64) -> Drawn {
    let (size, is_odd) = (number as usize, number % 2 == 1);
    let options = drawn.options;
    drawn.options = match setter {
        0 => options.write_buffer_bytes(size),
        1 => options.block_cache_bytes(size),
        2 => options.block_bytes(size),
        3 => options.compression(compression(number)),
        4 => options.upper_compression(compression(number)),
        5 => options.filter_bits_per_key(number as u32),
        6 => options.target_file_bytes(number),
        7 => options.min_blob_size(size),
        // The simulated environment keeps files in memory.
        8 => options.wal_segment_bytes(number % (64 << 20)),
        9 => options.wal_mode([WalMode::Mapped, WalMode::Plain][size % 2]),
        10 => options.read_mode([ReadMode::Mmap, ReadMode::Pread, ReadMode::MmapChecked][size % 3]),
        11 => options.compaction_bytes_per_second(number),
        12 => options.memory_budget_bytes(size),
        13 => options.profile([Profile::Counters, Profile::ReadHeavy, Profile::LargeValues][size % 3]),
        14 => {
            drawn.creates = is_odd;
            options.create_if_missing(is_odd)
        }
        15 => {
            drawn.refuses_existing = is_odd;
            options.error_if_exists(is_odd)
        }
        16 => {
            let retention = retention(number);
            drawn.kept = Some(retention);
            options.keep_changes(retention)
        }
        17 => options.filter_policy(Arc::new(FirstBytes::drawn(size))),
        18 => options.clock(Arc::new(ManualClock::new(number))),
        19 => options.event_listener(Arc::new(Silent)),
        20 => options.latency_histograms(is_odd),
        _ => {
            // A second one of this name is refused.
            let comparator: Arc<dyn Comparator> = Arc::new(LastFirst);
            drawn.comparator = Some(Arc::clone(&comparator));
            options.comparator(comparator)
        }
    };
    drawn
}

fn compression(number: u64) -> Compression {
    match number % 4 {
        0 | 2 => Compression::None,
        3 if Compression::Zstd.is_available() => Compression::Zstd,
        _ => Compression::Lz4,
    }
}

fn retention(number: u64) -> ChangeRetention {
    match number % 4 {
        0 => ChangeRetention::AsBefore,
        1 => ChangeRetention::Time(Duration::from_millis(number)),
        _ => ChangeRetention::Bytes(number),
    }
}

/// Filters of any length, under a name of any length. None panics: a fuzzer takes that for a
/// finding.
struct FirstBytes {
    name: String,
    spare_bytes: usize,
}

impl FirstBytes {
    fn drawn(size: usize) -> FirstBytes {
        FirstBytes { name: "x".repeat(size % 300), spare_bytes: size % (64 << 10) }
    }
}

impl FilterPolicy for FirstBytes {
    fn name(&self) -> &str {
        &self.name
    }

    fn create_filter(&self, keys: &[&[u8]]) -> Option<Vec<u8>> {
        let mut filter: Vec<u8> = keys.iter().filter_map(|key| key.first().copied()).collect();
        filter.resize(filter.len() + self.spare_bytes, 0);
        (!self.spare_bytes.is_multiple_of(5)).then_some(filter)
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        key.first().is_none_or(|first| filter.contains(first))
    }
}

struct Silent;

impl EventListener for Silent {}

/// The bytewise order, backwards, as a program may supply it.
struct LastFirst;

impl Comparator for LastFirst {
    fn name(&self) -> &str {
        "fuzzed.last-first"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

fn use_all(drawn: &Drawn, random: &mut Random) -> esker::Result<()> {
    let mut puts = 0;
    for is_there in [false, true] {
        let db = open(drawn, is_there)?;
        let mut options = KeyspaceOptions::default().compaction_style(drawn.style);
        if let Some(comparator) = &drawn.comparator {
            options = options.shared_comparator(Arc::clone(comparator));
        }
        let keyspace = db.keyspace("k", options)?;
        for _ in 0..random.below(40) {
            let (key, value) = ([random.below(50) as u8], vec![7; random.below(3000)]);
            keyspace.put(key, &value)?;
            puts += 1;
            let got = keyspace.get(key)?;
            // Old tables are dropped when there is too much, and with tiny ones that is at once.
            let may_drop = matches!(drawn.style, CompactionStyle::Fifo { .. });
            assert!(got.as_deref() == Some(&value[..]) || (may_drop && got.is_none()), "what was just put is {got:?}");
        }
        db.flush()?;
        keyspace.compact()?;
        keyspace.iter().try_for_each(|pair| pair.map(drop))?;
        read_changes(&db, drawn.kept, puts)?;
        db.verify()?;
        db.close()?;
    }
    Ok(())
}

/// Opens the database, which is there or is not. Where the options say that this is to be refused,
/// it must be, and is opened without them.
fn open(drawn: &Drawn, is_there: bool) -> esker::Result<Db> {
    const PATH: &str = "data";
    let options = drawn.options.clone();
    let is_refused = if is_there { drawn.refuses_existing } else { !drawn.creates };
    match Db::open(PATH, options.clone()) {
        Err(Error::NotFound { .. }) if is_refused && !is_there => Db::open(PATH, options.create_if_missing(true)),
        Err(Error::AlreadyExists { .. }) if is_refused && is_there => Db::open(PATH, options.error_if_exists(false)),
        opened => {
            assert!(opened.is_err() || !is_refused, "it was opened, though it is there: {is_there}");
            opened
        }
    }
}

/// Reads the changes, if any are kept: each put once, in order, and all of them where nothing is
/// given up.
fn read_changes(db: &Db, kept: Option<ChangeRetention>, puts: usize) -> esker::Result<()> {
    let are_all_kept = match kept {
        None | Some(ChangeRetention::AsBefore) => return Ok(()),
        Some(ChangeRetention::Bytes(bytes)) => bytes >= MORE_THAN_IS_WRITTEN,
        Some(_) => false,
    };
    let (mut found, mut last) = (0, 0);
    for batch in db.changes(0).unwrap_or_else(|error| panic!("changes are kept: {error}")) {
        let batch = match batch {
            // A background thread gives them up meanwhile.
            Err(Error::Gone { .. }) if !are_all_kept => break,
            batch => batch?,
        };
        for change in batch.changes {
            assert!(change.sequence > last, "change {} follows {last}", change.sequence);
            (found, last) = (found + 1, change.sequence);
        }
    }
    assert!(
        found == puts || (found < puts && !are_all_kept),
        "{found} changes of {puts} puts, of which {kept:?} is kept"
    );
    Ok(())
}
