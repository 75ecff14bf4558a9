//! The codec of values.

use super::decode_error::DecodeError;
use crate::base::slice::Slice;
use crate::error::Result;

/// Something that can be given where a value of type `V` is needed: a `V`, a reference to one, or a
/// borrowed form of it, as `&str` for `String`.
///
/// ```
/// use esker::typed::EncodeValue;
/// assert_eq!(EncodeValue::<String>::encode_value("ada", &mut Vec::new())?, b"ada");
/// assert_eq!(EncodeValue::<u32>::encode_value(&7, &mut Vec::new())?, [7, 0, 0, 0]);
/// # Ok::<(), esker::Error>(())
/// ```
pub trait EncodeValue<V: ?Sized> {
    /// The encoding: where it lies already, or appended to `buffer`, which is empty.
    ///
    /// # Errors
    /// `InvalidArgument` if the value has no encoding.
    ///
    /// ```
    /// use esker::typed::EncodeValue;
    /// let mut buffer = Vec::new();
    /// assert_eq!(true.encode_value(&mut buffer)?, [1]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn encode_value<'a>(&'a self, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]>;
}

impl<V: ?Sized, T: EncodeValue<V> + ?Sized> EncodeValue<V> for &T {
    fn encode_value<'a>(&'a self, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        (**self).encode_value(buffer)
    }
}

/// A type of values.
///
/// `String`, `Vec<u8>` and [`Slice`] are stored as they are; integers of fixed size, `f32` and
/// `f64` as their bytes, little-endian, as the merge operators for numbers have them; `bool` as 0
/// or 1; `()` as nothing. With the feature `serde`, `Postcard` stores whatever serde can.
///
/// ```
/// use esker::Slice;
/// use esker::typed::{DecodeError, EncodeValue, ValueCodec};
/// /// A price in cents.
/// #[derive(PartialEq, Debug)]
/// struct Price(u32);
/// impl EncodeValue<Price> for Price {
///     fn encode_value<'a>(&'a self, buffer: &'a mut Vec<u8>) -> esker::Result<&'a [u8]> {
///         EncodeValue::<u32>::encode_value(&self.0, buffer)
///     }
/// }
/// impl ValueCodec for Price {
///     fn decode_value(stored: Slice) -> Result<Price, DecodeError> {
///         u32::decode_value(stored).map(Price)
///     }
/// }
/// assert_eq!(Price::decode_value(Slice::copy(&[7, 0, 0, 0])), Ok(Price(7)));
/// ```
pub trait ValueCodec: EncodeValue<Self> + Sized {
    /// Decodes all of `stored`.
    ///
    /// # Errors
    /// If it is no encoding of a value of this type. It must not panic on any input.
    ///
    /// ```
    /// use esker::typed::ValueCodec;
    /// assert_eq!(bool::decode_value(esker::Slice::copy(&[1])), Ok(true));
    /// assert!(bool::decode_value(esker::Slice::copy(&[2])).is_err());
    /// ```
    fn decode_value(stored: Slice) -> std::result::Result<Self, DecodeError>;
}

/// Forms of values that are their own encoding.
macro_rules! plain_values {
    ($($value:ty: $form:ty $(, $size:ident)?;)*) => {$(
        impl$(<const $size: usize>)? EncodeValue<$value> for $form {
            fn encode_value<'a>(&'a self, _buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
                Ok(self.as_ref())
            }
        }
    )*};
}

plain_values! {
    String: String;
    String: str;
    Vec<u8>: Vec<u8>;
    Vec<u8>: [u8];
    Vec<u8>: [u8; N], N;
    Slice: Slice;
    Slice: Vec<u8>;
    Slice: [u8];
    Slice: [u8; N], N;
    [u8; N]: [u8; N], N;
}

impl ValueCodec for String {
    fn decode_value(stored: Slice) -> std::result::Result<String, DecodeError> {
        let not_text = |error: std::str::Utf8Error| {
            DecodeError(format!("expected UTF-8 of a String, found another byte at {}", error.valid_up_to()))
        };
        str::from_utf8(&stored).map(str::to_owned).map_err(not_text)
    }
}

impl ValueCodec for Vec<u8> {
    fn decode_value(stored: Slice) -> std::result::Result<Vec<u8>, DecodeError> {
        Ok(stored.to_vec())
    }
}

impl ValueCodec for Slice {
    fn decode_value(stored: Slice) -> std::result::Result<Slice, DecodeError> {
        Ok(stored)
    }
}

/// The bytes of a value that always has as many.
fn sized<const N: usize>(stored: &Slice, type_name: &str) -> std::result::Result<[u8; N], DecodeError> {
    let other = |_| DecodeError(format!("expected {N} bytes of a {type_name}, found {}", stored.len()));
    <[u8; N]>::try_from(&**stored).map_err(other)
}

impl<const N: usize> ValueCodec for [u8; N] {
    fn decode_value(stored: Slice) -> std::result::Result<[u8; N], DecodeError> {
        sized(&stored, "byte array")
    }
}

macro_rules! number_values {
    ($($number:ident)*) => {$(
        impl EncodeValue<$number> for $number {
            fn encode_value<'a>(&'a self, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
                buffer.extend_from_slice(&self.to_le_bytes());
                Ok(buffer)
            }
        }

        impl ValueCodec for $number {
            fn decode_value(stored: Slice) -> std::result::Result<$number, DecodeError> {
                sized(&stored, stringify!($number)).map($number::from_le_bytes)
            }
        }
    )*};
}

number_values! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 }

impl EncodeValue<bool> for bool {
    fn encode_value<'a>(&'a self, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        buffer.push(u8::from(*self));
        Ok(buffer)
    }
}

impl ValueCodec for bool {
    fn decode_value(stored: Slice) -> std::result::Result<bool, DecodeError> {
        match sized(&stored, "bool")? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(DecodeError(format!("expected 0 or 1 of a bool, found {other}"))),
        }
    }
}

impl EncodeValue<()> for () {
    fn encode_value<'a>(&'a self, _buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        Ok(&[])
    }
}

impl ValueCodec for () {
    fn decode_value(stored: Slice) -> std::result::Result<(), DecodeError> {
        sized::<0>(&stored, "()").map(drop)
    }
}
