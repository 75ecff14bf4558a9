//! The published data as they are in `data/published.json`.

use esker_engines::ENGINES;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../data/published.json");

/// One published figure, and what it is of in the names of the studies here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedRecord {
    /// A name that stays: `ldb2011/baseline/readseq/LevelDB`.
    pub id: String,
    /// The study that answers it: `rmw`, `memtable`, `leveldb-2011`.
    pub study: String,
    /// The experiment. Besides those of the studies: `environment`, `header`, `example command` for
    /// what a document says of its flags, and `ext4`.
    pub experiment: String,
    /// The engine and version it was measured with.
    pub engine: String,
    /// The row: `readrandom after fillseq`.
    pub row: String,
    /// The cell, by the names of the study's variables; `setting` where the figure is that of a
    /// flag.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// The figure; not a number where a document says something without printing one (`note` says
    /// what).
    #[serde(deserialize_with = "number_or_nan")]
    pub figure: f64,
    /// `ops/sec`, `entries/sec`, `micros/op` (as one thread sees it), `wall micros/op` (over the
    /// operations of all threads), `MB/s`, `comparisons`, `found`, `updates` (of one thread),
    /// `seconds`, `bytes`, `entries`, `operations`, `MiB`, or `flag`.
    pub unit: String,
    /// The ratio to the baseline that stands beside it.
    #[serde(default)]
    pub published_ratio: Option<f64>,
    /// The same, computed from the published figures.
    #[serde(default)]
    pub recomputed_ratio: Option<f64>,
    /// Length of its bar on the page, in pixels.
    #[serde(default)]
    pub bar_px: Option<u32>,
    /// The figure that the bar stands for, by the longest bar of its chart.
    #[serde(default)]
    pub bar_implies: Option<f64>,
    /// The figure as microseconds per operation, where it is a rate.
    #[serde(default)]
    pub micros_per_op: Option<f64>,
    /// The document.
    pub source: String,
    /// Machine and settings, as far as they are known.
    pub configuration: String,
    /// What a reader should know about it.
    #[serde(default)]
    pub note: String,
}

/// Ratios that differ by more than this do not follow from the figures.
const RATIO_TOLERANCE: f64 = 0.05;

impl PublishedRecord {
    /// The engine here that answers it: that of the same name, whatever its version.
    pub fn answering(&self) -> &'static str {
        let name = self.engine.to_ascii_lowercase();
        ENGINES.into_iter().find(|engine| name.starts_with(engine)).unwrap_or_default()
    }

    /// The ratio that is shown, and the one that the figures give where that is another.
    pub fn ratios(&self) -> (Option<f64>, Option<f64>) {
        let is_another = |two: &f64| self.published_ratio.is_some_and(|one| (one / two - 1.0).abs() > RATIO_TOLERANCE);
        (self.published_ratio, self.recomputed_ratio.filter(is_another))
    }
}

/// Where the published figures contradict each other, or what is said of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsistencyCheck {
    /// What is inconsistent: `bar`, `ratio`, `threads`, `unit` ...
    pub kind: String,
    /// The record it is about, or is shown with.
    pub record: String,
    /// The numbers, by name.
    pub figures: BTreeMap<String, f64>,
    /// What was found.
    pub finding: String,
}

/// A claim of a document, and by what it is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hypothesis {
    /// `RMW-1` ...
    pub id: String,
    /// The study that can settle it: `rmw`, `memtable`, `leveldb-2011`, `ttl`.
    pub study: String,
    /// What is claimed.
    pub claim: String,
    /// What is measured for it.
    pub metric: String,
    /// The published values, by name.
    pub published: BTreeMap<String, f64>,
    /// The published value, where it is no number.
    #[serde(default)]
    pub published_text: String,
    /// The numbers that the verdicts turn on, by name.
    pub thresholds: BTreeMap<String, f64>,
    /// When the direction holds.
    pub direction: String,
    /// When the magnitude holds.
    pub magnitude: String,
}

impl Hypothesis {
    /// A threshold; not a number, which nothing passes, if there is none of that name.
    pub fn threshold(&self, name: &str) -> f64 {
        self.thresholds.get(name).copied().unwrap_or(f64::NAN)
    }

    /// A published value; not a number if there is none of that name.
    pub fn published(&self, name: &str) -> f64 {
        self.published.get(name).copied().unwrap_or(f64::NAN)
    }
}

/// How many keys a reader in a process of its own finds, with LevelDB's key sequence: both start at
/// seed 1001.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoldenFound {
    /// Entries loaded at random over as many keys.
    pub loaded: u64,
    /// Reads over the lowest so many keys, a fifth.
    pub read: u64,
    /// Keys found.
    pub found: u64,
}

/// Figures by the authors of a document, from their other pages or from another edition. They show
/// what a setting did elsewhere; no claim is judged by them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherFigures {
    /// The study beside whose report they stand.
    pub study: String,
    /// Where they are from.
    pub document: String,
    /// With which engine and settings, as far as that is known.
    pub with: String,
    /// The row; empty where the values name it.
    pub row: String,
    /// The unit.
    pub unit: String,
    /// What varies.
    pub by: String,
    /// The experiment of the study whose only variable, of the same name, has the same values;
    /// empty if there is none.
    #[serde(default)]
    pub experiment: String,
    /// The figures, in the order of the document.
    pub values: Vec<OtherFigure>,
}

/// One of [`OtherFigures`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherFigure {
    /// What varies, at this.
    pub value: String,
    /// The figure.
    pub figure: f64,
}

/// All that was published.
#[derive(Debug, Default, Deserialize)]
pub struct Data {
    /// Every figure, 205 of them.
    pub records: Vec<PublishedRecord>,
    /// What does not fit together.
    pub consistency_checks: Vec<ConsistencyCheck>,
    /// Every claim, 34 of them.
    pub hypotheses: Vec<Hypothesis>,
    /// What readers of a randomly loaded database find.
    pub golden_found: Vec<GoldenFound>,
    /// Figures of the same authors outside the documents.
    pub other_figures: Vec<OtherFigures>,
}

/// The rows of the memtable study that a grid was published of.
pub const GRID_ROWS: [&str; 4] = ["fillseq", "fillrandom", "readrandom after fillseq", "readrandom after fillrandom"];

/// The write buffers and the file sizes of those grids, in MiB.
pub const GRID_MIB: [&str; 5] = ["2", "4", "8", "16", "32"];

/// Microseconds per operation, line by write buffer, column by file size.
pub type Grid = [[f64; 5]; 5];

impl Data {
    /// The published records of an experiment.
    pub fn published<'a>(&'a self, study: &'a str, experiment: &'a str) -> impl Iterator<Item = &'a PublishedRecord> {
        self.records.iter().filter(move |record| record.study == study && record.experiment == experiment)
    }

    /// The published grid of a row; none if a cell of it is missing.
    pub fn grid(&self, row: &str) -> Option<Grid> {
        let mut grid = [[f64::NAN; 5]; 5];
        let is_of = |record: &&PublishedRecord| record.experiment == "grid" && record.row == row;
        for record in self.records.iter().filter(is_of).filter(|record| record.unit == "micros/op") {
            let place =
                |name| GRID_MIB.iter().position(|size| record.variables.get(name).is_some_and(|mib| mib == size));
            grid[place("write_buffer_mib")?][place("max_file_mib")?] = record.figure;
        }
        grid.concat().iter().all(|figure| figure.is_finite()).then_some(grid)
    }
}

/// The file. A test reads it, so it can be read.
pub static DATA: LazyLock<Data> = LazyLock::new(|| serde_json::from_str(TEXT).unwrap_or_default());

fn number_or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_can_be_read() {
        let data: Data = serde_json::from_str(TEXT).unwrap();
        assert_eq!((data.records.len(), data.hypotheses.len()), (205, 34));
        assert_eq!(data.consistency_checks.len(), 16);
        assert_eq!(data.other_figures.iter().map(|series| series.values.len()).sum::<usize>(), 73);
        assert!(data.records.iter().all(|record| !record.configuration.is_empty() && !record.source.is_empty()));
    }

    #[test]
    fn bars_stand_for_their_figures_or_are_listed() {
        let mut wrong = Vec::new();
        for record in &DATA.records {
            let (Some(px), Some(implied)) = (record.bar_px, record.bar_implies) else { continue };
            let same_chart = |other: &&PublishedRecord| {
                (&other.study, &other.experiment, &other.row) == (&record.study, &record.experiment, &record.row)
            };
            let longest = DATA.records.iter().filter(same_chart).max_by_key(|other| other.bar_px).unwrap();
            let value = longest.figure * f64::from(px) / f64::from(longest.bar_px.unwrap());
            assert!((value - implied).abs() <= 0.51, "{}: {value}", record.id);
            // A pixel, and the digit that is left out: more is not rounding.
            if (value / record.figure - 1.0).abs() > 0.05 {
                wrong.push(record.id.as_str());
            }
        }
        let listed: Vec<&str> =
            DATA.consistency_checks.iter().filter(|c| c.kind == "bar").map(|c| c.record.as_str()).collect();
        assert_eq!(wrong, listed);
    }

    #[test]
    fn grids_are_whole() {
        for row in GRID_ROWS {
            assert!(DATA.grid(row).is_some_and(|grid| grid.concat().iter().all(|figure| *figure > 0.0)), "{row}");
        }
        assert_eq!(DATA.grid("fillseq").map(|grid| (grid[0][1], grid[1][0])), Some((2.162, 2.153)));
        assert_eq!(DATA.grid("readseq"), None);
    }
}
