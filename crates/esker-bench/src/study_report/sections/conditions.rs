//! Where, when and how the runs were made, what is missing in them, and how far their repetitions
//! lie apart.

use crate::record::Host;
use crate::report::blocks::{Block, Column, Field, Line, Section, Table};
use crate::report::engine_style::{display_name, rank};
use crate::report::measured::{Measured, distinct, engine_name};
use crate::report::number;
use crate::stats;
use crate::study::grid::{Finished, StudyRun};

/// The section.
pub fn section(runs: &[StudyRun], all: &[Measured<'_>]) -> Section {
    let mut blocks = Vec::new();
    let cells = || runs.iter().flat_map(|run| &run.finished);
    let mut hosts: Vec<&Host> = Vec::new();
    for host in cells().map(|finished| &finished.host) {
        if !hosts.iter().any(|known| same_machine(known, host)) {
            hosts.push(host);
        }
    }
    if hosts.len() > 1 {
        blocks.push(Block::Warning(
            "Not all of this was measured on the same machine with the same build: figures of different machines do not compare."
                .into(),
        ));
    }
    blocks.extend([runs_table(runs), machines(&hosts), versions(all)].map(Block::Table));
    blocks.extend(spread(all));
    let failure =
        |finished: &Finished| finished.failure.as_ref().map(|reason| format!("{}: {reason}", finished.cell.name()));
    let failures: Vec<String> = cells().filter_map(failure).collect();
    if !failures.is_empty() {
        blocks.extend([Block::Title("Cells that failed".into()), Block::List(failures)]);
    }
    let mut commands: Vec<&str> = cells().map(|finished| finished.host.command_line.as_str()).collect();
    commands.sort_unstable();
    commands.dedup();
    commands.retain(|command| !command.is_empty());
    if !commands.is_empty() {
        blocks.extend([Block::Title("Commands".into()), Block::Code(commands.join("\n"))]);
    }
    Section::new("conditions", "Conditions", blocks)
}

fn same_machine(one: &Host, two: &Host) -> bool {
    let hardware = |host: &Host| (host.cores, host.memory_bytes);
    let software = |host: &Host| [&host.cpu, &host.kernel, &host.file_system, &host.esker_build].map(String::clone);
    hardware(one) == hardware(two) && software(one) == software(two)
}

/// A text, or that it was not recorded.
fn recorded(text: &str) -> Field {
    if text.is_empty() { "not recorded" } else { text }.into()
}

/// What each run holds.
fn runs_table(runs: &[StudyRun]) -> Table {
    let line = |run: &StudyRun| {
        let whole = |count: usize| Field::from(number::whole(count as f64));
        let failed = run.finished.iter().filter(|finished| finished.failure.is_some()).count();
        let repetitions = run.finished.iter().map(|finished| finished.cell.repetition).max().unwrap_or(0);
        let seconds: f64 = run.finished.iter().map(|finished| finished.seconds).sum();
        let cells = vec![
            run.title.clone().into(),
            whole(run.finished.len()),
            whole(failed),
            whole(run.missing),
            whole(repetitions as usize),
            number::whole(seconds).into(),
            load(&run.finished),
            period(&run.finished),
        ];
        Line::new(if run.study.is_empty() { "(no study)" } else { &run.study }, cells)
    };
    let columns = vec![
        Column::words("title"),
        Column::number("cells done"),
        Column::number("of these failed"),
        Column::number("not done yet"),
        Column::number("repetitions"),
        Column::number("seconds"),
        Column::words("load before"),
        Column::words("measured"),
    ];
    let caption = "What the runs hold. Figures of one repetition have no spread, and small differences between them mean nothing.";
    Table::new(caption, "study", columns, runs.iter().map(line))
}

/// When the first and the last cell were measured.
fn period(finished: &[Finished]) -> Field {
    let times = || finished.iter().map(|finished| finished.finished_unix_s);
    match (times().min(), times().max()) {
        (Some(first), Some(last)) if first > 0 => match (day(first), day(last)) {
            (first, last) if first == last => first.into(),
            (first, last) => format!("{first} to {last}").into(),
        },
        _ => recorded(""),
    }
}

/// The load averages, of one minute, that slices of the run began at.
fn load(finished: &[Finished]) -> Field {
    let loads: Vec<f64> = finished.iter().map(|finished| finished.host.load_1min).collect();
    match stats::extent(&loads) {
        Some((low, high)) if high > low => format!("{low:.2} to {high:.2}").into(),
        Some((low, _)) if finished.iter().any(|finished| finished.host.cores > 0) => format!("{low:.2}").into(),
        _ => recorded(""),
    }
}

/// The date of a time, UTC.
fn day(unix_s: u64) -> String {
    let time = i64::try_from(unix_s).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or(number::ABSENT.to_string(), |time| time.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

fn machines(hosts: &[&Host]) -> Table {
    let line = |host: &&Host| {
        let memory = if host.memory_bytes > 0 { number::bytes(host.memory_bytes as f64) } else { String::new() };
        let texts = [&memory, &host.kernel, &host.file_system, &host.mount_options, &host.governor, &host.esker_build];
        let cores = Field::from(number::whole(f64::from(host.cores)));
        let cells = std::iter::once(cores).chain(texts.map(|text| recorded(text))).collect();
        Line::new(recorded(&host.cpu).text, cells)
    };
    let words = ["kernel", "file system", "mount options", "governor", "build"].map(Column::words);
    let columns: Vec<Column> = ["cores", "memory"].map(Column::number).into_iter().chain(words).collect();
    Table::new("The machines.", "processor", columns, hosts.iter().map(line))
}

/// The versions of the engines.
fn versions(all: &[Measured<'_>]) -> Table {
    let records = || all.iter().flat_map(|measured| &measured.ran);
    let mut engines = distinct(records().map(|record| record.engine.as_str()));
    engines.sort_by_key(|engine| rank(engine));
    let line = |engine: &str| {
        let of_engine = records().filter(|record| record.engine == engine);
        let mut versions = distinct(of_engine.map(|record| record.engine_version.as_str()));
        versions.retain(|version| !version.is_empty());
        Line::new(display_name(engine), vec![versions.join(", ").into()])
    };
    let caption = "The engines, with the versions they report.";
    Table::new(caption, "engine", [Column::words("version")], engines.into_iter().map(line))
}

/// How far repetitions lie apart.
fn spread(all: &[Measured<'_>]) -> Option<Block> {
    let spreads: Vec<(f64, &Measured)> =
        all.iter().filter_map(|measured| Some((measured.spread()?, measured))).collect();
    let figures: Vec<f64> = spreads.iter().map(|(spread, _)| *spread).collect();
    let middle = stats::median(&figures)?;
    let (widest, of) = spreads.iter().max_by(|one, two| one.0.total_cmp(&two.0))?;
    let key = &of.key;
    let setting = key.setting();
    Some(Block::Text(format!(
        "Of {} measurements with two repetitions or more, the median spread, (fastest - slowest) / median, is {:.1} %; the widest, \
         {:.0} %, is that of {} in {} ({}{}{setting}).",
        spreads.len(),
        middle * 100.0,
        widest * 100.0,
        key.row,
        engine_name(&key.engine, &key.variant),
        key.experiment,
        if setting.is_empty() { "" } else { ", " },
    )))
}
