//! Clap's messages about a wrong command line as one line: what is wrong, what to do, and where to
//! read more.

/// Joins the paragraphs before "Usage:": the error itself, then clap's tips. `command` is whose
/// help to read.
pub fn summary(rendered: &str, command: &str) -> String {
    let mut text = String::new();
    for line in rendered.lines() {
        let line = line.trim();
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        if line.is_empty() {
            continue;
        }
        if let Some(tip) = line.strip_prefix("tip:") {
            text.push_str("; ");
            text.push_str(tip.trim());
        } else {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(line.strip_prefix("error:").unwrap_or(line).trim());
        }
    }
    format!("{text}; see `{command} --help`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_tips_become_one_line() {
        let rendered =
            "error: unexpected argument '--fron' found\n\n  tip: a similar argument exists: '--from'\n\nUsage: x\n";
        assert_eq!(
            summary(rendered, "esker scan"),
            "unexpected argument '--fron' found; a similar argument exists: '--from'; see `esker scan --help`"
        );
    }
}
