//! Any study: for each experiment a chart per row over the variables, and a table with everything
//! that was taken.

use crate::record::Record;
use crate::report::blocks::{Bar, Block, Chart, Field, Line, Look, Section, Table, TableOf, Whose};
use crate::report::measured::{Key, Measured, distinct, order, readable, readable_value, setting};
use crate::stats;
use crate::text::number;
use esker_engines::Tree;
use std::collections::BTreeSet;

/// A chart with more bars than this tells nothing that the table does not tell better.
const MOST_BARS: usize = 48;

/// The section of a study that has no form of its own.
pub fn section(study: &str, title: &str, all: &[&Measured<'_>]) -> Section {
    let mut blocks = Vec::new();
    for experiment in distinct(all.iter().map(|measured| measured.key.experiment.clone())) {
        blocks.extend(self::experiment(&experiment, &experiment, all));
    }
    let id: String = study.chars().filter(char::is_ascii_alphanumeric).collect();
    Section::new(format!("study-{id}"), title, blocks)
}

/// One experiment under a heading of its own; nothing if nothing was measured.
pub fn experiment(name: &str, heading: &str, all: &[&Measured<'_>]) -> Vec<Block> {
    let (rows, chosen) = choose(name, all);
    let mut blocks = Vec::new();
    if !heading.is_empty() && !chosen.is_empty() {
        blocks.push(Block::Title(capitalized(heading)));
    }
    let charts: Vec<Chart> = rows.iter().flat_map(|row| charts(row, &chosen)).collect();
    if !charts.is_empty() {
        blocks.push(Block::Charts(charts));
    }
    blocks.extend(tables(name, all));
    blocks
}

/// The table of an experiment; nothing if nothing was measured.
pub fn tables(name: &str, all: &[&Measured<'_>]) -> Vec<Block> {
    let (_, chosen) = choose(name, all);
    if chosen.is_empty() { Vec::new() } else { vec![Block::Table(table(&chosen))] }
}

/// The rows of an experiment in the order in which they were made, and what was measured: row by
/// row, in the order of the variables.
fn choose<'a, 'b>(name: &str, all: &[&'a Measured<'b>]) -> (Vec<String>, Vec<&'a Measured<'b>>) {
    let mut chosen: Vec<&Measured> = all.iter().copied().filter(|measured| measured.key.experiment == name).collect();
    let rows = distinct(chosen.iter().map(|measured| measured.key.row.clone()));
    let row_of = |measured: &Measured| rows.iter().position(|row| *row == measured.key.row);
    chosen.sort_by(|one, two| row_of(one).cmp(&row_of(two)).then_with(|| order(&one.key, &two.key)));
    (rows, chosen)
}

/// The variable of benchmarks whose operations start at fixed times: their rate is what was
/// requested, and what counts is how late they end.
const PACED: &str = "rate";
/// Rows that look at what others have done, whose speed is no result.
const CHECKS: &str = "verify";

/// The rates of a row, or the tail of its latencies where the rate is given: over the engines.
/// Where variables vary too, a chart for each of their settings; if there are more settings than
/// engines, or one that a single engine has, a chart for each engine over the settings instead, all
/// to the same scale. None if there is nothing to compare.
fn charts(row: &str, chosen: &[&Measured<'_>]) -> Vec<Chart> {
    let of_row = chosen.iter().copied().filter(|measured| measured.key.row == row && !row.starts_with(CHECKS));
    let timed: Vec<&Measured> = of_row.filter(|measured| measured.rate().is_some()).collect();
    if timed.len() < 2 || timed.len() > MOST_BARS {
        return Vec::new();
    }
    let paced = timed.iter().all(|measured| measured.key.variables.contains_key(PACED));
    let title = if paced { format!("{row}: 99th percentile from the intended start") } else { row.to_string() };
    let engines = distinct(timed.iter().map(|measured| measured.key.engine_name()));
    let varying = varying(&timed);
    let setting_of = |key: &Key| setting(key.variables.iter().filter(|(name, _)| varying.contains(*name)));
    let chart = |title: String, is_of: &dyn Fn(&Key) -> bool, name: &dyn Fn(&Key) -> String| {
        let own = timed.iter().filter(|measured| is_of(&measured.key));
        Chart { title, bars: own.map(|measured| bar(measured, paced, name(&measured.key))).collect(), full: None }
    };
    let of_engine = |engine: &String| {
        let name = |key: &Key| Some(setting_of(key)).filter(|name| !name.is_empty()).unwrap_or(engine.clone());
        chart(format!("{title}, {engine}"), &|key| key.engine_name() == *engine, &name)
    };
    if let [only] = engines.as_slice() {
        return vec![of_engine(only)];
    }
    if varying.is_empty() {
        return vec![chart(title, &|_| true, &Key::engine_name)];
    }
    let settings = distinct(timed.iter().map(|measured| setting_of(&measured.key)));
    let with = |setting: &String| timed.iter().filter(|measured| setting_of(&measured.key) == *setting).count();
    if settings.len() <= engines.len() && settings.iter().all(|setting| with(setting) > 1) {
        let of_setting = |setting: &String| {
            chart(format!("{title}, {setting}"), &|key| setting_of(key) == *setting, &Key::engine_name)
        };
        return settings.iter().map(of_setting).collect();
    }
    let mut charts: Vec<Chart> = engines.iter().map(of_engine).collect();
    let full = charts.iter().map(Chart::scale).fold(0.0, f64::max);
    charts.iter_mut().for_each(|chart| chart.full = Some(full));
    charts
}

/// The variables that have several values.
fn varying(timed: &[&Measured<'_>]) -> BTreeSet<String> {
    let names = timed.iter().flat_map(|measured| measured.key.variables.keys());
    let several = |name: &&String| {
        let mut values = timed.iter().map(|measured| measured.key.variable(name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    names.filter(several).cloned().collect()
}

fn bar(measured: &Measured<'_>, paced: bool, name: String) -> Bar {
    let (name, of) = (name + &measured.name_marks(), Whose::engine(&measured.key.engine));
    if paced {
        let tail = measured.median(|record| record.latency.p99_us);
        let most = longest(measured).map(|most| format!("max {}", number::duration(most)));
        let text = tail.map_or(number::ABSENT.to_string(), number::duration);
        return Bar { name, of, length: tail, text, note: most.unwrap_or_default(), ..Bar::default() };
    }
    let text = format!("{} ops/sec", measured.rate().map_or(number::ABSENT.to_string(), number::figure));
    Bar { name, of, length: measured.rate(), range: measured.rates(), text, ..Bar::default() }
}

type Figure = (&'static str, fn(&Measured<'_>) -> Option<String>);

const LEVEL0: &str = "L0 files before / left";
const RUNS: &str = "runs before / left";
const DISK_OVER_DATA: &str = "disk / data";

/// What a reader must know of some figures, told below tables that have them.
const EXPLAINED: [(&str, &str); 3] = [
    (
        LEVEL0,
        "L0 files are the tables of level 0, when the row began and when it ended: those that are left are still to be compacted.",
    ),
    (RUNS, "Runs are the most tables that a lookup may have to search, when the row began and when it ended."),
    (
        DISK_OVER_DATA,
        "Disk / data is the database directory after a load, its log included, and settled where the study waited for that, over the keys and values of \
         the distinct entries: what compression gains, and what stands there more than once loses.",
    ),
];

/// What tables show of a measurement; a column that nothing fills is left out.
const FIGURES: [Figure; 22] = [
    ("\u{b5}s/op (wall)", |m| m.micros().map(number::figure)),
    ("ops/sec", |m| m.rate().map(number::figure)),
    ("spread", |m| m.spread().map(|_| m.spread_text())),
    ("operations", |m| m.median(|record| record.ops as f64).map(number::whole)),
    ("seconds", |m| m.median(|record| record.wall_s).map(number::figure)),
    ("asked ops/sec", |m| m.median(|record| record.rate_wanted_per_sec.unwrap_or(0.0)).map(number::whole)),
    ("p50 \u{b5}s", |m| m.median(|record| record.latency.p50_us).map(number::latency)),
    ("p99 \u{b5}s", |m| m.median(|record| record.latency.p99_us).map(number::latency)),
    ("p99.9 \u{b5}s", |m| m.median(|record| record.latency.p999_us).map(number::latency)),
    ("p99.99 \u{b5}s", |m| m.median(|record| record.latency.p9999_us).map(number::latency)),
    ("max \u{b5}s", |m| longest(m).map(number::latency)),
    ("p99 \u{b5}s of service", |m| m.median(|record| record.service.map_or(0.0, |s| s.p99_us)).map(number::latency)),
    ("max \u{b5}s of service", |m| m.median(|record| record.service.map_or(0.0, |s| s.max_us)).map(number::latency)),
    ("CPU \u{b5}s/op", |m| m.median(cpu_micros).map(number::figure)),
    ("comparisons/op", |m| m.median(comparisons).map(number::figure)),
    ("files probed/op", |m| m.median(files_probed).map(number::figure)),
    (LEVEL0, |m| laid_out(m, |tree| tree.level0_files)),
    (RUNS, |m| laid_out(m, |tree| Some(tree.runs))),
    ("disk", |m| m.median(|record| record.disk_bytes as f64).map(number::bytes)),
    (DISK_OVER_DATA, |m| m.median(disk_over_data).map(number::ratio)),
    ("sample verified", verified),
    ("peak memory", |m| m.median(|record| record.rss_peak_bytes as f64).map(number::bytes)),
];

/// Entries that were looked up again after the run, in the repetition that has the most wrong.
fn verified(measured: &Measured<'_>) -> Option<String> {
    let looks = measured.ran.iter().filter_map(|record| record.verification.as_ref());
    let worst = looks.max_by_key(|look| look.mismatches)?;
    let right = worst.sampled.saturating_sub(worst.mismatches);
    Some(format!("{} of {}", number::whole(right as f64), number::whole(worst.sampled as f64)))
}

/// How tables lay before and after, of engines that tell; nothing left to compact is a figure too.
fn laid_out(measured: &Measured<'_>, of: impl Fn(&Tree) -> Option<u64>) -> Option<String> {
    let median = |tree: fn(&Record) -> Option<&Tree>| {
        let told = measured.ran.iter().filter_map(|record| tree(record).and_then(&of));
        stats::median(told.map(|count| count as f64)).map(number::whole)
    };
    let left = median(|record| record.tree.as_ref())?;
    let before = median(|record| record.tree_before.as_ref()).unwrap_or(number::ABSENT.to_string());
    Some(format!("{before} / {left}"))
}

/// 0 for what is no load.
fn disk_over_data(record: &Record) -> f64 {
    let Some(entries) = entries_loaded(record) else { return 0.0 };
    let entries = record.verification.as_ref().map_or(entries, |look| look.entries as f64);
    let entry_bytes = record.bytes as f64 / record.ops.max(1) as f64;
    record.settled_disk_bytes.unwrap_or(record.disk_bytes) as f64 / (entries * entry_bytes)
}

/// How many distinct entries a load leaves in an empty database; where keys are drawn, how many it
/// leaves on average.
fn entries_loaded(record: &Record) -> Option<f64> {
    let (ops, num) = (record.ops as f64, record.num as f64);
    let drawn_of = |keys: f64| {
        let keys = keys.floor().max(1.0);
        Some(keys * (1.0 - (ops * (-1.0 / keys).ln_1p()).exp()))
    };
    match record.benchmark.as_str() {
        "filluniquerandom" | "fillshuffled" => Some(ops),
        // Every thread puts the same keys.
        "fillseq" | "fillseqsync" | "fillbatch" | "fillseqbatch" | "fillseq100K" => {
            Some(ops / f64::from(record.threads.max(1)))
        }
        "fillrandom" | "fillsync" | "fillrandbatch" | "fill100K" => drawn_of(num),
        "fillrandsync" => drawn_of(num / 100.0),
        "fillrand100K" => drawn_of(num / 1000.0),
        _ => None,
    }
}

fn longest(measured: &Measured<'_>) -> Option<f64> {
    measured.figures(|record| record.latency.max_us).into_iter().reduce(f64::max)
}

/// Of all threads, those of the engine as well.
fn cpu_micros(record: &Record) -> f64 {
    (record.cpu_user_s + record.cpu_sys_s) * 1e6 / record.ops.max(1) as f64
}

fn files_probed(record: &Record) -> f64 {
    record.counters.files_probed.unwrap_or(0) as f64 / record.ops.max(1) as f64
}

fn comparisons(record: &Record) -> f64 {
    record.counters.comparisons.unwrap_or(0) as f64 / record.ops.max(1) as f64
}

/// Everything that was taken, rows in their order, and within each by variables and engines.
fn table(chosen: &[&Measured<'_>]) -> Table {
    let variables: BTreeSet<&String> = chosen.iter().flat_map(|measured| measured.key.variables.keys()).collect();
    let shown: Vec<&Figure> =
        FIGURES.iter().filter(|(_, figure)| chosen.iter().any(|measured| figure(measured).is_some())).collect();
    let noted = chosen.iter().any(|measured| !measured.messages().is_empty());
    let has = |name: &str| shown.iter().any(|(figure, _)| *figure == name);
    let repeated = chosen.iter().any(|measured| measured.ran.len() > 1);
    let caption = if repeated {
        "Medians over the repetitions; the spread is (fastest - slowest) / median of the rates."
    } else {
        "Figures of one repetition."
    };
    let explained = EXPLAINED.iter().filter(|(name, _)| has(name)).map(|(_, explanation)| *explanation);
    let caption = std::iter::once(caption).chain(explained).collect::<Vec<_>>().join(" ");
    let name = |measured: &&Measured| Line::of(&measured.key.engine, &measured.key.row);
    let mut table = TableOf::new(caption, "row", chosen, name)
        .words("engine", |measured| measured.key.engine_name() + &measured.name_marks());
    for variable in variables {
        table = table.number(readable(variable), |measured| readable_value(measured.key.variable(variable)));
    }
    for (figure, text) in shown {
        table = table.number(*figure, |measured| text(measured));
    }
    if noted {
        table = table.words("says", |measured| message(measured));
    }
    table.done()
}

/// What a measurement says, marked where it says that something did not hold.
fn message(measured: &Measured<'_>) -> Field {
    let text = measured.messages();
    let look = match text.as_str() {
        text if text.starts_with("NOT HELD") || text.starts_with("FAILED") => Look::Bad,
        text if text.starts_with("held") => Look::Good,
        _ => Look::Plain,
    };
    Field::looking(look, text)
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::load::cell_of_records;
    use super::super::super::measured::{broken_rules, measure};
    use super::*;
    use crate::record::Verification;
    use crate::sweep::grid::StudyRun;
    use crate::workload::BENCHMARKS;

    fn record(benchmark: &str) -> Record {
        Record { benchmark: benchmark.into(), ops: 1000, num: 1000, ops_per_sec: 5.0, ..Record::default() }
    }

    /// The table of these repetitions of rows of one engine.
    fn table_of(records: &[Record]) -> Table {
        let finished = (1..).zip(records).map(|(repetition, record)| {
            let mut finished = cell_of_records("", "esker", vec![record.clone()]);
            finished.cell.repetition = repetition;
            finished
        });
        let runs = [StudyRun { finished: finished.collect(), ..StudyRun::default() }];
        let all = measure(&runs, &broken_rules(&runs));
        let all: Vec<&Measured> = all.iter().collect();
        match tables("", &all).pop() {
            Some(Block::Table(table)) => table,
            other => panic!("{other:?}"),
        }
    }

    /// The texts of a column; none if there is no such column.
    fn column(table: &Table, name: &str) -> Option<Vec<String>> {
        let place = table.columns.iter().position(|column| column.name == name)?;
        Some(table.lines.iter().map(|line| line.cells[place].text.clone()).collect())
    }

    #[test]
    fn what_is_left_to_compact_is_told() {
        let tree = |level0: u64, runs: u64| Some(Tree { files: 30, level0_files: Some(level0), runs });
        let load = |after| Record { tree_before: tree(0, 0), tree: after, ..record("fillrandom") };
        // Nothing left is told as well, and other than nothing known.
        let settled = Record { tree: tree(0, 1), ..record("compact") };
        let records = [load(tree(2, 4)), load(tree(9, 12)), load(tree(3, 5)), settled, record("readseq")];
        let table = table_of(&records);
        let absent = number::ABSENT;
        let figures = |texts: [&str; 2]| Some([texts[0], texts[1], absent].map(String::from).to_vec());
        assert_eq!(column(&table, LEVEL0), figures(["0 / 3", &format!("{absent} / 0")]));
        assert_eq!(column(&table, RUNS), figures(["0 / 5", &format!("{absent} / 1")]));
        assert!(table.caption.contains("tables of level 0") && !table.caption.contains("Disk / data"));
        // An engine without levels has runs all the same.
        let flat = Record { tree: Some(Tree { files: 3, level0_files: None, runs: 3 }), ..record("fillseq") };
        let table = table_of(&[flat]);
        assert_eq!((column(&table, LEVEL0), column(&table, RUNS)), (None, Some(vec![format!("{absent} / 3")])));
    }

    #[test]
    fn loads_tell_their_disk_over_their_data() {
        let load = |benchmark: &str| Record { bytes: 100_000, disk_bytes: 50_000, ..record(benchmark) };
        let ratio = |record: Record| column(&table_of(&[record]), DISK_OVER_DATA).map(|texts| texts[0].clone());
        assert_eq!(ratio(load("fillseq")).as_deref(), Some("0.50\u{d7}"));
        assert!(table_of(&[load("fillseq")]).caption.contains("Disk / data"));
        assert_eq!(ratio(Record { threads: 2, ..load("fillseq") }).as_deref(), Some("1.00\u{d7}"));
        assert_eq!(ratio(Record { threads: 2, ..load("fillshuffled") }).as_deref(), Some("0.50\u{d7}"));
        assert_eq!(
            ratio(Record { settled_disk_bytes: Some(25_000), ..load("fillseq") }).as_deref(),
            Some("0.25\u{d7}")
        );
        // 632 of 1000 keys come up.
        assert_eq!(ratio(load("fillrandom")).as_deref(), Some("0.79\u{d7}"));
        let look = Verification { entries: 500, ..Verification::default() };
        assert_eq!(ratio(Record { verification: Some(look), ..load("fillrandom") }).as_deref(), Some("1.00\u{d7}"));
        // A benchmark that adds to a database, or only reads it, has no ratio.
        for benchmark in ["overwrite", "readrandom", "queue"] {
            assert_eq!(ratio(load(benchmark)), None, "{benchmark}");
        }
        assert_eq!(ratio(Record { ops: 0, bytes: 0, ..load("fillseq") }), None);
    }

    #[test]
    fn every_load_is_known() {
        for benchmark in BENCHMARKS.iter().filter(|benchmark| benchmark.fresh && benchmark.name.starts_with("fill")) {
            assert!(entries_loaded(&record(benchmark.name)).is_some(), "{}", benchmark.name);
        }
        let of = |benchmark: &str, num: u64, ops: u64| {
            entries_loaded(&Record { num, ops, ..record(benchmark) }).unwrap().round()
        };
        assert_eq!(of("fillrandom", 1_000_000, 1_000_000), 632_121.0);
        assert_eq!(of("fillrand100K", 1_000_000, 1000), 632.0);
        assert_eq!(of("fillrandsync", 100_000, 1000), 632.0);
        assert_eq!(of("fillrandom", 1, 7), 1.0);
    }
}
