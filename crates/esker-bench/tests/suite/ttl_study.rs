//! `esker study ttl` end to end, on a simulated clock and on the real one.

#![allow(clippy::unwrap_used)]

use clap::Parser;
use esker_bench::interrupt::Interrupt;
use esker_bench::judgement::{Verdict, judge, judge_engines};
use esker_bench::report::study::load_runs;
use esker_bench::study::ttl::{Arguments, main};
use std::path::Path;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

fn run(base: &Path, text: &str) -> (i32, String) {
    let words = ["x", "--db", base.to_str().unwrap()].into_iter().chain(text.split_whitespace());
    let arguments = Command::parse_from(words).arguments;
    let mut out = Vec::new();
    let code = main(&arguments, &mut out, Interrupt::new());
    (code, String::from_utf8(out).unwrap())
}

#[test]
fn every_check_holds_on_a_simulated_clock_and_the_cost_is_measured() {
    let base = tempfile::tempdir().unwrap();
    let records = base.path().join("ttl.jsonl");
    let text = format!("--simulated-clock --data-mib 8 --num 5000 --repeat 1 --records {}", records.display());
    let (code, out) = run(base.path(), &text);
    assert_eq!(code, 0, "{out}");
    assert!(!out.contains("NOT HELD") && out.contains("a time for each entry"), "{out}");
    let lines = std::fs::read_to_string(&records).unwrap();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!((count("machine"), count("cost")), (1, 4));
    assert!(count("check") >= 12, "{out}");
    assert!(!base.path().join("ttl").exists(), "nothing is left behind");
}

#[test]
fn every_check_holds_in_real_time() {
    let base = tempfile::tempdir().unwrap();
    let (code, out) = run(base.path(), "--data-mib 1 --ttl 2 --skip-cost");
    assert_eq!(code, 0, "{out}");
}

#[test]
fn a_foreign_directory_is_left_alone_and_zero_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let (code, _) = run(base.path(), "--ttl 0");
    assert_eq!(code, 2);
    std::fs::create_dir(base.path().join("ttl")).unwrap();
    std::fs::write(base.path().join("ttl/mine"), "keep").unwrap();
    let (code, _) = run(base.path(), "--simulated-clock --data-mib 1 --skip-cost");
    assert_eq!(code, 1);
    assert!(base.path().join("ttl/mine").exists());
}

#[test]
fn what_is_kept_settles_the_claims() {
    let base = tempfile::tempdir().unwrap();
    let records = base.path().join("ttl.jsonl");
    let text = format!("--simulated-clock --data-mib 8 --skip-cost --records {}", records.display());
    assert_eq!(run(base.path(), &text).0, 0);
    let kept = load_runs(std::slice::from_ref(&records)).unwrap();
    assert!(kept[0].finished.iter().all(|finished| !finished.host.date.is_empty()));
    let judgements = judge(&kept);
    for id in ["TTL-1", "TTL-2", "TTL-3"] {
        let judged = judgements.iter().find(|judged| judged.hypothesis == id && judged.engine == "esker").unwrap();
        assert_eq!((judged.direction, judged.magnitude), (Verdict::Held, Verdict::Held), "{judged:?}");
    }
}

#[test]
fn a_file_without_the_figures_settles_nothing() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("file");
    let older = r#"{"kind":"check","scenario":"read","what":"every sampled key is found while it lives","held":true,"found":"1 of 1"}"#;
    std::fs::write(&path, older).unwrap();
    let judgements = judge_engines(&load_runs(std::slice::from_ref(&path)).unwrap(), &["esker".into()]);
    let of_ttl = || judgements.iter().filter(|judged| judged.hypothesis.starts_with("TTL"));
    assert!(of_ttl().all(|judged| judged.direction == Verdict::NotMeasured) && of_ttl().count() == 3, "{judgements:?}");
    for (text, expected) in [("", "holds no record"), ("{}", "neither a record nor a line of a study")] {
        std::fs::write(&path, text).unwrap();
        let error = load_runs(std::slice::from_ref(&path)).unwrap_err();
        assert!(error.contains(expected) && error.contains("file") && !error.contains('\n'), "{error}");
    }
    assert!(load_runs(&[base.path().join("none")]).unwrap_err().starts_with("cannot read"));
}
