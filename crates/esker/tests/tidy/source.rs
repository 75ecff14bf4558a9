//! One Rust file: its views, its tokens, and which of them are only compiled for tests.

use crate::lexer::{LITERAL, Views, is_word, separate};
use std::ops::Range;

/// A word, `::`, or one other byte of code.
pub struct Token {
    /// The text of the token.
    pub text: String,
    /// Where it begins in the file.
    pub offset: usize,
    /// The line it is on, from 1.
    pub line: usize,
    /// Whether it belongs to an item that is compiled for tests only.
    pub test: bool,
}

/// A Rust file.
pub struct Source {
    /// The path from the root of the workspace, with `/`.
    pub path: String,
    /// The text as it is.
    pub text: String,
    /// Code and comments, line by line from index 0.
    pub code_lines: Vec<String>,
    /// The comments, line by line from index 0.
    pub comment_lines: Vec<String>,
    /// The code as tokens.
    pub tokens: Vec<Token>,
}

impl Source {
    /// Takes the text of a file apart.
    pub fn new(path: &str, text: &str) -> Source {
        let Views { code, comments } = separate(text);
        let mut tokens = tokens(&code);
        mark_tests(&mut tokens);
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
            code_lines: lines(&code),
            comment_lines: lines(&comments),
            tokens,
        }
    }

    /// The text of a token, empty behind the end.
    pub fn word(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| token.text.as_str())
    }

    /// Whether the tokens from `index` on read like this.
    pub fn reads(&self, index: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(step, word)| self.word(index + step) == *word)
    }

    /// The number of lines in `lines` (from 1, end exclusive) that hold code which is not only for
    /// tests.
    pub fn count_code(&self, lines: Range<usize>) -> usize {
        let mut test = vec![false; self.code_lines.len() + 2];
        for token in self.tokens.iter().filter(|token| token.test) {
            test[token.line] = true;
        }
        lines.filter(|line| !test[*line] && !self.code_lines[*line - 1].trim().is_empty()).count()
    }

    /// The index of the token that closes the bracket at `open`, or of the last token.
    pub fn closing(&self, open: usize) -> usize {
        closing(&self.tokens, open)
    }
}

fn lines(view: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(view).lines().map(str::to_owned).collect()
}

fn tokens(code: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut at = 0;
    while at < code.len() {
        let length = match code[at] {
            byte if is_word(byte) => code[at..].iter().take_while(|byte| is_word(**byte)).count(),
            b':' if code.get(at + 1) == Some(&b':') => 2,
            _ => 1,
        };
        let byte = code[at];
        if byte == b'\n' {
            line += 1;
        } else if byte != LITERAL && !byte.is_ascii_whitespace() {
            let text = String::from_utf8_lossy(&code[at..at + length]).into_owned();
            tokens.push(Token { text, offset: at, line, test: false });
        }
        at += length;
    }
    tokens
}

fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index;
                }
            }
            _ => {}
        }
    }
    tokens.len().saturating_sub(1)
}

/// Marks every item behind `#[cfg(test)]`, `#[cfg(all(test, ...))]` or `#[test]`, together with its
/// attributes.
fn mark_tests(tokens: &mut [Token]) {
    let reads = |tokens: &[Token], index: usize, words: &[&str]| {
        words.iter().enumerate().all(|(step, word)| tokens.get(index + step).is_some_and(|token| token.text == *word))
    };
    let mut index = 0;
    while index < tokens.len() {
        let is_test = reads(tokens, index, &["#", "[", "cfg", "(", "test", ")", "]"])
            || reads(tokens, index, &["#", "[", "cfg", "(", "all", "(", "test"])
            || reads(tokens, index, &["#", "[", "test", "]"]);
        if !is_test {
            index += 1;
            continue;
        }
        let end = item_end(tokens, index);
        for token in &mut tokens[index..=end] {
            token.test = true;
        }
        index = end + 1;
    }
}

/// The last token of the item whose first attribute is at `start`.
fn item_end(tokens: &[Token], start: usize) -> usize {
    const ITEMS: [&str; 14] = [
        "async",
        "const",
        "enum",
        "extern",
        "fn",
        "impl",
        "macro_rules",
        "mod",
        "pub",
        "static",
        "struct",
        "trait",
        "unsafe",
        "use",
    ];
    let last = tokens.len() - 1;
    let mut index = start;
    while index < last && tokens[index].text == "#" {
        index = closing(tokens, index + 1) + 1;
    }
    // A field, variant or statement ends at a comma too; an item's commas are part of it.
    let is_item = tokens.get(index).is_some_and(|token| ITEMS.contains(&token.text.as_str()));
    while index < last {
        match tokens[index].text.as_str() {
            ";" => return index,
            "," if !is_item => return index,
            "{" => return closing(tokens, index),
            "(" | "[" => index = closing(tokens, index),
            // The end of what the item is in.
            ")" | "]" | "}" => return index - 1,
            _ => {}
        }
        index += 1;
    }
    last
}
