//! Records put together for comparison: one [`Group`] per row and thread count, one [`Cell`] per engine in it, holding
//! the repetitions.
//!
//! Invariants: a group's cells are in the order of the engines of the run, and no engine has two; a cell holds a record
//! that ran, or a reason why none did, or both.

use super::engine_style::{OURS, rank};
use crate::engine::Durability;
use crate::record::Record;

/// All groups of a run.
pub struct Groups<'a> {
    /// The engines that occur, in the order of every table.
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
    pub cells: Vec<Cell<'a>>,
}

/// The repetitions of one engine in one group.
pub struct Cell<'a> {
    /// The engine.
    pub engine: &'a str,
    /// The repetitions that ran.
    pub ran: Vec<&'a Record>,
    /// Why a repetition did not run, if one did not.
    pub skipped: Option<&'a str>,
}

/// The name of the row of a record.
pub fn row_name(record: &Record) -> &str {
    if record.row.is_empty() { &record.benchmark } else { &record.row }
}

impl<'a> Groups<'a> {
    /// Sorts `records` into groups.
    pub fn of(records: &'a [Record]) -> Groups<'a> {
        let mut engines: Vec<&str> = Vec::new();
        let mut groups: Vec<Group> = Vec::new();
        for record in records {
            if !engines.contains(&record.engine.as_str()) {
                engines.push(&record.engine);
            }
            let row = row_name(record);
            let same = |group: &Group| group.row == row && group.threads == record.threads;
            let position = groups.iter().position(same).unwrap_or_else(|| {
                groups.push(Group { row, benchmark: &record.benchmark, threads: record.threads, cells: Vec::new() });
                groups.len() - 1
            });
            groups[position].add(record);
        }
        // The sort is stable: engines without a rank of their own keep the order of their first records.
        engines.sort_by_key(|engine| rank(engine));
        for group in &mut groups {
            group.cells.sort_by_key(|cell| engines.iter().position(|engine| *engine == cell.engine));
        }
        let repetitions = groups.iter().flat_map(|group| &group.cells).map(|cell| cell.ran.len()).max().unwrap_or(0);
        Groups { engines, groups, repetitions }
    }

    /// The engines that are not among the known ones.
    pub fn others(&self) -> Vec<&'a str> {
        self.engines.iter().copied().filter(|engine| rank(engine) == crate::engine::ENGINES.len()).collect()
    }

    /// Whether Esker and at least one peer are in the run, so that ratios mean something.
    pub fn has_ratios(&self) -> bool {
        self.engines.len() > 1 && self.engines.contains(&OURS)
    }

    /// Whether more than one thread count occurs, so that rows must name theirs.
    pub fn names_threads(&self) -> bool {
        self.groups.iter().any(|group| group.threads != self.groups[0].threads)
    }

    /// The group's name in headings and tables.
    pub fn label(&self, group: &Group) -> String {
        match (self.names_threads(), group.threads) {
            (false, _) => group.row.to_string(),
            (true, 1) => format!("{}, 1 thread", group.row),
            (true, threads) => format!("{}, {threads} threads", group.row),
        }
    }
}

impl<'a> Group<'a> {
    fn add(&mut self, record: &'a Record) {
        let position = self.cells.iter().position(|cell| cell.engine == record.engine).unwrap_or_else(|| {
            self.cells.push(Cell { engine: &record.engine, ran: Vec::new(), skipped: None });
            self.cells.len() - 1
        });
        let cell = &mut self.cells[position];
        match &record.skipped {
            Some(reason) => cell.skipped = Some(reason),
            None => cell.ran.push(record),
        }
    }

    /// The cell of `engine`.
    pub fn cell(&self, engine: &str) -> Option<&Cell<'a>> {
        self.cells.iter().find(|cell| cell.engine == engine)
    }

    /// The durability class that the group compares within: Esker's, or else that of the first engine with one.
    pub fn durability(&self) -> Option<Durability> {
        let ours = self.cell(OURS).and_then(Cell::durability);
        ours.or_else(|| self.cells.iter().find_map(Cell::durability))
    }

    /// Whether `cell` may be compared with the others: it ran, and its writes were as durable as the group's class.
    pub fn comparable(&self, cell: &Cell) -> bool {
        let equal = match (cell.durability(), self.durability()) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        equal && !cell.ran.is_empty()
    }

    /// The fastest comparable engine among those that `include` accepts, with its microseconds per operation.
    pub fn fastest(&self, include: impl Fn(&str) -> bool) -> Option<(&'a str, f64)> {
        let candidates = self.cells.iter().filter(|cell| include(cell.engine) && self.comparable(cell));
        let timed = candidates.filter_map(|cell| Some((cell.engine, cell.micros_per_op()?)));
        timed.min_by(|one, two| one.1.total_cmp(&two.1))
    }

    /// How many times as fast as `engine` Esker is: above 1 Esker leads. None where either did not run or their durability
    /// differs.
    pub fn ratio_to(&self, engine: &str) -> Option<f64> {
        let ours = self.fastest(|name| name == OURS)?.1;
        Some(self.fastest(|name| name == engine)?.1 / ours)
    }

    /// The fastest comparable peer and how many times as fast Esker is.
    pub fn ratio_to_best_peer(&self) -> Option<(&'a str, f64)> {
        let ours = self.fastest(|name| name == OURS)?.1;
        let (peer, micros) = self.fastest(|name| name != OURS)?;
        Some((peer, micros / ours))
    }
}

impl Cell<'_> {
    /// The median over the repetitions of what `field` gives; figures that are not positive count as not taken.
    pub fn median(&self, field: impl Fn(&Record) -> f64) -> Option<f64> {
        median(&self.taken(field))
    }

    /// The smallest and the largest figure of the repetitions.
    pub fn range(&self, field: impl Fn(&Record) -> f64) -> Option<(f64, f64)> {
        let values = self.taken(field);
        let smallest = values.iter().copied().reduce(f64::min)?;
        Some((smallest, values.iter().copied().fold(smallest, f64::max)))
    }

    /// The median of microseconds per operation.
    pub fn micros_per_op(&self) -> Option<f64> {
        self.median(|record| record.micros_per_op)
    }

    /// The durability class of its writes.
    pub fn durability(&self) -> Option<Durability> {
        self.ran.iter().find_map(|record| record.durability)
    }

    /// The repetition whose throughput is nearest to the median: the one that stands for all where only one can be drawn.
    pub fn typical(&self) -> Option<&Record> {
        let middle = self.median(|record| record.ops_per_sec).unwrap_or(0.0);
        let distance = |record: &&&Record| (record.ops_per_sec - middle).abs();
        self.ran.iter().min_by(|one, two| distance(one).total_cmp(&distance(two))).copied()
    }

    /// The distinct messages of its repetitions.
    pub fn messages(&self) -> Vec<String> {
        let mut messages: Vec<String> = Vec::new();
        for record in &self.ran {
            let message = match record.found {
                Some(found) if record.message.is_empty() => format!("{found} found"),
                _ => record.message.clone(),
            };
            if !message.is_empty() && !messages.contains(&message) {
                messages.push(message);
            }
        }
        messages
    }

    fn taken(&self, field: impl Fn(&Record) -> f64) -> Vec<f64> {
        self.ran.iter().map(|record| field(record)).filter(|value| value.is_finite() && *value > 0.0).collect()
    }
}

/// The middle value, or the mean of the two middle ones.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0) }
}

/// The geometric mean; none of nothing.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some((values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
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
#[allow(clippy::unwrap_used)]
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
        let groups = Groups::of(&records);
        assert_eq!(groups.engines, ["esker", "rocksdb"]);
        assert_eq!((groups.groups.len(), groups.repetitions), (1, 3));
        let group = &groups.groups[0];
        assert_eq!(group.cells[0].micros_per_op(), Some(2.0));
        assert_eq!(group.cells[0].range(|record| record.micros_per_op), Some((1.0, 9.0)));
        assert_eq!(group.cells[0].typical().unwrap().repetition, 1);
        assert_eq!(group.ratio_to("rocksdb"), Some(2.0));
        assert_eq!(group.ratio_to_best_peer(), Some(("rocksdb", 2.0)));
        assert_eq!(group.ratio_to("lmdb"), None);
    }

    #[test]
    fn thread_counts_are_separate_groups() {
        let mut other = record("esker", 1, 3.0);
        other.threads = 4;
        let records = [record("esker", 1, 2.0), other];
        let groups = Groups::of(&records);
        assert_eq!(groups.label(&groups.groups[0]), "fillrandom, 1 thread");
        assert_eq!(groups.label(&groups.groups[1]), "fillrandom, 4 threads");
    }

    #[test]
    fn a_peer_of_another_durability_is_not_compared() {
        let mut records = [record("esker", 1, 5.0), record("lmdb", 1, 1.0), record("redb", 1, 10.0)];
        records[0].durability = Some(Durability::Device);
        records[1].durability = Some(Durability::OperatingSystem);
        records[2].durability = Some(Durability::Device);
        let groups = Groups::of(&records);
        assert_eq!(groups.groups[0].ratio_to_best_peer(), Some(("redb", 2.0)));
        assert_eq!(groups.groups[0].fastest(|_| true), Some(("esker", 5.0)));
    }

    #[test]
    fn means_and_medians_of_nothing_are_nothing() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, 3.0]), Some(2.0));
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[2.0, 8.0]).unwrap() - 4.0).abs() < 1e-12);
    }
}
