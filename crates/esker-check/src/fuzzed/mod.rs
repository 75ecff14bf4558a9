//! The whole engine under a coverage-guided fuzzer: its bytes are the choices that a seed makes
//! elsewhere.

pub mod corpus;
mod options;

pub use options::options;

use crate::campaign::run_operations;
use crate::cast::Features;
use crate::generator::Generator;
use crate::option_sets::OPTION_SETS;
use crate::random::Random;
use crate::simulated::Place;
use esker::internals::decoders::DECODERS;

/// Something that is fuzzed, by its name: it takes any bytes, and panics if something is wrong.
pub type Target = (&'static str, fn(&[u8]));

/// Everything that is fuzzed.
pub fn targets() -> Vec<Target> {
    let decoders = DECODERS.iter().map(|decoder| (decoder.name, decoder.run));
    decoders.chain([("engine", engine as fn(&[u8])), ("options", options)]).collect()
}

/// Operators that panic would end the fuzzer, which takes every panic for a finding.
const FEATURES: Features = Features { custom: false, clock_back: true, ..Features::ALL };

/// How many bytes choose an operation, about.
const BYTES_PER_OPERATION: usize = 8;

/// Runs the operations that these bytes choose, in a simulated environment, and compares every
/// answer with the model.
///
/// # Panics
/// If an answer is wrong.
pub fn engine(bytes: &[u8]) {
    let mut random = Random::of_bytes(bytes);
    let sets: Vec<_> = OPTION_SETS.iter().filter(|set| !set.on_disk).collect();
    let set = *sets[random.below(sets.len())];
    let mut generator = Generator::choosing(random, FEATURES);
    let operations = generator.operations(1 + bytes.len() / BYTES_PER_OPERATION);
    if let Err((reached, what)) = run_operations(set, Place::memory(), generator.cast(), &operations) {
        panic!("option set {}: {what}\nafter {:#?}", set.name, &operations[..=reached.min(operations.len() - 1)]);
    }
}
