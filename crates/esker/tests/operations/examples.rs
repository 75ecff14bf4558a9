//! The examples hold what they say: each checks itself as it runs, here on a new directory and once
//! more on what it left.

use crate::merge_support::Scratch;

#[path = "../../examples/append_log.rs"]
mod append_log;
#[path = "../../examples/cache_in_step.rs"]
mod cache_in_step;
#[path = "../../examples/counters.rs"]
mod counters;
#[path = "../../examples/custom_operator.rs"]
mod custom_operator;
#[path = "../../examples/job_queue.rs"]
mod job_queue;
#[path = "../../examples/max_gauge.rs"]
mod max_gauge;
#[path = "../../examples/page_views.rs"]
mod page_views;
#[path = "../../examples/session_store.rs"]
mod session_store;

type Run = fn(&std::path::Path) -> Result<(), Box<dyn std::error::Error>>;

fn twice(name: &str, run: Run) {
    let scratch = Scratch::new(&format!("example-{name}"));
    run(scratch.path()).unwrap();
    run(scratch.path()).unwrap();
}

#[test]
fn append_log() {
    twice("append-log", append_log::run);
}

#[test]
fn cache_in_step() {
    twice("cache-in-step", cache_in_step::run);
}

#[test]
fn counters() {
    twice("counters", counters::run);
}

#[test]
fn custom_operator() {
    twice("custom-operator", custom_operator::run);
}

#[test]
fn job_queue() {
    twice("job-queue", job_queue::run);
}

#[test]
fn max_gauge() {
    twice("max-gauge", max_gauge::run);
}

#[test]
fn page_views() {
    twice("page-views", page_views::run);
}

#[test]
fn session_store() {
    twice("session-store", session_store::run);
}
