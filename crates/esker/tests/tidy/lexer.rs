//! Separates the code of a Rust file from its comments and literals.
//!
//! Both views have the length and the line breaks of the text, so an offset or a line number means
//! the same in all three.

/// Stands for a byte inside a literal: it makes a line count as code but is no token.
pub const LITERAL: u8 = 1;

/// A Rust file in two views.
pub struct Views {
    /// The code; comments are blank and literals are `LITERAL` bytes between their quotes.
    pub code: Vec<u8>,
    /// The comments, with their marks; everything else is blank.
    pub comments: Vec<u8>,
}

/// Separates `text` into its views. Text that does not end properly is taken as far as it goes: the
/// compiler complains.
pub fn separate(text: &str) -> Views {
    let bytes = text.as_bytes();
    let mut views = Views { code: blank(bytes), comments: blank(bytes) };
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"//") || rest.starts_with(b"/*") {
            let end = at + comment_length(rest);
            copy(bytes, &mut views.comments, at, end);
            at = end;
        } else if let Some((open, hashes)) = raw_string(bytes, at) {
            let end = raw_string_end(bytes, at + open, hashes);
            literal(bytes, &mut views.code, at, end);
            at = end;
        } else if bytes[at] == b'"' {
            let end = quoted_end(bytes, at, b'"');
            literal(bytes, &mut views.code, at, end);
            at = end;
        } else if bytes[at] == b'\'' && is_character(text, at) {
            let end = quoted_end(bytes, at, b'\'');
            literal(bytes, &mut views.code, at, end);
            at = end;
        } else {
            views.code[at] = bytes[at];
            at += 1;
        }
    }
    views
}

/// White space in the shape of `bytes`.
fn blank(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }).collect()
}

fn copy(bytes: &[u8], view: &mut [u8], start: usize, end: usize) {
    view[start..end].copy_from_slice(&bytes[start..end]);
}

/// Marks a literal: quotes at both ends, `LITERAL` wherever it is not blank.
fn literal(bytes: &[u8], view: &mut [u8], start: usize, end: usize) {
    for at in start..end {
        if !bytes[at].is_ascii_whitespace() {
            view[at] = LITERAL;
        }
    }
    view[start] = b'"';
    view[end - 1] = b'"';
}

/// The length of the comment that `rest` begins with; block comments nest.
fn comment_length(rest: &[u8]) -> usize {
    if rest.starts_with(b"//") {
        return rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Whether a raw string begins at `at`: bytes up to and with its quote, and its number of hashes.
fn raw_string(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    if at > 0 && is_word(bytes[at - 1]) {
        return None;
    }
    let rest = &bytes[at..];
    let prefix = [&b"r"[..], b"br", b"cr"].into_iter().find(|prefix| rest.starts_with(prefix))?.len();
    let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
    (rest.get(prefix + hashes) == Some(&b'"')).then_some((prefix + hashes + 1, hashes))
}

fn raw_string_end(bytes: &[u8], inside: usize, hashes: usize) -> usize {
    let mut closing = vec![b'#'; hashes + 1];
    closing[0] = b'"';
    let found = bytes[inside..].windows(closing.len()).position(|window| window == closing);
    found.map_or(bytes.len(), |length| inside + length + closing.len())
}

/// The end of a literal that begins with a quote at `start` and may hold escapes.
fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Tells a character literal from a lifetime: a lifetime has no quote right behind its first
/// character.
fn is_character(text: &str, at: usize) -> bool {
    let mut following = text[at + 1..].chars();
    match following.next() {
        Some('\\') => true,
        Some(_) => following.next() == Some('\''),
        None => false,
    }
}

/// Whether a byte can be part of an identifier or number.
pub fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || !byte.is_ascii()
}
