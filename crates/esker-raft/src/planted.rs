//! Faults that tests plant, to see that they are noticed. Compiled for tests only.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which faults a log has.
#[derive(Debug, Default)]
pub(crate) struct Planted {
    /// An append is acknowledged when it is written.
    pub early_acknowledgement: AtomicBool,
    /// A vote is written and not synced.
    pub lost_votes: AtomicBool,
    /// A leader that restarts goes on as the leader.
    pub restored_leaders: AtomicBool,
}

impl Planted {
    pub fn acknowledges_before_the_sync(&self) -> bool {
        self.early_acknowledgement.load(Ordering::Relaxed)
    }

    pub fn restores_leaders(&self) -> bool {
        self.restored_leaders.load(Ordering::Relaxed)
    }

    pub fn drops_the_sync_of_votes(&self) -> bool {
        self.lost_votes.load(Ordering::Relaxed)
    }
}

thread_local! {
    static UNHELD: Cell<bool> = const { Cell::new(false) };
    static REFUSED: Cell<Option<String>> = const { Cell::new(None) };
}

/// Whether state machines of this thread let expired entries go before the state is durable.
pub(crate) fn nothing_holds_expiry() -> bool {
    UNHELD.get()
}

/// Runs with that fault.
pub(crate) fn without_holding_expiry<T>(run: impl FnOnce() -> T) -> T {
    UNHELD.set(true);
    let result = run();
    UNHELD.set(false);
    result
}

/// Makes the next commit of a state machine of this thread one that the engine refuses.
pub(crate) fn refuse_next_commit() {
    refuse_next_commit_because("the batch is longer than 4 GiB".into());
}

/// The same, with that reason.
pub(crate) fn refuse_next_commit_because(what: String) {
    REFUSED.set(Some(what));
}

/// Refuses the commit that is to be refused.
pub(crate) fn commit() -> esker::Result<()> {
    REFUSED.take().map_or(Ok(()), |what| Err(esker::Error::InvalidArgument { what }))
}
