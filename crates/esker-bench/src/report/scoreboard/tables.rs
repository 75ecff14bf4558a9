//! The scoreboard's tables: times and ratios, latencies, writers beside readers, disk and memory.
//! And its lines as CSV.

use super::summary::{self, Line, Means};
use crate::pace::kept_up;
use crate::report::blocks::{Block, Field, Line as TableLine, Table, TableOf};
use crate::report::engine_style::OURS;
use crate::report::groups::{Group, Groups, Peer, REFERENCE_PEER, Ratio};
use crate::report::measured::{Measured, distinct};
use crate::report::render::csv::{self, Columns};
use crate::report::render::text;
use crate::text::number::short;

/// All tables as text, with what their marks mean.
pub fn text(groups: &Groups, lines: &[Line], means: &[Means]) -> String {
    text::blocks(&blocks(groups, lines, means))
}

fn blocks(groups: &Groups, lines: &[Line], means: &[Means]) -> Vec<Block> {
    let mut blocks = vec![Block::Table(times(groups, means))];
    blocks.extend(groups.notes(summary::label).into_iter().map(Block::Quiet));
    let engines: Vec<&str> = means.iter().map(|mean| mean.engine.as_str()).collect();
    let tables = [
        by_row("latency: p99 / p99.9 / max us", lines, &engines, latency),
        by_row("writer beside the readers, per second", lines, &engines, writer),
        by_row("memory: peak RSS / without mapped files, MiB", lines, &engines, memory),
        by_row("disk of loads: settled / peak MiB", lines, &engines, disk),
        totals(lines, &engines),
    ];
    blocks.extend(tables.into_iter().flatten().map(Block::Table));
    blocks
}

/// What stands where there is no figure.
const ABSENT: &str = "-";

/// Wall microseconds per operation of every engine, spread, and Esker's ratios.
fn times(groups: &Groups, means: &[Means]) -> Table {
    const RATIOS: [(&str, Peer); 2] = [("vs best peer", Peer::Best), ("vs rocksdb", Peer::Named(REFERENCE_PEER))];
    let median = if groups.repetitions > 1 {
        "Median wall microseconds per operation, with the spread (slowest - fastest) / median of the repetitions."
    } else {
        "Wall microseconds per operation, of one repetition."
    };
    let caption = format!("{median}\nRatios are Esker's: above 1, Esker is faster.");
    let mut table = TableOf::new(caption, "row", &groups.groups, |group| TableLine::head(summary::label(group)));
    for engine in &groups.engines {
        table = table.number(*engine, |group| group.cell(engine).map_or(ABSENT.into(), |cell| time(group, cell)));
    }
    for (name, to) in RATIOS {
        table = table.number(name, |group| match (group.ratio(OURS, to), to) {
            (Some(Ratio { value, peer, mark }), Peer::Best) => format!("{value:.2}x{mark} ({peer})"),
            (Some(Ratio { value, mark, .. }), Peer::Named(_)) => format!("{value:.2}x{mark}"),
            (None, _) => ABSENT.into(),
        });
    }
    let mean = |(_, to)| groups.mean_ratio(OURS, to).map_or(ABSENT.into(), |mean| format!("{:.2}x", mean.value));
    let micros = means.iter().map(|mean| short(mean.micros_per_op));
    let foot = TableLine::new("geometric mean", micros.chain(RATIOS.map(mean)).map(Field::from).collect());
    Table { foot: vec![foot], ..table.done() }
}

fn time(group: &Group, cell: &Measured) -> String {
    let spread = cell.micros_spread().map_or(String::new(), |spread| format!(" ~{:.0}%", spread * 100.0));
    let micros = cell.micros().map_or(ABSENT.into(), short);
    format!("{micros}{}{spread}", group.marks(cell))
}

/// One line for each row that any engine has a cell in; no table without one.
fn by_row(title: &str, lines: &[Line], engines: &[&str], cell: fn(&Line) -> Option<String>) -> Option<Table> {
    let find = |row: &str, engine: &str| cell(lines.iter().find(|line| line.row == row && line.engine == engine)?);
    let mut rows = distinct(lines.iter().map(|line| line.row.as_str()));
    rows.retain(|row| engines.iter().any(|engine| find(row, engine).is_some()));
    let mut table = TableOf::new("", title, &rows, |row| TableLine::head(*row));
    for engine in engines {
        table = table.number(*engine, |row| find(row, engine).unwrap_or(ABSENT.into()));
    }
    (!rows.is_empty()).then(|| table.done())
}

fn latency(line: &Line) -> Option<String> {
    (line.max_us > 0.0).then(|| [line.p99_us, line.p999_us, line.max_us].map(short).join(" / "))
}

/// The rate of the writer, marked where it fell behind.
fn writer(line: &Line) -> Option<String> {
    let rate = line.writer_ops_per_sec?;
    let behind = line.writer_wanted_per_sec.is_some_and(|wanted| !kept_up(rate, wanted));
    Some(format!("{rate:.0}{}", if behind { " (behind)" } else { "" }))
}

fn disk(line: &Line) -> Option<String> {
    let settled = mebibytes(line.settled_disk_bytes?);
    Some(format!("{settled} / {}", mebibytes(line.peak_disk_bytes as f64)))
}

fn memory(line: &Line) -> Option<String> {
    let peaks = [line.rss_peak_bytes, line.rss_anonymous_peak_bytes];
    (line.rss_peak_bytes > 0).then(|| peaks.map(|bytes| mebibytes(bytes as f64)).join(" / "))
}

fn mebibytes(bytes: f64) -> String {
    short(bytes / 1_048_576.0)
}

/// The most that each engine took in any row.
fn totals(lines: &[Line], engines: &[&str]) -> Option<Table> {
    type Taken = (&'static str, fn(&Line) -> u64);
    const TAKEN: [Taken; 2] =
        [("memory (peak RSS)", |line| line.rss_peak_bytes), ("disk (peak)", |line| line.peak_disk_bytes)];
    let mut table = TableOf::new("", "most of all rows, MiB", &TAKEN, |(head, _)| TableLine::head(*head));
    for engine in engines {
        let own = || lines.iter().filter(|line| line.engine == *engine);
        table = table.number(*engine, |(_, bytes)| mebibytes(own().map(bytes).max().unwrap_or(0) as f64));
    }
    let measured = lines.iter().any(|line| TAKEN.iter().any(|(_, bytes)| bytes(line) > 0));
    measured.then(|| table.done())
}

const CSV: Columns = Columns(
    "row engine engine_version threads repetitions ops micros_per_op:4 min:4 max:4 interval_low:4 interval_high:4 \
     ratio_to_best_peer:4 best_peer ratio_to_rocksdb:4 p99_us p999_us max_us disk_bytes peak_disk_bytes \
     settled_disk_bytes:0 rss_peak_bytes rss_anonymous_peak_bytes writer_ops_per_sec:0 message short_load",
);

/// The lines as CSV, with a header.
pub fn comma_separated(lines: &[Line]) -> String {
    let lines = lines.iter().map(|line| csv::line(CSV.row(line)));
    std::iter::once(csv::line(CSV.header())).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::super::summary::{groups, means, summarize};
    use super::*;
    use crate::record::{Percentiles, Record};
    use esker_engines::Durability;

    fn record(engine: &str, row: &str, micros: f64) -> Record {
        Record {
            engine: engine.into(),
            benchmark: row.into(),
            row: row.into(),
            threads: 1,
            micros_per_op_wall: micros,
            ops: 1,
            ..Record::default()
        }
    }

    fn shown(records: &[Record]) -> String {
        let groups = groups(records);
        super::text(&groups, &summarize(&groups), &means(&groups))
    }

    #[test]
    fn the_table_shows_ratios() {
        let records = [
            record("esker", "fillseq", 0.25),
            record("rocksdb", "fillseq", 1.5),
            record("esker", "fillseq", 0.27),
            record("esker", "readseq", 123.4),
        ];
        let table = shown(&records);
        for part in ["0.260 ~8%", "5.77x (rocksdb)", "Median wall microseconds"] {
            assert!(table.contains(part), "{part}: {table}");
        }
        assert!(table.lines().any(|line| line.starts_with("readseq") && line.contains("123")), "{table}");
        let mut lines = summarize(&groups(&records));
        let esker = &lines[0];
        assert_eq!((esker.row.as_str(), esker.micros_per_op, esker.repetitions), ("fillseq", 0.26, 2));
        assert_eq!((esker.min, esker.max), (0.25, 0.27));
        assert_eq!((esker.best_peer.as_deref(), esker.ratio_to_best_peer), (Some("rocksdb"), esker.ratio_to_rocksdb));
        assert_eq!((lines[1].ratio_to_rocksdb, lines[1].ratio_to_best_peer), (Some(1.0), Some(1.0)));
        assert_eq!(lines[2].ratio_to_best_peer, None);
        assert_eq!(comma_separated(&lines).lines().count(), 4);
        lines[0].short_load = Some("fillseq".into());
        assert!(CSV.are_of(&lines[0]));
        let single = shown(&records[..2]);
        assert!(single.contains("of one repetition") && !single.contains("edian") && !single.contains('~'), "{single}");
    }

    /// Of wall time, and without rows of unequal durability, which both name.
    #[test]
    fn the_page_and_the_table_print_the_same_mean() {
        let of = |engine: &str, micros: f64, durability| Record {
            threads: 2,
            micros_per_op: micros * 2.0 + 1.0,
            durability: Some(durability),
            ..record(engine, "fillrandom", micros)
        };
        let mut records = vec![
            of("esker", 1.0, Durability::OperatingSystem),
            of("kyoto", 1.5, Durability::Process),
            of("lmdb", 8.0, Durability::OperatingSystem),
            record("esker", "readseq", 1.0),
            record("lmdb", "readseq", 0.5),
        ];
        let page = |records: &[Record]| {
            crate::report::render_html(&crate::record::Run {
                records: records.to_vec(),
                ..crate::record::Run::default()
            })
        };
        let (table, html) = (shown(&records), page(&records));
        let mean = table.lines().find(|line| line.starts_with("geometric mean")).unwrap();
        assert!(mean.contains("2.00x") && table.contains("Kyoto Cabinet in fillrandom"), "{table}");
        assert!(html.contains("speed is 2.00\u{d7}") && html.contains("Kyoto Cabinet in fillrandom"), "{html}");
        // What rests on a load that ended early is marked in both.
        records[2].message = "(ended early after 5.0 s)".into();
        let (table, html) = (shown(&records), page(&records));
        assert!(table.contains("8.00\u{a7}") && table.contains("8.00x\u{a7} (lmdb)"), "{table}");
        assert!(html.contains("8.000\u{a7}") && html.contains("8.00\u{d7}\u{a7}"), "{html}");
    }

    #[test]
    fn every_table_has_its_rows() {
        let record = |engine: &str, row: &str| Record {
            rss_peak_bytes: 5 << 20,
            rss_anonymous_peak_bytes: 4 << 20,
            peak_disk_bytes: 2 << 20,
            ..record(engine, row, 1.0)
        };
        let load = Record { settled_disk_bytes: Some(1 << 20), ..record("esker", "fillseq") };
        let latency = Percentiles { p99_us: 3.0, p999_us: 20.0, max_us: 400.0, ..Percentiles::default() };
        let read = Record { latency, ..record("esker", "readseq") };
        let wanted = Some(100.0);
        let paced =
            Record { writer_ops_per_sec: Some(90.0), writer_wanted_per_sec: wanted, ..record("lmdb", "zipfian") };
        let text = shown(&[load, read, paced]);
        for part in ["3.00 / 20.0 / 400", "90 (behind)", "5.00 / 4.00", "1.00 / 2.00", "memory (peak RSS)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.matches("latency:").count(), 1);
    }
}
