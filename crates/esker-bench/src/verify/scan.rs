//! One look at every entry.

use crate::interrupt::Interrupt;
use esker_engines::{Result, Session};

const INTERRUPT_EVERY: u64 = 1 << 14;

/// Shows every key and value to `visit`; whether the end was reached without an interrupt.
pub fn every_entry(
    session: &mut dyn Session,
    interrupt: &Interrupt,
    mut visit: impl FnMut(&[u8], &[u8]),
) -> Result<bool> {
    let mut iteration = session.iterate()?;
    let mut there = iteration.seek_to_first()?;
    let mut seen: u64 = 0;
    while there {
        visit(iteration.key(), iteration.value());
        seen += 1;
        if seen.is_multiple_of(INTERRUPT_EVERY) && interrupt.is_requested() {
            return Ok(false);
        }
        there = iteration.next()?;
    }
    Ok(true)
}
