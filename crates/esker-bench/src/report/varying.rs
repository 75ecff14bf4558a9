//! Names and values that most rows share: each name once, with the value of most rows, and with the
//! rows that differ.

use super::blocks::Definition;
use super::measured::entry;
use super::words::some;

/// A value of a name, with the rows that it occurs in.
struct Value {
    text: String,
    rows: Vec<String>,
    records: usize,
}

/// Collects (row, name, value) triples, keeping the order in which names first occur.
#[derive(Default)]
pub struct Collector {
    entries: Vec<(String, Vec<Value>)>,
}

impl Collector {
    /// Takes up one value of one row.
    pub fn add(&mut self, row: &str, name: &str, value: &str) {
        let (_, values) = entry(&mut self.entries, |(known, _)| known == name, || (name.to_string(), Vec::new()));
        let new = || Value { text: value.to_string(), rows: Vec::new(), records: 0 };
        let value = entry(values, |known| known.text == value, new);
        value.records += 1;
        if !value.rows.iter().any(|known| known == row) {
            value.rows.push(row.to_string());
        }
    }

    /// Everything collected: of each name the value of the most records first, the others with
    /// their rows.
    pub fn finish(self) -> Vec<Definition> {
        let definition = |(name, mut values): (String, Vec<Value>)| {
            values.sort_by_key(|value| std::cmp::Reverse(value.records));
            let place = |(index, value): (usize, Value)| {
                (value.text, if index == 0 { String::new() } else { some(&value.rows) })
            };
            Definition { name, values: values.into_iter().enumerate().map(place).collect() }
        };
        self.entries.into_iter().map(definition).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_value_comes_first() {
        let mut collector = Collector::default();
        collector.add("fillsync", "sync", "true");
        collector.add("fillseq", "sync", "false");
        collector.add("fillseq", "sync", "false");
        collector.add("readseq", "sync", "false");
        let all = collector.finish();
        assert_eq!(all.len(), 1);
        assert_eq!(
            all[0].values,
            [("false", ""), ("true", "fillsync")].map(|(value, rows)| (value.into(), rows.into()))
        );
    }
}
