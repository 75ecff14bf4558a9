#![no_main]
#![allow(dead_code)]

#[path = "../../crates/esker-cli/src/duration.rs"]
mod duration;
#[path = "../../crates/esker-cli/src/failure.rs"]
mod failure;
#[path = "../../crates/esker-cli/src/record.rs"]
mod record;
#[path = "../../crates/esker-cli/src/round_trips.rs"]
mod round_trips;
#[path = "../../crates/esker-cli/src/settings.rs"]
mod settings;
#[path = "../../crates/esker-cli/src/text.rs"]
mod text;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| round_trips::check(bytes));
