//! Lets time go on while nothing is written: the leader puts an entry with its time into the log
//! for as long as something is there that can expire.

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
        let expires = node.latest_expiry_ms.load(Ordering::Relaxed);
        if !is_due && node.time_ms.load(Ordering::Relaxed) > expires {
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
