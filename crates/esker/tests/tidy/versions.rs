//! The versions of dependencies below which something is known to be wrong: `Cargo.lock` must have
//! none of them.

use crate::report::Violation;
use crate::workspace::Workspace;

const LOCK: &str = "Cargo.lock";

/// A crate, its first version that may be used, and what is wrong with those before.
pub type Least<'a> = (&'a str, [u64; 3], &'a str);

/// Every locked crate that is older than it may be, and every rule about a crate that is not used
/// any more.
pub fn too_old(workspace: &Workspace, least: &[Least<'_>]) -> Vec<Violation> {
    let lines: Vec<&str> = workspace.texts.get(LOCK).map_or("", String::as_str).lines().collect();
    let mut found = Vec::new();
    for (name, first, why) in least {
        let is_name = |line: &&str| quoted(line, "name") == Some(name);
        let places: Vec<usize> = (0..lines.len()).filter(|&index| is_name(&lines[index])).collect();
        if places.is_empty() {
            found.push(Violation::new(LOCK, 1, format!("no crate `{name}`: the rule about its version is not needed")));
        }
        for index in places {
            let version = lines.get(index + 1).and_then(|line| quoted(line, "version")).unwrap_or("");
            if parts(version) < Some(*first) {
                found.push(Violation::new(LOCK, index + 2, format!("`{name}` {version}: {why}")));
            }
        }
    }
    found
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
