//! Every place of the engine that syncs is proved to be needed, or has a reason in doc/testing.md;
//! neither list can rot.
//!
//! `ESKER_CHECK_SECONDS` is how long the proofs may take; some are made in any case, so that a slow
//! machine shows something too. The whole campaign is `esker-check ablation`.

use esker_check::ablation::{is_proved, scenes};
use esker_check::settings::Settings;
use sites::{PROVED, REASONS};
use std::collections::BTreeSet;
use std::path::Path;

#[path = "ablation/sites.rs"]
mod sites;

/// So many proofs of each half are made whatever time they take.
const LEAST: u64 = 20;

/// On two processors at a time, the cheapest first: a very slow machine leaves out the last ones,
/// and says so.
#[test]
fn each_odd_one_of_what_was_proved_is_still_noticed() {
    prove(PROVED.iter().step_by(2));
}

#[test]
fn each_even_one_of_what_was_proved_is_still_noticed() {
    prove(PROVED.iter().skip(1).step_by(2));
}

fn prove(proofs: impl ExactSizeIterator<Item = &'static (&'static str, &'static str, (&'static str, u64))>) {
    let all = proofs.len();
    let settings = Settings::from_environment(1, 12).at_least(LEAST);
    let (mut proved, mut wrong) = (0, Vec::new());
    for (number, (at, by, sync)) in proofs.enumerate() {
        if settings.enough(number as u64) {
            break;
        }
        match is_proved(at, by, *sync) {
            Ok(true) => proved += 1,
            Ok(false) => wrong.push(format!("{at} by {by}: left out in {}, nothing notices", sync.0)),
            Err(what) => wrong.push(format!("{at} by {by}: wrong without it being left out: {what}")),
        }
    }
    println!("ablation: {proved} of {all} proofs in {:.1} s", settings.elapsed_seconds());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(proved >= LEAST, "{proved} proofs were made, of {LEAST} at least");
}

/// The scripts under all options, without what is done after accidents.
#[test]
fn every_place_that_syncs_is_listed() {
    let listed: BTreeSet<String> = PROVED
        .iter()
        .map(|(at, by, _)| format!("{at} by {by}"))
        .chain(REASONS.iter().map(|(at, by)| format!("{at} by {by}")))
        .collect();
    let mut new = BTreeSet::new();
    for script in sites::LISTING {
        for scene in scenes(script).unwrap_or_else(|what| panic!("{script}: {what}")) {
            for heard in scene.syncs().unwrap_or_else(|what| panic!("{what}")) {
                let site = heard.site.to_string();
                if !listed.contains(&site) {
                    new.insert(format!("{site} (in {})", scene.name));
                }
            }
        }
    }
    assert!(new.is_empty(), "neither proved nor with a reason:\n{}", new.into_iter().collect::<Vec<_>>().join("\n"));
}

/// Also calls that no script reaches are known. One more in a file: prove it, or give its reason.
#[test]
fn every_call_in_the_sources_is_counted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../esker/src");
    let mut found = Vec::new();
    count_calls(&root, &root, &mut found);
    found.sort();
    let expected: Vec<(String, usize)> = sites::CALLS.iter().map(|(file, calls)| (file.to_string(), *calls)).collect();
    assert_eq!(found, expected, "calls that sync, by file");
}

fn count_calls(root: &Path, directory: &Path, found: &mut Vec<(String, usize)>) {
    for entry in std::fs::read_dir(directory).expect("the sources are there") {
        let path = entry.expect("the sources are there").path();
        let name = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
        // Environments, what passes their calls on, examples, and tests.
        if ["env", "handle", "internals", "db/interleavings", "db/lifecycle/guarded_env.rs"].contains(&name.as_str())
            || name.contains("test")
        {
            continue;
        }
        if path.is_dir() {
            count_calls(root, &path, found);
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("sources are text");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let calls = |line: &str| [".sync()", ".sync_dir(", ".sync_range("].map(|call| line.matches(call).count());
        let count = code.flat_map(calls).sum();
        if count > 0 {
            found.push((name, count));
        }
    }
}

fn documentation() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../doc/testing.md");
    std::fs::read_to_string(path).expect("the documentation is there")
}

/// Place and caller of each row of the table whose head begins so, in order.
fn documented(head: &str) -> Vec<(String, String)> {
    let text = documentation();
    let table = text.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let places = table.take_while(|line| line.starts_with('|')).map(|row| {
        let mut cells = row.split('|').skip(1).map(|cell| cell.trim().trim_matches('`').to_string());
        (cells.next().unwrap_or_default(), cells.next().unwrap_or_default())
    });
    sorted(places)
}

fn sorted(places: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut places: Vec<_> = places.collect();
    places.sort();
    places
}

/// A row that is missing, one too many, one that is there twice and one with the former name of a
/// function fail here.
#[test]
fn the_tables_of_the_documentation_have_the_places_of_the_lists_and_no_others() {
    let proved = PROVED.iter().map(|(at, by, _)| (at.to_string(), by.to_string()));
    assert_eq!(documented("| Sync | Called by | Left out | Noticed |"), sorted(proved), "those that are proved");
    let reasons = REASONS.iter().map(|(at, by)| (at.to_string(), by.to_string()));
    assert_eq!(documented("| Sync | Called by | Left out | Reason"), sorted(reasons), "those with a reason");
}

#[test]
fn the_documentation_says_how_many_places_there_are_and_how_many_are_proved() {
    let (proved, all) = (PROVED.len(), PROVED.len() + REASONS.len());
    let text = documentation().split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        format!("{all} places and callers. {proved} are proved"),
        format!("one sync of each of {proved} places of the engine"),
        format!("{LEAST} of each half of them in any case"),
    ] {
        assert!(text.contains(&words), "doc/testing.md does not say: {words}");
    }
}

/// Some syncs of every place, as far as the time allows, each with what came of it.
#[test]
#[ignore = "for whoever looks for proofs: ONLY and SITE choose scripts and places"]
fn trials() {
    let chosen = |name: &str| std::env::var(name).unwrap_or_default();
    let settings = Settings::from_environment(1, 60);
    let scenes = scenes(&chosen("ONLY")).unwrap_or_else(|what| panic!("{what}"));
    let site = chosen("SITE");
    for (scene, heard) in esker_check::ablation::trials(&scenes, settings.seed).unwrap_or_else(|what| panic!("{what}"))
    {
        if settings.over() {
            break;
        }
        if site.is_empty() || site.split(';').any(|site| heard.site.to_string().contains(site)) {
            let begun = settings.elapsed_seconds();
            let noticed = scene.notices(&heard);
            println!(
                "T {noticed:?} {:.3} s {} # {} {:?} {}",
                settings.elapsed_seconds() - begun,
                heard.site,
                scene.name,
                heard.class,
                heard.nth
            );
        }
    }
}
