//! Who is first: LDB-1 and LDB-2.

use super::case::{Case, NO_RATIO, ONE_REPETITION, Ratio, all, held};
use super::role::{BASELINE, ROLES, Role};
use super::verdict::{Judgement, Verdict};
use crate::published::DATA;
use crate::record::Record;
use crate::stats::median;
use crate::text::number::three_digits as number;
use crate::text::words::listed;

/// The engines of a chart with their repetitions, fastest first.
struct Chart<'a> {
    row: &'static str,
    engines: Vec<(&'a str, Vec<f64>)>,
}

impl<'a> Chart<'a> {
    /// The engine that is judged, in LevelDB's place unless it has its own, with the other two of
    /// the page.
    fn find(case: &Case<'a>, experiment: &str, row: &'static str) -> Result<Chart<'a>, String> {
        let mut engines = Vec::new();
        for engine in ROLES.map(|role| role.engine(case)) {
            let case = case.of(engine);
            let rates = case.rates(experiment, row, &[]);
            if rates.is_empty() {
                return Err(format!("the order of three engines is asked for, and {}", case.reason(experiment, row)));
            }
            engines.push((engine, rates));
        }
        let rate = |rates: &[f64]| median(rates).unwrap_or(0.0);
        engines.sort_by(|a, b| rate(&b.1).total_cmp(&rate(&a.1)));
        Ok(Chart { row, engines })
    }

    fn rates(&self, engine: &str) -> &[f64] {
        self.engines.iter().find(|(name, _)| *name == engine).map_or(&[], |(_, rates)| rates)
    }

    /// An engine over the fastest of the others.
    fn lead(&self, engine: &str) -> Option<Ratio> {
        let other = self.engines.iter().find(|(name, _)| *name != engine)?;
        Ratio::of(self.rates(engine), &other.1)
    }

    fn over(&self, engine: &str, other: &str) -> Option<Ratio> {
        Ratio::of(self.rates(engine), self.rates(other))
    }

    fn order(&self) -> String {
        let said = |(name, rates): &(&str, Vec<f64>)| format!("{name} {}", number(median(rates).unwrap_or(0.0)));
        let order: Vec<String> = self.engines.iter().map(said).collect();
        format!("{}: {}", self.row, order.join(", "))
    }
}

fn published_rate(row: &str, role: Role) -> f64 {
    let mut rates = DATA.published("leveldb-2011", BASELINE).filter(|record| record.unit == "ops/sec");
    let found = rates.find(|record| record.row == row && Role::of(record.answering()) == role);
    found.map_or(f64::NAN, |record| record.figure)
}

/// A role over the fastest of the others, as published.
fn published_lead(row: &str, role: Role) -> f64 {
    let others = ROLES.into_iter().filter(|other| *other != role);
    let best = others.map(|other| published_rate(row, other)).max_by(f64::total_cmp).unwrap_or(f64::NAN);
    published_rate(row, role) / best
}

const LED: [&str; 3] = ["readseq", "fillseq", "fillrandom"];

pub fn baseline(case: &Case<'_>) -> Result<Judgement, String> {
    let charts: Vec<Chart<'_>> = ["readseq", "readrandom", "fillseq", "fillrandom"]
        .into_iter()
        .map(|row| Chart::find(case, BASELINE, row))
        .collect::<Result<_, _>>()?;
    let orders: Vec<String> = charts.iter().map(Chart::order).collect();
    let role = Role::of(case.engine);
    let mut verdicts = Vec::new();
    let mut near = Vec::new();
    for chart in &charts {
        let led = LED.contains(&chart.row);
        // What is said of this engine in this chart, and the published ratio.
        let (ratio, published) = match (role, led) {
            (Role::LevelDb, true) | (Role::TreeDb, false) => (chart.lead(case.engine), published_lead(chart.row, role)),
            (Role::LevelDb, false) => (chart.lead("kyoto"), published_lead(chart.row, Role::TreeDb)),
            (Role::Sqlite, true) => {
                let published = published_rate(chart.row, Role::LevelDb) / published_rate(chart.row, Role::Sqlite);
                (chart.over("leveldb", "sqlite"), published)
            }
            _ => continue,
        };
        let ratio = ratio.ok_or(NO_RATIO)?;
        verdicts.push(ratio.above(1.0));
        near.push(held(case.near(ratio.value, published)));
    }
    let (of, count) = (verdicts.len(), verdicts.iter().filter(|verdict| **verdict == Verdict::Held).count());
    let said = match role {
        Role::LevelDb => format!("{} leads three charts, and TreeDB the random reads", case.engine),
        Role::TreeDb => "TreeDB leads the random reads".to_owned(),
        Role::Sqlite => "SQLite is slower than LevelDB in the other three".to_owned(),
    };
    let is_single = charts.iter().flat_map(|chart| &chart.engines).any(|(_, rates)| rates.len() < 2);
    let single = if is_single { format!(" ({ONE_REPETITION})") } else { String::new() };
    let why =
        format!("operations per second: {}; that {said} is so in {count} of {of} charts{single}", orders.join("; "));
    Ok(case.judged(format!("{count} of {of}"), all(verdicts), all(near), why))
}

const LARGE: &str = "large values";
const LARGE_ROWS: [&str; 2] = ["fillseq100K", "fillrand100K"];

pub fn large_values(case: &Case<'_>) -> Result<Judgement, String> {
    let (sequential, random) = (Chart::find(case, LARGE, LARGE_ROWS[0])?, Chart::find(case, LARGE, LARGE_ROWS[1])?);
    let role = Role::of(case.engine);
    let orders = format!("operations per second: {}; {}", sequential.order(), random.order());
    if role != Role::LevelDb {
        let charts: &[&Chart<'_>] = if role == Role::TreeDb { &[&random] } else { &[&sequential, &random] };
        let ratios: Vec<Ratio> =
            charts.iter().map(|chart| chart.over(case.engine, "leveldb")).collect::<Option<_>>().ok_or(NO_RATIO)?;
        let direction = all(ratios.iter().map(|ratio| ratio.above(1.0)));
        let said = listed(&ratios.iter().map(Ratio::text).collect::<Vec<_>>());
        let rows = if role == Role::TreeDb { "at random" } else { "in order and at random" };
        let why =
            format!("{orders}; over LevelDB that is {said} {rows}, and the bytes written are claimed of LevelDB only");
        let value = ratios.iter().map(Ratio::short).collect::<Vec<_>>().join(", ");
        return Ok(case.judged(value, direction, Verdict::NotTestableHere, why));
    }
    // Behind the fastest of the others: its own lead is below 1.
    let leads = [sequential.lead(case.engine).ok_or(NO_RATIO)?, random.lead(case.engine).ok_or(NO_RATIO)?];
    let order = Ratio::of(random.rates(case.engine), sequential.rates(case.engine)).ok_or(NO_RATIO)?;
    let direction = all([leads[0].below(1.0), leads[1].below(1.0), order.below(1.0)]);
    let (amplification, magnitude) = amplification(case);
    let rate = |experiment: &str, row: &str| {
        let records = case.records(experiment, row, &[]);
        median(records.iter().map(|record| record.mb_per_sec)).map_or("-".to_owned(), number)
    };
    let why = format!(
        "{orders}; {} is at {} and {} of the fastest other, its random writes at {} of its sequential ones, {amplification}; in bytes it writes \
         {} MB/s of large values and {} MB/s of small ones (published: 110 and 90)",
        case.engine,
        leads[0].text(),
        leads[1].text(),
        order.text(),
        rate(LARGE, LARGE_ROWS[0]),
        rate(BASELINE, "fillseq"),
    );
    let value = format!("{}, {}", leads[0].short(), leads[1].short());
    Ok(case.judged(value, direction, magnitude, why))
}

/// The values of the study compress to half. An engine that counts fewer bytes for each byte given
/// has not counted all that it writes.
const LEAST_WRITTEN: f64 = 0.5;

/// Bytes written for each byte given, in words, and whether that is as much as claimed.
fn amplification(case: &Case<'_>) -> (String, Verdict) {
    let factor = |row: &str| {
        let records = case.records(LARGE, row, &[]);
        let factors: Vec<f64> = records.into_iter().map(written_for_each_byte).collect::<Result<_, _>>()?;
        median(&factors).ok_or_else(|| NOT_REPORTED.to_owned())
    };
    match (factor(LARGE_ROWS[0]), factor(LARGE_ROWS[1])) {
        (Ok(sequential), Ok(random)) => {
            let limit = case.threshold("write amplification");
            let text = format!("it writes {} and {} bytes for each byte given", number(sequential), number(random));
            (text, held(sequential >= limit && random >= limit))
        }
        (Err(why), _) | (_, Err(why)) => (why, Verdict::NotTestableHere),
    }
}

const NOT_REPORTED: &str = "it does not report the bytes it writes";

/// The error is why it is not known, a clause of a sentence.
fn written_for_each_byte(record: &Record) -> Result<f64, String> {
    let counters = &record.counters;
    let (log, flushed) = (counters.wal_bytes, counters.flush_bytes);
    let all = log + flushed + counters.compaction_bytes;
    let has_log = record.flags.get("disable_wal").is_none_or(|value| value != "1");
    if all == 0 || record.bytes == 0 {
        return Err(NOT_REPORTED.to_owned());
    }
    let unknown = |what: &str| {
        Err(format!("it counts {what} in {}, so what it writes for each byte given is not known", record.row))
    };
    if log == 0 && has_log {
        return unknown("no bytes of its log");
    }
    if flushed == 0 {
        return unknown("no bytes of flushes or of files of large values");
    }
    let factor = all as f64 / record.bytes as f64;
    if factor < LEAST_WRITTEN {
        return unknown(&format!("only {} bytes for each byte given, too few to be all,", number(factor)));
    }
    Ok(factor)
}
