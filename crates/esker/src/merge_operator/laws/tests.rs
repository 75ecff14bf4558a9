use super::*;
use crate::merge_operator::MergeError;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

type Merged = std::result::Result<Option<Vec<u8>>, MergeError>;

/// An operator put together from two functions.
struct Made<F, P>(F, P);

impl<F, P> MergeOperator for Made<F, P>
where
    F: Fn(Option<&[u8]>, &[&[u8]]) -> Merged + Send + Sync + 'static,
    P: Fn(&[u8], &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        "made"
    }
    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Merged {
        (self.0)(existing, operands)
    }
    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        (self.1)(older, newer)
    }
}

const SAMPLES: [&[u8]; 4] = [b"", b"a", b"bc", b"\xff"];

fn violation(operator: &dyn MergeOperator) -> Box<LawViolation> {
    let first = check_laws(operator, &SAMPLES, &[b"e"]).expect_err("it breaks a law");
    assert!(!first.to_string().is_empty());
    first
}

fn concat(existing: Option<&[u8]>, operands: &[&[u8]]) -> Merged {
    Ok(Some(existing.into_iter().chain(operands.iter().copied()).collect::<Vec<_>>().concat()))
}

fn none(_: &[u8], _: &[u8]) -> Option<Vec<u8>> {
    None
}

/// Each way of going wrong is planted and found, and the text names the operands.
#[test]
fn what_breaks_a_law_is_found() {
    let swapped = violation(&Made(concat, |older: &[u8], newer: &[u8]| Some([newer, older].concat())));
    assert!(swapped.what.contains("partial"), "{swapped}");
    assert_ne!(swapped.one_by_one, swapped.otherwise);
    assert!(swapped.to_string().contains("bc") || swapped.to_string().contains("\\xff"), "{swapped}");

    let last_only = |_: Option<&[u8]>, operands: &[&[u8]]| Ok(Some(vec![operands.len() as u8]));
    assert!(violation(&Made(last_only, none)).what.contains("at once"));

    let calls = AtomicU64::new(0);
    let counting = move |_: Option<&[u8]>, _: &[&[u8]]| Ok(Some(vec![calls.fetch_add(1, Ordering::Relaxed) as u8]));
    violation(&Made(counting, none));

    let deletes_once = |existing: Option<&[u8]>, operands: &[&[u8]]| match (existing, operands) {
        (Some(_), [_]) => Ok(None),
        _ => concat(existing, operands),
    };
    violation(&Made(deletes_once, none));
}

#[test]
fn panics_are_reported_with_what_led_to_them() {
    let full = |existing: Option<&[u8]>, operands: &[&[u8]]| {
        assert!(!operands.contains(&&b"\xff"[..]), "on purpose");
        concat(existing, operands)
    };
    let found = violation(&Made(full, none));
    assert!(found.what.contains("`full_merge` panicked"), "{found}");
    assert!(found.operands.contains(&b"\xff".to_vec()), "{found}");
    let partial = |_: &[u8], _: &[u8]| -> Option<Vec<u8>> { panic!("on purpose") };
    assert!(violation(&Made(concat, partial)).what.contains("`partial_merge` panicked"));
}

/// Deleting, refusing and declining are all lawful.
#[test]
fn deletes_and_refusals_are_results() {
    // An operand of one byte deletes, two bytes are refused, all else is appended.
    let full = |existing: Option<&[u8]>, operands: &[&[u8]]| {
        let mut value = existing.map(<[u8]>::to_vec);
        for operand in operands {
            match operand.len() {
                1 => value = None,
                2 => return Err(MergeError("two bytes".into())),
                _ => value.get_or_insert_default().extend_from_slice(operand),
            }
        }
        Ok(value)
    };
    check_laws(&Made(full, none), &[b"", b"a", b"bc", b"def"], &[b"e", b""]).expect("lawful");
    // Combining away what would be refused is not.
    let hides = |_: &[u8], newer: &[u8]| (newer.len() == 1).then(|| newer.to_vec());
    assert!(violation(&Made(full, hides)).what.contains("partial"));
}

struct Restless;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

impl MergeOperator for Restless {
    fn name(&self) -> &str {
        CALLS.set(CALLS.get() + 1);
        ["one", "two"][CALLS.get() % 2]
    }
    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Merged {
        Ok(None)
    }
    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn a_name_that_changes_is_found() {
    assert!(violation(&Restless).what.contains("name"));
}

#[test]
fn the_same_operands_every_time() {
    let operator = Made(concat, |older: &[u8], newer: &[u8]| (older != b"bc").then(|| [newer, older].concat()));
    assert_eq!(violation(&operator), violation(&operator));
}

/// The pitfall that `int64_add.rs` is about: saturating addition looks as if it could be combined.
#[test]
fn saturating_addition_that_combines_everything_is_found() {
    let number = |bytes: &[u8]| bytes.try_into().map(i64::from_le_bytes).map_err(|_| MergeError("8 bytes".into()));
    let full = move |existing: Option<&[u8]>, operands: &[&[u8]]| {
        let mut sum = existing.map_or(Ok(0), number)?;
        for operand in operands {
            sum = sum.saturating_add(number(operand)?);
        }
        Ok(Some(sum.to_le_bytes().to_vec()))
    };
    let any = move |older: &[u8], newer: &[u8]| {
        Some(number(older).ok()?.saturating_add(number(newer).ok()?).to_le_bytes().to_vec())
    };
    let exact = move |older: &[u8], newer: &[u8]| {
        Some(number(older).ok()?.checked_add(number(newer).ok()?)?.to_le_bytes().to_vec())
    };
    let samples = [-1, 1, i64::MAX, i64::MIN].map(i64::to_le_bytes);
    let samples: Vec<&[u8]> = samples.iter().map(|sample| &sample[..]).collect();
    check_laws(&Made(full, any), &samples, &samples).expect_err("overflow");
    check_laws(&Made(full, exact), &samples, &samples).expect_err("different signs");
    check_laws(&Made(full, none), &samples, &samples).expect("nothing is combined");
}
