//! Advances the cluster's time while nothing is written. The leader appends an entry with its time
//! when a key expires, and at intervals before that, so that the TTL that clients read decreases.

use super::commands::SWEPT;
use super::node::Node;
use super::payload::{Answer, Payload};
use esker_raft::{Command, Reply, Request};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How often the leader looks.
const EVERY: Duration = Duration::from_millis(100);
/// The longest time between two entries while something is to expire.
const LONGEST_MS: u64 = 1000;
/// How long an entry may take before the next one is tried.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks for as long as it is polled.
pub async fn run(node: Arc<Node>) {
    let mut interval = interval(EVERY);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // What an earlier leader has left.
    let mut is_due = true;
    let mut led_by = None;
    loop {
        interval.tick().await;
        let leader = node.leader().map(|leader| leader.id);
        if leader != led_by {
            led_by = leader;
            match leader {
                Some(leader) => tracing::info!(node = node.config.node, leader, "there is a leader"),
                None => tracing::warn!(node = node.config.node, "no leader is known"),
            }
        }
        if !node.leader().is_some_and(|leader| leader.is_here) {
            is_due = true;
            continue;
        }
        let first_ms = node.dues.lock().first_ms();
        if !is_due && !wants_entry(first_ms, node.time_ms.load(Ordering::Relaxed), super::node::now_ms()) {
            continue;
        }
        is_due = true;
        while let Some(swept) = tick(&node).await {
            is_due = swept == SWEPT as u64;
            if !is_due {
                break;
            }
        }
    }
}

/// Whether the time is to advance from `time_ms`: when the first key expires, at `first_ms`, and
/// before that in steps of a tenth of the time left, at most [`LONGEST_MS`]. The TTL that a client
/// reads may be too long by one step.
fn wants_entry(first_ms: Option<u64>, time_ms: u64, now_ms: u64) -> bool {
    first_ms.is_some_and(|first_ms| {
        let step_ms = (first_ms.saturating_sub(time_ms) / 10).min(LONGEST_MS);
        now_ms >= first_ms || now_ms.saturating_sub(time_ms) > step_ms
    })
}

/// Puts one entry into the log, and returns how many collections it has removed.
async fn tick(node: &Node) -> Option<u64> {
    let request = Request::Apply(Payload::Tick.to_bytes().ok()?);
    let command = Command { time_ms: super::node::now_ms(), request };
    let written = timeout(PATIENCE, node.raft.client_write(command)).await.ok()?.ok()?;
    let Reply::Applied(answer) = written.data else { return None };
    match Answer::from_bytes(&answer) {
        Ok(Answer::Swept(swept)) => Some(swept),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_when_it_is_needed() {
        // Nothing expires.
        assert!(!wants_entry(None, 0, 1_000_000));
        // What is due, and was not removed.
        assert!(wants_entry(Some(500), 400, 500) && wants_entry(Some(500), 600, 600));
        // A tenth of what is left, and a second at most.
        assert!(!wants_entry(Some(5000), 0, 500) && wants_entry(Some(5000), 0, 501));
        assert!(!wants_entry(Some(u64::MAX), 10, 1010) && wants_entry(Some(u64::MAX), 10, 1011));
        // The clock of the leader is behind the time of the cluster.
        assert!(!wants_entry(Some(5000), 4000, 3000) && !wants_entry(Some(5000), 6000, 4000));
    }
}
