//! Statistics over repetitions.

use crate::random::LehmerRandom;
use std::borrow::Borrow;

fn sorted<V: Borrow<f64>>(values: impl IntoIterator<Item = V>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.into_iter().map(|value| *value.borrow()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The middle value; the mean of the two middle ones for an even count; `None` for no values.
pub fn median<V: Borrow<f64>>(values: impl IntoIterator<Item = V>) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The least and the greatest value.
pub fn extent<V: Borrow<f64>>(values: impl IntoIterator<Item = V>) -> Option<(f64, f64)> {
    let sorted = sorted(values);
    Some((*sorted.first()?, *sorted.last()?))
}

/// The geometric mean of the positive values, the mean that suits ratios; `None` if there is none.
pub fn geometric_mean<V: Borrow<f64>>(values: impl IntoIterator<Item = V>) -> Option<f64> {
    let positive = values.into_iter().map(|value| *value.borrow()).filter(|value| *value > 0.0 && value.is_finite());
    let logarithms: Vec<f64> = positive.map(f64::ln).collect();
    (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}

/// How often values are drawn anew.
const RESAMPLES: usize = 2000;

/// A 95 % interval of the median by the bootstrap: values are drawn with replacement, and the
/// medians' 2.5 % and 97.5 % quantiles returned. The same values and seed give the same interval.
/// Few repetitions give little more than their extent.
pub fn bootstrap_interval(values: &[f64], seed: u32) -> Option<(f64, f64)> {
    resampled(&[values], |medians| medians[0], seed)
}

/// A 95 % interval of what `combine` makes of the medians of several samples, each drawn anew by
/// itself: a ratio of two medians, say. None if a sample has fewer than two values: then nothing is
/// known of its spread.
pub fn bootstrap_of_medians(samples: &[&[f64]], combine: impl Fn(&[f64]) -> f64, seed: u32) -> Option<(f64, f64)> {
    if samples.iter().any(|sample| sample.len() < 2) {
        return None;
    }
    resampled(samples, combine, seed)
}

/// A 95 % interval of the ratio of two medians, by the bootstrap; none if either side has fewer
/// than two values.
pub fn bootstrap_ratio_interval(numerator: &[f64], denominator: &[f64], seed: u32) -> Option<(f64, f64)> {
    bootstrap_of_medians(&[numerator, denominator], |medians| medians[0] / medians[1], seed)
}

fn resampled(samples: &[&[f64]], combine: impl Fn(&[f64]) -> f64, seed: u32) -> Option<(f64, f64)> {
    if samples.is_empty() || samples.iter().any(|sample| sample.is_empty()) {
        return None;
    }
    let mut random = LehmerRandom::new(seed);
    let mut medians = Vec::with_capacity(samples.len());
    let mut results = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        medians.clear();
        for sample in samples {
            let drawn: Vec<f64> = sample.iter().map(|_| sample[random.uniform(sample.len() as u64) as usize]).collect();
            medians.extend(median(&drawn));
        }
        results.push(combine(&medians));
    }
    results.sort_by(f64::total_cmp);
    Some((results[RESAMPLES * 25 / 1000], results[RESAMPLES * 975 / 1000]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_extents() {
        assert_eq!(median([0.0; 0]), None);
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(extent([2.0, 1.0, 3.0]), Some((1.0, 3.0)));
        assert_eq!(extent([0.0; 0]), None);
    }

    #[test]
    fn geometric_mean_of_ratios() {
        let mean = geometric_mean([2.0, 8.0, 0.0]).unwrap();
        assert!((mean - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean([0.0]), None);
    }

    #[test]
    fn bootstrap_holds_the_median_and_repeats() {
        let values = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0];
        let (low, high) = bootstrap_interval(&values, 1).unwrap();
        assert!(low <= 13.0 && 13.0 <= high && low >= 10.0 && high <= 16.0);
        assert_eq!(bootstrap_interval(&values, 1), Some((low, high)));
        assert_eq!(bootstrap_interval(&[5.0], 9), Some((5.0, 5.0)));
        assert_eq!(bootstrap_interval(&[], 9), None);
    }

    #[test]
    fn the_interval_of_a_ratio_holds_it_and_needs_repetitions() {
        let (slow, fast) = ([20.0, 21.0, 22.0, 23.0, 24.0], [10.0, 10.5, 11.0, 11.5, 12.0]);
        let (low, high) = bootstrap_ratio_interval(&slow, &fast, 1).unwrap();
        assert!(low < 2.0 && 2.0 < high && low > 20.0 / 12.0 && high < 24.0 / 10.0, "{low} {high}");
        let (low, high) = bootstrap_ratio_interval(&slow, &slow, 1).unwrap();
        assert!(low < 1.0 && 1.0 < high);
        assert_eq!(bootstrap_ratio_interval(&slow, &[10.0], 1), None);
        assert_eq!(bootstrap_of_medians(&[], |_| 0.0, 1), None);
    }
}
