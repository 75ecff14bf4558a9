//! Reports in a real browser: nothing complains, nothing is loaded, charts are drawn, the page fits
//! a phone, and every text can be read on the light page and on the dark one. Without a browser the
//! test is one line, and a failure where `CI` is `true`.

#![allow(clippy::unwrap_used)]

mod client;

use crate::pages::kept;
use crate::report_html::synthetic as scoreboard;
use crate::study_report::synthetic as studies;
use client::{Browser, base64, find};
use serde_json::{Value, json};
use std::path::Path;

const WIDTHS: [(u32, &str); 2] = [(1280, "wide"), (360, "phone")];
const CHECKS: &str = include_str!("checks.js");
/// The height of the window.
const WINDOW: u64 = 900;
/// A picture is not higher than this, which is what the browser can draw.
const HIGHEST: u64 = 15_000;

/// What one look at a page has shown.
struct Look {
    seen: Value,
    /// Messages of the console and requests to the network, which there must not be.
    noise: Vec<String>,
}

impl Look {
    fn problems(&self) -> Vec<String> {
        let found = self.seen["problems"].as_array().unwrap();
        found.iter().map(|problem| problem.as_str().unwrap().to_string()).chain(self.noise.clone()).collect()
    }

    fn count(&self, name: &str) -> u64 {
        self.seen[name].as_u64().unwrap()
    }
}

/// A browser; `None`, with a line, where there is none.
fn browser(log: &str) -> Option<Browser> {
    match find() {
        Some(program) => Some(Browser::start(&program, &kept(log)).unwrap()),
        None if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("no browser: run scripts/browser, or set ESKER_BROWSER")
        }
        None => {
            eprintln!("no browser here: skipped; scripts/browser installs one");
            None
        }
    }
}

/// Opens the page of `html`, as wide and as dark as requested, looks at it, and keeps a picture of
/// so much of it.
fn look(browser: &mut Browser, name: &str, html: &str, width: u32, scheme: &str, highest: u64) -> Look {
    let path = kept(&format!("{name}.html"));
    std::fs::write(&path, html).unwrap();
    let url = format!("file://{}", path.display());
    let size = json!({ "width": width, "height": WINDOW, "deviceScaleFactor": 1, "mobile": false });
    browser.call("Emulation.setDeviceMetricsOverride", size).unwrap();
    let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
    browser.call("Emulation.setEmulatedMedia", media).unwrap();
    browser.open(&url).unwrap();
    let seen: Value = serde_json::from_str(&browser.evaluate(CHECKS).unwrap()).unwrap();
    let height = seen["height"].as_u64().unwrap().min(highest);
    let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
    let picture = json!({ "format": "png", "captureBeyondViewport": height > WINDOW, "clip": clip });
    let picture = browser.call("Page.captureScreenshot", picture).unwrap();
    let bytes = base64(picture["data"].as_str().unwrap());
    assert!(bytes.starts_with(b"\x89PNG"), "a screenshot of {} bytes", bytes.len());
    std::fs::write(kept(&format!("{name}-{width}-{scheme}.png")), bytes).unwrap();
    let noise = browser.events().iter().filter_map(|event| noise(event, &url)).collect();
    Look { seen, noise }
}

/// What an event complains about.
fn noise(event: &Value, page: &str) -> Option<String> {
    let parameters = &event["params"];
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(format!("exception: {}", parameters["exceptionDetails"]["text"])),
        "Runtime.consoleAPICalled" => {
            let level = parameters["type"].as_str()?;
            ["error", "warning", "assert"].contains(&level).then(|| format!("console {level}: {}", parameters["args"]))
        }
        "Log.entryAdded" => {
            let (level, text) = (parameters["entry"]["level"].as_str()?, &parameters["entry"]["text"]);
            ["error", "warning"].contains(&level).then(|| format!("log {level}: {text}"))
        }
        "Network.requestWillBeSent" => {
            let url = parameters["request"]["url"].as_str()?;
            (url != page && url != "data:,").then(|| format!("request: {url}"))
        }
        _ => None,
    }
}

/// Looks at a page in every width and on both backgrounds; gives the last look.
fn check(browser: &mut Browser, name: &str, html: &str, highest: u64) -> Look {
    let mut backgrounds = Vec::new();
    let mut last = None;
    for (width, called) in WIDTHS {
        for scheme in ["light", "dark"] {
            let look = look(browser, name, html, width, scheme, highest);
            assert_eq!(look.problems(), Vec::<String>::new(), "{name}, {called}, {scheme}");
            assert!(look.count("texts") > 100, "{name}: only {} texts were seen", look.count("texts"));
            backgrounds.push(look.seen["background"].clone());
            last = Some(look);
        }
    }
    assert_ne!(backgrounds[0], backgrounds[1], "the dark page is as light as the other");
    last.unwrap()
}

#[test]
fn the_report_of_studies_is_readable() {
    let Some(mut browser) = browser("browser-studies.log") else { return };
    let look = check(&mut browser, "studies", &esker_bench::report::study::render_html(&studies::all()), HIGHEST);
    assert!(look.count("charts") > 30 && look.count("marks") > 400, "{}", look.seen);
    assert!(look.count("colours") > 10, "the heat maps have {} colours", look.count("colours"));
}

/// What is kept in doc/results, as `esker report` shows it: real figures have holes, failures and
/// sizes that made-up ones have not.
#[test]
fn the_reports_of_kept_studies_are_readable() {
    let Some(mut browser) = browser("browser-kept.log") else { return };
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../doc/results");
    let mut seen = 0;
    for entry in std::fs::read_dir(results).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // The scoreboard and the study of scale have lines of their own.
        if !name.ends_with(".jsonl") || name.contains("scoreboard") || name.contains("study-scale") {
            continue;
        }
        let page = kept("kept.html");
        let arguments = [path.to_str().unwrap(), "--html", page.to_str().unwrap()].map(str::to_string);
        assert_eq!(esker_bench::report::study::report_with(&arguments, &mut Vec::new()), 0, "{name}");
        let html = std::fs::read_to_string(page).unwrap();
        // The rest of the picture takes longer than everything else together.
        let look = check(&mut browser, name.trim_end_matches(".jsonl"), &html, WINDOW);
        assert!(look.count("charts") > 0 && look.count("marks") > 0, "{name}: {}", look.seen);
        seen += 1;
    }
    assert!(seen > 0, "no study is kept");
}

#[test]
fn the_report_of_a_run_is_readable() {
    let Some(mut browser) = browser("browser-scoreboard.log") else { return };
    let look = check(&mut browser, "scoreboard", &esker_bench::report::render_html(&scoreboard::full()), HIGHEST);
    assert!(look.count("charts") >= 3 * scoreboard::ROWS.len() as u64, "{}", look.seen);
}

#[test]
fn the_comparison_of_two_runs_is_readable() {
    let Some(mut browser) = browser("browser-against.log") else { return };
    let base = tempfile::tempdir().unwrap();
    let path = |name: &str| base.path().join(name).display().to_string();
    let keep = |name: &str, factor: f64| {
        let mut lines = String::new();
        for row in ["fillseq", "fillrandom", "readrandom", "readhot", "seekrandom", "overwrite"] {
            for (engine, repetition) in [("esker", 1), ("esker", 2), ("lmdb", 1), ("lmdb", 2)] {
                let slower = if row.starts_with("read") { factor } else { 1.0 };
                let record = studies::record(engine, row, repetition, slower * (1.0 + f64::from(repetition) / 50.0));
                lines += &(serde_json::to_string(&record).unwrap() + "\n");
            }
        }
        std::fs::write(path(name), lines).unwrap();
    };
    keep("then.jsonl", 1.0);
    keep("now.jsonl", 1.3);
    let (now, then, page) = (path("now.jsonl"), path("then.jsonl"), path("page.html"));
    let arguments = [now.as_str(), "--against", &then, "--html", &page].map(str::to_string);
    let code = esker_bench::report::study::report_with(&arguments, &mut Vec::new());
    assert_eq!(code, 1, "gets are slower");
    check(&mut browser, "against", &std::fs::read_to_string(page).unwrap(), HIGHEST);
}

#[test]
fn what_is_wrong_is_found() {
    let Some(mut browser) = browser("browser-planted.log") else { return };
    let planted = "<!DOCTYPE html><title>x</title><style>body{background:#fff;color:#222}</style>\
        <script>console.error('planted'); nothing();</script><img src='http://127.0.0.1:9/planted.png'>\
        <p style='width:800px'>wide</p><p style='color:#999'>pale</p>\
        <p style='color:rgba(0,0,0,0.3)'>thin</p><p style='background:color-mix(in srgb,#222 90%,#fff)'>dark on dark</p>\
        <svg class='plot' style='width:0;height:0'></svg>\
        <div class='scroll' style='overflow-x:auto;width:300px'><table><tr><th class='pinned' style='min-width:900px'>far</table></div>\
        <div class='bars' style='width:100px;height:10px'><span class='bar' style='display:block;width:200px;height:9px'></span></div>";
    let look = look(&mut browser, "planted", planted, 360, "dark", HIGHEST);
    let found = look.problems().join("\n");
    for problem in [
        "a text with a contrast of 2.8",
        "\"thin\"",
        "\"dark on dark\"",
        "the page is 8",
        "too wide: p",
        "a table that scrolls without showing it",
        "a pinned column out of sight",
        "a chart without a size",
        "a mark outside its chart",
        "console error",
        "exception",
        "request: http://127.0.0.1:9/planted.png",
        "log error",
    ] {
        assert!(found.contains(problem), "{problem} in\n{found}");
    }
}
