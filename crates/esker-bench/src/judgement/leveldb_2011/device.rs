//! What the device and the operating system have to do with it: LDB-5, LDB-10 and LDB-12.

use super::{BASELINE, Role, ratio};
use crate::judgement::case::{Case, Ratio, all, held, rates};
use crate::judgement::verdict::{Judgement, SURVIVORS, Verdict};
use crate::stats::median;
use crate::text::number::three_digits as number;

const SYNC: &str = "sync";
/// The yardstick of the experiment, and its row.
const DEVICE: (&str, &str) = ("device", "device sync");
const ROWS: [&str; 2] = ["fillseqsync", "fillrandsync"];

/// The engine over another, sequential and random.
fn over<'a>(case: &Case<'a>, other: &'a str) -> Result<[Ratio; 2], String> {
    let other = case.of(other);
    let of = |row: &str| {
        Ratio::of(&case.rates(SYNC, row, &[]), &other.rates(SYNC, row, &[])).ok_or_else(|| other.reason(SYNC, row))
    };
    Ok([of(ROWS[0])?, of(ROWS[1])?])
}

pub fn synchronous(case: &Case<'_>) -> Result<Judgement, String> {
    let order = ratio(case, (SYNC, ROWS[0]), (SYNC, ROWS[1]))?;
    let same = held((order.value - 1.0).abs() < case.threshold("order"));
    let rate = |row: &str| number(median(case.rates(SYNC, row, &[])).unwrap_or(0.0));
    let mut why = format!("{} synchronous writes a second in key order and {} at random", rate(ROWS[0]), rate(ROWS[1]));
    let role = Role::of(case.engine);
    let other = if role == Role::LevelDb { Role::Sqlite } else { Role::LevelDb };
    let (within, limit) = (case.threshold("within"), 1.0 / case.threshold("TreeDB slower"));
    let beside = match over(case, other.engine(case)) {
        Ok(ratios) => {
            why.push_str(&format!(", {} and {} times {}'s", ratios[0].text(), ratios[1].text(), other.name()));
            held(ratios.iter().all(|ratio| match role {
                Role::TreeDb => ratio.value <= limit,
                Role::LevelDb | Role::Sqlite => (1.0 / within..=within).contains(&ratio.value),
            }))
        }
        Err(missing) => {
            why.push_str(&format!(", with nothing beside it: {missing}"));
            Verdict::NotMeasured
        }
    };
    if let Some(share) = share_of_device(case) {
        why.push_str(&format!("; the device by itself commits {share}"));
    }
    let here = match (
        ratio(case, (SYNC, ROWS[0]), (BASELINE, "fillseq")),
        ratio(case, (SYNC, ROWS[1]), (BASELINE, "fillrandom")),
    ) {
        (Ok(sequential), Ok(random)) => format!(" (here {} and {})", number(sequential.value), number(random.value)),
        _ => String::new(),
    };
    let (said, magnitude) = printed_ratios(role);
    why.push_str(&format!("; {said}{here}"));
    let value = format!("{}, {}", rate(ROWS[0]), rate(ROWS[1]));
    Ok(case.judged(value, all([beside, same]), magnitude, why))
}

/// What becomes of the ratios that the page prints.
fn printed_ratios(role: Role) -> (&'static str, Verdict) {
    match role {
        Role::LevelDb => (
            "the printed ratios to the baseline, 0.003 and 0.015, do not follow from the figures: 100 / 779,000 = 0.00013 and \
             100 / 164,000 = 0.00061",
            Verdict::RefutedByArithmetic,
        ),
        Role::TreeDb => (
            "the printed ratios to the baseline, 0.0004 and 0.001, do not follow from the figures: 7 / 342,000 = 0.00002 and \
             8 / 88,500 = 0.00009",
            Verdict::RefutedByArithmetic,
        ),
        Role::Sqlite => (
            "the printed ratios to the baseline, 0.002 and 0.009, are those of a disk at 7200 rpm without write cache",
            Verdict::NotTestableHere,
        ),
    }
}

/// What the study measures without an engine, an append and a wait for the device, and how much of
/// that rate the engine reaches.
fn share_of_device(case: &Case<'_>) -> Option<String> {
    let device = case.of(DEVICE.0).rates(SYNC, DEVICE.1, &[]);
    let share = Ratio::of(&case.rates(SYNC, ROWS[0], &[]), &device)?;
    Some(format!("{} times a second, of which this is {}", number(median(&device)?), share.text()))
}

pub fn file_systems(case: &Case<'_>) -> Result<Judgement, String> {
    let records = case.records(SYNC, ROWS[0], &[]);
    let here = match (records.first(), median(rates(&records))) {
        (Some(record), Some(rate)) => {
            format!("these runs are on {} only, {} synchronous writes a second", record.host.file_system, number(rate))
        }
        _ => "these runs have no synchronous writes".to_owned(),
    };
    Ok(case.not_testable(String::new(), format!("the claim compares ext3 and ext4 on one disk, and {here}")))
}

pub fn killed(case: &Case<'_>) -> Result<Judgement, String> {
    let records = case.records("kill", SURVIVORS, &[]);
    let counts: Vec<(u64, u64)> = records.iter().filter_map(|record| Some((record.found?, record.ops))).collect();
    if counts.is_empty() {
        return Err(case.reason("kill", SURVIVORS));
    }
    // What was under way when the process died may be there as well.
    let verdict = held(counts.iter().all(|(found, acknowledged)| found >= acknowledged));
    let sum = |of: fn(&(u64, u64)) -> u64| number(counts.iter().map(of).sum::<u64>() as f64);
    let (found, acknowledged) = (sum(|count| count.0), sum(|count| count.1));
    let why = format!(
        "of {acknowledged} acknowledged entries {found} were there after the process was killed and the database opened again"
    );
    Ok(case.judged(format!("{found} of {acknowledged}"), verdict, verdict, why))
}
