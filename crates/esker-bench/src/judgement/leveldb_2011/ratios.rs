//! The claims that ratios decide, as they are in `data/ratio_claims.json`, and the one judge of
//! them: LDB-3, LDB-4, LDB-6 to LDB-9.

use super::{BASELINE, Role, ratio};
use crate::judgement::case::{Case, NO_RATIO, Ratio, all, held};
use crate::judgement::verdict::{Judgement, Verdict};
use crate::stats::median;
use crate::text::number::three_digits as number;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const DATA: &str = include_str!("../../../data/ratio_claims.json");

/// What is claimed of ratios. What differs between the engines of the page stands under their names
/// there, everything else under `all`.
#[derive(Deserialize)]
struct Claim {
    /// The rate of a row over that of another, each with its experiment: the sequential one, then
    /// the random one.
    ratios: Vec<[(String, String); 2]>,
    /// Whether it is about leaving compression out, which says nothing of engines that do not
    /// compress.
    #[serde(default)]
    of_compression: bool,
    /// What must be so of each ratio.
    direction: BTreeMap<String, Vec<Test>>,
    /// What must be so of each if it is as large as claimed; nothing: it is near the published one.
    #[serde(default)]
    magnitude: BTreeMap<String, Vec<Test>>,
    /// Ratios that must be larger than others.
    #[serde(default)]
    clauses: Vec<Clause>,
    /// The sentence; in braces what is filled in, see [`filled`].
    why: BTreeMap<String, String>,
}

/// What may be claimed of a ratio. Texts are names of thresholds.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Test {
    Any,
    Gain,
    Loss,
    Above(String),
    ValueAbove(String),
    Between(String, String),
}

impl Test {
    fn verdict(&self, case: &Case<'_>, ratio: &Ratio) -> Verdict {
        match self {
            Test::Any => Verdict::Held,
            Test::Gain => ratio.above(1.0),
            Test::Loss => ratio.below(1.0),
            Test::Above(limit) => ratio.above(case.threshold(limit)),
            Test::ValueAbove(limit) => held(ratio.value > case.threshold(limit)),
            Test::Between(from, to) => held((case.threshold(from)..=case.threshold(to)).contains(&ratio.value)),
        }
    }
}

/// One ratio that must be larger than another, each of an engine and by its place in the claim.
#[derive(Deserialize)]
struct Clause {
    /// The engines that it is judged of.
    roles: Vec<Role>,
    name: String,
    gain: (Role, usize),
    over: (Role, usize),
}

fn claims() -> &'static BTreeMap<String, Claim> {
    static CLAIMS: OnceLock<BTreeMap<String, Claim>> = OnceLock::new();
    CLAIMS.get_or_init(|| serde_json::from_str(DATA).expect("the claims of this crate are read by its tests"))
}

/// What holds for a role.
fn of_role<T>(by_role: &BTreeMap<String, T>, role: Role) -> Option<&T> {
    by_role.get(role.name()).or_else(|| by_role.get("all"))
}

/// Judges the claim of a case. The error is why it cannot be judged.
pub fn judge(case: &Case<'_>) -> Result<Judgement, String> {
    let claim = claims().get(&case.hypothesis.id).ok_or("there is no rule for this claim")?;
    if let Some(why) = claim.of_compression.then(|| nothing_to_leave_out(case, claim)).flatten() {
        return Ok(case.not_testable(String::new(), why));
    }
    let role = Role::of(case.engine);
    let ratios: Vec<Ratio> = (0..claim.ratios.len()).map(|place| one(case, claim, place)).collect::<Result<_, _>>()?;
    let tested = |tests: &Vec<Test>| -> Vec<Verdict> {
        tests.iter().zip(&ratios).map(|(test, ratio)| test.verdict(case, ratio)).collect()
    };
    let mut verdicts = of_role(&claim.direction, role).map(tested).unwrap_or_default();
    let mut clauses = String::new();
    for clause in claim.clauses.iter().filter(|clause| clause.roles.contains(&role)) {
        let (gain, over) = (clause.gain.0.engine(case), clause.over.0.engine(case));
        let name = clause.name.replace("{over}", over);
        let larger = larger(case, claim, (gain, clause.gain.1), (over, clause.over.1));
        verdicts.push(larger.as_ref().map_or(Verdict::NotMeasured, |ratio| ratio.above(1.0)));
        clauses.push_str(&match larger {
            Ok(ratio) => format!("; {name}: {} times", ratio.text()),
            Err(missing) => format!("; {name}: not measured, for {missing}"),
        });
    }
    let mut why = filled(case, claim, &ratios, &clauses);
    let magnitude = match of_role(&claim.magnitude, role) {
        Some(tests) => all(tested(tests)),
        None => near(case, &ratios, &mut why),
    };
    let value = ratios.iter().map(Ratio::short).collect::<Vec<_>>().join(", ");
    Ok(case.judged(value, all(verdicts), magnitude, why))
}

/// A ratio of the claim.
fn one(case: &Case<'_>, claim: &Claim, place: usize) -> Result<Ratio, String> {
    let [of, to] = &claim.ratios[place];
    ratio(case, (&of.0, &of.1), (&to.0, &to.1))
}

/// One ratio over another, each of an engine; the error is why there is none.
fn larger(case: &Case<'_>, claim: &Claim, gain: (&str, usize), over: (&str, usize)) -> Result<Ratio, String> {
    for (engine, place) in [gain, over] {
        one(&case.of(engine), claim, place)?;
    }
    let rates = |(engine, place): (&str, usize)| {
        [0, 1].map(|side| {
            let (experiment, row) = &claim.ratios[place][side];
            case.of(engine).rates(experiment, row, &[])
        })
    };
    let ([a, b], [c, d]) = (rates(gain), rates(over));
    Ok(Ratio::of_ratios([&a, &b, &c, &d]).ok_or(NO_RATIO)?)
}

/// The published ratios of the role that this engine stands in; not numbers where the page has
/// none.
fn published(case: &Case<'_>) -> [f64; 2] {
    ["sequential", "random"].map(|order| case.published(&format!("{} {order}", Role::of(case.engine).name())))
}

/// A small gain is not near a small loss, though both may be within the claim's factor of each
/// other.
fn near(case: &Case<'_>, ratios: &[Ratio], why: &mut String) -> Verdict {
    let published = published(case);
    if !published.iter().all(|value| value.is_finite()) {
        return Verdict::NotTestableHere;
    }
    let pairs = || ratios.iter().map(|ratio| ratio.value).zip(published);
    if pairs().any(|(ratio, published)| (ratio > 1.0) != (published > 1.0)) {
        why.push_str("; a gain is not near a published loss, nor a loss near a gain");
        return Verdict::NotHeld;
    }
    held(pairs().all(|(ratio, published)| case.near(ratio, published)))
}

/// The sentence: `{gains}` both ratios with the published ones, `{0}` the first ratio, `{clauses}`
/// what became of the clauses, `{disk}` the size of the database after a random load, and a
/// threshold or a published value by its name.
fn filled(case: &Case<'_>, claim: &Claim, ratios: &[Ratio], clauses: &str) -> String {
    let role = Role::of(case.engine);
    let mut why = of_role(&claim.why, role).cloned().unwrap_or_default();
    if let [sequential, random] = ratios {
        let there = match published(case) {
            [first, second] if first.is_finite() => {
                format!(" (published for {} {} and {})", role.name(), number(first), number(second))
            }
            _ => String::new(),
        };
        let gains =
            format!("{} times the baseline in key order and {} at random{there}", sequential.text(), random.text());
        why = why.replace("{gains}", &gains);
    }
    let disk = |experiment: &str, row: &str| {
        let records = case.records(experiment, row, &[]);
        let bytes = median(records.iter().map(|record| record.disk_bytes as f64));
        bytes.map_or("-".to_owned(), |bytes| number(bytes / 1_048_576.0))
    };
    if why.contains("{disk}") {
        let [of, to] = &claim.ratios[1];
        why = why.replace("{disk}", &disk(&of.0, &of.1)).replace("{disk of the baseline}", &disk(&to.0, &to.1));
    }
    let thresholds = case.hypothesis.thresholds.iter().map(|(name, value)| (format!("{{{name}}}"), *value));
    let figures = case.hypothesis.published.iter().map(|(name, value)| (format!("{{published {name}}}"), *value));
    for (name, value) in thresholds.chain(figures) {
        why = why.replace(&name, &number(value));
    }
    why.replace("{0}", &ratios[0].text()).replace("{clauses}", clauses)
}

/// Why leaving compression out changes nothing for this engine, if it does not.
fn nothing_to_leave_out(case: &Case<'_>, claim: &Claim) -> Option<String> {
    let [(experiment, row), _] = &claim.ratios[1];
    let setting = |experiment: &str| case.records(experiment, row, &[]).first()?.setting("compression");
    let with = setting(BASELINE)?;
    match Role::of(case.engine) {
        Role::Sqlite => Some("SQLite does not compress, and the page repeats its baseline here".into()),
        _ if with == "none" => Some(format!("{} does not compress, so there is nothing to leave out", case.engine)),
        _ if setting(experiment) == Some(with) => {
            Some(format!("{} kept its compression ({with}) in both", case.engine))
        }
        _ => None,
    }
}
