//! Time to live: what expires when, as absolute wall-clock times in milliseconds since the Unix
//! epoch.

use super::key::NEVER;
use crate::error::{Error, Result};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whether the entries of a keyspace can expire: chosen when it is created, and changed by
/// [`Keyspace::set_ttl`](crate::Keyspace::set_ttl).
///
/// ```
/// use esker::{KeyspaceOptions, Ttl};
/// use std::time::Duration;
/// let sessions = KeyspaceOptions::default().ttl(Ttl::Enabled { default: Some(Duration::from_secs(1800)) });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ttl {
    /// Nothing expires; a write with a time to live is refused. Costs nothing.
    #[default]
    Disabled,
    /// A write may bring a time to live; one that brings none gets `default`, or never expires if
    /// that is `None`. The default has a resolution of one millisecond and must not be zero.
    Enabled {
        /// What a write gets that brings none.
        default: Option<Duration>,
    },
}

/// When the value of a key expires.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let sessions = db.keyspace("sessions", esker::KeyspaceOptions::default().ttl(esker::Ttl::Enabled { default: None }))?;
/// use esker::Expiry;
/// sessions.put("ada", "")?;
/// assert_eq!(sessions.expires_at("ada")?, Some(Expiry::Never));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expiry {
    /// Not by itself.
    Never,
    /// It is visible before this time, and not from then on.
    At(SystemTime),
}

impl Expiry {
    /// The public form of a stored expiry.
    pub(crate) fn from_ms(expiry_ms: u64) -> Expiry {
        if expiry_ms == NEVER {
            return Expiry::Never;
        }
        match UNIX_EPOCH.checked_add(Duration::from_millis(expiry_ms)) {
            Some(at) => Expiry::At(at),
            // Later than the system can say.
            None => Expiry::Never,
        }
    }
}

/// The lifetime requested by a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// None was requested: the keyspace's default.
    Default,
    /// This many milliseconds from the write on; not 0.
    ForMs(u64),
    /// Until this time in milliseconds; not 0.
    UntilMs(u64),
}

/// The one predicate of visibility: an entry is visible before its expiry.
#[inline]
pub fn visible(expiry_ms: u64, now_ms: u64) -> bool {
    expiry_ms == NEVER || now_ms < expiry_ms
}

/// For comparing: that which never expires lives longest.
#[inline]
pub fn lifetime_rank(expiry_ms: u64) -> u64 {
    if expiry_ms == NEVER { u64::MAX } else { expiry_ms }
}

/// `now + life`; the end of time if that is later.
#[inline]
pub fn expiry_after(now_ms: u64, life_ms: u64) -> u64 {
    now_ms.saturating_add(life_ms).max(1)
}

/// A time as a stored expiry. Times before the epoch count as its first millisecond: they have
/// passed.
pub fn expiry_at(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(1, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX).max(1))
}

/// A time to live in whole milliseconds, rounded up so that nothing expires early.
///
/// # Errors
/// `InvalidArgument` if it is zero.
pub fn life_ms(ttl: Duration) -> Result<u64> {
    if ttl.is_zero() {
        return Err(Error::invalid("a time to live of zero; delete the key instead, or leave the time out"));
    }
    Ok(u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

impl Ttl {
    /// Whether anything can expire.
    #[inline]
    pub(crate) fn is_enabled(self) -> bool {
        self != Ttl::Disabled
    }

    /// The number that stands for the setting in the manifest: 0 off, 1 on without default, else 1
    /// more than the default in milliseconds.
    ///
    /// # Errors
    /// `InvalidArgument` for a default of zero, or of more than a billion years.
    pub(crate) fn to_stored(self) -> Result<u64> {
        match self {
            Ttl::Disabled => Ok(0),
            Ttl::Enabled { default: None } => Ok(1),
            Ttl::Enabled { default: Some(default) } => life_ms(default)?
                .checked_add(1)
                .ok_or_else(|| Error::invalid("the default time to live is too long; leave it out")),
        }
    }

    /// The setting that a manifest's number stands for.
    #[inline]
    pub(crate) fn from_stored(stored: u64) -> Ttl {
        match stored {
            0 => Ttl::Disabled,
            1 => Ttl::Enabled { default: None },
            more => Ttl::Enabled { default: Some(Duration::from_millis(more - 1)) },
        }
    }

    /// The stored expiry of a write with this `life`.
    #[inline]
    pub(crate) fn expiry_ms(self, life: Life, now_ms: u64) -> u64 {
        match (life, self) {
            (Life::UntilMs(at), _) => at,
            (Life::ForMs(life), _) => expiry_after(now_ms, life),
            (Life::Default, Ttl::Enabled { default: Some(default) }) => {
                expiry_after(now_ms, u64::try_from(default.as_millis()).unwrap_or(u64::MAX))
            }
            (Life::Default, _) => NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_storage() {
        for ttl in [
            Ttl::Disabled,
            Ttl::Enabled { default: None },
            Ttl::Enabled { default: Some(Duration::from_millis(1)) },
            Ttl::Enabled { default: Some(Duration::from_secs(86_400)) },
        ] {
            assert_eq!(Ttl::from_stored(ttl.to_stored().expect("possible")), ttl);
        }
        assert!(Ttl::Enabled { default: Some(Duration::ZERO) }.to_stored().is_err());
        assert!(Ttl::Enabled { default: Some(Duration::MAX) }.to_stored().is_err());
    }

    #[test]
    fn times_saturate_and_round_up() {
        assert_eq!(expiry_after(u64::MAX - 1, 5), u64::MAX);
        assert_eq!(life_ms(Duration::from_nanos(1)).expect("not zero"), 1);
        assert_eq!(life_ms(Duration::MAX).expect("not zero"), u64::MAX);
        assert_eq!(expiry_at(UNIX_EPOCH - Duration::from_secs(1)), 1);
        assert!(visible(NEVER, u64::MAX) && visible(5, 4) && !visible(5, 5));
        assert_eq!(Expiry::from_ms(NEVER), Expiry::Never);
        assert_eq!(Expiry::from_ms(1500), Expiry::At(UNIX_EPOCH + Duration::from_millis(1500)));
    }
}
