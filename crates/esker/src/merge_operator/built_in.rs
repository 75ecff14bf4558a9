//! The operators that come with the engine. They re-attach by their stored name, so that any tool
//! can read any database.

use super::bitwise::{BIT_OR, BYTES_XOR, BitOr, BytesXor};
use super::int64_add::{INT64_ADD, Int64Add};
use super::internal::OnlyHere;
use super::{MergeError, MergeOperator};
use std::sync::Arc;

type Merged = Result<Option<Vec<u8>>, MergeError>;

/// The stored name of [`UInt64Add`].
pub(crate) const UINT64_ADD: &str = "uint64add";

/// The built-in operator of that stored name, if there is one: `uint64add`, `int64add`, `max`,
/// `min`, `put`, `bytesxor`, `bitor`, or `stringappend:` and the delimiter in hexadecimal.
///
/// ```
/// assert!(esker::merge::built_in("uint64add").is_some());
/// assert!(esker::merge::built_in("unheard of").is_none());
/// ```
pub fn built_in(name: &str) -> Option<Arc<dyn MergeOperator>> {
    Some(match name {
        UINT64_ADD => Arc::new(UInt64Add),
        INT64_ADD => Arc::new(Int64Add),
        BYTES_XOR => Arc::new(BytesXor),
        BIT_OR => Arc::new(BitOr),
        "max" => Arc::new(Max),
        "min" => Arc::new(Min),
        "put" => Arc::new(Put),
        _ => {
            let delimiter = name.strip_prefix("stringappend:")?;
            Arc::new(StringAppend::from_name(name, delimiter)?)
        }
    })
}

/// Whether `operator`, which calls itself `name`, is not the built-in operator of that name, but
/// there is one: that would take its place when the database is opened again.
pub(crate) fn is_impostor(operator: &dyn MergeOperator, name: &str) -> bool {
    built_in(name).is_some_and(|real| real.operator_type(OnlyHere) != operator.operator_type(OnlyHere))
}

/// Adds 8-byte little-endian unsigned integers, wrapping around at 2^64. An absent key counts as 0.
/// Operands and values of any other size are refused.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::{KeyspaceOptions, merge::UInt64Add};
/// let hits = db.keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add))?;
/// hits.merge("/", 1u64.to_le_bytes())?;
/// hits.merge("/", 2u64.to_le_bytes())?;
/// assert_eq!(hits.get("/")?.as_deref(), Some(&3u64.to_le_bytes()[..]));
/// assert!(hits.merge("/", "3").is_err()); // not 8 bytes
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct UInt64Add;

fn uint64(bytes: &[u8], what: &str) -> Result<u64, MergeError> {
    let array =
        bytes.try_into().map_err(|_| MergeError(format!("{what} has {} bytes, uint64add takes 8", bytes.len())))?;
    Ok(u64::from_le_bytes(array))
}

impl MergeOperator for UInt64Add {
    fn name(&self) -> &str {
        UINT64_ADD
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Merged {
        let mut sum = existing.map_or(Ok(0), |value| uint64(value, "the existing value"))?;
        for operand in operands {
            sum = sum.wrapping_add(uint64(operand, "an operand")?);
        }
        Ok(Some(sum.to_le_bytes().to_vec()))
    }

    fn may_delete(&self) -> bool {
        false
    }

    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let sum = uint64(older, "").ok()?.wrapping_add(uint64(newer, "").ok()?);
        Some(sum.to_le_bytes().to_vec())
    }

    fn check_operand(&self, operand: &[u8]) -> Result<(), MergeError> {
        uint64(operand, "the operand").map(|_| ())
    }
}

/// Keeps the largest value, compared as unsigned byte strings.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::{KeyspaceOptions, merge::Max};
/// let best = db.keyspace("best", KeyspaceOptions::default().merge_operator(Max))?;
/// best.merge("ada", 7u32.to_be_bytes())?; // big-endian: ordered as bytes
/// best.merge("ada", 5u32.to_be_bytes())?;
/// assert_eq!(best.get("ada")?.as_deref(), Some(&7u32.to_be_bytes()[..]));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Max;

impl MergeOperator for Max {
    fn name(&self) -> &str {
        "max"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Merged {
        Ok(existing.into_iter().chain(operands.iter().copied()).max().map(<[u8]>::to_vec))
    }

    fn may_delete(&self) -> bool {
        false
    }

    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(older.max(newer).to_vec())
    }
}

/// Keeps the smallest value, compared as unsigned byte strings.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::{KeyspaceOptions, merge::Min};
/// let first = db.keyspace("first", KeyspaceOptions::default().merge_operator(Min))?;
/// first.merge("seen", "2026-02-01")?;
/// first.merge("seen", "2026-03-01")?;
/// assert_eq!(first.get("seen")?.as_deref(), Some(&b"2026-02-01"[..]));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Min;

impl MergeOperator for Min {
    fn name(&self) -> &str {
        "min"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Merged {
        Ok(existing.into_iter().chain(operands.iter().copied()).min().map(<[u8]>::to_vec))
    }

    fn may_delete(&self) -> bool {
        false
    }

    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(older.min(newer).to_vec())
    }
}

/// The last operand wins: a put that is spelled as a merge.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::{KeyspaceOptions, merge::Put};
/// let state = db.keyspace("state", KeyspaceOptions::default().merge_operator(Put))?;
/// state.merge("ada", "away")?;
/// state.merge("ada", "back")?;
/// assert_eq!(state.get("ada")?.as_deref(), Some(&b"back"[..]));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Put;

impl MergeOperator for Put {
    fn name(&self) -> &str {
        "put"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Merged {
        Ok(operands.last().copied().or(existing).map(<[u8]>::to_vec))
    }

    fn may_delete(&self) -> bool {
        false
    }

    fn partial_merge(&self, _key: &[u8], _older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(newer.to_vec())
    }
}

/// Appends operands to the value, with a delimiter between them.
///
/// The delimiter is part of the stored name (`stringappend:` and the delimiter in hexadecimal), so
/// that tools append the same way.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::{KeyspaceOptions, merge::StringAppend};
/// let tags = db.keyspace("tags", KeyspaceOptions::default().merge_operator(StringAppend::new(",")))?;
/// tags.merge("ada", "poet")?;
/// tags.merge("ada", "engine")?;
/// assert_eq!(tags.get("ada")?.as_deref(), Some(&b"poet,engine"[..]));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StringAppend {
    name: String,
    delimiter: Vec<u8>,
}

impl StringAppend {
    /// An operator that puts `delimiter` between operands.
    ///
    /// ```
    /// use esker::{MergeOperator, merge::StringAppend};
    /// assert_eq!(StringAppend::new(", ").name(), "stringappend:2c20");
    /// ```
    pub fn new(delimiter: impl Into<Vec<u8>>) -> StringAppend {
        let delimiter = delimiter.into();
        let hex: String = delimiter.iter().map(|byte| format!("{byte:02x}")).collect();
        StringAppend { name: format!("stringappend:{hex}"), delimiter }
    }

    fn from_name(name: &str, hex: &str) -> Option<StringAppend> {
        if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
            return None;
        }
        let digits = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok());
        Some(StringAppend { name: name.to_owned(), delimiter: digits.collect::<Option<Vec<u8>>>()? })
    }
}

impl MergeOperator for StringAppend {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Merged {
        let parts: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        Ok(Some(parts.join(self.delimiter.as_slice())))
    }

    fn may_delete(&self) -> bool {
        false
    }

    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some([older, newer].join(self.delimiter.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_re_attaches_by_its_name() {
        let operators: [Arc<dyn MergeOperator>; 8] = [
            Arc::new(UInt64Add),
            Arc::new(Int64Add),
            Arc::new(Max),
            Arc::new(Min),
            Arc::new(Put),
            Arc::new(BytesXor),
            Arc::new(BitOr),
            Arc::new(StringAppend::new(", ")),
        ];
        for operator in operators {
            let again = built_in(operator.name()).expect("built in");
            assert_eq!(again.name(), operator.name());
        }
        assert!(built_in("stringappend:zz").is_none());
        assert!(built_in("nobody").is_none());
    }

    #[test]
    fn every_built_in_obeys_the_laws() {
        let numbers: Vec<[u8; 8]> = [0, 1, 77, u64::MAX, 1 << 63, i64::MAX as u64].map(u64::to_le_bytes).to_vec();
        let numbers: Vec<&[u8]> = numbers.iter().map(|number| &number[..]).collect();
        let strings: Vec<&[u8]> = vec![b"", b"a", b"ab", b"b\0\xff", b"\xff\xff\xff\xff", b","];
        for name in ["uint64add", "int64add"] {
            let operator = built_in(name).expect("built in");
            crate::merge_operator::check_laws(&*operator, &numbers, &[&numbers[..], &[b"abc"]].concat()).expect(name);
        }
        for name in ["max", "min", "put", "bytesxor", "bitor", "stringappend:", "stringappend:2c20"] {
            let operator = built_in(name).expect("built in");
            crate::merge_operator::check_laws(&*operator, &[&strings[..], &numbers[..]].concat(), &strings)
                .expect(name);
        }
    }

    #[test]
    fn uint64add_wraps_and_refuses_other_sizes() {
        let max = u64::MAX.to_le_bytes();
        let two = 2u64.to_le_bytes();
        assert_eq!(UInt64Add.full_merge(b"", Some(&max), &[&two]), Ok(Some(1u64.to_le_bytes().to_vec())));
        assert!(UInt64Add.full_merge(b"", Some(b"abc"), &[&two]).is_err());
        assert!(UInt64Add.check_operand(b"abc").is_err());
        assert!(UInt64Add.partial_merge(b"", b"abc", &two).is_none());
    }
}
