//! Records as CSV: the figures, without settings and plots, which are in the JSON lines. Of kept
//! runs, each line also has the cell of its record; a cell without a record has a line that says
//! why.

use crate::record::Record;
use crate::report::render::csv::{Columns, line};
use crate::sweep::grid::{Finished, StudyRun};

/// What a line has of a record.
pub const COLUMNS: Columns = Columns(
    "engine engine_version benchmark row repetition threads num ops found bytes wall_s:6 sum_thread_s:6 \
     micros_per_op:4 micros_per_op_wall:4 ops_per_sec:1 mb_per_sec:2 cpu_user_s:6 cpu_sys_s:6 p50_us p90_us p99_us \
     p999_us p9999_us max_us rss_peak_bytes rss_anonymous_peak_bytes disk_bytes counters.comparisons \
     counters.wal_bytes counters.flush_bytes counters.compaction_bytes counters.stall_micros message skipped \
     started_unix_s",
);

/// The whole file, with its header.
pub fn of_runs(runs: &[StudyRun]) -> String {
    let header = ["study", "experiment", "variant", "variables", "failure"].map(String::from);
    let mut text = line(header.into_iter().chain(COLUMNS.header()));
    for (run, finished) in runs.iter().flat_map(|run| run.finished.iter().map(move |finished| (run, finished))) {
        let mut add =
            |record: &Record| text.push_str(&line(cell(&run.study, finished).into_iter().chain(COLUMNS.row(record))));
        finished.records.iter().for_each(&mut add);
        if finished.records.is_empty() {
            let (engine, repetition) = (finished.cell.engine.clone(), finished.cell.repetition);
            add(&Record { engine, repetition, ..Record::default() });
        }
    }
    text
}

fn cell(study: &str, finished: &Finished) -> [String; 5] {
    let cell = &finished.cell;
    let variables: Vec<String> = cell.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let failure = finished.failure.clone().unwrap_or_default();
    [study.to_string(), cell.experiment.clone(), cell.variant.clone(), variables.join(";"), failure]
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_column_is_a_field() {
        assert!(super::COLUMNS.are_of(&crate::record::Record::default()));
    }
}
