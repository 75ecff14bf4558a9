//! Names and values that most rows share: each name once, with the value of most rows, and with the rows that differ.

/// One name with all values it has.
#[derive(Debug, PartialEq, Eq)]
pub struct Varying {
    /// The name of the setting or flag.
    pub name: String,
    /// Each value with the rows it has it in; the value of the most records first.
    pub values: Vec<(String, Vec<String>)>,
}

/// Collects (row, name, value) triples, keeping the order in which names first occur.
#[derive(Default)]
pub struct Collector {
    entries: Vec<(Varying, Vec<usize>)>,
}

impl Collector {
    /// Takes up one value of one row.
    pub fn add(&mut self, row: &str, name: &str, value: &str) {
        let position = self.entries.iter().position(|(varying, _)| varying.name == name).unwrap_or_else(|| {
            self.entries.push((Varying { name: name.to_string(), values: Vec::new() }, Vec::new()));
            self.entries.len() - 1
        });
        let (varying, counts) = &mut self.entries[position];
        let position = varying.values.iter().position(|(known, _)| known == value).unwrap_or_else(|| {
            varying.values.push((value.to_string(), Vec::new()));
            counts.push(0);
            counts.len() - 1
        });
        counts[position] += 1;
        let rows = &mut varying.values[position].1;
        if !rows.iter().any(|known| known == row) {
            rows.push(row.to_string());
        }
    }

    /// Everything collected.
    pub fn finish(self) -> Vec<Varying> {
        let sort = |(mut varying, counts): (Varying, Vec<usize>)| {
            let mut counted: Vec<_> = varying.values.into_iter().zip(counts).collect();
            counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            varying.values = counted.into_iter().map(|(value, _)| value).collect();
            varying
        };
        self.entries.into_iter().map(sort).collect()
    }
}

/// The first rows of a list as text, with the number of those left out.
pub fn some_rows(rows: &[String]) -> String {
    const SHOWN: usize = 6;
    let listed = rows.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match rows.len().saturating_sub(SHOWN) {
        0 => listed,
        more => format!("{listed} and {more} more"),
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
        assert_eq!(all[0].values[0], ("false".to_string(), vec!["fillseq".to_string(), "readseq".to_string()]));
        assert_eq!(all[0].values[1], ("true".to_string(), vec!["fillsync".to_string()]));
    }

    #[test]
    fn long_lists_of_rows_are_cut() {
        let rows: Vec<String> = (1..=9).map(|number| format!("r{number}")).collect();
        assert_eq!(some_rows(&rows), "r1, r2, r3, r4, r5, r6 and 3 more");
        assert_eq!(some_rows(&rows[..1]), "r1");
    }
}
