//! Processor time and background work: LDB-11 and LDB-13.

use crate::judgement::case::{Case, held};
use crate::judgement::verdict::{Judgement, Verdict};
use crate::measurements::Query;
use crate::record::Record;
use crate::stats::median;
use crate::text::number::three_digits as number;
use crate::text::words::listed;

/// Seconds below which the clock of processor time is too coarse.
const SHORTEST_S: f64 = 0.1;

pub fn processors(case: &Case<'_>) -> Result<Judgement, String> {
    let of_study =
        case.measured.rows().iter().filter(|row| row.study == case.hypothesis.study && row.cell.engine == case.engine);
    let used = |record: &Record| (record.cpu_user_s + record.cpu_sys_s) / record.wall_s;
    let rows = of_study.filter(|row| row.record.wall_s >= SHORTEST_S).map(|row| (used(row.record), row));
    let Some((most, row)) = rows.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Err(format!("these runs hold no row of {} of the page that took {SHORTEST_S} s", case.engine));
    };
    let limit = case.threshold("to");
    let cores = row.record.host.cores;
    let why = format!(
        "the most is {} CPU seconds per second, in {} of the experiment {}, on a machine with {cores} cores",
        number(most),
        row.record.row,
        row.cell.experiment
    );
    if f64::from(cores) <= limit {
        return Ok(case.not_testable(number(most), format!("{why}: more than two cannot be used there")));
    }
    let verdict = held(most <= limit);
    Ok(case.judged(number(most), verdict, verdict, why))
}

/// Bytes that flushes and compactions wrote, with a small and a large write buffer.
struct Work {
    name: String,
    flushed: [f64; 2],
    compacted: [f64; 2],
}

impl Work {
    fn between(name: String, small: &[&Record], large: &[&Record]) -> Option<Work> {
        let flushed = |records: &[&Record]| median(records.iter().map(|record| record.counters.flush_bytes as f64));
        let compacted =
            |records: &[&Record]| median(records.iter().map(|record| record.counters.compaction_bytes as f64));
        Some(Work {
            name,
            flushed: [flushed(small)?, flushed(large)?],
            compacted: [compacted(small)?, compacted(large)?],
        })
    }

    fn is_reported(&self) -> bool {
        self.flushed[0] > 0.0 && self.compacted[0] > 0.0
    }

    /// A flush may write a little more where fewer keys are overwritten in memory.
    fn falls(&self) -> bool {
        self.compacted[1] < self.compacted[0] && self.flushed[1] <= self.flushed[0] * 1.05
    }

    fn said(&self) -> String {
        let mib = |bytes: f64| number(bytes / 1_048_576.0);
        format!(
            "{}: compactions write {} MiB instead of {}, flushes {} instead of {}",
            self.name,
            mib(self.compacted[1]),
            mib(self.compacted[0]),
            mib(self.flushed[1]),
            mib(self.flushed[0])
        )
    }
}

pub fn sorted_files(case: &Case<'_>) -> Result<Judgement, String> {
    const ROW: &str = "fillrandom";
    let cell = |buffer| {
        let variables = [("write_buffer_mib", buffer), ("max_file_mib", "2")];
        let query =
            Query { study: "memtable", experiment: "grid", engine: case.engine, row: ROW, variables: &variables };
        case.measured.rows_of_one_variant(&query, None).iter().map(|row| row.record).collect::<Vec<_>>()
    };
    let grid = Work::between("32 MiB of buffer instead of 2".into(), &cell("2"), &cell("32"));
    let page = |experiment| case.records(experiment, ROW, &[]);
    let page = Work::between("120 MiB of buffer instead of 2".into(), &page("baseline"), &page("more memory"));
    let measured: Vec<Work> = [page, grid].into_iter().flatten().collect();
    if measured.is_empty() {
        return Err(case.reason("more memory", ROW));
    }
    let reported: Vec<&Work> = measured.iter().filter(|work| work.is_reported()).collect();
    if reported.is_empty() {
        let why = format!("{} reports no bytes of flushes and compactions, or does neither", case.engine);
        return Ok(case.not_testable(String::new(), why));
    }
    let why = format!(
        "random loads with {}; files are not counted, but a flush makes one for each full buffer (no figure was published)",
        listed(&reported.iter().map(|work| work.said()).collect::<Vec<_>>())
    );
    let value =
        reported.iter().map(|work| number(work.compacted[1] / work.compacted[0])).collect::<Vec<_>>().join(", ");
    Ok(case.judged(value, held(reported.iter().all(|work| work.falls())), Verdict::NotTestableHere, why))
}
