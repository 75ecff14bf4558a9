//! The claims that ratios decide, as they are in `data/claims.toml`, and the one judge of them.
//!
//! A claim has `rows`, `figures` and what is said of them: `direction` and `magnitude` are
//! verdicts, `value` and `why` are sentences (`sentence.rs`). Verdicts and figures are expressions
//! (`sweep/plan/expression.rs`) of the names in `scope.rs` with the functions in `value.rs`; those
//! that are asked about what may be missing (`known`, `or`, `list`) are in `scope.rs` too. Of
//! `cases` the first whose `if` holds replaces what the claim says otherwise.
//!
//! A row is `experiment / row / variable=value, variable=value`, behind `study: ` if it is of
//! another study than the claim. Rows are of the largest size there is; with `sizes`, of the
//! largest that the measured rows of a group share, of the first group that shares one. `a and b`
//! in a group are measured where both are.

mod data;
mod scope;
mod sentence;
mod value;

use super::case::Case;
use super::role::{BASELINE, Role};
use super::verdict::Judgement;
use data::{CLAIMS, Said};
use scope::Scope;

/// Judges the claim of a case. The error is why it cannot be judged.
pub fn judge(case: &Case<'_>) -> Result<Judgement, String> {
    let claim = CLAIMS.claim.get(&case.hypothesis.id).ok_or("there is no rule for this claim")?;
    let scope = Scope::new(*case, claim);
    if let Some(why) = claim.without_compression.as_ref().and_then(|row| nothing_to_leave_out(case, &scope, row)) {
        return Ok(case.not_testable(String::new(), why));
    }
    let mut said = &claim.said;
    for other in &claim.cases {
        if scope.value(other.condition.as_deref().unwrap_or_default())?.holds() {
            said = other;
            break;
        }
    }
    let text =
        |of: fn(&Said) -> &Option<String>| of(said).as_deref().or(of(&claim.said).as_deref()).unwrap_or_default();
    let direction = scope.value(text(|said| &said.direction))?.verdict();
    let magnitude = scope.value(text(|said| &said.magnitude))?.verdict();
    let (value, why) = (scope.filled(text(|said| &said.value))?, scope.filled(text(|said| &said.why))?);
    Ok(case.judged(value, direction, magnitude, why))
}

/// Why leaving compression out changes nothing for this engine, if it does not.
fn nothing_to_leave_out(case: &Case<'_>, scope: &Scope<'_>, row: &str) -> Option<String> {
    let place = scope.place(row)?;
    let setting = |experiment| case.records(experiment, place.row, &[]).first()?.setting("compression");
    let with = setting(BASELINE)?;
    match Role::of(case.engine) {
        Role::Sqlite => Some("SQLite does not compress, and the page repeats its baseline here".into()),
        _ if with == "none" => Some(format!("{} does not compress, so there is nothing to leave out", case.engine)),
        _ if setting(place.experiment) == Some(with) => {
            Some(format!("{} kept its compression ({with}) in both", case.engine))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements::Measurements;
    use crate::published::DATA;
    use crate::sweep::plan::expression::{self, Apply, evaluate_in};
    use std::cell::RefCell;

    /// Follows every name and every argument, whether or not a verdict turns on it.
    struct Reader<'a>(Scope<'a>);

    impl expression::Scope for Reader<'_> {
        type Value = ();

        fn number(&self, _: f64) {}

        fn combined(&self, (): (), _: &str, _: Apply, (): ()) {}

        fn name(&self, name: &str) -> Result<(), String> {
            self.0.is_name(name).then_some(()).ok_or_else(|| format!("no name `{name}`"))
        }

        fn call(&self, _: &str, arguments: &[&str]) -> Result<(), String> {
            arguments.iter().try_for_each(|text| evaluate_in(text, self))
        }
    }

    #[test]
    fn every_name_of_every_claim_stands_for_something() {
        let measured = Measurements::default();
        for (id, claim) in &CLAIMS.claim {
            let hypothesis = DATA.hypotheses.iter().find(|hypothesis| hypothesis.id == *id).unwrap();
            let notes = RefCell::default();
            let case =
                Case { hypothesis, measured: &measured, study: &hypothesis.study, engine: "esker", notes: &notes };
            let reader = Reader(Scope::new(case, claim));
            let all = || claim.cases.iter().chain([&claim.said]);
            let texts = |of: fn(&Said) -> [&Option<String>; 3]| all().flat_map(of).flatten();
            let mut expressions: Vec<&str> = claim.figures.values().map(String::as_str).collect();
            expressions.extend(texts(|said| [&said.condition, &said.direction, &said.magnitude]).map(String::as_str));
            for sentence in texts(|said| [&said.value, &said.why, &None]) {
                let figures =
                    sentence.split('{').skip(1).filter_map(|piece| piece.split_once('}')).map(|(figure, _)| figure);
                let is_expression = |figure: &&str| {
                    !["engine", "role", "rival"].contains(figure)
                        && !figure.ends_with(":engine")
                        && !CLAIMS.phrases.contains_key(*figure)
                };
                expressions.extend(figures.filter(is_expression).map(|figure| {
                    figure
                        .trim_start_matches('?')
                        .rsplit_once(':')
                        .map_or(figure.trim_start_matches('?'), |(figure, _)| figure)
                }));
            }
            for text in expressions {
                assert_eq!(evaluate_in(text, &reader), Ok(()), "{id}: {text}");
            }
        }
    }
}
