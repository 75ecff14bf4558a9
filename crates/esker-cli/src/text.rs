//! Bytes as text and back, so that every key and value can be printed, edited and read again.
//!
//! ```text
//! escaped := (printable | '\\' | '\x' HEX HEX)*     printable = a printable character of UTF-8 but '\'
//! hex     := (HEX HEX)*
//! ```
//!
//! Bytes that are no UTF-8, and characters that are not printable, are escaped byte by byte.
//! Reading is more lenient than writing: `\t`, `\n`, `\r` and `\0` are known, every byte but a
//! backslash stands for itself, and every byte may be escaped.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Which of the two forms keys and values have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Printable text with escapes.
    Escaped,
    /// Two hexadecimal digits a byte.
    Hex,
}

impl Form {
    /// The form requested with or without `--hex`.
    pub fn from_flag(hex: bool) -> Form {
        if hex { Form::Hex } else { Form::Escaped }
    }

    /// Appends `bytes` in this form; the result is printable, without tab or line end.
    pub fn encode_into(self, bytes: &[u8], text: &mut String) {
        if self == Form::Hex {
            bytes.iter().for_each(|&byte| push_hex(byte, text));
            return;
        }
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '\\' => text.push_str("\\\\"),
                    _ if is_printable(character) => text.push(character),
                    _ => push_escaped(character.encode_utf8(&mut [0; 4]).as_bytes(), text),
                }
            }
            push_escaped(chunk.invalid(), text);
        }
    }

    /// `bytes` in this form.
    pub fn encode(self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        self.encode_into(bytes, &mut text);
        text
    }

    /// The bytes that `text` stands for, or what is wrong with it.
    pub fn decode(self, text: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Form::Escaped => unescape(text),
            Form::Hex => unhex(text),
        }
    }
}

/// Whether a terminal shows the character as itself, between others.
fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return (' '..='~').contains(&character);
    }
    // The standard library knows what to escape for debugging; a letter before it, because a
    // combining character is printable behind one.
    let mut bytes = [b'a'; 5];
    let length = character.encode_utf8(&mut bytes[1..]).len();
    std::str::from_utf8(&bytes[..=length]).is_ok_and(|pair| pair.escape_debug().skip(1).eq([character]))
}

fn push_escaped(bytes: &[u8], text: &mut String) {
    for &byte in bytes {
        text.push_str("\\x");
        push_hex(byte, text);
    }
}

fn push_hex(byte: u8, text: &mut String) {
    text.push(char::from(DIGITS[usize::from(byte >> 4)]));
    text.push(char::from(DIGITS[usize::from(byte & 15)]));
}

fn digit(character: u8) -> Option<u8> {
    // A hexadecimal digit is below 16, so the narrowing cannot fail; no digit gives None.
    char::from(character).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

fn pair(text: &[u8], at: usize) -> Option<u8> {
    let high = digit(*text.get(at)?)?;
    let low = digit(*text.get(at + 1)?)?;
    Some(high << 4 | low)
}

fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            bytes.push(text[at]);
            at += 1;
            continue;
        }
        let (byte, length) = match text.get(at + 1) {
            Some(b'\\') => (b'\\', 2),
            Some(b't') => (b'\t', 2),
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b'0') => (0, 2),
            Some(b'x') => match pair(text, at + 2) {
                Some(byte) => (byte, 4),
                None => return Err(format!("\\x at byte {} is not followed by two hexadecimal digits", at + 1)),
            },
            _ => {
                return Err(format!("unknown escape at byte {}: write \\\\ for a backslash, \\xNN for a byte", at + 1));
            }
        };
        bytes.push(byte);
        at += length;
    }
    Ok(bytes)
}

fn unhex(text: &[u8]) -> Result<Vec<u8>, String> {
    if text.len() % 2 == 1 {
        return Err(format!("{} hexadecimal digits are not whole bytes", text.len()));
    }
    let mut bytes = Vec::with_capacity(text.len() / 2);
    for at in (0..text.len()).step_by(2) {
        bytes.push(pair(text, at).ok_or_else(|| format!("byte {} is not a hexadecimal digit", at + 1))?);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_both_forms() {
        let all: Vec<u8> = (0..=255).chain([b'\\', b'x', b'4', b'1']).collect();
        for form in [Form::Escaped, Form::Hex] {
            let text = form.encode(&all);
            assert!(text.chars().all(is_printable), "{text}");
            assert_eq!(form.decode(text.as_bytes()), Ok(all.clone()));
            assert_eq!(form.decode(b""), Ok(vec![]));
        }
    }

    #[test]
    fn printable_characters_are_written_as_themselves() {
        for text in ["a\u{f1}o", "\u{65e5}\u{672c}", "n\u{303}", "\u{1f600}", "\u{df}"] {
            assert_eq!(Form::Escaped.encode(text.as_bytes()), text);
        }
        // Controls, other spaces, marks of direction, half a character, and no character at all.
        for (bytes, text) in [
            (&b"\xc2\x85"[..], "\\xc2\\x85"),
            (b"\xc2\xa0", "\\xc2\\xa0"),
            (b"\xe2\x80\xae", "\\xe2\\x80\\xae"),
            (b"\xe2\x80\xa8", "\\xe2\\x80\\xa8"),
            (b"x\xc3", "x\\xc3"),
            (b"\xff\xc3\xb1\x7f", "\\xff\u{f1}\\x7f"),
        ] {
            assert_eq!(Form::Escaped.encode(bytes), text);
            assert_eq!(Form::Escaped.decode(text.as_bytes()), Ok(bytes.to_vec()));
        }
    }

    #[test]
    fn unclear_text_is_refused() {
        for text in ["\\", "a\\q", "\\x", "\\x4", "\\xg1", "\\x1"] {
            assert!(Form::Escaped.decode(text.as_bytes()).is_err(), "{text}");
        }
        for text in ["a", "0g", "+1", "0x"] {
            assert!(Form::Hex.decode(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn reading_is_lenient_where_it_is_unambiguous() {
        assert_eq!(Form::Escaped.decode("\\t\\n\\r\\0\u{e9}".as_bytes()), Ok(b"\t\n\r\0\xc3\xa9".to_vec()));
        assert_eq!(Form::Hex.decode(b"fFA0"), Ok(vec![0xff, 0xa0]));
    }
}
