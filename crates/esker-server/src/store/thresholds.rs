//! From where on OBJECT ENCODING names the form of a large collection.

/// The largest collections whose form has the name of a small one. Nothing is stored in another way
/// for them: clients and tests look at the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Elements of a set of integers.
    pub set_entries: u64,
    /// Fields of a hash.
    pub hash_entries: u64,
    /// Bytes of each field and value of a hash.
    pub hash_value_bytes: usize,
    /// Kept for clients that set and ask it: lists have one name.
    pub list_listpack_size: i64,
    /// Kept for clients that set and ask it: lists have one name.
    pub list_compress_depth: u64,
    /// Members of a sorted set.
    pub sorted_set_entries: u64,
    /// Bytes of each member of a sorted set.
    pub sorted_set_value_bytes: usize,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            set_entries: 512,
            hash_entries: 128,
            hash_value_bytes: 64,
            list_listpack_size: -2,
            list_compress_depth: 0,
            sorted_set_entries: 128,
            sorted_set_value_bytes: 64,
        }
    }
}
