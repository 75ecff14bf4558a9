//! The bytes that reads hand out: short ones inside the handle, longer ones pinned in the block
//! they were found in.

use std::array::TryFromSliceError;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// An owner of shared bytes: a decoded block, a mapped file, a memtable.
pub trait Pin: Send + Sync {
    /// The bytes kept alive. Must return the same bytes on every call.
    fn bytes(&self) -> &[u8];
}

impl Pin for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

const INLINE_BYTES: usize = 30;

/// Immutable bytes returned by a read. Cheap to clone; dereferences to `[u8]`.
///
/// A long value pins the block it lies in until the slice is dropped: copy it with `to_vec` to keep
/// it for long.
///
/// Compared, ordered and hashed as its bytes: a map with slices as keys is searched by bytes.
/// Bytes and text convert into one: a `Vec<u8>` and a `String` without a copy. Conversion into a
/// `Vec<u8>`, an `Arc<[u8]>` or a `Box<[u8]>` copies; conversion into an array fails if the length
/// is another one.
///
/// ```
/// use esker::Slice;
/// let slice = Slice::copy(b"ada");
/// assert_eq!(&slice[1..], b"da");
/// assert_eq!(Slice::from("ada"), slice);
/// let owned: Vec<u8> = slice.to_vec();
/// assert_eq!(owned, b"ada");
/// assert_eq!(slice, "ada");
/// let number: [u8; 3] = slice.try_into()?;
/// assert_eq!(number, *b"ada");
/// let born = std::collections::HashMap::from([(Slice::copy(b"ada"), 1815)]);
/// assert_eq!(born.get(&b"ada"[..]), Some(&1815));
/// # Ok::<(), std::array::TryFromSliceError>(())
/// ```
#[derive(Clone)]
pub struct Slice(Repr);

#[derive(Clone)]
enum Repr {
    Inline {
        length: u8,
        bytes: [u8; INLINE_BYTES],
    },
    Shared {
        pin: Arc<dyn Pin>,
        start: usize,
        length: usize,
    },
    /// A copy, in one allocation with its reference count.
    Copied(Arc<[u8]>),
}

impl Slice {
    /// A copy of `bytes`.
    ///
    /// ```
    /// assert_eq!(&*esker::Slice::copy(b"ada"), b"ada");
    /// ```
    #[inline]
    pub fn copy(bytes: &[u8]) -> Slice {
        if bytes.len() <= INLINE_BYTES { Slice::inline(bytes) } else { Slice(Repr::Copied(Arc::from(bytes))) }
    }

    #[inline]
    fn inline(bytes: &[u8]) -> Slice {
        let mut array = [0u8; INLINE_BYTES];
        array[..bytes.len()].copy_from_slice(bytes);
        Slice(Repr::Inline { length: bytes.len() as u8, bytes: array })
    }

    /// The `length` bytes from `start` of what `pin` keeps alive; copied instead when they are few.
    ///
    /// # Panics
    /// If the range is outside the pinned bytes.
    #[inline]
    pub(crate) fn pinned(pin: &Arc<impl Pin + 'static>, start: usize, length: usize) -> Slice {
        let bytes = &pin.bytes()[start..start + length];
        if length <= INLINE_BYTES {
            return Slice::inline(bytes);
        }
        Slice(Repr::Shared { pin: Arc::<_>::clone(pin) as Arc<dyn Pin>, start, length })
    }
}

/// No bytes.
impl Default for Slice {
    fn default() -> Slice {
        Slice::inline(&[])
    }
}

impl From<Vec<u8>> for Slice {
    fn from(bytes: Vec<u8>) -> Slice {
        if bytes.len() <= INLINE_BYTES {
            return Slice::inline(&bytes);
        }
        let length = bytes.len();
        Slice(Repr::Shared { pin: Arc::new(bytes), start: 0, length })
    }
}

impl From<&[u8]> for Slice {
    fn from(bytes: &[u8]) -> Slice {
        Slice::copy(bytes)
    }
}

impl<const N: usize> From<&[u8; N]> for Slice {
    fn from(bytes: &[u8; N]) -> Slice {
        Slice::copy(bytes)
    }
}

impl From<&str> for Slice {
    fn from(text: &str) -> Slice {
        Slice::copy(text.as_bytes())
    }
}

impl From<String> for Slice {
    fn from(text: String) -> Slice {
        Slice::from(text.into_bytes())
    }
}

impl From<Slice> for Arc<[u8]> {
    fn from(slice: Slice) -> Arc<[u8]> {
        Arc::from(&slice[..])
    }
}

impl From<Slice> for Box<[u8]> {
    fn from(slice: Slice) -> Box<[u8]> {
        Box::from(&slice[..])
    }
}

impl Deref for Slice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Repr::Shared { pin, start, length } => &pin.bytes()[*start..*start + *length],
            Repr::Copied(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl PartialEq for Slice {
    fn eq(&self, other: &Slice) -> bool {
        **self == **other
    }
}

impl Eq for Slice {}

impl PartialEq<[u8]> for Slice {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl PartialEq<&[u8]> for Slice {
    fn eq(&self, other: &&[u8]) -> bool {
        **self == **other
    }
}

impl PartialEq<str> for Slice {
    fn eq(&self, other: &str) -> bool {
        **self == *other.as_bytes()
    }
}

impl PartialEq<&str> for Slice {
    fn eq(&self, other: &&str) -> bool {
        **self == *other.as_bytes()
    }
}

impl PartialEq<Vec<u8>> for Slice {
    fn eq(&self, other: &Vec<u8>) -> bool {
        **self == **other
    }
}

impl PartialOrd for Slice {
    fn partial_cmp(&self, other: &Slice) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slice {
    fn cmp(&self, other: &Slice) -> Ordering {
        (**self).cmp(&**other)
    }
}

/// As that of the bytes: a map with slices as keys is searched by bytes.
impl Hash for Slice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl Borrow<[u8]> for Slice {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl From<Slice> for Vec<u8> {
    fn from(slice: Slice) -> Vec<u8> {
        slice.to_vec()
    }
}

impl<const N: usize> TryFrom<Slice> for [u8; N] {
    type Error = TryFromSliceError;

    fn try_from(slice: Slice) -> Result<[u8; N], TryFromSliceError> {
        <[u8; N]>::try_from(&*slice)
    }
}

impl<const N: usize> PartialEq<[u8; N]> for Slice {
    fn eq(&self, other: &[u8; N]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for Slice {
    fn eq(&self, other: &&[u8; N]) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_keys_of_maps_and_sort_as_bytes() {
        let long = vec![7; 100];
        let sorted: std::collections::BTreeSet<Slice> =
            [Slice::from(long.clone()), Slice::copy(b"b"), Slice::copy(b"a")].into_iter().collect();
        assert!(sorted.iter().map(|slice| slice.to_vec()).eq([long.clone(), b"a".to_vec(), b"b".to_vec()]));
        let hashed: std::collections::HashMap<Slice, i32> = sorted.into_iter().zip(0..).collect();
        assert_eq!((hashed.get(&long[..]), hashed.get(&b"b"[..])), (Some(&0), Some(&2)));
        assert_eq!(Slice::copy(b"ab"), "ab");
        assert!(Slice::copy(b"ab") == *b"ab" && Slice::copy(b"ab") == b"ab".to_vec());
        assert_eq!(Vec::from(Slice::copy(b"ab")), b"ab");
        assert!(<[u8; 2]>::try_from(Slice::copy(b"ab")).is_ok_and(|array| array == *b"ab"));
        assert!(<[u8; 3]>::try_from(Slice::copy(b"ab")).is_err());
    }

    #[test]
    fn the_default_slice_is_the_empty_one() {
        assert_eq!(Slice::default(), Slice::copy(b""));
        let mut kept = Slice::copy(b"ab");
        assert_eq!((std::mem::take(&mut kept), kept), (Slice::copy(b"ab"), Slice::default()));
    }

    #[test]
    fn short_and_long_slices_read_the_same() {
        for length in [0, 1, 30, 31, 1000] {
            let bytes: Vec<u8> = (0..length).map(|i| i as u8).collect();
            assert_eq!(Slice::copy(&bytes), bytes.as_slice());
            assert_eq!(Slice::from(bytes.clone()).clone(), bytes.as_slice());
            let pin = Arc::new(bytes.clone());
            assert_eq!(Slice::pinned(&pin, 0, length), bytes.as_slice());
        }
    }
}
