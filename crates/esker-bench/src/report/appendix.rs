//! The end of the report: what the engines were asked for, what they say they run with, the machine, and the flags.

use super::engine_style::{OURS, display_name};
use super::group::{Groups, row_name};
use super::number;
use super::varying::{Collector, Varying, some_rows};
use crate::engine::{Compression, EngineOptions};
use crate::record::{Host, Record, Run};
use maud::{Markup, html};

/// The machine of a run: the run's own, or that of its first record where the run names none.
pub fn host(run: &Run) -> &Host {
    match run.records.first() {
        Some(record) if run.host == Host::default() => &record.host,
        _ => &run.host,
    }
}

/// What every engine was asked for and what each says of itself.
pub fn settings(run: &Run, groups: &Groups) -> Markup {
    let ran = || run.records.iter().filter(|record| record.skipped.is_none());
    let mut asked = Collector::default();
    for record in ran() {
        for (name, value) in option_values(&record.options) {
            asked.add(row_name(record), &name, &value);
        }
    }
    html! {
        section id="settings" aria-labelledby="settings-title" {
            h2 id="settings-title" { "Settings" }
            p {
                "First what the run asked of every engine, then what each engine says it runs with. "
                "Where a setting differs from row to row, the value of most rows comes first."
            }
            h3 { "Asked of every engine" }
            (definitions(&asked.finish()))
            div.engines {
                @for engine in &groups.engines {
                    @let records: Vec<&Record> = ran().filter(|record| record.engine == *engine).collect();
                    div { (engine_settings(engine, &records)) }
                }
            }
        }
    }
}

fn engine_settings(engine: &str, records: &[&Record]) -> Markup {
    let mut versions: Vec<&str> = Vec::new();
    let mut collector = Collector::default();
    for record in records {
        if !record.engine_version.is_empty() && !versions.contains(&record.engine_version.as_str()) {
            versions.push(&record.engine_version);
        }
        for (name, value) in &record.settings {
            collector.add(row_name(record), name, value);
        }
    }
    let settings = collector.finish();
    html! {
        h3.ours[engine == OURS] { (display_name(engine)) }
        @if !versions.is_empty() { p { "Version " (versions.join(", ")) } }
        @if records.is_empty() {
            p.quiet { "It did not run in any row." }
        } @else if settings.is_empty() {
            p.quiet { "It reports no settings." }
        } @else {
            (definitions(&settings))
        }
    }
}

/// Names with their values; where a value is not that of all rows, with the rows.
fn definitions(all: &[Varying]) -> Markup {
    html! {
        dl.settings {
            @for varying in all {
                div {
                    dt { (varying.name) }
                    @for (index, (value, rows)) in varying.values.iter().enumerate() {
                        dd {
                            @if value.is_empty() { span.quiet { "(empty)" } } @else { (value) }
                            @if index > 0 { span.quiet { " in " (some_rows(rows)) } }
                        }
                    }
                }
            }
        }
    }
}

fn option_values(options: &EngineOptions) -> Vec<(String, String)> {
    let or_default = |value: Option<String>| value.unwrap_or("the engine\u{2019}s default".to_string());
    let yes = |value: bool| if value { "yes" } else { "no" }.to_string();
    let compression = match options.compression {
        Compression::None => "none",
        Compression::Lz => "LZ class",
    };
    let bloom =
        options.bloom_bits.map(|bits| if bits > 0 { format!("{bits} bits per key") } else { "none".to_string() });
    let open_files = (options.open_files > 0).then(|| options.open_files.to_string());
    let mut values: Vec<(String, String)> = [
        ("write buffer", number::bytes(options.write_buffer_bytes as f64)),
        ("cache", or_default(options.cache_bytes.map(|bytes| number::bytes(bytes as f64)))),
        ("block", number::bytes(options.block_bytes as f64)),
        ("largest file", or_default(options.max_file_bytes.map(|bytes| number::bytes(bytes as f64)))),
        ("filter", or_default(bloom)),
        ("compression", compression.to_string()),
        ("open files", or_default(open_files)),
        ("merge operator", options.merge_operator.clone().unwrap_or("none".to_string())),
        ("expected data", number::bytes(options.expected_data_bytes as f64)),
        ("log off", yes(options.disable_wal)),
        ("synced writes", yes(options.sync)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_string(), value))
    .collect();
    values.extend(options.extra.clone());
    values
}

/// The machine, the command line and the flags.
pub fn machine(run: &Run, host: &Host) -> Markup {
    let mut flags = Collector::default();
    for record in &run.records {
        for (name, value) in &record.flags {
            flags.add(row_name(record), name, value);
        }
    }
    let mut flags = flags.finish();
    flags.sort_by(|one, two| one.name.cmp(&two.name));
    let others = run.records.iter().any(|record| (&record.host.cpu, record.host.cores) != (&host.cpu, host.cores));
    html! {
        section id="machine" aria-labelledby="machine-title" {
            h2 id="machine-title" { "Machine and command" }
            @if others {
                p.warning { strong { "Not all records were made on this machine:" } " figures of different machines do not compare." }
            }
            div.scroll role="region" tabindex="0" aria-label="Machine" {
                table.machine {
                    caption { span { "The machine and the build" } }
                    tbody {
                        @for (name, value) in machine_rows(run, host) {
                            tr { th scope="row" { (name) } td { (value) } }
                        }
                        @for varying in flags.iter().filter(|varying| varying.name == "seed") {
                            tr { th scope="row" { "Seed" } td { (values_in_brief(varying)) } }
                        }
                    }
                }
            }
            h3 { "Command line" }
            @if host.command_line.is_empty() {
                p.quiet { "Not recorded." }
            } @else {
                pre { code { (host.command_line) } }
            }
            h3 { "Flags" }
            @if flags.is_empty() { p.quiet { "None recorded." } } @else { (definitions(&flags)) }
        }
    }
}

fn values_in_brief(varying: &Varying) -> String {
    varying.values.iter().map(|(value, _)| value.as_str()).collect::<Vec<_>>().join(", ")
}

fn machine_rows(run: &Run, host: &Host) -> Vec<(&'static str, String)> {
    let loads: Vec<f64> = run.records.iter().map(|record| record.host.load_1min).chain([host.load_1min]).collect();
    let low = loads.iter().copied().fold(f64::INFINITY, f64::min);
    let high = loads.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let load = if low == high { format!("{low:.2}") } else { format!("{low:.2} to {high:.2} over the records") };
    let size = |bytes: u64| if bytes == 0 { String::new() } else { number::bytes(bytes as f64) };
    let rows = [
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
    ];
    let named = |(name, value): (&'static str, String)| {
        (name, if value.is_empty() { "not recorded".to_string() } else { value })
    };
    rows.into_iter().map(named).collect()
}
