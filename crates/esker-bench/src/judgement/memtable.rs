//! Write buffer and file size: MEM-1 to MEM-8, MEM-10 and MEM-11. MEM-9, the reason, is in
//! `missing_keys`.

use super::case::{Case, held, micros};
use super::verdict::{Judgement, Verdict};
use crate::published::{DATA, GRID_MIB, Grid};
use crate::record::Record;
use crate::stats::{bootstrap_interval, extent, geometric_mean, median};
use crate::text::number::{shown, three_digits as number};
use crate::text::words::listed;
use std::collections::BTreeSet;

const SEED: u32 = 301;

pub const FILLSEQ: &str = "fillseq";
pub const FILLRANDOM: &str = "fillrandom";
pub const AFTER_FILLSEQ: &str = "readrandom after fillseq";
pub const AFTER_FILLRANDOM: &str = "readrandom after fillrandom";

/// The medians. The error is why there are none.
fn grid(case: &Case<'_>, row: &str) -> Result<Grid, String> {
    let mut grid = [[0.0; 5]; 5];
    let mut cells = 0;
    let mut sizes = BTreeSet::new();
    for (line, buffer) in grid.iter_mut().zip(GRID_MIB) {
        for (cell, file) in line.iter_mut().zip(GRID_MIB) {
            let records = case.records("grid", row, &[("write_buffer_mib", buffer), ("max_file_mib", file)]);
            sizes.extend(records.iter().map(|record| record.num));
            if let Some(value) = median(micros(&records)).filter(|value| *value > 0.0) {
                *cell = value;
                cells += 1;
            }
        }
    }
    match (cells, sizes.len()) {
        (25, 1) => Ok(grid),
        (25, _) => Err(format!("the cells of {row} are of {} different sizes", sizes.len())),
        (0, _) => Err(case.reason("grid", row)),
        _ => Err(format!("{cells} of the 25 cells of {row} are measured, and the claim is about all of them")),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn row_means(grid: &Grid) -> Vec<f64> {
    grid.iter().map(|line| mean(line)).collect()
}

fn joined(values: &[f64]) -> String {
    listed(&values.iter().map(|value| number(*value)).collect::<Vec<_>>())
}

pub fn flat(case: &Case<'_>, row: &str) -> Result<Judgement, String> {
    let cells = grid(case, row)?.concat();
    let (least, greatest) = extent(&cells).unwrap_or((0.0, 0.0));
    let ratio = greatest / least;
    let published = case.published("ratio");
    let limit = case.threshold("direction to");
    let most = 1.0 + (published - 1.0) * case.threshold("factor");
    let verdicts = [held(ratio <= limit), held(ratio <= most)];
    let [least, greatest, limit] = shown([least, greatest, limit]);
    let why = format!(
        "the 25 cells lie between {least} and {greatest} us: a ratio of {ratio:.3} where {published:.3} was published, {limit} allowed for the direction \
         and {most:.3} for the magnitude"
    );
    Ok(case.judged(format!("{ratio:.3}"), verdicts[0], verdicts[1], why))
}

pub fn larger_buffer(case: &Case<'_>) -> Result<Judgement, String> {
    let grid = grid(case, FILLRANDOM)?;
    let ratios: Vec<f64> = (0..5).map(|column| grid[0][column] / grid[4][column]).collect();
    let falls = |column: usize| (0..4).filter(|line| grid[line + 1][column] < grid[*line][column]).count();
    let steps: usize = (0..5).map(falls).sum();
    let wanted = case.threshold("steps down");
    let direction = held(ratios.iter().all(|ratio| *ratio > 1.0) && steps as f64 >= wanted);
    let limit = case.threshold("magnitude above");
    let magnitude = held(ratios.iter().all(|ratio| *ratio > limit));
    let (least, greatest) = extent(&ratios).unwrap_or((0.0, 0.0));
    let [least, greatest, limit, wanted, published] =
        shown([least, greatest, limit, wanted, case.published("steps down")]);
    let why = format!(
        "from 2 to 32 MiB of buffer the latency falls by factors of {} for the five file sizes (published 2.42 to 3.07, wanted above {limit}), \
         and {steps} of 20 doublings lower it (published {published}, wanted {wanted})",
        joined(&ratios),
    );
    Ok(case.judged(format!("{least}..{greatest}, {steps}/20"), direction, magnitude, why))
}

pub fn larger_files(case: &Case<'_>) -> Result<Judgement, String> {
    let grid = grid(case, FILLRANDOM)?;
    let best = |line: &[f64; 5]| extent(line).map_or(f64::NAN, |(least, _)| line[0] / least);
    let ratios: Vec<f64> = grid.iter().map(best).collect();
    // The best of five is below the first by noise alone; the mean of the other four is not.
    let others: Vec<f64> = grid.iter().map(|line| line[0] / mean(&line[1..])).collect();
    let interval = interval(&others);
    let (limit, wanted) = (case.threshold("row above"), case.threshold("rows"));
    let rows = ratios.iter().filter(|ratio| **ratio > limit).count();
    let direction = shown_by(interval, rows as f64 >= wanted && interval.0 > 1.0);
    let all: Vec<f64> = GRID_MIB.iter().map(|size| case.published(size)).collect();
    let (here, there) = (geometric_mean(&ratios).unwrap_or(f64::NAN), geometric_mean(&all).unwrap_or(f64::NAN));
    let magnitude = held(case.near(here - 1.0, there - 1.0));
    let middle = median(&others).unwrap_or(f64::NAN);
    let [limit, here, there, middle, low, high] = shown([limit, here, there, middle, interval.0, interval.1]);
    let why = format!(
        "files of 2 MiB against the best size cost factors of {} for the five buffers, {rows} of them above {limit}; their mean is {here} where \
         {there} was published, and against the mean of the other sizes the factor is {middle} (95 % interval {low} to {high} over the five buffers)",
        joined(&ratios),
    );
    Ok(case.judged(format!("{here}, {rows}/5"), direction, magnitude, why))
}

pub fn diminishing(case: &Case<'_>) -> Result<Judgement, String> {
    let means = row_means(&grid(case, FILLRANDOM)?);
    let falls: Vec<f64> = means.windows(2).map(|pair| pair[0] - pair[1]).collect();
    let shrinks = falls.windows(2).all(|pair| pair[1] < pair[0]);
    let each_falls = falls.iter().all(|fall| *fall > 0.0);
    let whole = means[0] / means[4];
    let published = case.published("2") / case.published("32");
    let magnitude = held(case.near(whole, published));
    let [from, to, whole, published] = shown([means[0], means[4], whole, published]);
    let why = format!(
        "with every doubling of the buffer the mean latency falls by {} us (published 2.45, 1.92, 1.28 and 0.44; each is to be above 0 and \
         below the one before), from {from} to {to} us, a factor of {whole} where {published} was published",
        joined(&falls),
    );
    let value = falls.iter().map(|fall| number(-fall)).collect::<Vec<_>>().join(" ");
    Ok(case.judged(value, held(shrinks && each_falls), magnitude, why))
}

/// Of a mean over columns or cells; of too few nothing is known.
fn interval(values: &[f64]) -> (f64, f64) {
    bootstrap_interval(values, SEED).unwrap_or((0.0, f64::MAX))
}

/// An interval that holds 1 shows nothing.
fn shown_by((low, high): (f64, f64), holds: bool) -> Verdict {
    if low <= 1.0 && high >= 1.0 { Verdict::NoDifferenceShown } else { held(holds) }
}

fn cellwise(slow: &Grid, fast: &Grid) -> Vec<f64> {
    slow.concat().iter().zip(fast.concat()).map(|(slow, fast)| slow / fast).collect()
}

pub fn slower(case: &Case<'_>, slow: &str, fast: &str) -> Result<Judgement, String> {
    let ratios = cellwise(&grid(case, slow)?, &grid(case, fast)?);
    let limit = case.threshold("direction above");
    let above = ratios.iter().filter(|ratio| **ratio > limit).count();
    let direction = if above == 25 { Verdict::Held } else { shown_by(interval(&ratios), false) };
    let published = DATA.grid(slow).zip(DATA.grid(fast)).map(|(slow, fast)| cellwise(&slow, &fast));
    let there = published.and_then(|ratios| geometric_mean(&ratios)).unwrap_or(f64::NAN);
    let here = geometric_mean(&ratios).unwrap_or(f64::NAN);
    let (least, greatest) = extent(&ratios).unwrap_or((0.0, 0.0));
    let magnitude = held(case.near(here, there));
    let [least, greatest, limit, here, there] = shown([least, greatest, limit, here, there]);
    let [from, to] = shown(["least", "greatest"].map(|name| case.published(name)));
    let why = format!(
        "{slow} over {fast} is {least} to {greatest} (published {from} to {to}), above {limit} in {above} of 25 cells; the geometric mean is {here} \
         where {there} was published"
    );
    Ok(case.judged(format!("{here} ({least}..{greatest})"), direction, magnitude, why))
}

pub fn reads_and_buffer(case: &Case<'_>) -> Result<Judgement, String> {
    let grid = grid(case, AFTER_FILLRANDOM)?;
    let means = row_means(&grid);
    let ratio = means[4] / means[0];
    let columns: Vec<f64> = (0..5).map(|column| grid[4][column] / grid[0][column]).collect();
    let interval = interval(&columns);
    let direction = shown_by(interval, ratio > case.threshold("direction above"));
    let published = case.published("ratio");
    let magnitude = held(case.near(ratio, published));
    let [ratio, published, low, high] = shown([ratio, published, interval.0, interval.1]);
    let why = format!(
        "the mean latency is {} us for the five buffers, so 32 MiB over 2 MiB is {ratio} where {published} was published (95 % interval of the five \
         columns {low} to {high})",
        joined(&means),
    );
    Ok(case.judged(ratio, direction, magnitude, why))
}

pub fn comparisons(case: &Case<'_>) -> Result<Judgement, String> {
    let records = case.records("grid", FILLRANDOM, &[("write_buffer_mib", "2"), ("max_file_mib", "32")]);
    if records.is_empty() {
        return Err(case.reason("grid", FILLRANDOM));
    }
    let per_entry = |record: &&Record| Some(record.counters.comparisons? as f64 / record.ops as f64);
    let Some(value) = median(records.iter().filter_map(per_entry)) else {
        return Ok(case.not_testable(String::new(), format!("{} does not report key comparisons", case.engine)));
    };
    let (from, to) = (case.threshold("from"), case.threshold("to"));
    let published = case.published("per entry");
    let verdicts = [held(value >= from && value <= to), held(case.near(value, published))];
    let [value, published, from, to] = shown([value, published, from, to]);
    let why = format!(
        "{value} comparisons per entry of fillrandom with a buffer of 2 MiB and files of 32 MiB, those of the background included, where {published} \
         were published and {from} to {to} are expected of a skip list"
    );
    Ok(case.judged(value, verdicts[0], verdicts[1], why))
}

pub fn found(case: &Case<'_>) -> Result<Judgement, String> {
    let rows = case.measured.select(&case.query("grid", AFTER_FILLRANDOM, &[]));
    let counted: Vec<(&Record, u64)> = rows.iter().filter_map(|row| Some((row.record, row.record.found?))).collect();
    let (first, count) = counted.first().copied().ok_or_else(|| case.reason("grid", AFTER_FILLRANDOM))?;
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
