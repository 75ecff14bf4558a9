//! The study of read-modify-write: reading, changing and writing back against merging, with the
//! published figures, and what a look at every counter has shown.

use super::generic::{self};
use crate::published::DATA;
use crate::report::blocks::{Bar, Block, Chart, Field, Line, Section, Table, TableOf, Whose};
use crate::report::engine_style::display_name;
use crate::report::measured::{Key, Measured, distinct, entry, order};
use crate::stats;
use crate::text::number;

const STUDY: &str = "rmw";
const SEED: &str = "seed";
/// Experiments that do the work of the published run, with as many threads: what was published
/// stands beside all of them.
const OF_THE_SAME_WORK: [&str; 3] = [SEED, "recommended", "unscaled"];
const UPDATE: &str = "updaterandom";
const MERGE: &str = "mergerandom";
/// The variable that tells the cells of the two benchmarks apart.
const BENCHMARK: &str = "benchmark";
const BOOTSTRAP_SEED: u32 = 301;

/// The section of the study.
pub fn section(all: &[&Measured<'_>]) -> Section {
    let mut blocks = vec![Block::Text(
        "Two ways to change a counter: updaterandom reads a random key and writes it back, mergerandom hands the change to the \
         engine, which adds it up later. Every thread does as many operations as there are keys."
            .into(),
    )];
    let pairs = pairs(all);
    blocks.extend(charts(&pairs));
    if !pairs.is_empty() {
        blocks.extend([Block::Title("Merging against updating".into()), Block::Table(table(&pairs, all))]);
    }
    for experiment in distinct(all.iter().map(|measured| measured.key.experiment.clone())) {
        if pairs.iter().any(|pair| pair.key.experiment == experiment) {
            let line = format!("Every row of {experiment}, with latencies");
            blocks.push(Block::Folded(line, generic::tables(&experiment, all)));
        } else {
            blocks.extend(generic::experiment(&experiment, &experiment, all));
        }
    }
    Section::new("study-rmw", "Read-modify-write", blocks)
}

/// Both benchmarks of one engine in one setting; empty if one was not run.
struct Pair<'a> {
    key: Key,
    update: Measured<'a>,
    merge: Measured<'a>,
}

/// What both benchmarks of a setting have in common.
fn pair_key(measured: &Measured<'_>) -> Key {
    let mut key = Key { row: String::new(), ..measured.key.clone() };
    key.variables.remove(BENCHMARK);
    key
}

fn pairs<'a>(all: &[&Measured<'a>]) -> Vec<Pair<'a>> {
    let mut pairs: Vec<Pair> = Vec::new();
    for measured in all {
        let key = pair_key(measured);
        let new = || Pair { key: key.clone(), update: Measured::default(), merge: Measured::default() };
        match measured.key.row.as_str() {
            UPDATE => entry(&mut pairs, |pair| pair.key == key, new).update = (*measured).clone(),
            MERGE => entry(&mut pairs, |pair| pair.key == key, new).merge = (*measured).clone(),
            _ => {}
        }
    }
    pairs
}

/// A chart for each experiment and setting.
fn charts(pairs: &[Pair<'_>]) -> Option<Block> {
    let titles = distinct(pairs.iter().map(|pair| title(&pair.key)));
    let chart = |title: &String| {
        let mut of_chart: Vec<&Pair> = pairs.iter().filter(|pair| self::title(&pair.key) == *title).collect();
        of_chart.sort_by(|one, two| order(&one.key, &two.key));
        let experiments = of_chart.iter().map(|pair| pair.key.experiment.as_str());
        let same_work = experiments.into_iter().find(|experiment| OF_THE_SAME_WORK.contains(experiment));
        let published = same_work.map(published_bars).into_iter().flatten();
        let measured = of_chart.iter().flat_map(|pair| [&pair.update, &pair.merge]);
        let measured = measured.filter(|side| !side.key.row.is_empty());
        let bars = published.chain(measured.map(bar)).collect();
        Chart { title: title.clone(), bars, full: None }
    };
    let charts: Vec<Chart> = titles.iter().map(chart).collect();
    (!charts.is_empty()).then_some(Block::Charts(charts))
}

fn title(key: &Key) -> String {
    format!("{}: {}", key.experiment, key.setting())
}

fn bar(measured: &Measured<'_>) -> Bar {
    let name = format!("{} {}{}", measured.key.engine_name(), measured.key.row, measured.name_marks());
    measured.bar(name, "ops/sec", measured.median(|record| record.wall_s).map(duration).unwrap_or_default())
}

/// The published figure of a row in a unit. Three documents print the same.
fn published(row: &str, unit: &str) -> Option<(&'static str, f64)> {
    let record = DATA.published(STUDY, SEED).find(|record| record.row == row && record.unit == unit)?;
    Some((display_name(record.answering()), record.figure))
}

/// Beside other settings than the published ones their names say which they had.
fn published_bars(experiment: &str) -> Vec<Bar> {
    let flags = if experiment == SEED { String::new() } else { format!(" (flags of {SEED})") };
    let bar = |row: &str| {
        let (engine, rate) = published(row, "ops/sec")?;
        let seconds = published(row, "seconds").map(|(_, seconds)| duration(seconds));
        Some(Bar {
            name: format!("Published{flags}: {engine} {row}"),
            of: Whose::Published,
            length: Some(rate),
            text: format!("{} ops/sec", number::whole(rate)),
            note: format!("{}, 32 hardware threads, 50 M keys", seconds.unwrap_or_default()),
            ..Bar::default()
        })
    };
    [UPDATE, MERGE].into_iter().filter_map(bar).collect()
}

/// Updating, merging, and how many times as fast merging is.
fn table(pairs: &[Pair<'_>], all: &[&Measured<'_>]) -> Table {
    let mut sorted: Vec<&Pair> = pairs.iter().collect();
    sorted.sort_by(|one, two| one.key.experiment.cmp(&two.key.experiment).then_with(|| order(&one.key, &two.key)));
    let caption = "Microseconds of wall time per operation of all threads together, and the time of the benchmark. The speed-up is \
                   the rate of merging over that of updating.";
    let name = |pair: &&Pair| {
        let marks = [pair.update.name_marks(), pair.merge.name_marks()].into_iter().find(|marks| !marks.is_empty());
        Line::of(&pair.key.engine, pair.key.engine_name() + &marks.unwrap_or_default())
    };
    let micros = |side: &Measured| side.micros().map(number::figure);
    let time = |side: &Measured| side.median(|record| record.wall_s).map(duration);
    let speed_up = |pair: &Pair| Some(pair.merge.rate()? / pair.update.rate()?);
    let rates = |side: &Measured| side.figures(|record| record.ops_per_sec);
    let interval =
        |pair: &Pair| stats::bootstrap_ratio_interval(&rates(&pair.merge), &rates(&pair.update), BOOTSTRAP_SEED);
    let found = |pair: &Pair| {
        let (found, num) = pair.update.ran.iter().find_map(|record| Some((record.found?, record.num)))?;
        Some(format!("{} of {}", number::whole(found as f64), number::whole(num as f64)))
    };
    let mut table = TableOf::new(caption, "engine", &sorted, name)
        .words("setting", |pair| title(&pair.key))
        .number("update \u{b5}s/op (wall)", |pair| micros(&pair.update))
        .number("update time", |pair| time(&pair.update))
        .number("merge \u{b5}s/op (wall)", |pair| micros(&pair.merge))
        .number("merge time", |pair| time(&pair.merge))
        .number("speed-up", |pair| speed_up(pair).map(number::ratio))
        .number("95 % interval", |pair| interval(pair).map(number::interval))
        .number("found", |pair| found(pair))
        .words("every counter verified", |pair| verified(&pair.key, all))
        .done();
    table.lines.splice(0..0, published_line());
    table
}

/// What the rows that look at everything afterwards say.
fn verified(key: &Key, all: &[&Measured<'_>]) -> String {
    let of_pair = |measured: &&&Measured| measured.key.row.starts_with("verify") && pair_key(measured) == *key;
    let said = all.iter().filter(of_pair).map(|measured| format!("{}: {}", measured.key.row, measured.messages()));
    let said: Vec<String> = said.collect();
    if said.is_empty() { "not verified".into() } else { said.join("; ") }
}

fn published_line() -> Option<Line> {
    let (engine, update) = published(UPDATE, "wall micros/op")?;
    let (_, merge) = published(MERGE, "wall micros/op")?;
    let time = |row: &str| Field::from(published(row, "seconds").map(|(_, seconds)| duration(seconds)));
    let speed_up = published(MERGE, "ops/sec").zip(published(UPDATE, "ops/sec")).map(|((_, one), (_, two))| one / two);
    let cells = vec![
        "10 threads, 50,000,000 keys, on 32 hardware threads".into(),
        number::figure(update).into(),
        time(UPDATE),
        number::figure(merge).into(),
        time(MERGE),
        speed_up.map(number::ratio).into(),
        Field::absent(),
        published(UPDATE, "found").map(|(_, found)| number::whole(found)).into(),
        Field::absent(),
    ];
    Some(Line::new(format!("Published: {engine}"), cells))
}

/// `248 min 46 s`.
fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => number::ABSENT.to_string(),
        s if s < 100.0 => format!("{} s", number::figure(s)),
        s => format!("{} min {:.0} s", (s / 60.0).floor(), (s % 60.0).floor()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::load::cell_of_records;
    use super::super::super::measured::{broken_rules, measure};
    use super::*;
    use crate::record::Record;
    use crate::sweep::grid::StudyRun;

    /// The names of the bars of an experiment's only chart.
    fn bars(experiment: &str) -> Vec<String> {
        let finished = [UPDATE, MERGE].map(|row| {
            let record = Record { row: row.into(), ops: 10, ops_per_sec: 5.0, ..Record::default() };
            let mut finished = cell_of_records(experiment, "esker", vec![record]);
            finished.cell.variables = [("threads", "10"), (BENCHMARK, row)].map(|(n, v)| (n.into(), v.into())).into();
            finished
        });
        let runs = [StudyRun { study: STUDY.into(), finished: finished.into(), ..StudyRun::default() }];
        let all = measure(&runs, &broken_rules(&runs));
        let section = section(&all.iter().collect::<Vec<_>>());
        let charts = section.blocks.into_iter().find_map(|block| match block {
            Block::Charts(charts) => Some(charts),
            _ => None,
        });
        charts.unwrap().into_iter().flat_map(|chart| chart.bars).map(|bar| bar.name).collect()
    }

    #[test]
    fn what_was_published_stands_beside_todays_settings() {
        let ours = ["Esker updaterandom", "Esker mergerandom"];
        assert_eq!(bars(SEED)[..2], ["Published: RocksDB updaterandom", "Published: RocksDB mergerandom"]);
        for experiment in ["recommended", "unscaled"] {
            let names = bars(experiment);
            let published =
                ["updaterandom", "mergerandom"].map(|row| format!("Published (flags of seed): RocksDB {row}"));
            assert_eq!((&names[..2], &names[2..]), (&published[..], &ours.map(String::from)[..]), "{experiment}");
        }
        // Other work, other figures.
        assert_eq!(bars("threads"), ours);
    }
}
