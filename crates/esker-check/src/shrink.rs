//! Makes a failing list of operations short enough to read.

use std::time::{Duration, Instant};

/// The shortest failing sub-list that dropping ever smaller pieces finds within the time.
///
/// `fails` must say whether a list still fails. If failures depend on thread timing the result may
/// be longer, never wrong.
pub fn shrink<T: Clone>(operations: &[T], budget: Duration, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let started = Instant::now();
    let mut current = operations.to_vec();
    let mut piece = current.len() / 2;
    while piece > 0 {
        let mut start = 0;
        let mut shorter = false;
        while start < current.len() {
            if started.elapsed() > budget {
                return current;
            }
            let end = (start + piece).min(current.len());
            let candidate = [&current[..start], &current[end..]].concat();
            if fails(&candidate) {
                current = candidate;
                shorter = true;
            } else {
                start = end;
            }
        }
        if !(shorter && piece == 1) {
            piece /= 2;
        }
    }
    current
}

/// Replaces single operations by simpler ones as long as the list still fails, within the time.
pub fn simplify<T: Clone>(
    operations: &[T],
    budget: Duration,
    simpler: impl Fn(&T) -> Vec<T>,
    mut fails: impl FnMut(&[T]) -> bool,
) -> Vec<T> {
    let started = Instant::now();
    let mut current = operations.to_vec();
    let mut index = 0;
    while index < current.len() {
        let found = simpler(&current[index]).into_iter().find_map(|replacement| {
            let mut candidate = current.clone();
            candidate[index] = replacement;
            (started.elapsed() <= budget && fails(&candidate)).then_some(candidate)
        });
        match found {
            // The simpler one may have simpler ones in turn.
            Some(candidate) => current = candidate,
            None => index += 1,
        }
    }
    current
}

/// About `most` numbers below `limit`, spread evenly. First come `number` itself, and the numbers
/// that it may have become after an earlier item was dropped.
pub fn nearby(number: u64, limit: u64, most: u64) -> Vec<u64> {
    let stride = limit.div_ceil(most.max(1)).max(1);
    let near = (number.saturating_sub(4)..=number + 4).chain(limit.saturating_sub(8)..limit);
    let mut all: Vec<u64> = near.filter(|&near| near < limit).collect();
    all.sort_by_key(|near| near.abs_diff(number));
    all.extend((0..limit).step_by(stride as usize));
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|number| seen.insert(*number));
    all
}

/// The items of lists that are each ordered by how likely they are, as are the lists: first the
/// first one of the first list, then those that are early in both.
pub fn nearest_first<T>(lists: Vec<Vec<T>>) -> Vec<T> {
    let ranked = lists.into_iter().zip(1_usize..).flat_map(|(list, outer)| {
        let ranks = (1_usize..).map(move |inner| outer * inner);
        list.into_iter().zip(ranks)
    });
    let mut ranked: Vec<(T, usize)> = ranked.collect();
    ranked.sort_by_key(|(_, rank)| *rank);
    ranked.into_iter().map(|(item, _)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_only_what_is_needed() {
        let all: Vec<u32> = (0..500).collect();
        let fails = |list: &[u32]| list.contains(&17) && list.contains(&401);
        assert_eq!(shrink(&all, Duration::MAX, fails), vec![17, 401]);
    }

    #[test]
    fn tries_like_moments_first_and_few_of_many() {
        assert_eq!(nearby(2, 4, 10), [2, 1, 3, 0]);
        let many = nearby(5000, 100_000, 200);
        assert_eq!(many[0], 5000);
        assert!(many.len() <= 220 && many.contains(&99_999), "{}", many.len());
    }

    #[test]
    fn tries_what_is_likely_in_both_lists_before_what_is_likely_in_one() {
        let lists = vec![vec!["1-1", "1-2", "1-3"], vec!["2-1", "2-2"], Vec::new(), vec!["4-1"]];
        assert_eq!(nearest_first(lists), ["1-1", "1-2", "2-1", "1-3", "2-2", "4-1"]);
    }

    #[test]
    fn simplifies_what_is_left() {
        let simpler = |number: &u32| if *number > 0 { vec![number / 2, number - 1] } else { Vec::new() };
        let fails = |list: &[u32]| list.iter().sum::<u32>() >= 10;
        assert_eq!(simplify(&[100, 40], Duration::MAX, simpler, fails), vec![0, 10]);
    }
}
