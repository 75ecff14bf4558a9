//! How many keys are found, by what the random numbers lead to: MEM-11.

use super::case::{Case, held};
use super::verdict::{Judgement, Verdict};
use crate::published::DATA;
use crate::record::Record;
use crate::text::number::three_digits as number;

const READS: &str = "readrandom after fillrandom";

pub fn judge(case: &Case<'_>) -> Result<Judgement, String> {
    let rows = case.measured.select(&case.query("grid", READS, &[]));
    let counted: Vec<(&Record, u64)> = rows.iter().filter_map(|row| Some((row.record, row.record.found?))).collect();
    let (first, count) = counted.first().copied().ok_or_else(|| case.reason("grid", READS))?;
    let share = count as f64 / first.ops as f64;
    let same = counted.iter().all(|(_, found)| *found == count);
    let golden = DATA.golden_found.iter().find(|golden| golden.read == first.num && golden.read == first.ops);
    let is_original = first.flags.get("keygen").is_none_or(|name| name == "leveldb" || name.is_empty());
    let tolerance = case.threshold("tolerance");
    let readers = format!("all {} readers found the same", counted.len());
    let found = format!("{} of {} keys", number(count as f64), number(first.ops as f64));
    let Some(golden) = golden.filter(|_| is_original) else {
        // The original generator repeats its sequence in the reader, which finds more than chance
        // would.
        let expected = if is_original { case.published("found") / 1e6 } else { case.threshold("independent share") };
        let why = format!(
            "{found} were found, a share of {share:.4}; for this generator and size there is no exact number, only an expected {expected:.4}"
        );
        let holds = held((share - expected).abs() <= tolerance);
        return Ok(case.judged(format!("{share:.4}"), holds, Verdict::NotTestableHere, why));
    };
    let exact = same && count == golden.found;
    let expected = golden.found as f64 / golden.read as f64;
    let readers = if same { readers } else { "not all readers found the same".into() };
    let why = format!(
        "{found} were found, {} follow from the key sequence for {} entries, and {readers} (published: 706,756 of 1,000,000)",
        number(golden.found as f64),
        number(golden.loaded as f64),
    );
    Ok(case.judged(number(count as f64), held((share - expected).abs() < tolerance), held(exact), why))
}
