//! Reports of kept runs, from outside: complete, well formed, escaped, and the comparison of two
//! runs.

#![allow(clippy::unwrap_used)]

pub mod synthetic;

use crate::report_html::markup::{self, check, text};
use esker_bench::published::DATA;
use esker_bench::record::Record;
use esker_bench::report::study::{load_runs, render_csv, render_html, render_markdown, report_with};
use esker_bench::sweep::grid::{Finished, Plan, RunDirectory, StudyRun};
use std::path::Path;

fn report(arguments: &[&str]) -> (i32, String) {
    let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string()).collect();
    let mut out = Vec::new();
    let code = report_with(&arguments, &mut out);
    (code, String::from_utf8(out).unwrap())
}

/// Keeps a run as its study would.
fn keep(run: &StudyRun, path: &Path) {
    let cells = run.finished.iter().map(|finished| finished.cell.clone()).collect();
    let plan = Plan { study: run.study.clone(), title: run.title.clone(), cells };
    let directory = RunDirectory::create_or_resume(path, &plan).unwrap();
    for finished in &run.finished {
        directory.keep(finished).unwrap();
    }
}

/// A report of each kept study can be made again: the kept page, byte for byte. The study of times
/// to live is judged from its lines.
#[test]
fn every_kept_study_can_be_reported() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../doc/results");
    let (mut studies, mut paths) = (Vec::new(), Vec::new());
    let mut pages = 0;
    for entry in std::fs::read_dir(results).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // The scoreboard and the study of scale have lines of their own.
        if !name.ends_with(".jsonl") || name.contains("scoreboard") || name.contains("study-scale") {
            continue;
        }
        let (code, page) = report(&[path.to_str().unwrap()]);
        assert_eq!(code, 0, "{name}: {page}");
        assert!(page.contains("## Conditions"), "{name}");
        if let Ok(kept) = std::fs::read_to_string(path.with_extension("html")) {
            let again = render_html(&load_runs(std::slice::from_ref(&path)).unwrap());
            assert!(again == kept, "{name}: the page made of it is not the one beside it");
            pages += 1;
        }
        if name.contains("-ttl") {
            for claim in ["TTL-1", "TTL-2", "TTL-3"] {
                let judged = |line: &str| line.contains(claim) && line.contains("HELD");
                assert!(page.lines().any(judged), "{name}: {claim} is not judged");
            }
        }
        studies.push(name);
        paths.push(path.to_string_lossy().into_owned());
    }
    assert!(pages > 0, "no page is kept");
    // Together they have a figure of ours beside each published one.
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let (code, page) = report(&paths);
    assert_eq!(code, 0);
    let missing: Vec<&str> = page.lines().filter(|line| line.contains("these runs hold nothing")).collect();
    assert!(missing.is_empty(), "not measured in any kept run: {missing:#?}");
    for study in ["rmw", "memtable", "leveldb-2011", "workloads", "ttl"] {
        assert!(studies.iter().any(|name| name.contains(study)), "no run of {study} is kept: {studies:?}");
    }
}

#[test]
fn every_study_has_its_section() {
    let page = render_html(&synthetic::all());
    let elements = check(&page);
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("NaN"));
    let count = |name: &str, class: &str| {
        let is = |element: &&markup::Element| {
            element.name == name && element.attribute("class").is_some_and(|all| all.split(' ').any(|one| one == class))
        };
        elements.iter().filter(is).count()
    };
    assert!(count("table", "heat") == 4 * 4, "{} heat maps", count("table", "heat"));
    assert!(count("td", "mark") == 4 * 4 * 25);
    assert!(count("figure", "chart") >= 2 * 19 && count("span", "published") >= 52);
    for id in
        ["about", "study-rmw", "study-memtable", "study-leveldb2011", "study-workloads", "study-sweep", "conditions"]
    {
        assert!(
            elements.iter().any(|element| element.name == "section" && element.attribute("id") == Some(id)),
            "{id}"
        );
    }
    let shown = text(&page);
    for words in [
        "706,756 of 1,000,000: Esker, LevelDB, RocksDB",
        "1. Baseline performance",
        "E. Using more memory",
        "B. No compression reads",
        "SQLite (without rowid)",
        "engine has no batches",
        "verifymerges: 500000 counters, every one as it must be",
        "block size",
        "Not complete: of the plan, 3 cells are not done yet.",
        "queue: fjall: no space left on device",
        "esker study made-up --repeat 2",
        "Made-up Processor 9000",
        "3.67\u{d7}",
        "Published: LevelDB 1.23, readrandom after fillrandom",
        "4,030,000 ops/sec",
        "(0.003\u{d7} baseline; the figures give 0.00013\u{d7})",
        "248 min 46 s",
        "redb \u{2021}",
        // Few settings: a chart for each, with all engines.
        "readrandom at a fixed rate: 99th percentile from the intended start, rate 20,000",
        // More settings than engines: a chart for each engine.
        "readrandom, Esker",
    ] {
        assert!(shown.contains(words), "{words}");
    }
}

#[test]
fn every_published_record_and_every_claim_is_there() {
    let runs = synthetic::all();
    for shown in [text(&render_html(&runs)), render_markdown(&runs).replace('\\', "")] {
        for record in &DATA.records {
            assert!(shown.contains(&record.id), "{}", record.id);
        }
        for hypothesis in &DATA.hypotheses {
            assert!(shown.contains(&hypothesis.id) && shown.contains(&hypothesis.claim), "{}", hypothesis.id);
        }
        assert!(shown.contains(&format!("All {} published records", DATA.records.len())));
    }
    // Beside figures of one study only, the others are shown all the same.
    let shown = text(&render_html(&runs[..1]));
    assert!(DATA.records.iter().all(|record| shown.contains(&record.id)));
}

#[test]
fn markdown_says_the_same() {
    let text = render_markdown(&synthetic::all());
    for words in [
        "## Read-modify-write",
        "## Conditions",
        "| buffer / largest file | 2 | 4 | 8 | 16 | 32 |",
        "Sequential reads, published in 2011\n\n|  | figure |\n| --- | ---: |\n| LevelDB | 4,030,000 ops/sec |\n",
        "SQLite (without rowid)",
    ] {
        assert!(text.contains(words), "{words}");
    }
    assert!(!text.contains("NaN"));
}

#[test]
fn csv_has_a_line_for_every_record_and_every_failed_cell() {
    let runs = synthetic::all();
    let cells = || runs.iter().flat_map(|run| &run.finished);
    let records: usize = cells().map(|finished| finished.records.len().max(1)).sum();
    let csv = render_csv(&runs);
    assert_eq!(csv.lines().count(), records + 1);
    assert!(csv.contains("\nmemtable,grid,,max_file_mib=2;write_buffer_mib=2,,esker,"));
    assert!(csv.contains("no space left on device"));
}

#[test]
fn hostile_text_is_escaped_everywhere() {
    let evil = "</style></title><script>alert(\"1\")</script>|<img src='x' onerror=\"a&b\">";
    let mut runs = synthetic::all();
    for run in &mut runs {
        run.title = evil.into();
        for finished in &mut run.finished {
            finished.failure = Some(evil.into());
            finished.cell.experiment.push_str(evil);
            finished.cell.variables.insert(evil.into(), evil.into());
            finished.host.cpu = evil.into();
            finished.host.command_line = evil.into();
            for record in &mut finished.records {
                record.message = evil.into();
                record.engine_version = evil.into();
                record.row.push_str(evil);
            }
        }
    }
    runs[4].study = evil.into();
    let page = render_html(&runs);
    check(&page);
    assert!(!page.contains("<script") && !page.contains("<img"));
    let markdown = render_markdown(&runs);
    // What is indented is shown as it stands.
    assert!(!markdown.lines().any(|line| !line.starts_with("    ") && line.contains("<script")));
}

#[test]
fn odd_figures_and_empty_runs_do_no_harm() {
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, f64::MAX] {
        let mut runs = synthetic::all();
        let records = runs.iter_mut().flat_map(|run| &mut run.finished).flat_map(|finished| &mut finished.records);
        for record in records {
            for field in [
                &mut record.ops_per_sec,
                &mut record.micros_per_op_wall,
                &mut record.latency.max_us,
                &mut record.wall_s,
            ] {
                *field = value;
            }
        }
        check(&render_html(&runs));
        render_markdown(&runs);
    }
    let page = render_html(&[]);
    check(&page);
    assert!(text(&page).contains("These runs hold no record yet."));
    let bare = Finished { records: vec![Record::default()], ..synthetic::cell("", ("", ""), &[], 1, &[]) };
    check(&render_html(&[synthetic::run("", "", vec![bare])]));
}

#[test]
fn kept_runs_become_files() {
    let base = tempfile::tempdir().unwrap();
    let path = |name: &str| base.path().join(name).to_str().unwrap().to_string();
    keep(&synthetic::all()[1], Path::new(&path("run")));
    let runs = [RunDirectory::open(Path::new(&path("run"))).unwrap().load().unwrap()];
    let (html, markdown, csv) = (path("a.html"), path("a.md"), path("a.csv"));
    let (code, out) = report(&[&path("run"), "--html", &html, "--markdown", &markdown, "--csv", &csv]);
    assert_eq!((code, out.as_str()), (0, ""));
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(&html), render_html(&runs));
    assert_eq!(read(&markdown), render_markdown(&runs));
    assert_eq!(read(&csv), render_csv(&runs));
    let (code, out) = report(&[&path("run")]);
    assert_eq!(code, 0);
    assert_eq!(out.trim_end(), render_markdown(&runs).trim_end());
    let (code, out) = report(&[&path("run"), "--csv", "-"]);
    assert_eq!((code, out.lines().count()), (0, read(&csv).lines().count()));
}

#[test]
fn a_run_kept_as_one_file_says_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    for (place, run) in synthetic::all().iter().enumerate() {
        let (kept, file) = (path(&format!("run{place}")), path(&format!("run{place}.jsonl")));
        keep(run, Path::new(&kept));
        assert_eq!(report(&[&kept, "--lines", &file]), (0, String::new()));
        assert_eq!(report(&[&file]), report(&[&kept]), "{}", run.study);
        assert_eq!(report(&[&file, "--csv", "-"]), report(&[&kept, "--csv", "-"]));
    }
    assert_eq!(report(&[&path("run0"), &path("run1"), "--lines", &path("both.jsonl")]).0, 2);
    let text = std::fs::read_to_string(path("run0.jsonl")).unwrap();
    std::fs::write(path("cut.jsonl"), &text[..text.len() - 9]).unwrap();
    assert_eq!(report(&[&path("cut.jsonl")]).0, 2);
}

#[test]
fn files_of_records_are_read() {
    let base = tempfile::tempdir().unwrap();
    let write = |name: &str, lines: &[String]| {
        let path = base.path().join(name);
        std::fs::write(&path, lines.join("\n")).unwrap();
        path.to_str().unwrap().to_string()
    };
    let json = |record: &Record| serde_json::to_string(record).unwrap();
    let lines: Vec<String> =
        (1..=3).map(|repetition| json(&synthetic::record("esker", "fillseq", repetition, 1.5))).collect();
    let (code, out) = report(&[&write("bench.jsonl", &lines)]);
    assert_eq!(code, 0);
    assert!(out.starts_with("# bench\n") && out.contains("| fillseq | Esker | 1.500 |"), "{out}");

    let ttl = [
        r#"{"kind":"machine","host":null,"data_mib":1,"ttl_s":2,"simulated_clock":true}"#.to_string(),
        r#"{"kind":"check","scenario":"read","what":"found after expiry","held":false,"found":"3 of 100"}"#.to_string(),
        r#"{"kind":"cost","variant":"plain","num":1000,"fillrandom_us":[1.0,1.2],"readrandom_us":[2.0,2.1],"disk_bytes_per_key":1.0,"wal_bytes_per_put":1.0}"#.to_string(),
    ];
    let (code, out) = report(&[&write("ttl.jsonl", &ttl)]);
    assert_eq!(code, 0);
    assert!(out.contains("NOT HELD: 3 of 100") && out.contains("| plain |"), "{out}");

    let part = format!(r#"{{"kind":"row","part":"grow","record":{}}}"#, lines[0]);
    assert_eq!(report(&[&write("scale.jsonl", &[part])]).0, 0);
    let later = lines[0].replace("\"schema\":1", "\"schema\":99");
    for wrong in ["nonsense", r#"{"kind":"row","row":"fillseq"}"#, r#"{"a":1}"#, &later, ""] {
        assert_eq!(report(&[&write("wrong.jsonl", &[wrong.to_string()])]).0, 2, "{wrong}");
    }
}

#[test]
fn a_loss_is_the_exit_code() {
    let base = tempfile::tempdir().unwrap();
    let path = |name: &str| base.path().join(name).to_str().unwrap().to_string();
    let sweep = &synthetic::all()[4];
    let mut slower = sweep.clone();
    for record in slower.finished.iter_mut().flat_map(|finished| &mut finished.records) {
        if record.row == "readrandom" {
            record.micros_per_op_wall *= 1.3;
        }
    }
    keep(sweep, Path::new(&path("then")));
    keep(&slower, Path::new(&path("now")));
    let (code, out) = report(&[&path("now"), "--against", &path("then")]);
    assert_eq!(code, 1);
    assert!(out.contains("12 slower by more than 10 %") && out.contains("one repetition: no interval"), "{out}");
    assert_eq!(report(&[&path("now"), "--against", &path("then"), "--max-loss", "40"]).0, 0);
    assert_eq!(report(&[&path("then"), "--against", &path("then")]).0, 0);
    let page = path("page.html");
    assert_eq!(report(&[&path("now"), "--against", &path("then"), "--html", &page]).0, 1);
    let page = std::fs::read_to_string(page).unwrap();
    check(&page);
    assert!(text(&page).contains("Then and now") && text(&page).contains("LOST"));
    keep(&synthetic::all()[0], Path::new(&path("other")));
    assert_eq!(report(&[&path("now"), "--against", &path("other")]).0, 2);
}

#[test]
fn what_cannot_be_read_or_written_is_one_line() {
    let base = tempfile::tempdir().unwrap();
    let nowhere = base.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    assert_eq!(report(&[]).0, 2);
    assert_eq!(report(&[nowhere]).0, 2);
    assert_eq!(report(&[base.path().to_str().unwrap()]).0, 2);
    assert_eq!(report(&[nowhere, "--max-loss", "5"]).0, 2);
    let run = base.path().join("run");
    keep(&synthetic::all()[4], &run);
    let run = run.to_str().unwrap();
    assert_eq!(report(&[run, "--html", &format!("{nowhere}/page.html")]).0, 1);
    assert_eq!(report(&[run, "--against", run, "--max-loss", "-5"]).0, 2);
    std::fs::write(format!("{run}/run.json"), r#"{"schema":99,"plan":{}}"#).unwrap();
    assert_eq!(report(&[run]).0, 2);
    let (code, help) = report(&["--help"]);
    assert_eq!(code, 0);
    assert!(help.contains("--against") && help.contains("Exit codes"));
}
