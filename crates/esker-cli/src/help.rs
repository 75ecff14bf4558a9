//! The help of commands, as wide as the terminal.
//!
//! The text below the options of a command is written in lines for those who read the source. Clap
//! breaks each line that is too long for the terminal, and joins none: so the lines of a paragraph
//! are joined here, and what is indented, as an example, stays as it is.

use clap::Command;

/// The command with all texts below its options, and those of its commands, in whole paragraphs.
pub fn in_paragraphs(command: Command) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(paragraphs(&text)),
        None => command,
    };
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, in_paragraphs))
}

/// The text with each paragraph in one line. A paragraph ends at an empty line, or an indented one.
fn paragraphs(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut is_in_paragraph = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        match (joined.is_empty(), is_in_paragraph && is_prose) {
            (true, _) => {}
            (false, true) => joined.push(' '),
            (false, false) => joined.push('\n'),
        }
        joined.push_str(line);
        is_in_paragraph = is_prose;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandLine;
    use clap::CommandFactory as _;

    #[test]
    fn lines_of_a_paragraph_are_joined() {
        assert_eq!(paragraphs("Examples:\n  a\n  b\n\none\ntwo\n\nthree"), "Examples:\n  a\n  b\n\none two\n\nthree");
    }

    /// Seen: lines of 120 columns, broken at 100, with the rest of each in a line of its own.
    #[test]
    fn no_help_has_ragged_lines() {
        const WIDTH: usize = 100;
        let mut left = vec![in_paragraphs(CommandLine::command())];
        let mut seen = 0;
        while let Some(command) = left.pop() {
            left.extend(command.get_subcommands().cloned());
            let name = command.get_name().to_owned();
            let help = command.term_width(WIDTH).render_long_help().to_string();
            let Some((_, footer)) = help.split_once("Examples:\n") else { continue };
            seen += 1;
            let lines: Vec<&str> = footer.lines().collect();
            for pair in lines.windows(2) {
                assert!(pair[0].len() <= WIDTH, "{name}: {}", pair[0]);
                let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                if is_prose(pair[1]) {
                    assert!(
                        !pair[0].starts_with(' '),
                        "{name}: an example is broken, or lacks an empty line: {}",
                        pair[1]
                    );
                }
                if is_prose(pair[0]) && is_prose(pair[1]) {
                    let next = pair[1].split(' ').next().unwrap_or_default();
                    assert!(pair[0].len() + 1 + next.len() > WIDTH, "{name}: {}\n{}", pair[0], pair[1]);
                }
            }
        }
        assert!(seen >= 14, "{seen}");
    }
}
