//! Threads that have a lease in turn, by conditional and returning writes and changes of expiries:
//! no two have it at once, and who has it finds what it has written itself.

use super::stored::NOW;
use crate::Checked;
use crate::random::Random;
use crate::state::{shown, time};
use esker::{CompareAndSwap, Db, Error, Expiry, Keyspace, WriteOptions};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const LEASE: &[u8] = b"lease";
/// The key of the number of leases that there were.
const TICKETS: &[u8] = b"tickets";
/// The clock stands still.
const HOUR: Duration = Duration::from_secs(3600);

/// What the threads know of each other.
#[derive(Default)]
pub(super) struct Leases {
    /// One more than the number of the thread that has the lease; 0 if none has it.
    holder: AtomicU64,
    /// The last ticket that was handed out.
    ticket: AtomicU64,
    /// The last one that was handed out with a sync.
    synced: AtomicU64,
}

fn failed(error: Error) -> String {
    format!("a call for the lease failed: {error}")
}

/// The last ticket, as it is stored.
fn last_ticket(found: Option<&[u8]>) -> Checked<u64> {
    let Some(bytes) = found else { return Ok(0) };
    bytes.try_into().map(u64::from_le_bytes).map_err(|_| format!("a ticket is {}", shown(bytes)))
}

/// Whether an image has all tickets up to this one.
pub(super) fn check(leases: &Keyspace, least: u64) -> Checked<()> {
    let last = last_ticket(leases.get(TICKETS).map_err(failed)?.as_deref())?;
    if last < least { Err(format!("the last ticket is {last}, {least} was handed out")) } else { Ok(()) }
}

impl Leases {
    /// The last ticket that was handed out, and the last one with a sync.
    pub(super) fn tickets(&self) -> (u64, u64) {
        (self.ticket.load(Ordering::Acquire), self.synced.load(Ordering::Acquire))
    }

    /// Takes the lease, uses it and gives it back, again and again. `me`: the number of the thread.
    pub(super) fn take_turns(
        &self,
        (db, leases): (&Db, &Keyspace),
        me: u64,
        stop: &AtomicBool,
        mut random: Random,
    ) -> Checked<()> {
        for round in 0u64.. {
            if stop.load(Ordering::Acquire) {
                break;
            }
            let mine = format!("thread {me}, round {round}");
            let there = leases.put_if_absent_with(LEASE, &mine, &WriteOptions::new().ttl(HOUR)).map_err(failed)?;
            if there.is_some() {
                std::thread::yield_now();
                continue;
            }
            let before = self.holder.swap(me + 1, Ordering::AcqRel);
            if before != 0 {
                return Err(format!("threads {} and {me} have the lease at once", before - 1));
            }
            self.take_ticket(leases, random.percent(10))?;
            change_expiry(leases, random.below(4))?;
            let renewed = renew(leases, &mine)?;
            // Before it is given back, since another thread has it from then on.
            self.holder.store(0, Ordering::Release);
            give_back(db, leases, &renewed, random.below(4))?;
        }
        Ok(())
    }

    /// Nobody else takes one meanwhile.
    fn take_ticket(&self, leases: &Keyspace, sync: bool) -> Checked<()> {
        let options = WriteOptions::new().sync(sync);
        let taken = leases.merge_and_get_with(TICKETS, 1u64.to_le_bytes(), &options).map_err(failed)?;
        let (taken, last) = (last_ticket(taken.as_deref())?, self.ticket.load(Ordering::Acquire));
        if taken != last + 1 {
            return Err(format!("ticket {taken} comes behind {last}"));
        }
        self.ticket.store(taken, Ordering::Release);
        if sync {
            self.synced.store(taken, Ordering::Release);
        }
        Ok(())
    }
}

fn change_expiry(leases: &Keyspace, way: usize) -> Checked<()> {
    let later = time(NOW) + HOUR;
    let was_there = match way {
        0 => leases.touch(LEASE, HOUR),
        1 => leases.expire_at(LEASE, later),
        2 => leases.persist(LEASE),
        _ => return Ok(()),
    };
    if !was_there.map_err(failed)? {
        return Err("the lease is gone while a thread has it".to_string());
    }
    let expiry = leases.expires_at(LEASE).map_err(failed)?;
    if matches!(expiry, Some(Expiry::Never)) == (way == 2) && expiry.is_some() {
        return Ok(());
    }
    Err(format!("the lease expires {expiry:?} after change {way}"))
}

/// Gives the lease another value, which is returned.
fn renew(leases: &Keyspace, mine: &str) -> Checked<String> {
    match leases.compare_and_swap(LEASE, Some(b"another thread"), None).map_err(failed)? {
        CompareAndSwap::Unequal { current: Some(found) } if found == mine => {}
        other => return Err(format!("{other:?} for the lease of {mine}")),
    }
    let renewed = format!("{mine}, renewed");
    let swapped = leases.compare_and_swap(LEASE, Some(mine.as_bytes()), Some(renewed.as_bytes())).map_err(failed)?;
    let found = leases.get(LEASE).map_err(failed)?;
    if swapped != CompareAndSwap::Swapped || found.as_deref() != Some(renewed.as_bytes()) {
        return Err(format!("{swapped:?} and then {found:?} for the lease of {mine}"));
    }
    Ok(renewed)
}

fn give_back(db: &Db, leases: &Keyspace, renewed: &str, way: usize) -> Checked<()> {
    let is_mine = match way {
        0 => leases.take(LEASE).map_err(failed)?.as_deref() == Some(renewed.as_bytes()),
        1 => {
            let swapped = leases.compare_and_swap(LEASE, Some(renewed.as_bytes()), None).map_err(failed)?;
            swapped == CompareAndSwap::Swapped
        }
        2 => {
            // Nobody else writes to it, so that there is no conflict.
            let mut transaction = db.transaction();
            let found = transaction.get(leases, LEASE).map_err(failed)?;
            transaction.delete(leases, LEASE).and_then(|()| transaction.commit()).map_err(failed)?;
            found.as_deref() == Some(renewed.as_bytes())
        }
        _ => {
            let found = leases.get(LEASE).map_err(failed)?;
            leases.delete_range("lease".."leasf").map_err(failed)?;
            found.as_deref() == Some(renewed.as_bytes())
        }
    };
    if is_mine { Ok(()) } else { Err(format!("the lease of {renewed} was another one's")) }
}
