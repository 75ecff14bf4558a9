//! Lines of fields separated by commas, quoted where they have to be.

use serde::Serialize;
use serde_json::Value;

/// The columns of a file: names of fields as serde writes them, parted by blanks. In front of a
/// name, with a dot, stands what the field lies in; behind it, with a colon, how many decimals its
/// figures have.
pub struct Columns(pub &'static str);

impl Columns {
    fn all(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.0.split_whitespace().map(|column| match column.split_once(':') {
            Some((path, decimals)) => (path, decimals.parse().ok()),
            None => (column, None),
        })
    }

    /// The fields of the first line.
    pub fn header(&self) -> impl Iterator<Item = String> {
        self.all().map(|(path, _)| path.rsplit('.').next().unwrap_or(path).to_string())
    }

    /// The fields of a line. What is not there is empty.
    pub fn row(&self, of: &impl Serialize) -> impl Iterator<Item = String> {
        let value = serde_json::to_value(of).unwrap_or_default();
        self.all().map(move |(path, decimals)| text(path.split('.').fold(&value, |whole, name| &whole[name]), decimals))
    }

    /// Whether each column is a field of this.
    #[cfg(test)]
    pub fn are_of(&self, of: &impl Serialize) -> bool {
        let value = serde_json::to_value(of).unwrap();
        self.all().all(|(path, _)| value.pointer(&format!("/{}", path.replace('.', "/"))).is_some())
    }
}

fn text(value: &Value, decimals: Option<usize>) -> String {
    match (value, value.as_f64(), decimals) {
        (Value::Null, ..) => String::new(),
        (Value::String(text), ..) => text.clone(),
        (_, Some(figure), Some(decimals)) => format!("{figure:.decimals$}"),
        (_, Some(figure), None) if value.is_f64() => figure.to_string(),
        (other, ..) => other.to_string(),
    }
}

/// One line with its end.
pub fn line(fields: impl IntoIterator<Item = String>) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    let written = writer.write_record(fields.into_iter().collect::<Vec<String>>());
    let bytes = written.ok().and_then(|()| writer.into_inner().ok());
    // Into memory nothing fails, and what is made of texts is text.
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_the_columns_say() {
        let of = serde_json::json!({"a": 1.25, "b": 5.0, "c": 7, "d": {"e": "x, \"y\""}, "f": null});
        let columns = Columns("a:1 b b:2 c d.e f");
        assert_eq!(line(columns.header()), "a,b,b,c,e,f\n");
        assert_eq!(line(columns.row(&of)), "1.2,5,5.00,7,\"x, \"\"y\"\"\",\n");
    }
}
