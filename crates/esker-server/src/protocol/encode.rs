//! Replies as bytes.

use super::number::format_double;
use super::reply::Reply;
use bytes::{BufMut, BytesMut};
use std::fmt::Write;

/// The version of the protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// What every connection begins with.
    Resp2,
    /// After `HELLO 3`.
    Resp3,
}

/// Appends `reply` to `output` as the protocol writes it.
pub fn encode(output: &mut BytesMut, protocol: Protocol, reply: &Reply) {
    let is_resp3 = protocol == Protocol::Resp3;
    match reply {
        Reply::Status(text) => line(output, '+', text),
        Reply::Error(text) => line(output, '-', &one_line(text)),
        Reply::Integer(value) => number(output, ':', *value),
        Reply::Double(value) if is_resp3 => line(output, ',', &format_double(*value)),
        Reply::Double(value) => bulk(output, '$', format_double(*value).as_bytes()),
        Reply::Boolean(value) if is_resp3 => line(output, '#', if *value { "t" } else { "f" }),
        Reply::Boolean(value) => number(output, ':', i64::from(*value)),
        Reply::Bulk(bytes) => bulk(output, '$', bytes),
        Reply::Verbatim(text) if is_resp3 => bulk(output, '=', format!("txt:{text}").as_bytes()),
        Reply::Verbatim(text) => bulk(output, '$', text.as_bytes()),
        Reply::Nil | Reply::NilArray if is_resp3 => output.put_slice(b"_\r\n"),
        Reply::Nil => output.put_slice(b"$-1\r\n"),
        Reply::NilArray => output.put_slice(b"*-1\r\n"),
        Reply::Array(items) => list(output, protocol, '*', items),
        Reply::Set(items) => list(output, protocol, if is_resp3 { '~' } else { '*' }, items),
        Reply::Map(pairs) => {
            let count = if is_resp3 { pairs.len() } else { pairs.len() * 2 };
            length(output, if is_resp3 { '%' } else { '*' }, count);
            for (key, value) in pairs {
                encode(output, protocol, key);
                encode(output, protocol, value);
            }
        }
        Reply::Pairs(pairs) => {
            length(output, '*', if is_resp3 { pairs.len() } else { pairs.len() * 2 });
            for (key, value) in pairs {
                if is_resp3 {
                    length(output, '*', 2);
                }
                encode(output, protocol, key);
                encode(output, protocol, value);
            }
        }
        Reply::Silence => {}
    }
}

/// A line break in an error would end it early.
fn one_line(text: &str) -> String {
    text.chars().map(|character| if matches!(character, '\r' | '\n') { ' ' } else { character }).collect()
}

fn line(output: &mut BytesMut, mark: char, text: &str) {
    output.put_u8(mark as u8);
    output.put_slice(text.as_bytes());
    output.put_slice(b"\r\n");
}

fn number(output: &mut BytesMut, mark: char, value: i64) {
    // Writing to memory does not fail.
    let _ = write!(output, "{mark}{value}\r\n");
}

fn length(output: &mut BytesMut, mark: char, count: usize) {
    let _ = write!(output, "{mark}{count}\r\n");
}

fn bulk(output: &mut BytesMut, mark: char, bytes: &[u8]) {
    length(output, mark, bytes.len());
    output.put_slice(bytes);
    output.put_slice(b"\r\n");
}

fn list(output: &mut BytesMut, protocol: Protocol, mark: char, items: &[Reply]) {
    length(output, mark, items.len());
    for item in items {
        encode(output, protocol, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(protocol: Protocol, reply: &Reply) -> String {
        let mut output = BytesMut::new();
        encode(&mut output, protocol, reply);
        String::from_utf8(output.to_vec()).unwrap()
    }

    /// Each form as the two versions of the protocol write it.
    #[test]
    fn forms_of_replies() {
        let map = Reply::Map(vec![(Reply::bulk("a"), Reply::Double(1.5))]);
        for (reply, resp2, resp3) in [
            (Reply::OK, "+OK\r\n", "+OK\r\n"),
            (Reply::error("ERR a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (Reply::Integer(-7), ":-7\r\n", ":-7\r\n"),
            (Reply::Nil, "$-1\r\n", "_\r\n"),
            (Reply::NilArray, "*-1\r\n", "_\r\n"),
            (Reply::Boolean(true), ":1\r\n", "#t\r\n"),
            (Reply::Double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n"),
            (Reply::Set(vec![Reply::Integer(1)]), "*1\r\n:1\r\n", "~1\r\n:1\r\n"),
            (map, "*2\r\n$1\r\na\r\n$3\r\n1.5\r\n", "%1\r\n$1\r\na\r\n,1.5\r\n"),
            (Reply::Verbatim("x".into()), "$1\r\nx\r\n", "=5\r\ntxt:x\r\n"),
            (Reply::Pairs(vec![(Reply::Integer(1), Reply::Nil)]), "*2\r\n:1\r\n$-1\r\n", "*1\r\n*2\r\n:1\r\n_\r\n"),
            (Reply::Silence, "", ""),
        ] {
            assert_eq!(encoded(Protocol::Resp2, &reply), resp2);
            assert_eq!(encoded(Protocol::Resp3, &reply), resp3);
        }
    }
}
