//! The end of the report: what was requested of the engines, what they say they run with, the
//! machine, and the flags.

use crate::record::{Host, Record, Run};
use crate::report::blocks::{Block, Column, Definition, Field, Line, Table};
use crate::report::engine_style::display_name;
use crate::report::groups::Groups;
use crate::report::measured::{distinct, entry, row_name};
use crate::text::number;
use crate::text::words::some;
use esker_engines::{Compression, EngineOptions};

/// What was requested of every engine, and what each says of itself.
pub fn settings(run: &Run, groups: &Groups) -> Vec<Block> {
    let ran = || run.records.iter().filter(|record| record.skipped.is_none());
    let asked = collected(ran(), |record| option_values(&record.options));
    let of_engine =
        |engine: &&str| engine_settings(engine, &ran().filter(|record| record.engine == *engine).collect::<Vec<_>>());
    vec![
        Block::Text(
            "First what the run asked of every engine, then what each engine says it runs with. Where a setting differs from row to row, the \
             value of most rows comes first."
                .into(),
        ),
        Block::Title("Asked of every engine".into()),
        Block::Definitions(asked),
        Block::Beside(groups.engines.iter().map(of_engine).collect()),
    ]
}

/// Names with their values over some records, in the order in which they first occur: of each name
/// the value of the most records first, the others with their rows.
fn collected<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    values: impl Fn(&Record) -> Vec<(String, String)>,
) -> Vec<Definition> {
    /// A value with the row of each record that has it.
    type Value<'a> = (String, Vec<&'a str>);
    let mut names: Vec<(String, Vec<Value>)> = Vec::new();
    for record in records {
        for (name, value) in values(record) {
            let (_, values) = entry(&mut names, |(known, _)| *known == name, || (name.clone(), Vec::new()));
            let (_, rows) = entry(values, |(known, _)| *known == value, || (value.clone(), Vec::new()));
            rows.push(row_name(record));
        }
    }
    let definition = |(name, mut values): (String, Vec<Value>)| {
        values.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.len()));
        let most = values.iter().take(1).map(|(value, _)| (value.clone(), String::new()));
        let others = values.iter().skip(1).map(|(value, rows)| (value.clone(), some(&distinct(rows))));
        Definition { name, values: most.chain(others).collect() }
    };
    names.into_iter().map(definition).collect()
}

fn engine_settings(engine: &str, records: &[&Record]) -> Vec<Block> {
    let mut versions = distinct(records.iter().map(|record| record.engine_version.as_str()));
    versions.retain(|version| !version.is_empty());
    let settings = collected(records.iter().copied(), |record| record.settings.clone());
    let mut blocks = vec![Block::Title(display_name(engine).into())];
    blocks.extend((!versions.is_empty()).then(|| Block::Text(format!("Version {}", versions.join(", ")))));
    blocks.push(match (records.is_empty(), settings.is_empty()) {
        (true, _) => Block::Quiet("It did not run in any row.".into()),
        (false, true) => Block::Quiet("It reports no settings.".into()),
        (false, false) => Block::Definitions(settings),
    });
    blocks
}

fn option_values(options: &EngineOptions) -> Vec<(String, String)> {
    let or_default = |value: Option<String>| value.unwrap_or("the engine\u{2019}s default".to_string());
    let yes = |value: bool| if value { "yes" } else { "no" }.to_string();
    let compression = match options.compression {
        Compression::None => "none",
        Compression::Lz => "LZ class",
        Compression::Zstd => "zstd in the last level, LZ class above",
    };
    let bloom =
        options.bloom_bits.map(|bits| if bits > 0 { format!("{bits} bits per key") } else { "none".to_string() });
    let open_files = (options.open_files > 0).then(|| options.open_files.to_string());
    let size = |bytes: u64| number::bytes(bytes as f64);
    let values = [
        ("write buffer", size(options.write_buffer_bytes)),
        ("cache", or_default(options.cache_bytes.map(size))),
        ("block", size(options.block_bytes)),
        ("largest file", or_default(options.max_file_bytes.map(size))),
        ("filter", or_default(bloom)),
        ("compression", compression.to_string()),
        ("open files", or_default(open_files)),
        ("merge operator", options.merge_operator.clone().unwrap_or("none".to_string())),
        ("expected data", size(options.expected_data_bytes)),
        ("log off", yes(options.disable_wal)),
        ("synced writes", yes(options.sync)),
    ];
    let values = values.into_iter().map(|(name, value)| (name.to_string(), value));
    values.chain(options.extra.clone()).collect()
}

/// The machine, the command line and the flags.
pub fn machine(run: &Run, host: &Host) -> Vec<Block> {
    let mut flags = collected(&run.records, |record| {
        record.flags.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    });
    flags.sort_by(|one, two| one.name.cmp(&two.name));
    let seed = flags.iter().find(|flag| flag.name == "seed");
    let seed = seed.map(|flag| flag.values.iter().map(|(value, _)| value.as_str()).collect::<Vec<_>>().join(", "));
    let rows = machine_rows(run, host).into_iter().chain(seed.map(|seed| ("Seed", seed)));
    let named = |value: String| if value.is_empty() { Field::from("not recorded") } else { Field::from(value) };
    let lines = rows.map(|(name, value)| Line::new(name, vec![named(value)]));
    let table = Table::new("The machine and the build", "", [Column::words("")], lines);
    let mut blocks = Vec::new();
    if run.records.iter().any(|record| (&record.host.cpu, record.host.cores) != (&host.cpu, host.cores)) {
        let warning = "Not all records were made on this machine: figures of different machines do not compare.";
        blocks.push(Block::Warning(warning.into()));
    }
    blocks.extend([Block::Table(table), Block::Title("Command line".into())]);
    blocks.push(match host.command_line.as_str() {
        "" => Block::Quiet("Not recorded.".into()),
        command => Block::Code(command.into()),
    });
    blocks.push(Block::Title("Flags".into()));
    blocks.push(if flags.is_empty() { Block::Quiet("None recorded.".into()) } else { Block::Definitions(flags) });
    blocks
}

fn machine_rows(run: &Run, host: &Host) -> [(&'static str, String); 12] {
    let loads = run.records.iter().map(|record| record.host.load_1min).chain([host.load_1min]);
    let load = match crate::stats::extent(loads) {
        Some((low, high)) if low < high => format!("{low:.2} to {high:.2} over the records"),
        _ => format!("{:.2}", host.load_1min),
    };
    let size = |bytes: u64| if bytes == 0 { String::new() } else { number::bytes(bytes as f64) };
    [
        ("Processor", host.cpu.clone()),
        ("Logical cores", if host.cores == 0 { String::new() } else { host.cores.to_string() }),
        ("Frequency governor", host.governor.clone()),
        ("Memory", size(host.memory_bytes)),
        ("Kernel", host.kernel.clone()),
        ("File system", host.file_system.clone()),
        ("Mount options", host.mount_options.clone()),
        ("Free space at the start", size(host.free_bytes)),
        ("Load average (1 minute) at the start", load),
        ("Build", host.esker_build.clone()),
        ("Date", host.date.clone()),
        ("Records", number::whole(run.records.len() as f64)),
    ]
}
