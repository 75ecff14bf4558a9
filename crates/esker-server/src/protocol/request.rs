//! Requests: arrays of byte strings, or a line of words.
//!
//! The parser goes on where it stopped, however the bytes arrive, and reserves nothing on the word
//! of a length. A request does not nest, so neither does the parser.

use bytes::{Buf, Bytes, BytesMut};
use std::fmt;

/// How large requests may be.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// The bytes of one argument.
    pub argument_bytes: usize,
    /// The arguments of a request: fewer before the connection has authenticated itself.
    pub arguments: usize,
}

impl RequestLimits {
    /// What a connection may send that has not authenticated itself.
    pub const UNAUTHENTICATED: RequestLimits = RequestLimits { argument_bytes: 16 << 10, arguments: 10 };
}

/// Bytes that are no request. The connection cannot go on after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError(pub String);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERR Protocol error: {}", self.0)
    }
}

impl std::error::Error for ProtocolError {}

fn refuse<T>(why: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError(why.into()))
}

/// The longest line: an inline request, or a length.
const LINE_BYTES: usize = 64 << 10;

/// Where in a request the parser is.
#[derive(Debug, Default)]
pub struct RequestParser {
    /// The arguments that are still to come, within an array.
    missing: usize,
    /// The length of the argument that comes next, once it is known.
    length: Option<usize>,
    arguments: Vec<Bytes>,
    /// The bytes of `arguments`.
    bytes: usize,
}

impl RequestParser {
    /// The bytes of the arguments of the request that is not complete yet.
    pub fn pending_bytes(&self) -> usize {
        self.bytes + self.arguments.len() * size_of::<Bytes>()
    }

    /// Takes the next request from `buffer`; `None` if it is not complete. Empty requests are
    /// passed over. `is_trusted` is whether the connection may send requests of all sizes.
    ///
    /// # Errors
    /// [`ProtocolError`] for bytes that are no request, or one beyond the limits.
    pub fn next(
        &mut self,
        buffer: &mut BytesMut,
        limits: &RequestLimits,
        is_trusted: bool,
    ) -> Result<Option<Vec<Bytes>>, ProtocolError> {
        loop {
            if self.missing == 0 {
                match buffer.first() {
                    None => return Ok(None),
                    Some(b'*') => {
                        let Some(count) = take_line(buffer, "too big mbulk count string")? else { return Ok(None) };
                        self.missing = array_length(&count[1..], limits, is_trusted)?;
                    }
                    Some(_) => {
                        let Some(line) = take_line(buffer, "too big inline request")? else { return Ok(None) };
                        let words = split_words(&line)?;
                        if !words.is_empty() {
                            return Ok(Some(words));
                        }
                    }
                }
                continue;
            }
            if !self.argument(buffer, limits, is_trusted)? {
                return Ok(None);
            }
            if self.missing == 0 {
                self.bytes = 0;
                return Ok(Some(std::mem::take(&mut self.arguments)));
            }
        }
    }

    /// Takes the next argument; false if it is not complete.
    fn argument(
        &mut self,
        buffer: &mut BytesMut,
        limits: &RequestLimits,
        is_trusted: bool,
    ) -> Result<bool, ProtocolError> {
        let length = match self.length {
            Some(length) => length,
            None => {
                match buffer.first() {
                    None => return Ok(false),
                    Some(b'$') => {}
                    Some(other) => return refuse(format!("expected '$', got '{}'", char::from(*other))),
                }
                let Some(line) = take_line(buffer, "too big bulk count string")? else { return Ok(false) };
                let length = argument_length(&line[1..], limits, is_trusted)?;
                self.length = Some(length);
                length
            }
        };
        if buffer.len() < length + 2 {
            // The rest is read into one piece, as far as it has come.
            buffer.reserve((length + 2 - buffer.len()).min(1 << 20));
            return Ok(false);
        }
        self.arguments.push(buffer.split_to(length).freeze());
        buffer.advance(2);
        self.bytes += length;
        self.length = None;
        self.missing -= 1;
        Ok(true)
    }
}

/// The next line without its end.
fn take_line(buffer: &mut BytesMut, too_long: &str) -> Result<Option<BytesMut>, ProtocolError> {
    let searched = &buffer[..buffer.len().min(LINE_BYTES)];
    let Some(end) = searched.iter().position(|&byte| byte == b'\n') else {
        return if buffer.len() >= LINE_BYTES { refuse(too_long) } else { Ok(None) };
    };
    let mut line = buffer.split_to(end + 1);
    line.truncate(end);
    if line.last() == Some(&b'\r') {
        line.truncate(end - 1);
    }
    Ok(Some(line))
}

fn array_length(text: &[u8], limits: &RequestLimits, is_trusted: bool) -> Result<usize, ProtocolError> {
    let Some(count) = super::number::parse_integer(text) else { return refuse("invalid multibulk length") };
    if !is_trusted && count > RequestLimits::UNAUTHENTICATED.arguments as i64 {
        return refuse("unauthenticated multibulk length");
    }
    match usize::try_from(count) {
        Ok(count) if count <= limits.arguments => Ok(count),
        Ok(_) => refuse("invalid multibulk length"),
        Err(_) => Ok(0),
    }
}

fn argument_length(text: &[u8], limits: &RequestLimits, is_trusted: bool) -> Result<usize, ProtocolError> {
    let length = super::number::parse_integer(text).and_then(|length| usize::try_from(length).ok());
    let Some(length) = length.filter(|&length| length <= limits.argument_bytes) else {
        return refuse("invalid bulk length");
    };
    if !is_trusted && length > RequestLimits::UNAUTHENTICATED.argument_bytes {
        return refuse("unauthenticated bulk length");
    }
    Ok(length)
}

/// The words of a line: apart by spaces, in quotes with escapes where they hold some.
fn split_words(line: &[u8]) -> Result<Vec<Bytes>, ProtocolError> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        while let [first, tail @ ..] = rest
            && first.is_ascii_whitespace()
        {
            rest = tail;
        }
        if rest.is_empty() {
            return Ok(words);
        }
        let (word, tail) = take_word(rest)?;
        words.push(Bytes::from(word));
        rest = tail;
    }
}

fn take_word(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), ProtocolError> {
    let mut word = Vec::new();
    let mut quote = None;
    loop {
        match (quote, rest) {
            (None, []) => return Ok((word, rest)),
            (Some(_), []) => return refuse("unbalanced quotes in request"),
            (None, [byte, ..]) if byte.is_ascii_whitespace() => return Ok((word, rest)),
            (None, [mark @ (b'"' | b'\''), tail @ ..]) => {
                quote = Some(*mark);
                rest = tail;
            }
            (Some(mark), [byte, tail @ ..]) if *byte == mark => {
                // Behind a closing quote comes a space, or nothing.
                if tail.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                    return refuse("unbalanced quotes in request");
                }
                return Ok((word, tail));
            }
            (Some(b'"'), [b'\\', b'x', high, low, tail @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hexadecimal(*high) * 16 + hexadecimal(*low));
                rest = tail;
            }
            (Some(b'"'), [b'\\', byte, tail @ ..]) => {
                word.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = tail;
            }
            (Some(b'\''), [b'\\', b'\'', tail @ ..]) => {
                word.push(b'\'');
                rest = tail;
            }
            (_, [byte, tail @ ..]) => {
                word.push(*byte);
                rest = tail;
            }
        }
    }
}

fn hexadecimal(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RequestLimits = RequestLimits { argument_bytes: 100, arguments: 20 };

    fn all(parser: &mut RequestParser, buffer: &mut BytesMut) -> Result<Vec<Vec<Bytes>>, ProtocolError> {
        let mut requests = Vec::new();
        while let Some(request) = parser.next(buffer, &LIMITS, true)? {
            requests.push(request);
        }
        Ok(requests)
    }

    /// The same requests come out, however the bytes are cut.
    #[test]
    fn bytes_arrive_in_pieces() {
        let sent = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n\r\nset b \"x\\x41\\n\"\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\n";
        for piece in 1..=sent.len() {
            let (mut parser, mut buffer, mut found) = (RequestParser::default(), BytesMut::new(), Vec::new());
            for bytes in sent.chunks(piece) {
                buffer.extend_from_slice(bytes);
                found.extend(all(&mut parser, &mut buffer).unwrap());
            }
            assert_eq!(found, [&["GET", "a"][..], &["set", "b", "xA\n"], &[""]], "pieces of {piece}");
        }
    }

    /// Whatever the bytes are, the parser ends, takes no more than it was given, and keeps little.
    #[test]
    fn any_bytes_are_parsed_or_refused() {
        let parts: [&[u8]; 12] =
            [b"*", b"$", b"\r\n", b"1", b"3", b"-1", b"99999999999", b"a", b"\"", b" ", b"\\x4", b"\x00"];
        let mut state = 88_172_645_463_325_252_u64;
        for round in 0..20_000 {
            let mut sent = Vec::new();
            for _ in 0..round % 40 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                sent.extend_from_slice(parts[(state >> 20) as usize % parts.len()]);
            }
            let (mut parser, mut buffer, mut taken) = (RequestParser::default(), BytesMut::new(), 0);
            for piece in sent.chunks(1 + round % 7) {
                buffer.extend_from_slice(piece);
                match all(&mut parser, &mut buffer) {
                    Ok(requests) => taken += requests.iter().flatten().map(Bytes::len).sum::<usize>(),
                    Err(_) => break,
                }
            }
            assert!(taken + parser.bytes + buffer.len() <= sent.len(), "{sent:?}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (sent, error) in [
            ("*a\r\n", "invalid multibulk length"),
            ("*21\r\n", "invalid multibulk length"),
            ("*1\r\nx\r\n", "expected '$', got 'x'"),
            ("*1\r\n$-1\r\n", "invalid bulk length"),
            ("*1\r\n$101\r\n", "invalid bulk length"),
            ("set \"a\r\n", "unbalanced quotes in request"),
            ("set 'a'b\r\n", "unbalanced quotes in request"),
        ] {
            let refused = all(&mut RequestParser::default(), &mut BytesMut::from(sent)).unwrap_err();
            assert_eq!(refused.0, error, "{sent:?}");
        }
        let long = "a".repeat(LINE_BYTES);
        let refused = all(&mut RequestParser::default(), &mut BytesMut::from(&long[..])).unwrap_err();
        assert_eq!(refused.0, "too big inline request");
        let refused = RequestParser::default().next(&mut BytesMut::from("*11\r\n"), &LIMITS, false).unwrap_err();
        assert_eq!(refused.0, "unauthenticated multibulk length");
    }
}
