//! Strings and byte strings as keys. As a whole key, or as the last element of one, they are what
//! they are. In front of another element a zero byte is written `00 ff`, and the end `00 00`: the
//! order is kept, because what ends first comes first.

use super::decode_error::DecodeError;
use super::key::{EncodeKey, KeyCodec, KeyPrefix, take};

const END: u8 = 0;
const ZERO: u8 = 0xff;

fn encode_delimited(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    for part in bytes.split_inclusive(|byte| *byte == 0) {
        out.extend_from_slice(part);
        if part.last() == Some(&0) {
            out.push(ZERO);
        }
    }
    out.extend_from_slice(&[0, END]);
}

fn decode_delimited(input: &mut &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut bytes = Vec::new();
    loop {
        let Some(zero) = input.iter().position(|byte| *byte == 0) else {
            return Err(DecodeError("expected the end of a string, 00 00, found none".into()));
        };
        bytes.extend_from_slice(&input[..zero]);
        match input.get(zero + 1) {
            Some(&END) => {
                *input = &input[zero + 2..];
                return Ok(bytes);
            }
            Some(&ZERO) => {
                *input = &input[zero + 2..];
                bytes.push(0);
            }
            Some(other) => {
                return Err(DecodeError(format!(
                    "expected 00 or ff behind a zero byte of a string, found {other:02x}"
                )));
            }
            None => return Err(DecodeError("expected the end of a string, 00 00, found 00".into())),
        }
    }
}

fn text(bytes: Vec<u8>) -> Result<String, DecodeError> {
    let not_text = |error: std::string::FromUtf8Error| {
        let at = error.utf8_error().valid_up_to();
        DecodeError(format!("expected UTF-8 of a String, found another byte at {at}"))
    };
    String::from_utf8(bytes).map_err(not_text)
}

macro_rules! byte_strings {
    ($($owned:ty: $form:ty $(, $size:ident)?;)*) => {$(
        impl$(<const $size: usize>)? EncodeKey<$owned> for $form {
            fn encode_element(&self, out: &mut Vec<u8>) {
                encode_delimited(self.as_ref(), out);
            }

            fn encode_key(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.as_ref());
            }
        }

        impl$(<const $size: usize>)? KeyPrefix<$owned> for $form {
            fn encode_prefix(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.as_ref());
            }
        }
    )*};
}

byte_strings! {
    String: String;
    String: str;
    Vec<u8>: Vec<u8>;
    Vec<u8>: [u8];
    Vec<u8>: [u8; N], N;
}

impl KeyCodec for String {
    fn decode_element(input: &mut &[u8]) -> Result<String, DecodeError> {
        text(decode_delimited(input)?)
    }

    fn decode_key(input: &[u8]) -> Result<String, DecodeError> {
        text(input.to_vec())
    }
}

impl KeyCodec for Vec<u8> {
    fn decode_element(input: &mut &[u8]) -> Result<Vec<u8>, DecodeError> {
        decode_delimited(input)
    }

    fn decode_key(input: &[u8]) -> Result<Vec<u8>, DecodeError> {
        Ok(input.to_vec())
    }
}

// All of one length, so that nothing need say where they end.
impl<const N: usize> EncodeKey<[u8; N]> for [u8; N] {
    fn encode_element(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl<const N: usize> KeyCodec for [u8; N] {
    fn decode_element(input: &mut &[u8]) -> Result<[u8; N], DecodeError> {
        take(input, "byte array")
    }
}
