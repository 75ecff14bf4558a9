//! The two plots of a group: latency by percentile, and throughput over time.

use super::blocks::Plot;
use super::engine_style::{Style, display_name, listed};
use super::groups::Group;
use super::measured::Measured;
use super::plot::{Axis, Curve, draw};
use crate::record::Record;
use crate::stats::median;
use crate::text::number;

/// The tail is plotted to one operation in this many.
const RAREST: f64 = 1e6;
/// A plot over time has about this many points from left to right, at most.
const POINTS_OVER_TIME: f64 = 120.0;
/// Two scales that differ by more than this share a logarithmic axis.
const LINEAR_LIMIT: f64 = 20.0;

/// Latency by percentile. None if no engine's latencies were taken.
pub fn latency(group: &Group, of: &str, others: &[&str]) -> Option<Plot> {
    let mut curves = Vec::new();
    let mut spoken = Vec::new();
    let mut drawn = Vec::new();
    for cell in &group.cells {
        let points = latency_points(cell);
        if points.len() < 2 {
            continue;
        }
        let at = |x: f64| points.iter().rev().find(|point| point.0 <= x * 1.0001);
        let marked = [2.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6].iter().filter_map(|x| at(*x)).copied().collect();
        let median = cell.median(|record| record.latency.p50_us).map_or(number::ABSENT.to_string(), number::latency);
        let tail = cell.median(|record| record.latency.p999_us).map_or(number::ABSENT.to_string(), number::latency);
        spoken.push(format!("{} {median} and {tail}", display_name(&cell.key.engine)));
        drawn.push(cell.key.engine.as_str());
        curves.push(Curve { style: Style::of(&cell.key.engine, others), points, marked });
    }
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let last = all().map(|point| point.0).reduce(f64::max)?;
    let low = all().map(|point| point.1).reduce(f64::min)?;
    let high = all().map(|point| point.1).reduce(f64::max)?;
    let labels = [(2.0, "50%"), (10.0, "90%"), (1e2, "99%"), (1e3, "99.9%"), (1e4, "99.99%")];
    let labels = labels.into_iter().chain([(1e5, "99.999%"), (1e6, "99.9999%")]);
    // With the whole tail the decades are too narrow for its longest labels side by side.
    let ticks = labels.filter(|(x, _)| *x <= last * 1.0001 && (*x != 1e5 || last < 3e5));
    let ticks = ticks.map(|(x, label)| (x, label.to_string())).collect();
    let x = Axis::logarithmic_at("share of operations that took no longer", 1.0, last, ticks);
    let y = Axis::logarithmic("latency", low, high, number::duration);
    Some(Plot {
        svg: draw(&x, &y, &curves)?,
        title: "Latency by percentile".into(),
        of: of.to_string(),
        description: format!("Median and 99.9th percentile in microseconds: {}.", spoken.join("; ")),
        caption: format!(
            "Lower is better. Both scales are logarithmic: every step to the right leaves a tenth of the slowest \
             operations of the step before.{}",
            left_out(group, &drawn, "no latencies were taken")
        ),
    })
}

/// A sentence that names the engines which ran but have no curve.
fn left_out(group: &Group, drawn: &[&str], reason: &str) -> String {
    let ran = group.cells.iter().filter(|cell| !cell.ran.is_empty()).map(|cell| cell.key.engine.as_str());
    let missing: Vec<&str> = ran.filter(|engine| !drawn.contains(engine)).collect();
    if missing.is_empty() { String::new() } else { format!(" Without a line, {reason}: {}.", listed(&missing)) }
}

/// Points (1 / share of slower operations, latency in microseconds), over all repetitions together.
fn latency_points(cell: &Measured) -> Vec<(f64, f64)> {
    let mut buckets: Vec<(f64, u64)> = cell.ran.iter().flat_map(|record| &record.histogram).copied().collect();
    buckets.retain(|(bound, count)| bound.is_finite() && *bound > 0.0 && *count > 0);
    if buckets.is_empty() {
        return percentile_points(cell);
    }
    buckets.sort_by(|one, two| one.0.total_cmp(&two.0));
    let total = buckets.iter().fold(0u64, |sum, bucket| sum.saturating_add(bucket.1));
    let longest = cell.range(|record| record.latency.max_us).map_or(f64::INFINITY, |range| range.1);
    let last = (total as f64).min(RAREST);
    let mut points = Vec::new();
    let mut counted = 0u64;
    let mut buckets = buckets.into_iter();
    let mut bound = 0.0;
    for x in percentile_grid(last) {
        let wanted = ((1.0 - 1.0 / x) * total as f64).ceil().max(1.0) as u64;
        while counted < wanted {
            let Some((next, count)) = buckets.next() else { break };
            bound = next;
            counted = counted.saturating_add(count);
        }
        points.push((x, bound.min(longest)));
    }
    points
}

/// Places from 1 to `last` on the percentile axis: evenly spread, with those of the markers among
/// them.
fn percentile_grid(last: f64) -> Vec<f64> {
    let steps = (last.log10() * 12.0).floor() as u32;
    let mut grid: Vec<f64> = (0..=steps).map(|step| 10f64.powf(step as f64 / 12.0)).chain([2.0, last]).collect();
    grid.retain(|x| *x <= last);
    grid.sort_by(f64::total_cmp);
    grid.dedup();
    grid
}

/// The curve through the recorded percentiles, for records without a histogram.
fn percentile_points(cell: &Measured) -> Vec<(f64, f64)> {
    type Field = fn(&Record) -> f64;
    let fields: [(f64, Field); 5] = [
        (2.0, |record| record.latency.p50_us),
        (10.0, |record| record.latency.p90_us),
        (1e2, |record| record.latency.p99_us),
        (1e3, |record| record.latency.p999_us),
        (1e4, |record| record.latency.p9999_us),
    ];
    fields.into_iter().filter_map(|(x, field)| Some((x, cell.median(field)?))).collect()
}

/// Throughput over time. None if no engine ran for at least three intervals.
pub fn throughput(group: &Group, of: &str, others: &[&str]) -> Option<Plot> {
    let typical = group.cells.iter().filter_map(|cell| Some((cell.key.engine.as_str(), intervals(cell.typical()?))));
    let measured: Vec<(&str, Vec<Interval>)> = typical.filter(|(_, intervals)| intervals.len() >= 3).collect();
    let times: Vec<f64> = measured.iter().map(|(_, intervals)| duration(intervals)).collect();
    let longest = times.iter().copied().reduce(f64::max)?;
    let logarithmic_time = spread(&times) > LINEAR_LIMIT;
    let mut curves = Vec::new();
    let mut spoken = Vec::new();
    for (index, (engine, intervals)) in measured.iter().enumerate() {
        // On a common linear scale no curve may be finer than the scale can show.
        let shown = if logarithmic_time { duration(intervals) } else { longest };
        let points = thinned(intervals, shown / POINTS_OVER_TIME);
        let lowest = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let highest = points.iter().map(|point| point.1).fold(0.0, f64::max);
        let range = format!("{} to {}", number::whole(lowest), number::whole(highest));
        spoken.push(format!("{} {range} in {:.1} seconds", display_name(engine), duration(intervals)));
        let stride = points.len().div_ceil(5).max(1);
        // Engines begin at different points, so that markers of close curves do not cover each
        // other.
        let marked = points.iter().skip(index % stride).step_by(stride).copied().collect();
        curves.push(Curve { style: Style::of(engine, others), points, marked });
    }
    let x = time_axis(&curves, longest, logarithmic_time)?;
    let (y, foot) = throughput_axis(&curves)?;
    let drawn: Vec<&str> = measured.iter().map(|(engine, _)| *engine).collect();
    Some(Plot {
        svg: draw(&x, &y, &curves)?,
        title: "Throughput over time".into(),
        of: of.to_string(),
        description: format!("Slowest to fastest interval in operations per second: {}.", spoken.join("; ")),
        caption: format!(
            "Higher is better. The repetition nearest to the median of each engine.{foot}{}",
            left_out(group, &drawn, "too few intervals")
        ),
    })
}

fn time_axis(curves: &[Curve], longest: f64, logarithmic: bool) -> Option<Axis> {
    let seconds = |value: f64| format!("{} s", number::trimmed(value));
    if !logarithmic {
        return Some(Axis::linear("time since start", longest, seconds));
    }
    let first = curves.iter().filter_map(|curve| curve.points.first()).map(|point| point.0).reduce(f64::min)?;
    Some(Axis::logarithmic("time since start (log scale)", first, longest, seconds))
}

/// The axis, and a sentence for the caption where it needs one.
fn throughput_axis(curves: &[Curve]) -> Option<(Axis, &'static str)> {
    let middles: Vec<f64> = curves.iter().filter_map(|curve| median(values(&curve.points))).collect();
    let highest = curves.iter().flat_map(|curve| values(&curve.points)).reduce(f64::max)?;
    if spread(&middles) <= LINEAR_LIMIT {
        return Some((Axis::linear("operations per second", highest, number::metric), ""));
    }
    // A pause would lie at minus infinity: it touches the foot of the plot instead, below every
    // engine's usual speed.
    let slowest = middles.iter().copied().filter(|value| *value > 0.0).reduce(f64::min)?;
    let axis = Axis::logarithmic("operations per second (log scale)", slowest / 10.0, highest, number::metric);
    Some((axis, " A line at the foot of the plot means that much slower or standing still."))
}

/// One interval of a series.
struct Interval {
    seconds: f64,
    operations: f64,
}

/// The intervals of a record's series; none if their length is not known.
fn intervals(record: &Record) -> Vec<Interval> {
    let seconds = record.series_interval_s;
    if !seconds.is_finite() || seconds <= 0.0 {
        return Vec::new();
    }
    let mut all: Vec<Interval> =
        record.series.iter().map(|count| Interval { seconds, operations: *count as f64 }).collect();
    // The last interval ends with the benchmark: its rate is over the rest of the time, and means
    // little if that is short.
    let rest = record.wall_s - seconds * all.len().saturating_sub(1) as f64;
    if rest < seconds * 0.5 {
        all.pop();
    } else if let Some(last) = all.last_mut() {
        last.seconds = rest.min(seconds);
    }
    all
}

fn duration(intervals: &[Interval]) -> f64 {
    intervals.iter().map(|interval| interval.seconds).sum()
}

/// Points (middle of the time in seconds, operations per second), each over intervals of at least
/// `finest` seconds together.
fn thinned(intervals: &[Interval], finest: f64) -> Vec<(f64, f64)> {
    let Some(first) = intervals.first() else { return Vec::new() };
    let together = ((finest / first.seconds - 1e-9).ceil().max(1.0) as usize).min(intervals.len());
    let mut start = 0.0;
    let mut points = Vec::new();
    for chunk in intervals.chunks(together) {
        let length = duration(chunk);
        let operations: f64 = chunk.iter().map(|interval| interval.operations).sum();
        points.push((start + length / 2.0, operations / length));
        start += length;
    }
    points
}

fn values(points: &[(f64, f64)]) -> impl Iterator<Item = f64> {
    points.iter().map(|point| point.1)
}

/// How many times the smallest positive value the largest is.
fn spread(values: &[f64]) -> f64 {
    let smallest = values.iter().copied().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    values.iter().copied().fold(0.0, f64::max) / smallest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Percentiles;

    fn cell(record: &Record) -> Measured<'_> {
        Measured { ran: vec![record], ..Measured::default() }
    }

    #[test]
    fn percentiles_come_from_the_histogram() {
        let histogram = vec![(1.0, 900), (10.0, 90), (100.0, 9), (1000.0, 1)];
        let latency = Percentiles { max_us: 640.0, ..Percentiles::default() };
        let record = Record { histogram, latency, ..Record::default() };
        let points = latency_points(&cell(&record));
        let at = |x: f64| points.iter().find(|point| (point.0 - x).abs() < 1e-6).unwrap().1;
        assert_eq!((at(1.0), at(2.0), at(10.0)), (1.0, 1.0, 1.0));
        assert_eq!((at(100.0), at(1000.0)), (10.0, 100.0));
        assert!(points.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    }

    #[test]
    fn percentiles_stand_in_for_a_missing_histogram() {
        let latency = Percentiles { p50_us: 2.0, p99_us: 9.0, ..Percentiles::default() };
        let record = Record { latency, ..Record::default() };
        assert_eq!(latency_points(&cell(&record)), [(2.0, 2.0), (100.0, 9.0)]);
        assert!(latency_points(&cell(&Record::default())).is_empty());
    }

    #[test]
    fn the_last_interval_counts_by_its_length() {
        let record = Record { series: vec![10, 10, 8], series_interval_s: 1.0, wall_s: 2.8, ..Record::default() };
        let points = thinned(&intervals(&record), 0.0);
        assert_eq!(points.len(), 3);
        assert!((points[2].1 - 10.0).abs() < 1e-9);
        let record = Record { series: vec![10, 10, 1], series_interval_s: 1.0, wall_s: 2.1, ..Record::default() };
        assert_eq!(intervals(&record).len(), 2);
        assert!(intervals(&Record { series: vec![1], ..Record::default() }).is_empty());
    }

    #[test]
    fn long_series_are_thinned() {
        let record = Record { series: vec![5; 1000], series_interval_s: 0.5, wall_s: 500.0, ..Record::default() };
        let points = thinned(&intervals(&record), 500.0 / POINTS_OVER_TIME);
        assert!(points.len() as f64 <= POINTS_OVER_TIME);
        assert!(points.iter().all(|point| (point.1 - 10.0).abs() < 1e-9));
    }
}
