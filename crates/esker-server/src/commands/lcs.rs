//! The longest bytes that two strings have in the same order, though not in a row.

use super::arguments::{STRING_BYTES_MAX, integer, is, syntax};
use crate::protocol::Reply;
use crate::store::{Context, Entry, Failure, Outcome};
use bytes::Bytes;

/// What is requested.
#[derive(Debug, Default)]
struct Options {
    length: bool,
    matches: bool,
    lengths_of_matches: bool,
    least_match: i64,
}

impl Options {
    fn parse(options: &[Bytes]) -> Outcome<Options> {
        let mut parsed = Options::default();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            if is(option, "IDX") {
                parsed.matches = true;
            } else if is(option, "LEN") {
                parsed.length = true;
            } else if is(option, "WITHMATCHLEN") {
                parsed.lengths_of_matches = true;
            } else if is(option, "MINMATCHLEN")
                && let Some(least) = options.next()
            {
                parsed.least_match = integer(least)?;
            } else {
                return syntax();
            }
        }
        if parsed.matches && parsed.length {
            return Failure::refused("ERR If you want both the length and indexes, please just use IDX.");
        }
        Ok(parsed)
    }
}

/// How much the beginnings of two strings have in common, for each length of both.
struct Table {
    columns: usize,
    lengths: Vec<u32>,
}

impl Table {
    /// That of two strings, if it is not too large.
    fn of(left: &[u8], right: &[u8]) -> Outcome<Table> {
        let (rows, columns) = (left.len() + 1, right.len() + 1);
        let cells = rows.checked_mul(columns).filter(|cells| *cells <= STRING_BYTES_MAX / size_of::<u32>());
        let Some(cells) = cells else {
            let what = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
            return Failure::refused(what);
        };
        let mut lengths = Vec::new();
        if lengths.try_reserve_exact(cells).is_err() {
            return Failure::refused("ERR Insufficient memory, failed allocating transient memory for LCS");
        }
        lengths.resize(cells, 0);
        let mut table = Table { columns, lengths };
        for (row, left) in (1..).zip(left) {
            for (column, right) in (1..).zip(right) {
                let length = if left == right {
                    table.at(row - 1, column - 1) + 1
                } else {
                    table.at(row - 1, column).max(table.at(row, column - 1))
                };
                table.lengths[row * columns + column] = length;
            }
        }
        Ok(table)
    }

    fn at(&self, row: usize, column: usize) -> u32 {
        self.lengths[row * self.columns + column]
    }
}

/// Bytes that both strings have in a row.
#[derive(Debug, PartialEq, Eq)]
struct Match {
    left: usize,
    right: usize,
    length: usize,
}

/// What both have, and the places of its parts, the last one first.
fn common(table: &Table, left: &[u8], right: &[u8]) -> (Vec<u8>, Vec<Match>) {
    let (mut row, mut column) = (left.len(), right.len());
    let (mut bytes, mut matches, mut goes_on) = (Vec::new(), Vec::<Match>::new(), false);
    while row > 0 && column > 0 {
        if left[row - 1] != right[column - 1] {
            goes_on = false;
            let is_above = table.at(row - 1, column) > table.at(row, column - 1);
            if is_above {
                row -= 1
            } else {
                column -= 1
            }
            continue;
        }
        (row, column) = (row - 1, column - 1);
        bytes.push(left[row]);
        match matches.last_mut().filter(|_| goes_on) {
            Some(last) => *last = Match { left: row, right: column, length: last.length + 1 },
            None => matches.push(Match { left: row, right: column, length: 1 }),
        }
        goes_on = true;
    }
    bytes.reverse();
    (bytes, matches)
}

fn value_of(entry: Option<&Entry>) -> &[u8] {
    entry.and_then(Entry::string).unwrap_or_default()
}

/// LCS key key [LEN | IDX] [MINMATCHLEN length] [WITHMATCHLEN]
pub fn lcs(context: &mut Context<'_>, arguments: &[Bytes]) -> Outcome {
    let (left, right) = (context.entry(&arguments[1])?, context.entry(&arguments[2])?);
    if [&left, &right].into_iter().flatten().any(|entry| entry.string().is_none()) {
        return Failure::refused("ERR The specified keys must contain string values");
    }
    let options = Options::parse(&arguments[3..])?;
    let (left, right) = (value_of(left.as_ref()), value_of(right.as_ref()));
    let table = Table::of(left, right)?;
    let length = Reply::Integer(i64::from(table.at(left.len(), right.len())));
    if options.length {
        return Ok(length);
    }
    let (bytes, matches) = common(&table, left, right);
    if !options.matches {
        return Ok(Reply::Bulk(bytes.into()));
    }
    let is_long_enough = |found: &Match| i64::try_from(found.length).is_ok_and(|length| length >= options.least_match);
    let shown = |found: Match| {
        let place = |start: usize| Reply::Array(vec![Reply::count(start), Reply::count(start + found.length - 1)]);
        let mut parts = vec![place(found.left), place(found.right)];
        parts.extend(options.lengths_of_matches.then(|| Reply::count(found.length)));
        Reply::Array(parts)
    };
    let matches = matches.into_iter().filter(is_long_enough).map(shown).collect();
    Ok(Reply::Map(vec![(Reply::bulk("matches"), Reply::Array(matches)), (Reply::bulk("len"), length)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_from_the_end() {
        let (left, right) = (b"ohmytext", b"mynewtext");
        let table = Table::of(left, right).unwrap();
        let (bytes, matches) = common(&table, left, right);
        assert_eq!(bytes, b"mytext");
        let expected = [Match { left: 4, right: 5, length: 4 }, Match { left: 2, right: 0, length: 2 }];
        assert_eq!(matches, expected);
        assert_eq!(common(&Table::of(b"", right).unwrap(), b"", right), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_table_that_is_too_large_is_refused() {
        let long = vec![0; 1 << 14];
        assert!(Table::of(&long, &long).is_err());
    }
}
