//! The values of options, and what they are for the engine.

use esker::Compression;

/// Options that have a meaning here. What was not set is the engine's default.
#[derive(Clone, Copy, Default)]
pub(crate) struct OptionValues {
    pub(crate) create_if_missing: bool,
    pub(crate) error_if_exists: bool,
    pub(crate) write_buffer_bytes: Option<usize>,
    pub(crate) block_bytes: Option<usize>,
    pub(crate) file_bytes: Option<usize>,
    pub(crate) is_compressed: Option<bool>,
    pub(crate) cache_bytes: Option<usize>,
    /// The handle of a comparator, or 0.
    pub(crate) order: usize,
    /// The handle of a filter policy, or 0.
    pub(crate) policy: usize,
}

impl OptionValues {
    /// The options of the engine for them, without the callbacks.
    pub(crate) fn of_database(&self) -> esker::Options {
        let mut options =
            esker::Options::default().create_if_missing(self.create_if_missing).error_if_exists(self.error_if_exists);
        // The limits are LevelDB's, which takes the nearest size that it can.
        if let Some(bytes) = self.write_buffer_bytes {
            options = options.write_buffer_bytes(bytes.clamp(64 << 10, 1 << 30));
        }
        if let Some(bytes) = self.block_bytes {
            options = options.block_bytes(bytes.clamp(1 << 10, 4 << 20));
        }
        if let Some(bytes) = self.file_bytes {
            options = options.target_file_bytes(bytes.clamp(1 << 20, 1 << 30) as u64);
        }
        if let Some(bytes) = self.cache_bytes {
            options = options.block_cache_bytes(bytes);
        }
        match self.is_compressed {
            Some(false) => options = options.compression(Compression::None),
            Some(true) => options = options.compression(Compression::Lz4),
            None => {}
        }
        options
    }
}
