//! Options of databases and keyspaces, from keyword arguments.

use crate::arguments::duration;
use crate::comparator;
use crate::merge;
use crate::observers;
use esker::{ChangeRetention, CompactionStyle, Compression, KeyspaceOptions, Options, Profile, ReadMode, Ttl, WalMode};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDelta, PyDict, PyInt, PyString};

/// The name among `choices`, or an error that lists them.
fn choice<T: Copy>(name: &str, given: &str, choices: &[(&str, T)]) -> PyResult<T> {
    choices.iter().find(|(choice, _)| *choice == given).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        PyValueError::new_err(format!("{name} must be one of {}, not {given:?}", names.join(", ")))
    })
}

const COMPRESSIONS: [(&str, Compression); 3] =
    [("none", Compression::None), ("lz4", Compression::Lz4), ("zstd", Compression::Zstd)];

/// The options of a database. Later ones override what a profile sets, so that it goes first.
pub fn database(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::default();
    let Some(arguments) = arguments else { return Ok(options) };
    if let Some(profile) = arguments.get_item("profile")? {
        let profile: String = profile.extract()?;
        let choices: Vec<_> = Profile::ALL.iter().map(|profile| (profile.name(), *profile)).collect();
        options = options.profile(choice("profile", &profile, &choices)?);
    }
    for (name, value) in arguments.iter() {
        let name: String = name.extract()?;
        options = set(options, &name, &value).map_err(|error| {
            if error.is_instance_of::<PyTypeError>(value.py()) {
                PyTypeError::new_err(format!("{name}: {}", error.value(value.py())))
            } else {
                error
            }
        })?;
    }
    Ok(options)
}

/// The options with the orders of an iterable.
pub fn with_comparators(mut options: Options, comparators: &Bound<'_, PyAny>) -> PyResult<Options> {
    for given in comparators.try_iter()? {
        options = options.comparator(comparator::comparator(&given?)?);
    }
    Ok(options)
}

fn set(options: Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Options> {
    Ok(match name {
        "profile" => options,
        "comparators" => with_comparators(options, value)?,
        "filter_policy" => options.filter_policy(observers::filter_policy(value)?),
        "clock" => options.clock(observers::clock(value)?),
        "event_listener" => options.event_listener(observers::event_listener(value)?),
        "error_if_exists" => options.error_if_exists(value.extract()?),
        "create_if_missing" => options.create_if_missing(value.extract()?),
        "memory_budget_bytes" => options.memory_budget_bytes(value.extract()?),
        "write_buffer_bytes" => options.write_buffer_bytes(value.extract()?),
        "block_cache_bytes" => options.block_cache_bytes(value.extract()?),
        "block_bytes" => options.block_bytes(value.extract()?),
        "filter_bits_per_key" => options.filter_bits_per_key(value.extract()?),
        "target_file_bytes" => options.target_file_bytes(value.extract()?),
        "min_blob_size" => options.min_blob_size(value.extract()?),
        "wal_segment_bytes" => options.wal_segment_bytes(value.extract()?),
        "background_threads" => options.background_threads(value.extract()?),
        "compaction_bytes_per_second" => options.compaction_bytes_per_second(value.extract()?),
        "latency_histograms" => options.latency_histograms(value.extract()?),
        "compression" => options.compression(choice(name, &value.extract::<String>()?, &COMPRESSIONS)?),
        "upper_compression" => options.upper_compression(choice(name, &value.extract::<String>()?, &COMPRESSIONS)?),
        "wal_mode" => {
            let modes = [("mapped", WalMode::Mapped), ("plain", WalMode::Plain)];
            options.wal_mode(choice(name, &value.extract::<String>()?, &modes)?)
        }
        "keep_changes" => options.keep_changes(retention(value)?),
        "read_mode" => {
            let modes = [
                ("auto", ReadMode::Auto),
                ("mmap", ReadMode::Mmap),
                ("pread", ReadMode::Pread),
                ("mmap-checked", ReadMode::MmapChecked),
            ];
            options.read_mode(choice(name, &value.extract::<String>()?, &modes)?)
        }
        _ => return Err(PyTypeError::new_err("there is no such option")),
    })
}

/// How long changes are kept: so many bytes, for a time, or as before.
fn retention(value: &Bound<'_, PyAny>) -> PyResult<ChangeRetention> {
    if let Ok(text) = value.cast::<PyString>() {
        return choice("keep_changes", &text.to_string(), &[("as-before", ChangeRetention::AsBefore)]);
    }
    if value.cast::<PyDelta>().is_ok() {
        return Ok(ChangeRetention::Time(duration(value, "keep_changes")?));
    }
    if value.cast::<PyInt>().is_err() || value.cast::<PyBool>().is_ok() {
        return Err(PyTypeError::new_err("must be a number of bytes, a timedelta, or \"as-before\""));
    }
    Ok(ChangeRetention::Bytes(value.extract()?))
}

/// What an argument `ttl` of a keyspace says.
pub fn time_to_live(ttl: &Bound<'_, PyAny>) -> PyResult<Ttl> {
    Ok(match ttl.cast::<PyBool>() {
        Ok(yes) if yes.is_true() => Ttl::Enabled { default: None },
        Ok(_) => Ttl::Disabled,
        Err(_) => Ttl::Enabled { default: Some(duration(ttl, "ttl")?) },
    })
}

/// The options of a keyspace.
pub fn keyspace(
    merge_operator: Option<&Bound<'_, PyAny>>,
    ttl: Option<&Bound<'_, PyAny>>,
    compaction_style: Option<&str>,
    fifo_bytes: Option<u64>,
    comparator: Option<&Bound<'_, PyAny>>,
    compaction_filter: Option<&Bound<'_, PyAny>>,
) -> PyResult<KeyspaceOptions> {
    let mut options = KeyspaceOptions::default();
    if let Some(filter) = compaction_filter {
        options = options.compaction_filter(observers::compaction_filter(filter)?);
    }
    if let Some(comparator) = comparator {
        options = options.shared_comparator(comparator::comparator(comparator)?);
    }
    if let Some(merge_operator) = merge_operator {
        options = options.shared_merge_operator(merge::operator(merge_operator)?);
    }
    if let Some(ttl) = ttl {
        options = options.ttl(time_to_live(ttl)?);
    }
    match (compaction_style, fifo_bytes) {
        (None, None) => {}
        (Some("fifo"), Some(max_bytes)) => options = options.compaction_style(CompactionStyle::Fifo { max_bytes }),
        (Some("fifo"), None) => return Err(PyTypeError::new_err("compaction_style \"fifo\" needs fifo_bytes")),
        (_, Some(_)) => return Err(PyTypeError::new_err("fifo_bytes is for compaction_style \"fifo\"")),
        (Some(style), None) => {
            let styles = [
                ("lazy-leveling", CompactionStyle::LazyLeveling),
                ("leveled", CompactionStyle::Leveled),
                ("tiered", CompactionStyle::Tiered),
            ];
            options = options.compaction_style(choice("compaction_style", style, &styles)?);
        }
    }
    Ok(options)
}
