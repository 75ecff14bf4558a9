//! Statistics over repetitions.

use crate::random::LehmerRandom;

/// The middle value; the mean of the two middle ones for an even count; `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The least and the greatest value.
pub fn extent(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    let greatest = values.iter().copied().max_by(f64::total_cmp)?;
    Some((least, greatest))
}

/// The geometric mean of the positive values, the mean that suits ratios; `None` if there is none.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: Vec<f64> = values.iter().filter(|v| **v > 0.0 && v.is_finite()).map(|v| v.ln()).collect();
    if logarithms.is_empty() {
        return None;
    }
    Some((logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}

/// A 95 % interval of the median by the bootstrap: values are drawn with replacement, and the medians' 2.5 % and 97.5 % quantiles
/// returned. The same values and seed give the same interval. Few repetitions give little more than their extent.
pub fn bootstrap_interval(values: &[f64], seed: u32) -> Option<(f64, f64)> {
    const RESAMPLES: usize = 2000;
    if values.is_empty() {
        return None;
    }
    let mut random = LehmerRandom::new(seed);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let sample: Vec<f64> =
                values.iter().map(|_| values[random.uniform(values.len() as u64) as usize]).collect();
            median(&sample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    Some((medians[RESAMPLES * 25 / 1000], medians[RESAMPLES * 975 / 1000]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_extents() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(extent(&[2.0, 1.0, 3.0]), Some((1.0, 3.0)));
        assert_eq!(extent(&[]), None);
    }

    #[test]
    fn geometric_mean_of_ratios() {
        let mean = geometric_mean(&[2.0, 8.0, 0.0]).unwrap();
        assert!((mean - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[0.0]), None);
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
}
