//! Where, when and how the runs were made, what is missing in them, and how far their repetitions
//! lie apart.

use crate::record::Host;
use crate::report::blocks::{Block, Field, Line, Section, Table, TableOf};
use crate::report::engine_style::{display_name, rank};
use crate::report::measured::{Measured, distinct, engine_name};
use crate::stats;
use crate::sweep::grid::{Finished, StudyRun};
use crate::text::number;

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
    let caption = "What the runs hold. Figures of one repetition have no spread, and small differences between them mean nothing.";
    let name = |run: &StudyRun| Line::head(if run.study.is_empty() { "(no study)" } else { &run.study });
    let failed = |run: &StudyRun| run.finished.iter().filter(|finished| finished.failure.is_some()).count();
    let repetitions = |run: &StudyRun| run.finished.iter().map(|finished| finished.cell.repetition).max().unwrap_or(0);
    let seconds = |run: &StudyRun| run.finished.iter().map(|finished| finished.seconds).sum();
    TableOf::new(caption, "study", runs, name)
        .words("title", |run| run.title.clone())
        .number("cells done", |run| number::whole(run.finished.len() as f64))
        .number("of these failed", |run| number::whole(failed(run) as f64))
        .number("not done yet", |run| number::whole(run.missing as f64))
        .number("repetitions", |run| number::whole(f64::from(repetitions(run))))
        .number("seconds", |run| number::whole(seconds(run)))
        .words("load before", |run| load(&run.finished))
        .words("measured", |run| period(&run.finished))
        .done()
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
    match stats::extent(finished.iter().map(|finished| finished.host.load_1min)) {
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
    let memory = |host: &Host| Some(host.memory_bytes as f64).filter(|bytes| *bytes > 0.0).map(number::bytes);
    TableOf::new("The machines.", "processor", hosts, |host| Line::head(recorded(&host.cpu).text))
        .number("cores", |host| number::whole(f64::from(host.cores)))
        .number("memory", |host| recorded(&memory(host).unwrap_or_default()))
        .words("kernel", |host| recorded(&host.kernel))
        .words("file system", |host| recorded(&host.file_system))
        .words("mount options", |host| recorded(&host.mount_options))
        .words("governor", |host| recorded(&host.governor))
        .words("build", |host| recorded(&host.esker_build))
        .done()
}

/// The versions of the engines.
fn versions(all: &[Measured<'_>]) -> Table {
    let records = || all.iter().flat_map(|measured| &measured.ran);
    let mut engines = distinct(records().map(|record| record.engine.as_str()));
    engines.sort_by_key(|engine| rank(engine));
    let version = |engine: &&str| {
        let of_engine = records().filter(|record| record.engine == *engine && !record.engine_version.is_empty());
        distinct(of_engine.map(|record| record.engine_version.as_str())).join(", ")
    };
    let caption = "The engines, with the versions they report.";
    TableOf::new(caption, "engine", &engines, |engine| Line::head(display_name(engine)))
        .words("version", version)
        .done()
}

/// How far repetitions lie apart.
fn spread(all: &[Measured<'_>]) -> Option<Block> {
    let spreads: Vec<(f64, &Measured)> =
        all.iter().filter_map(|measured| Some((measured.spread()?, measured))).collect();
    let middle = stats::median(spreads.iter().map(|(spread, _)| *spread))?;
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
