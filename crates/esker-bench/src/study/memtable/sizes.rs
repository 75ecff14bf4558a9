//! How much work, and how large buffers: both scaled together, which keeps the shape of the tree.

/// Sizes of the work, for a scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    scale: f64,
}

impl Sizes {
    const FILL: u64 = 5_000_000;
    const READ: u64 = 1_000_000;
    const TOPIC: u64 = 1_000_000;
    /// Smaller write buffers and files than this no engine here takes.
    const LEAST_BYTES: u64 = 16 << 10;

    /// Sizes multiplied by `scale`. The error is one line.
    pub fn new(scale: f64) -> Result<Sizes, String> {
        const LEAST: f64 = 0.0001;
        if !(LEAST..=100.0).contains(&scale) {
            return Err(format!("--scale must be between {LEAST} and 100"));
        }
        Ok(Sizes { scale })
    }

    fn times(self, number: u64) -> u64 {
        (number as f64 * self.scale).round() as u64
    }

    /// Entries of a load.
    pub fn fill(self) -> u64 {
        self.times(Self::FILL)
    }

    /// Lookups of a reader, and the number of different keys it looks up.
    pub fn read(self) -> u64 {
        self.times(Self::READ)
    }

    /// Entries of the topics.
    pub fn topic(self) -> u64 {
        self.times(Self::TOPIC)
    }

    /// Bytes of a buffer.
    pub fn bytes(self, full: u64) -> u64 {
        self.times(full).max(Self::LEAST_BYTES)
    }

    /// So many MiB of a buffer.
    pub fn mib(self, full: u64) -> u64 {
        self.bytes(full << 20)
    }
}
