//! Lines of fields separated by commas, quoted where they have to be.

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
    #[test]
    fn fields_are_quoted_where_needed() {
        let fields = ["esker", "a, \"b\"", "two\nlines", ""].map(String::from);
        assert_eq!(super::line(fields), "esker,\"a, \"\"b\"\"\",\"two\nlines\",\n");
    }
}
