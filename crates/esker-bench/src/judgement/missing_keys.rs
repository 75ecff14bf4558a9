//! MEM-9: whether reads after a random load are slow because keys are missing.
//!
//! The gap is the latency of a random read after the random load less that after the sequential
//! load, with the same buffer and files of 2 MiB. If missing keys make it, it goes when every key
//! exists: what remains is as good as the sequential latency. To close a part of it is not enough,
//! but the part is told. The rival explanation is that the tables of a random load overlap and that
//! compaction is behind: then it goes when the reader waits or compacts first. Each is a variant of
//! the experiment `why`, with buffers of 2 and 32 MiB.

use super::case::{Case, Ratio, SHOWN_BY_ONE, all, held, micros};
use super::verdict::{Judgement, Verdict};
use crate::stats::median;
use crate::text::number::three_digits as number;
use crate::text::words::listed;

const BUFFERS: [&str; 2] = ["2", "32"];
const EXPERIMENT: &str = "why";
const ROW: &str = "readrandom";
const AFTER_FILLSEQ: &str = "readrandom after fillseq";
const PLAIN: &str = "plain";
const UNIQUE: &str = "unique keys";
/// What else may close the gap, in the order of the sentence.
const OTHERS: [&str; 5] = ["compact", "wait idle", "bloom 10", "all keys", "other seed"];

/// What was measured with one write buffer.
struct Gap {
    buffer: &'static str,
    /// Microseconds per read after the sequential load.
    floor: Vec<f64>,
    plain: Vec<f64>,
    unique: Vec<f64>,
}

impl Gap {
    /// The error is why there is none.
    fn find(case: &Case<'_>, buffer: &'static str) -> Result<Gap, String> {
        let cell = [("write_buffer_mib", buffer), ("max_file_mib", "2")];
        let floor = case.records("grid", AFTER_FILLSEQ, &cell);
        let of_variant = |name| case.records(EXPERIMENT, ROW, &[("write_buffer_mib", buffer), ("variant", name)]);
        let (plain, unique) = (of_variant(PLAIN), of_variant(UNIQUE));
        if floor.is_empty() {
            let why = case.reason("grid", AFTER_FILLSEQ);
            return Err(format!("reads after a sequential load are the other side of the gap, and {why}"));
        }
        if plain.is_empty() || unique.is_empty() {
            return Err(case.reason(EXPERIMENT, ROW));
        }
        if [&plain, &unique].iter().any(|side| side[0].num != floor[0].num) {
            return Err("the two sides of the gap were measured at different sizes".into());
        }
        Ok(Gap { buffer, floor: micros(&floor), plain: micros(&plain), unique: micros(&unique) })
    }

    fn width(&self) -> f64 {
        middle(&self.plain) - middle(&self.floor)
    }

    /// How much of the gap goes with another variant, 1 for all of it.
    fn share(&self, other: &[f64]) -> Option<f64> {
        let share = (middle(&self.plain) - median(other)?) / self.width();
        share.is_finite().then_some(share)
    }

    fn said(&self, case: &Case<'_>) -> String {
        let mut text = format!(
            "with {} MiB of buffer a read takes {} us after the sequential load and {} us after the random one",
            self.buffer,
            number(middle(&self.floor)),
            number(middle(&self.plain)),
        );
        let part = |name: &str, micros: &[f64]| {
            self.share(micros).map(|share| format!("{name} closes {:.0} % of the gap", share * 100.0))
        };
        let others = OTHERS.iter().filter_map(|name| part(name, &variant(case, self.buffer, name, ROW)));
        let parts: Vec<String> = part(UNIQUE, &self.unique).into_iter().chain(others).collect();
        text.push_str(&format!(": {}", listed(&parts)));
        let apart = |row| variant(case, self.buffer, PLAIN, row);
        if let Some(ratio) = Ratio::of(&apart("readrandom misses"), &apart("readrandom hits")) {
            text.push_str(&format!(", and a miss takes {} times as long as a hit", ratio.text()));
        }
        text
    }

    /// What takes longer after the random load; one repetition cannot tell a small gap from noise.
    fn is_open(&self) -> bool {
        Ratio::of(&self.plain, &self.floor).is_some_and(|ratio| ratio.above(1.0) == Verdict::Held)
    }

    /// What remains when every key exists, over the latency after the sequential load.
    fn remaining(&self) -> Option<Ratio> {
        Ratio::of(&self.unique, &self.floor)
    }
}

fn variant(case: &Case<'_>, buffer: &str, variant: &str, row: &str) -> Vec<f64> {
    case.micros(EXPERIMENT, row, &[("write_buffer_mib", buffer), ("variant", variant)])
}

fn middle(values: &[f64]) -> f64 {
    median(values).unwrap_or(f64::NAN)
}

pub fn judge(case: &Case<'_>) -> Result<Judgement, String> {
    let found =
        BUFFERS.map(|buffer| Gap::find(case, buffer).map_err(|why| format!("with {buffer} MiB of buffer {why}")));
    let gaps: Vec<&Gap> = found.iter().flatten().collect();
    let missing: Vec<String> = found.iter().filter_map(|gap| gap.as_ref().err().cloned()).collect();
    if gaps.is_empty() {
        return Err(missing.join("; "));
    }
    let mut said: Vec<String> = gaps.iter().map(|gap| gap.said(case)).collect();
    if !missing.is_empty() {
        said.extend(missing);
        return Err(format!("both write buffers are asked for: {}", said.join("; ")));
    }
    let limit = case.threshold("remaining ratio");
    let open: Vec<(&Gap, Ratio)> =
        gaps.iter().filter(|gap| gap.is_open()).filter_map(|gap| Some((*gap, gap.remaining()?))).collect();
    if gaps.iter().any(|gap| gap.plain.len() < 2 || gap.floor.len() < 2) {
        let least = number(SHOWN_BY_ONE);
        said.push(format!("with one repetition there is no interval, and a gap counts from a ratio of {least}"));
    }
    if open.is_empty() {
        let none = Verdict::NoDifferenceShown;
        let why = format!("there is no gap to explain: {}", said.join("; "));
        return Ok(case.judged(String::new(), none, none, why));
    }
    for (gap, ratio) in &open {
        let (buffer, ratio) = (gap.buffer, ratio.text());
        said.push(format!("with {buffer} MiB and every key there, a read takes {ratio} times the floor"));
    }
    said.push(format!("at most {} counts as no gap", number(limit)));
    let closed = |ratio: &Ratio| ratio.value <= limit;
    let gone = |ratio: &Ratio| match ratio.interval {
        _ if closed(ratio) => Verdict::Held,
        // One repetition does not show that nothing remains either.
        None if ratio.shows_nothing() => Verdict::NoDifferenceShown,
        _ => held(ratio.shows_nothing()),
    };
    let direction = all(open.iter().map(|(_, ratio)| gone(ratio)));
    let magnitude = held(open.iter().all(|(_, ratio)| closed(ratio)));
    let value: Vec<String> = open.iter().map(|(_, ratio)| ratio.short()).collect();
    Ok(case.judged(value.join(", "), direction, magnitude, said.join("; ")))
}
