//! How many data blocks a thread looked at, by RocksDB's counts per thread: unlike the counts of
//! the whole database they leave compactions out.

use super::ffi::{self, Api};

const PERF_DISABLED: i32 = 1;
const PERF_COUNTS: i32 = 2;
/// Metrics of `rocksdb/c.h`.
const BLOCK_CACHE_HITS: i32 = 1;
const BLOCK_READS: i32 = 2;

/// A count of this thread, from its creation on. Indexes and filters are kept outside the cache
/// here, so every block is one of data, and a lookup takes one of each table that it searches.
pub struct BlocksSearched {
    api: &'static Api,
    context: *mut ffi::PerfContext,
}

impl BlocksSearched {
    /// Starts at 0; `None` if the library does not count.
    pub fn start(api: &'static Api) -> Option<BlocksSearched> {
        let (level, create, reset) =
            (api.rocksdb_set_perf_level?, api.rocksdb_perfcontext_create?, api.rocksdb_perfcontext_reset?);
        api.rocksdb_perfcontext_metric.and(api.rocksdb_perfcontext_destroy)?;
        // SAFETY: the context stands for this thread's counts; `Drop` destroys it.
        unsafe {
            level(PERF_COUNTS);
            let context = create();
            reset(context);
            Some(BlocksSearched { api, context })
        }
    }

    /// The count so far. To be called by the thread that made it.
    pub fn count(&self) -> u64 {
        // SAFETY: the context is live.
        let metric =
            |metric| self.api.rocksdb_perfcontext_metric.map_or(0, |read| unsafe { read(self.context, metric) });
        metric(BLOCK_CACHE_HITS) + metric(BLOCK_READS)
    }
}

impl Drop for BlocksSearched {
    fn drop(&mut self) {
        let (Some(level), Some(destroy)) = (self.api.rocksdb_set_perf_level, self.api.rocksdb_perfcontext_destroy)
        else {
            return;
        };
        // SAFETY: made by the matching constructor and not used again.
        unsafe {
            level(PERF_DISABLED);
            destroy(self.context);
        }
    }
}
