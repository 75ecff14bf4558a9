//! The origin of the value of an option.

use super::profile::Profile;
use std::collections::BTreeMap;
use std::fmt;

/// The origin of the value of an option.
///
/// ```
/// use esker::{Options, Origin};
/// let explanation = Options::default().explain();
/// assert!(explanation.options.iter().all(|option| option.origin == Origin::Default));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// It was not set.
    Default,
    /// [`crate::Options::profile`] set it.
    Profile(Profile),
    /// Its own setter set it.
    Set,
    /// It follows from [`crate::Options::memory_budget_bytes`].
    Budget,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::Profile(profile) => write!(f, "profile {}", profile.name()),
            Origin::Set => f.write_str("set"),
            Origin::Budget => f.write_str("from the memory budget"),
        }
    }
}

/// By the names of options; what is not here is the default.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins(BTreeMap<&'static str, Origin>);

impl Origins {
    pub(super) fn set(&mut self, name: &'static str, origin: Origin) {
        self.0.insert(name, origin);
    }

    pub(super) fn of(&self, name: &str) -> Origin {
        self.0.get(name).copied().unwrap_or(Origin::Default)
    }
}
