//! What machines the page of 2011 is about: LDB-10 and LDB-11.

use super::case::{Case, held, rates};
use super::verdict::Judgement;
use crate::record::Record;
use crate::stats::median;
use crate::text::number::three_digits as number;

pub fn file_systems(case: &Case<'_>) -> Result<Judgement, String> {
    let records = case.records("sync", "fillseqsync", &[]);
    let here = match (records.first(), median(rates(&records))) {
        (Some(record), Some(rate)) => {
            format!("these runs are on {} only, {} synchronous writes a second", record.host.file_system, number(rate))
        }
        _ => "these runs have no synchronous writes".to_owned(),
    };
    Ok(case.not_testable(String::new(), format!("the claim compares ext3 and ext4 on one disk, and {here}")))
}

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
