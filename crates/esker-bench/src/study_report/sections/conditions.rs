//! Where, when and how the runs were made, what is missing in them, and how far their repetitions lie apart.

use super::super::blocks::{Block, Column, Field, Line, Section, Table};
use super::super::measured::{Measured, engine_name};
use crate::record::Host;
use crate::report::engine_style::{display_name, rank};
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
    blocks.extend([Block::Table(runs_table(runs)), Block::Table(machines(&hosts)), Block::Table(versions(all))]);
    blocks.extend(spread(all));
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
    Section { id: "conditions".into(), title: "Conditions".into(), blocks }
}

fn same_machine(one: &Host, two: &Host) -> bool {
    let key = |host: &Host| {
        (
            host.cpu.clone(),
            host.cores,
            host.memory_bytes,
            host.kernel.clone(),
            host.file_system.clone(),
            host.esker_build.clone(),
        )
    };
    key(one) == key(two)
}

fn failure(finished: &Finished) -> Option<String> {
    finished.failure.as_ref().map(|reason| format!("{}: {reason}", finished.cell.name()))
}

/// What each run holds.
fn runs_table(runs: &[StudyRun]) -> Table {
    let line = |run: &StudyRun| {
        let whole = |count: usize| Field::from(number::whole(count as f64));
        let dates = |finished: &Finished| Some(day(finished.finished_unix_s)).filter(|_| finished.finished_unix_s > 0);
        let first = run.finished.iter().min_by_key(|finished| finished.finished_unix_s).and_then(dates);
        let last = run.finished.iter().max_by_key(|finished| finished.finished_unix_s).and_then(dates);
        let period = match (first, last) {
            (Some(first), Some(last)) if first == last => first,
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => "not recorded".into(),
        };
        let repetitions = run.finished.iter().map(|finished| finished.cell.repetition).max().unwrap_or(0);
        Line {
            head: if run.study.is_empty() { "(no study)".into() } else { run.study.clone() },
            ours: false,
            cells: vec![
                run.title.clone().into(),
                whole(run.finished.len()),
                whole(run.finished.iter().filter(|finished| finished.failure.is_some()).count()),
                whole(run.missing),
                whole(repetitions as usize),
                number::whole(run.finished.iter().map(|finished| finished.seconds).sum()).into(),
                load(&run.finished),
                period.into(),
            ],
        }
    };
    let numbers = ["cells done", "of these failed", "not done yet", "repetitions", "seconds"];
    let mut columns: Vec<Column> = numbers.into_iter().map(Column::number).collect();
    columns.push(Column::words("load before"));
    columns.insert(0, Column::words("title"));
    columns.push(Column::words("measured"));
    Table {
        caption: "What the runs hold. Figures of one repetition have no spread, and small differences between them mean nothing.".into(),
        head: "study".into(),
        columns,
        lines: runs.iter().map(line).collect(),
    }
}

/// The load averages, of one minute, that slices of the run began at.
fn load(finished: &[Finished]) -> Field {
    let loads: Vec<f64> = finished.iter().map(|finished| finished.host.load_1min).collect();
    match stats::extent(&loads) {
        Some((low, high)) if high > low => format!("{low:.2} to {high:.2}").into(),
        Some((low, _)) if finished.iter().any(|finished| finished.host.cores > 0) => format!("{low:.2}").into(),
        _ => "not recorded".into(),
    }
}

/// The date of a time, UTC.
fn day(unix_s: u64) -> String {
    let time = i64::try_from(unix_s).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or(number::ABSENT.to_string(), |time| time.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

fn machines(hosts: &[&Host]) -> Table {
    let named = |value: String| if value.is_empty() { Field::from("not recorded") } else { Field::from(value) };
    let line = |host: &&Host| Line {
        head: if host.cpu.is_empty() { "not recorded".into() } else { host.cpu.clone() },
        ours: false,
        cells: vec![
            number::whole(f64::from(host.cores)).into(),
            named(if host.memory_bytes > 0 { number::bytes(host.memory_bytes as f64) } else { String::new() }),
            named(host.kernel.clone()),
            named(host.file_system.clone()),
            named(host.mount_options.clone()),
            named(host.governor.clone()),
            named(host.esker_build.clone()),
        ],
    };
    let columns = vec![
        Column::number("cores"),
        Column::number("memory"),
        Column::words("kernel"),
        Column::words("file system"),
        Column::words("mount options"),
        Column::words("governor"),
        Column::words("build"),
    ];
    Table {
        caption: "The machines.".into(),
        head: "processor".into(),
        columns,
        lines: hosts.iter().map(line).collect(),
    }
}

/// The versions of the engines.
fn versions(all: &[Measured<'_>]) -> Table {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for record in all.iter().flat_map(|measured| &measured.ran) {
        let position = found.iter().position(|(engine, _)| *engine == record.engine).unwrap_or_else(|| {
            found.push((&record.engine, Vec::new()));
            found.len() - 1
        });
        if !record.engine_version.is_empty() && !found[position].1.contains(&record.engine_version.as_str()) {
            found[position].1.push(&record.engine_version);
        }
    }
    found.sort_by_key(|(engine, _)| rank(engine));
    let line = |(engine, versions): &(&str, Vec<&str>)| Line {
        head: display_name(engine).to_string(),
        ours: false,
        cells: vec![versions.join(", ").into()],
    };
    Table {
        caption: "The engines, with the versions they report.".into(),
        head: "engine".into(),
        columns: vec![Column::words("version")],
        lines: found.iter().map(line).collect(),
    }
}

/// How far repetitions lie apart.
fn spread(all: &[Measured<'_>]) -> Option<Block> {
    let spreads: Vec<(f64, &Measured)> =
        all.iter().filter_map(|measured| Some((measured.spread()?, measured))).collect();
    let figures: Vec<f64> = spreads.iter().map(|(spread, _)| *spread).collect();
    let middle = stats::median(&figures)?;
    let (widest, of) = spreads.iter().max_by(|one, two| one.0.total_cmp(&two.0))?;
    let key = &of.key;
    Some(Block::Text(format!(
        "Of {} measurements with two repetitions or more, the median spread, (fastest - slowest) / median, is {:.1} %; the widest, \
         {:.0} %, is that of {} in {} ({}).",
        spreads.len(),
        middle * 100.0,
        widest * 100.0,
        key.row,
        engine_name(&key.engine, &key.variant),
        if key.setting().is_empty() {
            key.experiment.clone()
        } else {
            format!("{}, {}", key.experiment, key.setting())
        },
    )))
}
