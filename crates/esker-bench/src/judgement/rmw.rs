//! Read-modify-write against merge: RMW-1 to RMW-7.

use super::case::{Case, NO_RATIO, Ratio, all, common_size, held, micros, rates};
use super::verdict::{Judgement, Verdict};
use crate::record::Record;
use crate::stats::median;
use crate::text::number::{shown, three_digits as number};
use crate::text::words::{counted, listed};
use std::collections::BTreeSet;

const UPDATE: &str = "updaterandom";
const MERGE: &str = "mergerandom";
const SEED_THREADS: &[(&str, &str)] = &[("threads", "10")];

/// Both benchmarks at the same size, the largest that both were run at.
struct Pair<'a> {
    num: u64,
    update: Vec<&'a Record>,
    merge: Vec<&'a Record>,
}

impl<'a> Pair<'a> {
    /// Of the size `num`, or else of the largest there is. The error is why there is none.
    fn find(
        case: &Case<'a>,
        experiment: &str,
        variables: &[(&str, &str)],
        num: Option<u64>,
    ) -> Result<Pair<'a>, String> {
        let sizes = [UPDATE, MERGE].map(|row| case.sizes(experiment, row, variables));
        if let Some((_, row)) = sizes.iter().zip([UPDATE, MERGE]).find(|(sizes, _)| sizes.is_empty()) {
            return Err(case.reason(experiment, row));
        }
        let num = match num {
            None => common_size(&sizes)
                .ok_or_else(|| format!("updates and merges of {experiment} were measured at different sizes only"))?,
            Some(num) if sizes.iter().all(|sizes| sizes.contains(&num)) => num,
            Some(num) => return Err(format!("{experiment} was not measured with {} keys", number(num as f64))),
        };
        let records = |row| case.records_of_size(experiment, row, variables, Some(num));
        Ok(Pair { num, update: records(UPDATE), merge: records(MERGE) })
    }

    /// The sizes that both were run at.
    fn sizes(case: &Case<'a>, experiment: &str, variables: &[(&str, &str)]) -> BTreeSet<u64> {
        let of = |row| case.sizes(experiment, row, variables);
        of(UPDATE).intersection(&of(MERGE)).copied().collect()
    }

    /// Merges over updates. The error is why there is no ratio.
    fn ratio(&self) -> Result<Ratio, String> {
        Ok(Ratio::of(&rates(&self.merge), &rates(&self.update)).ok_or(NO_RATIO)?)
    }

    /// Whether what was measured as a merge was one.
    fn is_merge(&self) -> bool {
        !self.merge.iter().any(|record| record.message.contains("no merge"))
    }
}

pub fn speed_up(case: &Case<'_>) -> Result<Judgement, String> {
    let pair = Pair::find(case, "seed", SEED_THREADS, None)?;
    let ratio = pair.ratio()?;
    let [update, merge] = shown([&pair.update, &pair.merge].map(|side| median(rates(side)).unwrap_or(0.0)));
    if !pair.is_merge() {
        let why = format!(
            "{} has no merge: its mergerandom reads, adds and writes back, {merge} a second against {update} of updaterandom",
            case.engine
        );
        return Ok(case.not_testable(ratio.short(), why));
    }
    let seconds = |records: &[&Record]| median(records.iter().map(|record| record.wall_s));
    let times = match (seconds(&pair.update), seconds(&pair.merge)) {
        (Some(update), Some(merge)) if merge > 0.0 => number(update / merge),
        _ => "-".into(),
    };
    let (from, to) = (case.threshold("magnitude from"), case.threshold("magnitude to"));
    let [published, by_time] = shown(["ratio", "ratio of total times"].map(|name| case.published(name)));
    let mut why = format!(
        "with {} keys mergerandom does {merge} a second and updaterandom {update}: a ratio of {} where {published} was published (by total time {times}, \
         published {by_time})",
        number(pair.num as f64),
        ratio.text(),
    );
    match Pair::find(case, "unscaled", SEED_THREADS, Some(pair.num)).map(|pair| pair.ratio()) {
        Ok(Ok(unscaled)) => {
            why.push_str(&format!("; with buffers as large as the published ones it is {}", unscaled.text()));
        }
        // Rows there are, but none to stand beside these.
        Err(missing) if !Pair::sizes(case, "unscaled", SEED_THREADS).is_empty() => {
            why.push_str(&format!("; with buffers as large as the published ones it is not known: {missing}"));
        }
        _ => {}
    }
    let direction = ratio.above(case.threshold("direction above"));
    Ok(case.judged(ratio.short(), direction, held(ratio.value >= from && ratio.value <= to), why))
}

/// What this engine does with so many threads, for the sentence.
fn with_threads(case: &Case<'_>, (experiment, threads): (&str, u32), num: u64) -> Option<String> {
    let pair = Pair::find(case, experiment, &[("threads", &threads.to_string())], Some(num)).ok()?;
    let share = pair.update.first().and_then(|record| found_share(record));
    let share = share.map_or_else(String::new, |share| format!(", {} % found", number(share * 100.0)));
    let rate = |records: &[&Record]| number(median(rates(records)).unwrap_or(0.0));
    Some(format!("{}: {} and {} a second{share}", counted(threads, "thread"), rate(&pair.update), rate(&pair.merge)))
}

pub fn threads(case: &Case<'_>) -> Result<Judgement, String> {
    let mut why = "33,498 operations a second for 14,926 s are 499,991,148 operations, ten times 50,000,000; 1e6 / 33,498 = 29.852, \
                   the printed micros/op, which is therefore wall time over the operations of all threads; and 10 threads find \
                   1 - (1 - exp(-10)) / 10 = 90.0005 % of their keys, one thread 36.79 %, where 90.008 % was printed"
        .to_owned();
    let places = [("threads", 1), ("threads", 2), ("seed", 10)];
    let sizes = places.map(|(experiment, count)| Pair::sizes(case, experiment, &[("threads", &count.to_string())]));
    let measured: Vec<BTreeSet<u64>> = sizes.into_iter().filter(|sizes| !sizes.is_empty()).collect();
    if let Some(num) = common_size(&measured) {
        let here: Vec<String> = places.into_iter().filter_map(|place| with_threads(case, place, num)).collect();
        let size = number(num as f64);
        why.push_str(&format!(
            " (here, updates and merges of {} over {size} keys with {})",
            case.engine,
            here.join("; ")
        ));
    } else if !measured.is_empty() {
        why.push_str(" (here, the numbers of threads were measured at different sizes only)");
    }
    refuted(case, "10 threads".into(), why)
}

fn refuted(case: &Case<'_>, value: String, why: String) -> Result<Judgement, String> {
    Ok(case.judged(value, Verdict::RefutedByArithmetic, Verdict::RefutedByArithmetic, why))
}

pub fn iterations(case: &Case<'_>) -> Result<Judgement, String> {
    let mut why = "10 threads times 50,000,000 are 500,000,000 operations, as 33,498 a second for 14,926 s (499,991,148) and 105,892 a \
                   second for 4,733 s (501,186,836, of which about 11 s lie outside the timed part) say too"
        .to_owned();
    if let Some(record) = case.records("seed", UPDATE, SEED_THREADS).first() {
        why.push_str(&format!(
            " (here {} did {} operations with {} over {} keys)",
            case.engine,
            number(record.ops as f64),
            counted(record.threads, "thread"),
            number(record.num as f64)
        ));
    }
    refuted(case, "500,000,000".into(), why)
}

fn found_share(record: &Record) -> Option<f64> {
    let per_thread = record.ops as f64 / f64::from(record.threads.max(1));
    record.found.filter(|_| per_thread > 0.0).map(|found| found as f64 / per_thread)
}

/// The share that one of `threads` threads finds when each does as many updates as there are keys.
fn expected_share(threads: u32) -> f64 {
    let threads = f64::from(threads.max(1));
    1.0 - (1.0 - (-threads).exp()) / threads
}

pub fn share_found(case: &Case<'_>) -> Result<Judgement, String> {
    let mut records = case.records("seed", UPDATE, SEED_THREADS);
    for threads in ["1", "2"] {
        records.extend(case.records("threads", UPDATE, &[("threads", threads)]));
    }
    let shares: Vec<(u32, f64)> =
        records.iter().filter_map(|record| Some((record.threads, found_share(record)?))).collect();
    if shares.is_empty() {
        return Err(case.reason("seed", UPDATE));
    }
    let tolerance = case.threshold("tolerance");
    let near = |(threads, share): &(u32, f64)| (share - expected_share(*threads)).abs() < tolerance;
    let said = |(threads, share): &(u32, f64)| {
        format!("{share:.6} with {} (expected {:.6})", counted(*threads, "thread"), expected_share(*threads))
    };
    let ten = shares.iter().find(|(threads, _)| *threads == 10);
    let published = case.published("share");
    let magnitude = ten.map_or(Verdict::NotMeasured, |(_, share)| held((share - published).abs() < tolerance));
    let mut listing: Vec<String> = shares.iter().map(said).collect();
    // Repetitions find the same where the generator is the same.
    listing.dedup();
    let listing = listed(&listing);
    let value = ten.or(shares.first()).map_or_else(String::new, |(_, share)| format!("{share:.5}"));
    let why = format!("one thread found {listing}, where {published:.6} was published for 10");
    Ok(case.judged(value, held(shares.iter().all(near)), magnitude, why))
}

pub fn operand(case: &Case<'_>) -> Result<Judgement, String> {
    let mut why = "the program merges 8 bytes of its pool of values, read as a little-endian number, not 1".to_owned();
    let num = common_size(&["random", "one"].map(|operand| case.sizes("operand", MERGE, &[("operand", operand)])));
    let of_operand = |operand| case.records_of_size("operand", MERGE, &[("operand", operand)], num);
    let ratio = num.and_then(|_| Ratio::of(&rates(&of_operand("random")), &rates(&of_operand("one"))));
    let value = ratio.map_or_else(|| "random bytes".to_owned(), |ratio| ratio.short());
    match ratio {
        Some(ratio) => {
            let verdict = match ratio.interval {
                Some(_) if ratio.shows_nothing() => ", so no difference is shown",
                Some(_) => ", which is a difference",
                None => "",
            };
            why.push_str(&format!(
                "; here {} merges random operands at {} times the rate of ones{verdict}",
                case.engine,
                ratio.text()
            ));
        }
        None => why.push_str(&format!("; what that costs was not measured: {}", case.reason("operand", MERGE))),
    }
    refuted(case, value, why)
}

/// What it is called, its experiment, and its variables.
type Place = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// The ratio of RMW-1 with other blocks and caches.
pub fn mechanism(case: &Case<'_>) -> Result<Judgement, String> {
    let places: [Place; 4] = [
        ("64 KiB blocks and 8 MiB of cache", "seed", SEED_THREADS),
        ("64 KiB blocks, all cached", "cached", &[]),
        ("4 KiB blocks and 8 MiB of cache", "small blocks", &[("cache", "8 MiB")]),
        ("4 KiB blocks, all cached", "small blocks", &[("cache", "all")]),
    ];
    let sizes = places.map(|(_, experiment, variables)| Pair::sizes(case, experiment, variables));
    let measured: Vec<BTreeSet<u64>> = sizes.into_iter().filter(|sizes| !sizes.is_empty()).collect();
    // What is not there at all says so below.
    let num = common_size(&measured);
    if num.is_none() && !measured.is_empty() {
        return Err("these blocks and caches were measured at different sizes only, which do not compare".into());
    }
    let pairs = places.map(|(name, experiment, variables)| (name, Pair::find(case, experiment, variables, num)));
    let said = |(name, pair): &(&str, Result<Pair<'_>, String>)| {
        let ratio = pair.as_ref().ok()?.ratio().ok()?;
        Some(format!("{} with {name}", ratio.short()))
    };
    let all_said: Vec<String> = pairs.iter().filter_map(said).collect();
    let [(_, dear), _, _, (_, cheap)] = pairs;
    let (dear, cheap) = (dear?, cheap?);
    let [a, b, c, d] = [&cheap.merge, &cheap.update, &dear.merge, &dear.update].map(|side| rates(side));
    let (gain, left) = (dear.ratio()?, cheap.ratio()?);
    let change = Ratio::of_ratios([&a, &b, &c, &d]).ok_or(NO_RATIO)?;
    if !dear.is_merge() {
        return Ok(case.not_testable(String::new(), format!("{} has no merge, so no read is saved", case.engine)));
    }
    let mut why = format!("merging over updating is {}", listed(&all_said));
    if gain.value <= 1.0 || gain.shows_nothing() {
        let verdict = gain.above(1.0);
        // With an interval around 1 nobody knows that there is none.
        let shown = if gain.shows_nothing() { "no gain is shown" } else { "there is no gain" };
        why.push_str(&format!("; {shown} that could shrink"));
        return Ok(case.judged(left.short(), verdict, verdict, why));
    }
    let share = left.value.ln().abs() / gain.value.ln();
    why.push_str(&format!(
        "; the ratio changes by {}, and {} % of the gain is left",
        change.text(),
        number(share * 100.0)
    ));
    // Nearer to 1 in either sense: a ratio that falls far below 1 has not lost a gain but found a
    // loss.
    let direction = all([change.below(1.0), held(share < 1.0)]);
    Ok(case.judged(left.short(), direction, held(share <= case.threshold("remaining gain")), why))
}

pub fn deferred(case: &Case<'_>) -> Result<Judgement, String> {
    const EXPERIMENT: &str = "deferred";
    let name = |load: &str, after: &str| format!("readrandom after {load}{after}");
    let sizes = |after| [UPDATE, MERGE].map(|load| case.sizes(EXPERIMENT, &name(load, after), &[]));
    let (reads, compacted) = (sizes(""), sizes(" after compact"));
    // Without any read after compaction the first half still has its figures.
    let all_four: Vec<BTreeSet<u64>> = reads.iter().chain(&compacted).cloned().collect();
    let Some(num) = common_size(&all_four).or_else(|| common_size(&reads)) else {
        return Err(match reads.iter().any(BTreeSet::is_empty) {
            true => case.reason(EXPERIMENT, &name(if reads[0].is_empty() { UPDATE } else { MERGE }, "")),
            false => "reads after updates and after merges were measured at different sizes only".to_owned(),
        });
    };
    let rows = |load, after| micros(&case.records_of_size(EXPERIMENT, &name(load, after), &[], Some(num)));
    let (updated, merged) = (rows(UPDATE, ""), rows(MERGE, ""));
    let before = Ratio::of(&merged, &updated).ok_or("a latency of zero has no ratio")?;
    let (updated_after, merged_after) = (rows(UPDATE, " after compact"), rows(MERGE, " after compact"));
    let middle = |values: &[f64]| number(median(values).unwrap_or(f64::NAN));
    let mut why = format!(
        "a random read takes {} us after merges and {} us after updates, {} times as long",
        middle(&merged),
        middle(&updated),
        before.text()
    );
    let mut direction = before.above(1.0);
    let change = Ratio::of_ratios([&merged_after, &updated_after, &merged, &updated]);
    match Ratio::of(&merged_after, &updated_after).zip(change) {
        Some((after, change)) => {
            why.push_str(&format!(
                "; once compacted {} and {} us, {} times as long: compaction changes the ratio by {}",
                middle(&merged_after),
                middle(&updated_after),
                after.text(),
                change.text()
            ));
            direction = all([direction, change.below(1.0)]);
        }
        None => {
            why.push_str("; reads after compaction were not measured at this size");
            direction = all([direction, Verdict::NotMeasured]);
        }
    }
    why.push_str(" (no figure was published)");
    Ok(case.judged(before.short(), direction, Verdict::NotTestableHere, why))
}
