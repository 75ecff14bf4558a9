//! Patterns of KEYS and SCAN: `*`, `?`, `[a-z]`, `[^a]` and `\` before a character.

/// Whether `text` as a whole is of the pattern. Takes time in the product of both lengths at most.
pub fn matches_glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    // Where to go on when a later part does not fit: behind the last `*`, with one byte more in it.
    let mut star: Option<(usize, usize)> = None;
    while position < text.len() {
        let fits = match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, position));
                continue;
            }
            Some(_) => one(&pattern[at..], text[position]),
            None => None,
        };
        match (fits, star) {
            (Some(length), _) => {
                at += length;
                position += 1;
            }
            (None, Some((behind, from))) => {
                at = behind;
                position = from + 1;
                star = Some((behind, from + 1));
            }
            (None, None) => return false,
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// The length of the first part of the pattern, if `byte` is of it.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', ..] => {
            let (is_in, length) = class(pattern, byte);
            is_in.then_some(length)
        }
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [first, ..] => (*first == byte).then_some(1),
        [] => None,
    }
}

/// Whether the byte is in the class at the beginning of the pattern, and the length of the class.
fn class(pattern: &[u8], byte: u8) -> (bool, usize) {
    let is_negated = pattern.get(1) == Some(&b'^');
    let mut at = if is_negated { 2 } else { 1 };
    let mut is_in = false;
    loop {
        match &pattern[at..] {
            // A class without end ends with the pattern.
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                is_in |= *escaped == byte;
                at += 2;
            }
            [from, b'-', to, ..] => {
                is_in |= (*from.min(to)..=*from.max(to)).contains(&byte);
                at += 3;
            }
            [single, ..] => {
                is_in |= *single == byte;
                at += 1;
            }
        }
    }
    (is_in != is_negated, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("h?llo", "hello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[a\\]]", "]", true),
            ("a", "ab", false),
            ("[a", "a", true),
            ("", "", true),
            ("**b**", "aba", true),
        ] {
            assert_eq!(matches_glob(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
    }

    /// Many stars cost no more than the product of the lengths.
    #[test]
    fn many_stars_end() {
        let pattern = [&b"a*".repeat(500)[..], b"b"].concat();
        assert!(!matches_glob(&pattern, &b"a".repeat(2000)));
    }
}
