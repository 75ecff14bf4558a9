//! The codec of keys, and that of numbers.

use super::decode_error::DecodeError;

/// A type that is accepted as a key of type `K`: `K` itself, a reference to it, or a borrowed form,
/// such as `&str` for `String`. Its encoding equals that of the `K`.
///
/// ```
/// use esker::typed::EncodeKey;
/// /// Orders by number.
/// struct Order(u32);
/// impl EncodeKey<Order> for Order {
///     fn encode_element(&self, out: &mut Vec<u8>) {
///         EncodeKey::<u32>::encode_element(&self.0, out);
///     }
/// }
/// let mut key = Vec::new();
/// Order(258).encode_key(&mut key);
/// assert_eq!(key, [0, 0, 1, 2]);
/// ```
pub trait EncodeKey<K: ?Sized> {
    /// Appends the encoding as an element of a tuple that is not the last one. It must be
    /// self-delimiting: no encoding may be a prefix of another one, and encodings must be ordered
    /// as the values are.
    ///
    /// ```
    /// use esker::typed::EncodeKey;
    /// let mut bytes = Vec::new();
    /// EncodeKey::<String>::encode_element("ada", &mut bytes);
    /// assert_eq!(bytes, b"ada\0\0");
    /// ```
    fn encode_element(&self, out: &mut Vec<u8>);

    /// Appends the encoding as a whole key, or as the last element of one. It need not be
    /// self-delimiting, but must be ordered as the values are. By default, the encoding as an
    /// element.
    ///
    /// ```
    /// use esker::typed::EncodeKey;
    /// let mut bytes = Vec::new();
    /// EncodeKey::<String>::encode_key("ada", &mut bytes);
    /// assert_eq!(bytes, b"ada");
    /// ```
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.encode_element(out);
    }
}

impl<K: ?Sized, T: EncodeKey<K> + ?Sized> EncodeKey<K> for &T {
    fn encode_element(&self, out: &mut Vec<u8>) {
        (**self).encode_element(out);
    }

    fn encode_key(&self, out: &mut Vec<u8>) {
        (**self).encode_key(out);
    }
}

/// A type of keys: its encoding keeps the order, and can be decoded.
///
/// Integers of fixed size, `bool`, `String`, `Vec<u8>`, `[u8; N]`, `SystemTime`, `Duration`,
/// `Option`, and tuples of two to six of them are keys. `usize` is none, because its size differs
/// between machines, nor are floating-point numbers, which have no total order.
///
/// ```
/// use esker::typed::{DecodeError, EncodeKey, KeyCodec};
/// /// Orders by number.
/// #[derive(PartialEq, Debug)]
/// struct Order(u32);
/// impl EncodeKey<Order> for Order {
///     fn encode_element(&self, out: &mut Vec<u8>) {
///         EncodeKey::<u32>::encode_element(&self.0, out);
///     }
/// }
/// impl KeyCodec for Order {
///     fn decode_element(input: &mut &[u8]) -> Result<Order, DecodeError> {
///         u32::decode_element(input).map(Order)
///     }
/// }
/// assert_eq!(Order::decode_key(&[0, 0, 1, 2]), Ok(Order(258)));
/// ```
pub trait KeyCodec: EncodeKey<Self> + Sized {
    /// Decodes what [`EncodeKey::encode_element`] has appended, from the beginning of `input`,
    /// which is left at the first byte behind it.
    ///
    /// # Errors
    /// If `input` does not begin with such an encoding. It must not panic on any input.
    ///
    /// ```
    /// use esker::typed::KeyCodec;
    /// let mut input = &b"ada\0\0\x07"[..];
    /// assert_eq!(String::decode_element(&mut input)?, "ada");
    /// assert_eq!(u8::decode_element(&mut input)?, 7);
    /// # Ok::<(), esker::typed::DecodeError>(())
    /// ```
    fn decode_element(input: &mut &[u8]) -> Result<Self, DecodeError>;

    /// Decodes what [`EncodeKey::encode_key`] has appended: all of `input`. To be replaced together
    /// with that.
    ///
    /// # Errors
    /// If `input` is no such encoding. It must not panic on any input.
    ///
    /// ```
    /// use esker::typed::KeyCodec;
    /// assert_eq!(<(String, u8)>::decode_key(b"ada\0\0\x07")?, ("ada".to_owned(), 7));
    /// # Ok::<(), esker::typed::DecodeError>(())
    /// ```
    fn decode_key(input: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = input;
        let key = Self::decode_element(&mut rest)?;
        match rest.len() {
            0 => Ok(key),
            behind => Err(DecodeError(format!("expected the end of the key, found {behind} bytes more"))),
        }
    }
}

/// What keys of type `K` can begin with: for tuples, a tuple of their leading elements, a single
/// one being `(x,)`; for `String` and `Vec<u8>`, a string or bytes.
///
/// ```
/// use esker::typed::KeyPrefix;
/// let mut bytes = Vec::new();
/// KeyPrefix::<(String, u32, u32)>::encode_prefix(&("ada",), &mut bytes);
/// assert_eq!(bytes, b"ada\0\0");
/// ```
pub trait KeyPrefix<K> {
    /// Appends the bytes that the encoding of a key begins with exactly if the key begins with
    /// this.
    ///
    /// ```
    /// use esker::typed::KeyPrefix;
    /// let mut bytes = Vec::new();
    /// KeyPrefix::<String>::encode_prefix("user:", &mut bytes);
    /// assert_eq!(bytes, b"user:");
    /// ```
    fn encode_prefix(&self, out: &mut Vec<u8>);
}

impl<K, T: KeyPrefix<K> + ?Sized> KeyPrefix<K> for &T {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        (**self).encode_prefix(out);
    }
}

/// Takes the first `N` bytes of `input`, which belong to a `type_name`.
pub(super) fn take<const N: usize>(input: &mut &[u8], type_name: &str) -> Result<[u8; N], DecodeError> {
    let Some((first, rest)) = input.split_first_chunk::<N>() else {
        return Err(DecodeError(format!("expected {N} bytes of a {type_name}, found {}", input.len())));
    };
    *input = rest;
    Ok(*first)
}

macro_rules! integer_keys {
    ($($integer:ident: $flip:expr;)*) => {$(
        impl EncodeKey<$integer> for $integer {
            fn encode_element(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&(*self ^ $flip).to_be_bytes());
            }
        }

        impl KeyCodec for $integer {
            fn decode_element(input: &mut &[u8]) -> Result<$integer, DecodeError> {
                Ok($integer::from_be_bytes(take(input, stringify!($integer))?) ^ $flip)
            }
        }
    )*};
}

// Big-endian, so that the most significant byte decides first. The sign is flipped, so that
// negative numbers come first.
integer_keys! {
    u8: 0; u16: 0; u32: 0; u64: 0; u128: 0;
    i8: i8::MIN; i16: i16::MIN; i32: i32::MIN; i64: i64::MIN; i128: i128::MIN;
}

impl EncodeKey<bool> for bool {
    fn encode_element(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl KeyCodec for bool {
    fn decode_element(input: &mut &[u8]) -> Result<bool, DecodeError> {
        match take(input, "bool")? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(DecodeError(format!("expected 0 or 1 of a bool, found {other}"))),
        }
    }
}

// `None` comes before every `Some`, as in the order of the type itself.
impl<K, T: EncodeKey<K>> EncodeKey<Option<K>> for Option<T> {
    fn encode_element(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        if let Some(key) = self {
            key.encode_element(out);
        }
    }

    fn encode_key(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        if let Some(key) = self {
            key.encode_key(out);
        }
    }
}

impl<K: KeyCodec> KeyCodec for Option<K> {
    fn decode_element(input: &mut &[u8]) -> Result<Option<K>, DecodeError> {
        Ok(if bool::decode_element(input)? { Some(K::decode_element(input)?) } else { None })
    }

    fn decode_key(mut input: &[u8]) -> Result<Option<K>, DecodeError> {
        if bool::decode_element(&mut input)? {
            return K::decode_key(input).map(Some);
        }
        match input.len() {
            0 => Ok(None),
            behind => Err(DecodeError(format!("expected the end of the key, found {behind} bytes more"))),
        }
    }
}
