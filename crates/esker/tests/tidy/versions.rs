//! The versions of dependencies below which something is known to be wrong: neither `Cargo.lock`
//! nor that of the fuzz targets, which are a workspace of their own, may have any of them.

use crate::report::Violation;
use crate::workspace::Workspace;

const LOCK: &str = "Cargo.lock";
const LOCKS: [&str; 2] = [LOCK, "fuzz/Cargo.lock"];

/// A crate, its first version that may be used, and what is wrong with those before.
pub type Least<'a> = (&'a str, [u64; 3], &'a str);

/// Every locked crate that is older than it may be, every rule about a crate that is not used any
/// more, and every lock file that is not there.
pub fn too_old(workspace: &Workspace, least: &[Least<'_>]) -> Vec<Violation> {
    let mut found = Vec::new();
    for lock in LOCKS.into_iter().filter(|lock| !workspace.texts.contains_key(*lock)) {
        found.push(Violation::new(lock, 1, "it is not there: the versions of its dependencies are not checked"));
    }
    for (name, first, why) in least {
        let places: Vec<Place<'_>> = LOCKS.into_iter().flat_map(|lock| locked(workspace, lock, name)).collect();
        if places.is_empty() {
            found.push(Violation::new(LOCK, 1, format!("no crate `{name}`: the rule about its version is not needed")));
        }
        for place in places.iter().filter(|place| parts(place.version) < Some(*first)) {
            found.push(Violation::new(place.lock, place.line, format!("`{name}` {}: {why}", place.version)));
        }
    }
    found
}

/// Where a crate is locked.
struct Place<'a> {
    lock: &'a str,
    line: usize,
    version: &'a str,
}

/// The places of a crate in a lock file: the version stands below the name.
fn locked<'a>(workspace: &'a Workspace, lock: &'a str, name: &str) -> Vec<Place<'a>> {
    let lines: Vec<&str> = workspace.texts.get(lock).map_or("", String::as_str).lines().collect();
    let names = (0..lines.len()).filter(|&index| quoted(lines[index], "name") == Some(name));
    let place = |index: usize| {
        let version = lines.get(index + 1).and_then(|line| quoted(line, "version")).unwrap_or("");
        Place { lock, line: index + 2, version }
    };
    names.map(place).collect()
}

/// The value of `field = "value"`.
fn quoted<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    line.strip_prefix(field)?.strip_prefix(" = \"")?.strip_suffix('"')
}

/// The three numbers of a version without a suffix.
fn parts(version: &str) -> Option<[u64; 3]> {
    let parts: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}
