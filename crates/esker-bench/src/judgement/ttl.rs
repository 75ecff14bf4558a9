//! Time to live: TTL-1 to TTL-3, from what `esker study ttl` keeps (`judgement::ttl_rows`).

use super::case::{Case, held};
use super::verdict::{Judgement, Verdict};
use crate::judgement::ttl_rows::{EXPERIMENT, FOUND_AFTER, FOUND_BEFORE, SIZE_AFTER, SIZE_BEFORE};
use crate::record::Record;
use crate::text::number::three_digits as number;

/// What is said of an engine that nothing of this was measured of.
pub fn not_measured(case: &Case<'_>, why: &str) -> Judgement {
    match case.engine {
        "esker" => case.not_measured(why),
        engine => {
            let why = format!("{engine} is driven here without a time to live of its own for each key that reads obey");
            case.not_testable(String::new(), why)
        }
    }
}

pub fn found_before(case: &Case<'_>) -> Result<Judgement, String> {
    found(case, FOUND_BEFORE, "while they lived", |found, all| found == all)
}

pub fn found_after(case: &Case<'_>) -> Result<Judgement, String> {
    found(case, FOUND_AFTER, "once they had expired, before any compaction", |found, _| found == 0)
}

fn rows<'a>(case: &Case<'a>, row: &str) -> Result<Vec<(u64, &'a Record)>, String> {
    let rows: Vec<(u64, &Record)> =
        case.records(EXPERIMENT, row, &[]).into_iter().filter_map(|record| Some((record.found?, record))).collect();
    if rows.is_empty() { Err(case.reason(EXPERIMENT, row)) } else { Ok(rows) }
}

fn found(case: &Case<'_>, row: &str, when: &str, holds: fn(u64, u64) -> bool) -> Result<Judgement, String> {
    let rows = rows(case, row)?;
    let verdict = held(rows.iter().all(|(found, record)| holds(*found, record.ops)));
    let said: Vec<String> = rows.iter().map(|(found, record)| format!("{found} of {}", record.ops)).collect();
    let said = said.join(", ");
    let why = format!(
        "{said} keys that were written were found {when} (published: {} of 100)",
        number(case.threshold("found"))
    );
    Ok(case.judged(said, verdict, verdict, why))
}

pub fn size(case: &Case<'_>) -> Result<Judgement, String> {
    let (before, after) = (rows(case, SIZE_BEFORE)?, rows(case, SIZE_AFTER)?);
    let least = before.iter().map(|(bytes, _)| *bytes).min().unwrap_or(0);
    let most = after.iter().map(|(bytes, _)| *bytes).max().unwrap_or(u64::MAX);
    let direction = held(least > 0 && most < least);
    let magnitude = if least == 0 { Verdict::NotHeld } else { held(most as f64 <= case.threshold("bytes after")) };
    let why = format!(
        "the range of all keys takes {} bytes before and {} after a full compaction of what has expired (wanted: more than 0, then 0)",
        number(least as f64),
        number(most as f64)
    );
    Ok(case.judged(number(most as f64), direction, magnitude, why))
}
