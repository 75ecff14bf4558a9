//! What another configuration gains over the baseline: LDB-3, LDB-4, LDB-6 to LDB-9.

use super::role::{BASELINE, Role, pair, ratio};
use crate::judgement::case::{Case, Ratio, all, held, number};
use crate::judgement::verdict::{Judgement, Verdict};
use crate::stats::median;

const FILLS: [&str; 2] = ["fillseq", "fillrandom"];
const READS: [&str; 2] = ["readseq", "readrandom"];
const BATCHES: [&str; 2] = ["fillseqbatch", "fillrandbatch"];

fn short(pair: &[Ratio; 2]) -> String {
    format!("{}, {}", pair[0].short(), pair[1].short())
}

/// The published ratios of the role that this engine stands in; not numbers where the page has none.
fn published(case: &Case<'_>) -> [f64; 2] {
    let name = Role::of(case.engine).name();
    [case.published(&format!("{name} sequential")), case.published(&format!("{name} random"))]
}

fn said(case: &Case<'_>, pair: &[Ratio; 2]) -> String {
    let [sequential, random] = published(case);
    let there = if sequential.is_finite() {
        format!(" (published for {} {} and {})", Role::of(case.engine).name(), number(sequential), number(random))
    } else {
        String::new()
    };
    format!("{} times the baseline in key order and {} at random{there}", pair[0].text(), pair[1].text())
}

/// A small gain is not near a small loss, though both may be within the claim's factor of each other.
fn near(case: &Case<'_>, pair: &[Ratio; 2], why: &mut String) -> Verdict {
    let published = published(case);
    if !published.iter().all(|value| value.is_finite()) {
        return Verdict::NotTestableHere;
    }
    let pairs = || pair.iter().map(|ratio| ratio.value).zip(published);
    if pairs().any(|(ratio, published)| (ratio > 1.0) != (published > 1.0)) {
        why.push_str("; a gain is not near a published loss, nor a loss near a gain");
        return Verdict::NotHeld;
    }
    held(pairs().all(|(ratio, published)| case.near(ratio, published)))
}

/// One thing gained: an engine, and what is over what in it.
struct Gain<'c, 'a> {
    case: &'c Case<'a>,
    of: (&'static str, &'static str),
    to: (&'static str, &'static str),
}

/// A gain over another gain; the error is why there is none.
fn gain_over_gain(gain: &Gain<'_, '_>, other: &Gain<'_, '_>) -> Result<Ratio, String> {
    let rates = |gain: &Gain<'_, '_>| [gain.of, gain.to].map(|(experiment, row)| gain.case.rates(experiment, row, &[]));
    for gain in [gain, other] {
        ratio(gain.case, gain.of, gain.to)?;
    }
    let ([a, b], [c, d]) = (rates(gain), rates(other));
    Ratio::of_ratios([&a, &b, &c, &d]).ok_or_else(|| "a rate of zero has no ratio".into())
}

/// The clause that one gain is larger than another: judged and told, or not measured and told why.
fn more(name: &str, gain: &Gain<'_, '_>, other: &Gain<'_, '_>, why: &mut String) -> Verdict {
    match gain_over_gain(gain, other) {
        Ok(ratio) => {
            why.push_str(&format!("; {name}: {} times", ratio.text()));
            ratio.above(1.0)
        }
        Err(missing) => {
            why.push_str(&format!("; {name}: not measured, for {missing}"));
            Verdict::NotMeasured
        }
    }
}

pub fn batches(case: &Case<'_>) -> Result<Judgement, String> {
    let gains = pair(case, "batches", BATCHES, FILLS)?;
    let limit = case.threshold("direction above");
    let mut verdicts = vec![gains[0].above(limit), gains[1].above(limit)];
    let mut why = format!("batches of 1000 write {}", said(case, &gains));
    let (leveldb, sqlite) = match Role::of(case.engine) {
        Role::LevelDb => (*case, case.of("sqlite")),
        _ => (case.of("leveldb"), *case),
    };
    let role = Role::of(case.engine);
    let name = if role == Role::LevelDb { case.engine } else { "leveldb" };
    let gain = |case, order: usize| Gain { case, of: ("batches", BATCHES[order]), to: (BASELINE, FILLS[order]) };
    match role {
        Role::LevelDb | Role::Sqlite => {
            if role == Role::LevelDb {
                let clause = format!("the gain of {name} at random over that in key order");
                verdicts.push(more(&clause, &gain(case, 1), &gain(case, 0), &mut why));
            }
            for (order, called) in ["in key order", "at random"].into_iter().enumerate() {
                let clause = format!("SQLite's gain {called} over that of {name}");
                verdicts.push(more(&clause, &gain(&sqlite, order), &gain(&leveldb, order), &mut why));
            }
        }
        Role::TreeDb => why.push_str("; the page has no batches of TreeDB"),
    }
    Ok(case.judged(short(&gains), all(&verdicts), near(case, &gains, &mut why), why))
}

pub fn random_batches(case: &Case<'_>) -> Result<Judgement, String> {
    let slower = ratio(case, ("batches", BATCHES[0]), ("batches", BATCHES[1]))?;
    let (from, to) = (case.threshold("magnitude from"), case.threshold("magnitude to"));
    let why = format!(
        "sequential batches are {} times as fast as random ones, where {} was published and {} to {} counts as that",
        slower.text(),
        number(case.published("ratio")),
        number(from),
        number(to)
    );
    let magnitude = held(slower.value >= from && slower.value <= to);
    Ok(case.judged(slower.short(), slower.above(1.0), magnitude, why))
}

/// Why leaving compression out changes nothing for this engine, if it does not.
fn nothing_to_leave_out(case: &Case<'_>, experiment: &str, row: &str) -> Option<String> {
    let setting = |experiment: &str| {
        let records = case.records(experiment, row, &[]);
        let settings = &records.first()?.settings;
        settings.iter().find(|(name, _)| name == "compression").map(|(_, value)| value.clone())
    };
    let with = setting(BASELINE)?;
    let without = setting(experiment);
    match Role::of(case.engine) {
        Role::Sqlite => Some("SQLite does not compress, and the page repeats its baseline here".into()),
        _ if with == "none" => Some(format!("{} does not compress, so there is nothing to leave out", case.engine)),
        _ if without.as_ref() == Some(&with) => Some(format!("{} kept its compression ({with}) in both", case.engine)),
        _ => None,
    }
}

pub fn compression(case: &Case<'_>) -> Result<Judgement, String> {
    const EXPERIMENT: &str = "no compression";
    if let Some(why) = nothing_to_leave_out(case, EXPERIMENT, FILLS[1]) {
        return Ok(case.not_testable(String::new(), why));
    }
    let gains = pair(case, EXPERIMENT, FILLS, FILLS)?;
    let bytes = |experiment: &str| {
        let bytes =
            case.records(experiment, FILLS[1], &[]).iter().map(|record| record.disk_bytes as f64).collect::<Vec<_>>();
        median(&bytes).map_or("-".to_owned(), |bytes| number(bytes / 1_048_576.0))
    };
    let verdict = |ratio: &Ratio| match Role::of(case.engine) {
        Role::TreeDb => ratio.above(1.0),
        _ => ratio.below(1.0),
    };
    let mut why = format!(
        "without compression it writes {}; the database takes {} MiB after the random load instead of {}",
        said(case, &gains),
        bytes(EXPERIMENT),
        bytes(BASELINE)
    );
    Ok(case.judged(short(&gains), all(&[verdict(&gains[0]), verdict(&gains[1])]), near(case, &gains, &mut why), why))
}

pub fn more_memory(case: &Case<'_>) -> Result<Judgement, String> {
    let gains = pair(case, "more memory", FILLS, FILLS)?;
    let (from, to) = (case.threshold("flat from"), case.threshold("flat to"));
    let flat = |ratio: &Ratio| ratio.value >= from && ratio.value <= to;
    let why = format!(
        "with 128 MB of memory it writes {}; {} to {} counts as no gain",
        said(case, &gains),
        number(from),
        number(to)
    );
    let (direction, magnitude) = match Role::of(case.engine) {
        Role::Sqlite => {
            let both = held(gains.iter().all(flat));
            (both, both)
        }
        _ => {
            let enough = gains[1].value > case.threshold("random above");
            (gains[1].above(1.0), held(enough && flat(&gains[0])))
        }
    };
    Ok(case.judged(short(&gains), direction, magnitude, why))
}

pub fn larger_caches(case: &Case<'_>) -> Result<Judgement, String> {
    const EXPERIMENT: &str = "larger caches";
    let gains = pair(case, EXPERIMENT, READS, READS)?;
    let limit = case.threshold("direction above");
    let mut verdicts = vec![gains[0].above(limit), gains[1].above(limit)];
    let mut why = format!("with 128 MB of cache it reads {}", said(case, &gains));
    let tree = case.of("kyoto");
    // TreeDB is compared with the other two and with itself, the others with TreeDB only.
    let others = match Role::of(case.engine) {
        Role::TreeDb => vec![("leveldb", 0), ("leveldb", 1), ("sqlite", 0), ("sqlite", 1), ("kyoto", 0)],
        _ => vec![(case.engine, 0), (case.engine, 1)],
    };
    for (engine, order) in others {
        let case = case.of(engine);
        let gain = |case, row| Gain { case, of: (EXPERIMENT, row), to: (BASELINE, row) };
        let clause = format!("TreeDB's gain at random over that of {engine} in {}", READS[order]);
        verdicts.push(more(&clause, &gain(&tree, READS[1]), &gain(&case, READS[order]), &mut why));
    }
    Ok(case.judged(short(&gains), all(&verdicts), near(case, &gains, &mut why), why))
}

pub fn uncompressed_reads(case: &Case<'_>) -> Result<Judgement, String> {
    const EXPERIMENT: &str = "no compression reads";
    if let Some(why) = nothing_to_leave_out(case, EXPERIMENT, READS[1]) {
        return Ok(case.not_testable(String::new(), why));
    }
    let gains = pair(case, EXPERIMENT, READS, READS)?;
    let (from, to) = (case.threshold("magnitude from"), case.threshold("magnitude to"));
    let mut why = format!("without compression it reads {}", said(case, &gains));
    if Role::of(case.engine) == Role::TreeDb {
        why.push_str("; the 3.60 that is printed divides 1,230,000 by the 342,000 of sequential writes, over the 1,010,000 of reads it is 1.22");
    }
    let magnitude = held(gains.iter().all(|ratio| ratio.value >= from && ratio.value <= to));
    Ok(case.judged(short(&gains), all(&[gains[0].above(1.0), gains[1].above(1.0)]), magnitude, why))
}
