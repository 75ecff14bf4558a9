//! The faults of a run of a cluster, as lines of JSON: a campaign that found something with
//! processes writes them down, and both campaigns, that with processes and that in one process,
//! can have the same faults again.
//!
//! The first line has the number of nodes, each further one a fault:
//!
//! ```text
//! {"nodes":3,"seed":17}
//! {"fault":"kill","nodes":[2],"begun_ms":1200,"over_ms":3100,"leader":2}
//! {"fault":"partition","links":[[1,3],[3,1]],"begun_ms":4000,"over_ms":6500,"leader":1}
//! ```
//!
//! Times are milliseconds since the first node led. Nodes have the numbers from 1 on, also those
//! that come later. `leader` is the node that led when the fault began: who repeats the schedule
//! puts the node that leads then in its place ([`Fault::with_leader`]).

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is done to a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case")]
pub enum Kind {
    /// Processes are killed at once, and started when it is over.
    Kill {
        /// Which.
        nodes: Vec<u64>,
    },
    /// Nodes lose their power, and what was not synced; they are started when it is over. Processes
    /// are only killed.
    PowerLoss {
        /// Which.
        nodes: Vec<u64>,
    },
    /// Nodes do nothing until it is over. In one process nothing goes to them or comes from them.
    StandStill {
        /// Which.
        nodes: Vec<u64>,
    },
    /// Nothing goes over these links.
    Partition {
        /// From and to, in one direction each.
        links: Vec<(u64, u64)>,
    },
    /// All links are slow, and lose messages.
    SlowNetwork {
        /// The longest delay.
        most_delay_ms: u64,
        /// How many of a hundred are lost.
        lost_percent: u8,
    },
    /// A clock is set, and stays so.
    ClockJump {
        /// Whose.
        node: u64,
        /// How far ahead of the others.
        ahead_ms: u64,
    },
    /// A disk takes no more bytes until it is over.
    FullDisk {
        /// Whose.
        node: u64,
        /// Whether the node is killed before there is room again, and started then.
        is_killed: bool,
    },
    /// Nodes are restarted one after the other.
    RollingRestart {
        /// Which, in this order.
        nodes: Vec<u64>,
    },
    /// A node goes, and one with the next number and an empty disk comes.
    Replace {
        /// The one that goes.
        node: u64,
    },
    /// A node loses its disk, and what is tried first is what an older backup of a node has.
    ReplaceFromBackup {
        /// The one that goes.
        node: u64,
        /// The one that the backup is of.
        backup_of: u64,
    },
    /// The leader is told that another node is to lead.
    Transfer {
        /// The other one.
        node: u64,
    },
}

/// A fault, with its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What it is.
    #[serde(flatten)]
    pub kind: Kind,
    /// When it began.
    pub begun_ms: u64,
    /// When it was over.
    pub over_ms: u64,
    /// The node that led when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<u64>,
}

/// The first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// How many nodes the cluster begins with.
    pub nodes: u64,
    /// The seed that the faults were drawn from; only for the reader.
    #[serde(default)]
    pub seed: u64,
}

/// The faults of a run, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// What it is of.
    pub head: Head,
    /// Each begins when the one before is over.
    pub faults: Vec<Fault>,
}

/// Why a text is no schedule: the line, and what is wrong with it.
#[derive(Debug)]
pub struct ParseError {
    line: usize,
    what: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the schedule: {}", self.line, self.what)
    }
}

impl std::error::Error for ParseError {}

impl Kind {
    /// The same with other numbers of nodes.
    pub fn renumbered(&self, mut number: impl FnMut(u64) -> u64) -> Kind {
        let mut all = |nodes: &[u64]| nodes.iter().map(|node| number(*node)).collect::<Vec<u64>>();
        match self {
            Kind::Kill { nodes } => Kind::Kill { nodes: all(nodes) },
            Kind::PowerLoss { nodes } => Kind::PowerLoss { nodes: all(nodes) },
            Kind::StandStill { nodes } => Kind::StandStill { nodes: all(nodes) },
            Kind::RollingRestart { nodes } => Kind::RollingRestart { nodes: all(nodes) },
            Kind::Partition { links } => {
                Kind::Partition { links: links.iter().map(|(from, to)| (number(*from), number(*to))).collect() }
            }
            Kind::SlowNetwork { .. } => self.clone(),
            Kind::ClockJump { node, ahead_ms } => Kind::ClockJump { node: number(*node), ahead_ms: *ahead_ms },
            Kind::FullDisk { node, is_killed } => Kind::FullDisk { node: number(*node), is_killed: *is_killed },
            Kind::Replace { node } => Kind::Replace { node: number(*node) },
            Kind::ReplaceFromBackup { node, backup_of } => {
                Kind::ReplaceFromBackup { node: number(*node), backup_of: number(*backup_of) }
            }
            Kind::Transfer { node } => Kind::Transfer { node: number(*node) },
        }
    }
}

impl Fault {
    /// What it is in a cluster that has these nodes now, and this leader. The leader of the
    /// schedule and the one of now change places. A number that no node has is counted through the
    /// nodes, from the first one again at their end.
    pub fn with_leader(&self, nodes: &[u64], leads: Option<u64>) -> Kind {
        let swapped = |node: u64| match (self.leader, leads) {
            (Some(then), Some(now)) if node == then => now,
            (Some(then), Some(now)) if node == now => then,
            _ => node,
        };
        self.kind.renumbered(|node| {
            let node = swapped(node);
            match usize::try_from(node.saturating_sub(1)).ok().and_then(|place| place.checked_rem(nodes.len())) {
                Some(place) if !nodes.contains(&node) => nodes[place],
                _ => node,
            }
        })
    }

    /// How long it lasts.
    pub fn lasts_ms(&self) -> u64 {
        self.over_ms.saturating_sub(self.begun_ms)
    }

    /// As a line of a schedule.
    ///
    /// # Errors
    /// None is known: the text of the serializer's error.
    pub fn line(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| error.to_string())
    }
}

impl Head {
    /// As the first line of a schedule.
    ///
    /// # Errors
    /// None is known: the text of the serializer's error.
    pub fn line(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| error.to_string())
    }
}

impl Schedule {
    /// Reads the lines of one; empty lines are nothing.
    ///
    /// # Errors
    /// [`ParseError`] for a line that does not have the form, and for a fault that begins before
    /// the one in front of it.
    pub fn parse(text: &str) -> Result<Schedule, ParseError> {
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let wrong = |line: usize, what: String| ParseError { line, what };
        let (number, first) = lines.next().ok_or_else(|| wrong(1, "the number of nodes is missing".into()))?;
        let head: Head = serde_json::from_str(first).map_err(|error| wrong(number, error.to_string()))?;
        if !(1..=9).contains(&head.nodes) {
            return Err(wrong(number, format!("{} nodes; give 1 to 9", head.nodes)));
        }
        let mut faults: Vec<Fault> = Vec::new();
        for (number, line) in lines {
            let fault: Fault = serde_json::from_str(line).map_err(|error| wrong(number, error.to_string()))?;
            if fault.over_ms < fault.begun_ms || faults.last().is_some_and(|last| fault.begun_ms < last.begun_ms) {
                return Err(wrong(number, "it begins behind its end, or before the fault in front of it".into()));
            }
            faults.push(fault);
        }
        Ok(Schedule { head, faults })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = include_str!("../every_kind.jsonl");
        let schedule = Schedule::parse(text).unwrap();
        let mut again = schedule.head.line().unwrap();
        for fault in &schedule.faults {
            again.push('\n');
            again.push_str(&fault.line().unwrap());
        }
        assert_eq!(Schedule::parse(&again).unwrap(), schedule);
        // Of each kind one: who adds a kind adds it there.
        let kinds: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split('"').nth(3)).collect();
        let of = |kind: &Kind| match kind {
            Kind::Kill { .. } => "kill",
            Kind::PowerLoss { .. } => "power-loss",
            Kind::StandStill { .. } => "stand-still",
            Kind::Partition { .. } => "partition",
            Kind::SlowNetwork { .. } => "slow-network",
            Kind::ClockJump { .. } => "clock-jump",
            Kind::FullDisk { .. } => "full-disk",
            Kind::RollingRestart { .. } => "rolling-restart",
            Kind::Replace { .. } => "replace",
            Kind::ReplaceFromBackup { .. } => "replace-from-backup",
            Kind::Transfer { .. } => "transfer",
        };
        assert_eq!(schedule.faults.iter().map(|fault| of(&fault.kind)).collect::<Vec<_>>(), kinds);
        assert_eq!(kinds.iter().collect::<std::collections::BTreeSet<_>>().len(), 11);
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        let head = "{\"nodes\":3}\n";
        for (text, why) in [
            ("".to_string(), "line 1"),
            ("{\"nodes\":0}".into(), "1 to 9"),
            ("{\"nodes\":3,\"more\":1}".into(), "unknown field"),
            (format!("{head}\n{{\"fault\":\"flood\",\"begun_ms\":1,\"over_ms\":2}}"), "line 3"),
            (format!("{head}{{\"fault\":\"kill\",\"begun_ms\":1,\"over_ms\":2}}"), "nodes"),
            (format!("{head}{{\"fault\":\"transfer\",\"node\":1,\"begun_ms\":3,\"over_ms\":2}}"), "behind its end"),
        ] {
            let error = Schedule::parse(&text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn the_leader_of_now_takes_the_place_of_the_one_then() {
        let kind = Kind::Partition { links: vec![(1, 2), (2, 4), (3, 1)] };
        let fault = Fault { kind, begun_ms: 0, over_ms: 1, leader: Some(1) };
        let seen = |nodes: &[u64], leads| match fault.with_leader(nodes, leads) {
            Kind::Partition { links } => links,
            other => panic!("{other:?}"),
        };
        assert_eq!(seen(&[1, 2, 3, 4], Some(3)), [(3, 2), (2, 4), (1, 3)]);
        assert_eq!(seen(&[1, 2, 3, 4], None), [(1, 2), (2, 4), (3, 1)]);
        assert_eq!(seen(&[1, 2, 3], None), [(1, 2), (2, 1), (3, 1)]);
        assert_eq!(seen(&[], None), [(1, 2), (2, 4), (3, 1)]);
    }
}
