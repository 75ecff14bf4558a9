//! Records put together for comparison: one [`Group`] per row and thread count, one [`Measured`]
//! per engine in it, holding the repetitions. And the ratios between them, the one place where
//! those of every output are worked out.
//!
//! Invariants: no engine has two cells in a group; a cell holds a record that ran, or a reason why
//! none did, or both.

use super::engine_style::{OURS, display_name, rank};
use super::measured::{Key, Measured, SHORT, entry, row_name, short_load};
use crate::record::Record;
use crate::stats;
use crate::text::words::{counted, some};
use esker_engines::{Durability, ENGINES};
use std::collections::BTreeMap;

/// The engine that every ratio is also taken to.
pub const REFERENCE_PEER: &str = "rocksdb";

/// All groups of a run.
pub struct Groups<'a> {
    /// The engines that occur.
    pub engines: Vec<&'a str>,
    /// The groups, in the order in which their first records were made.
    pub groups: Vec<Group<'a>>,
    /// The largest number of repetitions of any cell.
    pub repetitions: usize,
}

/// The records that are compared with each other.
pub struct Group<'a> {
    /// The name of the row.
    pub row: &'a str,
    /// The benchmark that made it.
    pub benchmark: &'a str,
    /// Client threads.
    pub threads: u32,
    /// One per engine with records.
    pub cells: Vec<Measured<'a>>,
}

/// Whom a ratio is to.
#[derive(Debug, Clone, Copy)]
pub enum Peer<'p> {
    /// The fastest engine but Esker.
    Best,
    /// This engine.
    Named(&'p str),
}

/// How many times as fast as a peer an engine is: above 1 it leads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio<'g> {
    /// The peer's time over the engine's.
    pub value: f64,
    /// The peer.
    pub peer: &'g str,
    /// The mark of figures on fewer entries, if one of both has it.
    pub mark: &'static str,
}

/// A geometric mean of ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Rows that it is over.
    pub rows: usize,
}

impl<'a> Groups<'a> {
    /// Sorts records into groups; engines and cells stay in the order of their first records.
    pub fn of(records: impl IntoIterator<Item = &'a Record>) -> Groups<'a> {
        let mut engines: Vec<&str> = Vec::new();
        let mut groups: Vec<Group> = Vec::new();
        // Rows of one process follow each other, and have the same list of benchmarks.
        let mut loads = BTreeMap::new();
        for record in records {
            if !engines.contains(&record.engine.as_str()) {
                engines.push(&record.engine);
            }
            let row = row_name(record);
            let same = |group: &Group| group.row == row && group.threads == record.threads;
            let new = || Group { row, benchmark: &record.benchmark, threads: record.threads, cells: Vec::new() };
            let load = loads.entry((&record.engine, record.repetition, record.flags.get("benchmarks"))).or_default();
            entry(&mut groups, same, new).add(record, short_load(load, record));
        }
        let repetitions = groups.iter().flat_map(|group| &group.cells).map(|cell| cell.ran.len()).max().unwrap_or(0);
        Groups { engines, groups, repetitions }
    }

    /// With engines and cells in the order of every page. Engines without a rank of their own keep
    /// theirs, behind the others.
    pub fn ranked(mut self) -> Groups<'a> {
        self.engines.sort_by_key(|engine| rank(engine));
        for group in &mut self.groups {
            group.cells.sort_by_key(|cell| self.engines.iter().position(|engine| *engine == cell.key.engine));
        }
        self
    }

    /// The engines that are not among the known ones.
    pub fn others(&self) -> Vec<&'a str> {
        self.engines.iter().copied().filter(|engine| rank(engine) == ENGINES.len()).collect()
    }

    /// Whether Esker and at least one peer are in the run, so that ratios mean something.
    pub fn has_ratios(&self) -> bool {
        self.engines.len() > 1 && self.engines.contains(&OURS)
    }

    /// Every ratio of an engine.
    pub fn ratios(&self, engine: &str, to: Peer<'_>) -> Vec<f64> {
        self.groups.iter().filter_map(|group| group.ratio(engine, to)).map(|ratio| ratio.value).collect()
    }

    /// The geometric mean of an engine's ratios. Rows in which either did not run, or their
    /// durability differs, are left out.
    pub fn mean_ratio(&self, engine: &str, to: Peer<'_>) -> Option<Mean> {
        let ratios = self.ratios(engine, to);
        Some(Mean { value: stats::geometric_mean(&ratios)?, rows: ratios.len() })
    }

    /// The group's name in headings and tables, with its threads where thread counts differ.
    pub fn label(&self, group: &Group) -> String {
        match self.groups.iter().any(|other| other.threads != group.threads) {
            false => group.row.to_string(),
            true => format!("{}, {}", group.row, counted(group.threads, "thread")),
        }
    }

    /// What the marks of figures mean, each with the engines and rows that have it.
    pub fn notes(&self, label: impl Fn(&Group) -> String) -> Vec<String> {
        const MARKS: [(&str, &str); 2] = [
            (
                APART,
                "Durability of another class than the row\u{2019}s, and so left out of best cells, of ratios and of their means",
            ),
            (SHORT, "Measured on fewer entries, since a load ended early; ratios that rest on it have the mark too"),
        ];
        let note = |(mark, what): (&str, &str)| {
            let of_engine = |engine: &&'a str| {
                let own = |group: &&Group| group.cell(engine).is_some_and(|cell| group.marks(cell).contains(mark));
                let rows: Vec<String> = self.groups.iter().filter(own).map(&label).collect();
                (!rows.is_empty()).then(|| format!("{} in {}", display_name(engine), some(&rows)))
            };
            let cells: Vec<String> = self.engines.iter().filter_map(of_engine).collect();
            (!cells.is_empty()).then(|| format!("{mark} {what}: {}.", cells.join("; ")))
        };
        MARKS.into_iter().filter_map(note).collect()
    }
}

/// The mark behind figures of another durability than that of their row.
pub const APART: &str = "\u{2020}";

impl<'a> Group<'a> {
    fn add(&mut self, record: &'a Record, short_load: Option<&'a str>) {
        let key = || Key { engine: record.engine.clone(), row: self.row.to_string(), ..Key::default() };
        let new = || Measured { key: key(), ..Measured::default() };
        entry(&mut self.cells, |cell| cell.key.engine == record.engine, new).add(record, short_load);
    }

    /// The cell of `engine`.
    pub fn cell(&self, engine: &str) -> Option<&Measured<'a>> {
        self.cells.iter().find(|cell| cell.key.engine == engine)
    }

    /// The durability class that the group compares within: Esker's, or else that of the first
    /// engine with one.
    pub fn durability(&self) -> Option<Durability> {
        let ours = self.cell(OURS).and_then(Measured::durability);
        ours.or_else(|| self.cells.iter().find_map(Measured::durability))
    }

    /// Whether `cell` may be compared with the others: it ran, and its writes were as durable as
    /// the group's class.
    pub fn comparable(&self, cell: &Measured) -> bool {
        let equal = match (cell.durability(), self.durability()) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        equal && !cell.ran.is_empty()
    }

    /// The marks of a cell's figures.
    pub fn marks(&self, cell: &Measured) -> String {
        let apart = if cell.ran.is_empty() || self.comparable(cell) { "" } else { APART };
        format!("{apart}{}", cell.mark())
    }

    /// The fastest comparable cell among those of engines that `include` accepts, with its
    /// microseconds per operation.
    pub fn fastest(&self, include: impl Fn(&str) -> bool) -> Option<(&Measured<'a>, f64)> {
        let candidates = self.cells.iter().filter(|cell| include(&cell.key.engine) && self.comparable(cell));
        let timed = candidates.filter_map(|cell| Some((cell, cell.micros()?)));
        timed.min_by(|one, two| one.1.total_cmp(&two.1))
    }

    /// The ratio of an engine to a peer. None where either did not run or their durability differs.
    pub fn ratio(&self, engine: &str, to: Peer<'_>) -> Option<Ratio<'_>> {
        let (own, micros) = self.fastest(|name| name == engine)?;
        let (peer, peer_micros) = match to {
            Peer::Best => self.fastest(|name| name != OURS)?,
            Peer::Named(peer) => self.fastest(|name| name == peer)?,
        };
        let mark = if own.mark().is_empty() { peer.mark() } else { own.mark() };
        Some(Ratio { value: peer_micros / micros, peer: &peer.key.engine, mark })
    }
}

/// The durability class in the words of the page.
pub fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Process => "in the process only (write-ahead log off)",
        Durability::OperatingSystem => "handed to the operating system (survives the death of the process)",
        Durability::Device => "on the device before the call returns (synced)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(engine: &str, repetition: u32, micros: f64) -> Record {
        Record {
            engine: engine.into(),
            benchmark: "fillrandom".into(),
            repetition,
            threads: 1,
            micros_per_op: micros,
            ops_per_sec: 1e6 / micros,
            ..Record::default()
        }
    }

    #[test]
    fn repetitions_share_a_cell_and_give_their_median() {
        let records =
            [record("rocksdb", 1, 4.0), record("esker", 1, 2.0), record("esker", 2, 1.0), record("esker", 3, 9.0)];
        assert_eq!(Groups::of(&records).engines, ["rocksdb", "esker"]);
        let groups = Groups::of(&records).ranked();
        assert_eq!(groups.engines, ["esker", "rocksdb"]);
        assert_eq!((groups.groups.len(), groups.repetitions), (1, 3));
        let group = &groups.groups[0];
        assert_eq!(group.cells[0].micros(), Some(2.0));
        assert_eq!(group.cells[0].range(|record| record.micros_per_op), Some((1.0, 9.0)));
        assert_eq!(group.cells[0].typical().unwrap().repetition, 1);
        assert_eq!(group.ratio("esker", Peer::Named("rocksdb")).unwrap().value, 2.0);
        assert_eq!(group.ratio("esker", Peer::Best), Some(Ratio { value: 2.0, peer: "rocksdb", mark: "" }));
        assert_eq!(group.ratio("esker", Peer::Named("lmdb")), None);
    }

    #[test]
    fn a_peer_of_another_durability_is_not_compared() {
        let mut records = [record("esker", 1, 5.0), record("lmdb", 1, 1.0), record("redb", 1, 10.0)];
        records[0].durability = Some(Durability::Device);
        records[1].durability = Some(Durability::OperatingSystem);
        records[2].durability = Some(Durability::Device);
        let groups = Groups::of(&records);
        let group = &groups.groups[0];
        assert_eq!(group.ratio("esker", Peer::Best), Some(Ratio { value: 2.0, peer: "redb", mark: "" }));
        assert_eq!(group.fastest(|_| true).unwrap().1, 5.0);
        assert_eq!(groups.mean_ratio("esker", Peer::Best), Some(Mean { value: 2.0, rows: 1 }));
        assert_eq!(group.marks(&group.cells[1]), APART);
        let notes = groups.notes(|group| group.row.to_string());
        assert!(notes.len() == 1 && notes[0].ends_with("means: LMDB in fillrandom."), "{notes:?}");
    }

    #[test]
    fn what_rests_on_a_load_that_ended_early_is_marked() {
        let mut records = [record("esker", 1, 5.0), record("redb", 1, 10.0), record("redb", 1, 9.0)];
        records[1].message = "(ended early after 5.0 s)".into();
        records[2].benchmark = "readrandom".into();
        let esker = Record { benchmark: "readrandom".into(), ..record("esker", 1, 3.0) };
        let groups = Groups::of(records.iter().chain([&esker]));
        for group in &groups.groups {
            assert_eq!(group.marks(group.cell("redb").unwrap()), SHORT);
            assert_eq!(group.marks(group.cell("esker").unwrap()), "");
            assert_eq!(group.ratio("esker", Peer::Best).unwrap().mark, SHORT);
        }
        let notes = groups.notes(|group| group.row.to_string());
        assert!(notes.len() == 1 && notes[0].ends_with("redb in fillrandom, readrandom."), "{notes:?}");
    }
}
