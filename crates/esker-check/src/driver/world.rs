//! The model of a run, and how far its answers are promised.

use crate::cast::Role;
use crate::model::{Change, Life, Model, Operator, Ttl, Write};
use std::borrow::Cow;

/// The model, and what bears on which answers can be expected.
#[derive(Clone)]
pub(super) struct World {
    pub cast: Vec<Role>,
    pub model: Model,
    /// Whether [`Operator::Shelved`] was supplied at the last opening.
    pub supplied: bool,
    /// Whether the clock was ahead of the present before: then nothing is promised about what
    /// expires.
    pub back: bool,
}

/// How much of an answer can be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    All,
    /// All but the values of merged keys, whose operator is not there.
    Unmerged,
    /// Only that there is one.
    Nothing,
}

impl World {
    pub fn trust(&self, keyspace: usize, by_snapshot: bool) -> Trust {
        let (operator, ttl) = self.model.settings(keyspace);
        match () {
            () if self.back && ttl != Ttl::Off && !by_snapshot => Trust::Nothing,
            () if operator == Operator::Shelved && !self.supplied => Trust::Unmerged,
            () => Trust::All,
        }
    }

    pub fn has_shelved(&self) -> bool {
        self.cast.iter().any(|role| role.operator == Operator::Shelved)
    }

    /// Whether what the write does is promised although the clock has stepped back.
    fn is_timeless(&self, write: &Write) -> bool {
        match (&write.change, self.cast[write.keyspace].ttl, write.life) {
            (_, Ttl::Off, _) | (Change::Delete | Change::DeleteRange(..) | Change::DeletePrefix(_), ..) => true,
            (Change::Merge(_) | Change::Expire, ..) | (_, _, Life::For(_)) | (_, Ttl::On(Some(_)), Life::Usual) => {
                false
            }
            (Change::Put(_), ..) => true,
        }
    }

    /// The writes with absolute times, and without those whose outcome nobody promises.
    pub fn settled<'w>(&self, writes: &'w [Write]) -> Cow<'w, [Write]> {
        let unsettled = |write: &Write| matches!(write.life, Life::Around(_));
        if !self.back && !writes.iter().any(unsettled) {
            return Cow::Borrowed(writes);
        }
        let now = self.model.present().now;
        let kept = writes.iter().filter(|write| !self.back || self.is_timeless(write));
        Cow::Owned(kept.map(|write| write.clone().living(write.life.settled(now))).collect())
    }
}
