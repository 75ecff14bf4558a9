//! The versions of crates that do not tell their own, from the lock file that the program was built
//! with.

const LOCK_FILE: &str = include_str!("../../../Cargo.lock");

/// The version of a package, or `of unknown version` if the lock file does not have it.
pub fn version(package: &str) -> &'static str {
    find(LOCK_FILE, package).unwrap_or("of unknown version")
}

/// Each package is a table that begins with its name and its version, in this order.
fn find<'a>(lock_file: &'a str, package: &str) -> Option<&'a str> {
    let mut lines = lock_file.lines();
    lines.find(|line| value(line, "name") == Some(package))?;
    value(lines.next()?, "version")
}

fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim().strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_by_whole_names() {
        let text = "[[package]]\nname = \"ab\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"a\"\nversion = \"4.5\"\n";
        assert_eq!(find(text, "a"), Some("4.5"));
        assert_eq!(find(text, "ab"), Some("1.2.3"));
        assert_eq!(find(text, "b"), None);
        assert_eq!(find("name = \"a\"", "a"), None);
    }

    #[test]
    fn the_peers_that_need_it_are_in_the_lock_file() {
        for package in ["redb", "fjall"] {
            assert!(version(package).starts_with(|first: char| first.is_ascii_digit()), "{package}");
        }
    }
}
