//! The text format of Prometheus, read: what a program writes with `esker::PrometheusText`.

use std::collections::BTreeMap;

/// The samples of a text, by name and by the value of one label, which is empty without one.
#[derive(Debug, Default, Clone)]
pub struct Figures(BTreeMap<String, BTreeMap<String, f64>>);

impl Figures {
    /// Reads a text. Says which line is none of the format.
    pub fn parse(text: &str) -> Result<Figures, String> {
        let mut figures = Figures::default();
        let samples = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        for (at, line) in samples {
            let (name, label, value) =
                sample(line.trim()).ok_or_else(|| format!("line {} is no sample: {line}", at + 1))?;
            figures.0.entry(name).or_default().insert(label, value);
        }
        Ok(figures)
    }

    /// The sample without labels of that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.of("", name)
    }

    /// The sample of that name and label.
    pub fn of(&self, label: &str, name: &str) -> Option<f64> {
        self.0.get(name)?.get(label).copied()
    }

    /// The labels that a name has samples for.
    pub fn labels(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.get(name).into_iter().flat_map(|samples| samples.keys().map(String::as_str))
    }
}

/// `name{label="value"} number`; the label may be missing, and a time may follow.
fn sample(line: &str) -> Option<(String, String, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let (label, rest) = match rest.strip_prefix('{') {
        None => (String::new(), rest),
        Some(labels) => label(labels)?,
    };
    let mut words = rest.split_whitespace();
    let value = words.next()?.parse().ok()?;
    Some((name.to_owned(), label, value))
}

/// The value of the one label, and what comes behind the brace.
fn label(labels: &str) -> Option<(String, &str)> {
    let (_, quoted) = labels.split_once("=\"")?;
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, quoted.get(at + 1..)?.strip_prefix('}')?)),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            _ => value.push(c),
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn samples_with_and_without_labels_and_nothing_else() {
        let text = "# HELP a b\na 1\nb{keyspace=\"x\"} 2.5 1700000000\nb{keyspace=\"y \\\"\\\\\\n}\"} 3\n\nc_bucket{le=\"+Inf\"} 7\n";
        let figures = Figures::parse(text).unwrap();
        assert_eq!((figures.get("a"), figures.get("b"), figures.get("d")), (Some(1.0), None, None));
        assert_eq!((figures.of("x", "b"), figures.of("y \"\\\n}", "b")), (Some(2.5), Some(3.0)));
        assert_eq!(figures.labels("b").count(), 2);
        assert_eq!(figures.of("+Inf", "c_bucket"), Some(7.0));
        for wrong in ["a", "a b", "{keyspace=\"x\"} 1", "a{keyspace=\"x} 1", "a{keyspace=\"x\" 1", "a{} 1"] {
            assert!(Figures::parse(&format!("ok 1\n{wrong}\n")).unwrap_err().starts_with("line 2 "), "{wrong}");
        }
    }
}
