//! Lists and counts as people write them.

/// `a`, `a and b`, `a, b and c`.
pub fn listed(parts: &[impl AsRef<str>]) -> String {
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts.as_slice() {
        [] => String::new(),
        [one] => (*one).to_string(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// `1 row`, `2 rows`.
pub fn counted(count: u32, what: &str) -> String {
    if count == 1 { format!("{count} {what}") } else { format!("{count} {what}s") }
}

/// The first rows of a list, with the number of those left out.
pub fn some(rows: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 6;
    let listed = rows.iter().take(SHOWN).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    match rows.len().saturating_sub(SHOWN) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_counts_are_english() {
        assert_eq!(
            (listed(&["a"; 0]), listed(&["a"]), listed(&["a", "b", "c"])),
            ("".into(), "a".into(), "a, b and c".into())
        );
        assert_eq!((counted(1, "thread"), counted(2, "thread")), ("1 thread".into(), "2 threads".into()));
        let rows: Vec<String> = (1..=9).map(|number| format!("r{number}")).collect();
        assert_eq!((some(&rows).as_str(), some(&rows[..1]).as_str()), ("r1, r2, r3, r4, r5, r6 and 3 more", "r1"));
    }
}
