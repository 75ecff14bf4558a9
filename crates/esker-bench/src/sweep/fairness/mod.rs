//! Whether rows that stand beside each other may be compared: the rules, checked on what was kept
//! of a run, and nothing else.
//!
//! Rows belong together that have the same experiment, variables, repetition and row; engines and
//! their variants differ. A broken rule is told of the row that breaks it:
//!
//! * its writes have another durability than was requested, and not all others have the same;
//! * it works with more memory than another, with mapped memory beside what it was given, or with
//!   far more memory than that;
//! * its data are compressed where those of others are not although they could be, or the other way
//!   round;
//! * its database holds something else than the others', where all must hold the same;
//! * an entry that a scan showed was not found by a lookup, or was found different;
//! * its lookups by one thread found another number of keys than the key sequence has them find,
//!   or, where that is not known, than the others';
//! * it did fewer operations than the others, its cell failed, or it was measured on another
//!   machine.

mod content;
mod lookups;
mod memory;
mod rules;
mod violation;

use crate::sweep::grid::Finished;
use lookups::Played;
use std::collections::BTreeMap;
use violation::Member;

pub use violation::Violation;

/// Every broken rule, in the order of the rows.
pub fn violations(finished: &[Finished]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut played = Played::default();
    for group in groups(finished) {
        rules::check(&group, &mut found);
        lookups::check(&group, &mut played, &mut found);
        memory::check(&group, &mut found);
        content::check_rows(&group, &mut found);
    }
    found
}

/// The rows that belong together. Rows that were skipped say nothing.
fn groups(finished: &[Finished]) -> Vec<Vec<Member<'_>>> {
    let mut places = BTreeMap::new();
    let mut groups: Vec<Vec<Member<'_>>> = Vec::new();
    for finished in finished {
        let cell = &finished.cell;
        for record in finished.records.iter().filter(|record| record.skipped.is_none()) {
            let key = (&cell.experiment, &cell.variables, cell.repetition, &record.row);
            let place = *places.entry(key).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[place].push(Member { finished, record });
        }
    }
    groups
}
