//! What a time to live costs: the same random loads and reads in a keyspace without it, in one that
//! has it but does not use it, with one default for all, and with a time of its own for each entry.
//!
//! This is no plan of a sweep: a default for a keyspace and a time drawn for each entry are Esker's
//! alone, so that flags, a workload and a way through the traits of all engines for them would be
//! more than this file. The columns, and the lines that are kept and reports read, would still have
//! to be made here from the records of its rows.

use super::scenario::{directory_bytes, files};
use crate::interrupt::Interrupt;
use crate::keys::KeyBuffer;
use crate::random::LehmerRandom;
use crate::report::blocks::{Block, Column, Field, Line, Table};
use crate::report::render::text;
use crate::stats::{extent, median};
use crate::values::ValuePool;
use esker::{Db, Keyspace, KeyspaceOptions, Options, Ttl, WriteOptions};
use serde::Serialize;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 100;
const HOUR: Duration = Duration::from_secs(3600);

/// How entries get their expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    NoTtl,
    Unused,
    Default,
    PerEntry,
}

const VARIANTS: [Variant; 4] = [Variant::NoTtl, Variant::Unused, Variant::Default, Variant::PerEntry];

impl Variant {
    fn label(self) -> &'static str {
        match self {
            Variant::NoTtl => "keyspace without ttl",
            Variant::Unused => "with ttl, unused",
            Variant::Default => "one default for all",
            Variant::PerEntry => "a time for each entry",
        }
    }

    fn ttl(self) -> Ttl {
        match self {
            Variant::NoTtl => Ttl::Disabled,
            Variant::Unused | Variant::PerEntry => Ttl::Enabled { default: None },
            Variant::Default => Ttl::Enabled { default: Some(HOUR) },
        }
    }
}

/// The figures of one variant.
#[derive(Debug, Serialize)]
pub struct Row {
    pub variant: Variant,
    pub num: u64,
    /// Microseconds per put in random order, each repetition.
    pub fillrandom_us: Vec<f64>,
    /// Microseconds per get of a random key after compaction, each repetition.
    pub readrandom_us: Vec<f64>,
    /// Bytes on disk after compaction for each key.
    pub disk_bytes_per_key: f64,
    /// Bytes of log for each put.
    pub wal_bytes_per_put: f64,
}

/// Measures every variant `repeat` times, taking turns.
pub fn run(base: &Path, num: u64, repeat: u32, interrupt: &Interrupt) -> Result<Vec<Row>, String> {
    let empty = |variant| Row {
        variant,
        num,
        fillrandom_us: Vec::new(),
        readrandom_us: Vec::new(),
        disk_bytes_per_key: 0.0,
        wal_bytes_per_put: 0.0,
    };
    let mut rows: Vec<Row> = VARIANTS.into_iter().map(empty).collect();
    let pool = ValuePool::new(0.5);
    for repetition in 0..repeat {
        for at in 0..rows.len() {
            // Each repetition begins with another variant.
            let at = (at + repetition as usize) % rows.len();
            if interrupt.is_requested() {
                return Ok(rows);
            }
            let directory = base.join("cost");
            measure(&directory, &mut rows[at], &pool).map_err(|error| error.to_string())?;
            rows[at].disk_bytes_per_key = {
                let distinct = num as f64 * (1.0 - (-1.0f64).exp());
                table_bytes(&directory)? as f64 / distinct
            };
            std::fs::remove_dir_all(&directory).map_err(|error| format!("cannot empty {}: {error}", base.display()))?;
        }
    }
    Ok(rows)
}

fn table_bytes(directory: &Path) -> Result<u64, String> {
    let files = files(directory)?;
    let tables = files.iter().filter(|(path, _)| path.extension().is_some_and(|kind| kind == "table"));
    match tables.map(|(_, data)| data.len()).sum() {
        0 => directory_bytes(directory),
        bytes => Ok(bytes),
    }
}

fn measure(directory: &Path, row: &mut Row, pool: &ValuePool) -> esker::Result<()> {
    let db = Db::open(directory, Options::default())?;
    let keyspace = db.keyspace("cost", KeyspaceOptions::default().ttl(row.variant.ttl()))?;
    let began = Instant::now();
    fill(&keyspace, row.variant, row.num, pool)?;
    row.fillrandom_us.push(began.elapsed().as_secs_f64() * 1e6 / row.num as f64);
    row.wal_bytes_per_put = db.stats().wal_bytes as f64 / row.num as f64;
    db.compact()?;
    db.wait_idle()?;
    let began = Instant::now();
    read(&keyspace, row.num)?;
    row.readrandom_us.push(began.elapsed().as_secs_f64() * 1e6 / row.num as f64);
    drop(keyspace);
    db.close()
}

fn fill(keyspace: &Keyspace, variant: Variant, num: u64, pool: &ValuePool) -> esker::Result<()> {
    let mut random = LehmerRandom::new(301);
    let mut key = KeyBuffer::new(0, KEY_BYTES);
    let mut values = pool.cursor();
    let mut options = WriteOptions::new();
    for _ in 0..num {
        key.set(random.uniform(num));
        if variant == Variant::PerEntry {
            options = options.ttl(HOUR + Duration::from_secs(random.uniform(3600)));
        }
        keyspace.put_with(key.bytes(), values.slice(VALUE_BYTES), &options)?;
    }
    Ok(())
}

fn read(keyspace: &Keyspace, num: u64) -> esker::Result<()> {
    let mut random = LehmerRandom::new(1301);
    let mut key = KeyBuffer::new(0, KEY_BYTES);
    for _ in 0..num {
        key.set(random.uniform(num));
        black_box(keyspace.get(key.bytes())?);
    }
    Ok(())
}

/// The rows as text.
pub fn table(rows: &[Row]) -> String {
    let base = rows.first().map(|row| (median(&row.fillrandom_us), median(&row.readrandom_us)));
    let figure = |values: &[f64], base: Option<f64>| {
        let (Some(middle), Some((low, high))) = (median(values), extent(values)) else {
            return ["-", "-"].map(String::from);
        };
        let ratio = base.map_or("-".to_owned(), |base| format!("{:.3}x", middle / base));
        [format!("{middle:.3} ({low:.3}-{high:.3})"), ratio]
    };
    let line = |row: &Row| {
        let fill = figure(&row.fillrandom_us, base.and_then(|base| base.0));
        let read = figure(&row.readrandom_us, base.and_then(|base| base.1));
        let bytes = [row.disk_bytes_per_key, row.wal_bytes_per_put].map(|bytes| format!("{bytes:.1}"));
        Line::new(row.variant.label(), fill.into_iter().chain(read).chain(bytes).map(Field::from).collect())
    };
    let columns = ["fillrandom us/op", "vs none", "readrandom us/op", "vs none", "bytes/key", "log bytes/put"]
        .map(Column::number);
    text::blocks(&[Block::Table(Table::new("", "cost", columns, rows.iter().map(line)))])
}
