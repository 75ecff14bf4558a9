//! A node of a cluster: commands as entries of openraft's log, and the network between the nodes.
//!
//! A payload is a list of commands with a seed. Every replica executes it at the time that the
//! leader has put into the entry, on the state that the entries before have made, so that all
//! replicas have the same state and the same replies. `esker-raft` stores the log and the state.
//!
//! Modules, each importing only from those above it: `address`, `dues`, `payload`, `notices`,
//! `planted`, `slots`, `messages`; `config`, `commands`, `identity`, `transport`; `import`, `tls`,
//! `peers`; `network`; `node`; `proposals`; `barrier`, `changes`, `ticks`; `status`; `requests`;
//! `start`.

mod address;
mod barrier;
mod changes;
mod commands;
mod config;
mod dues;
mod identity;
mod import;
mod messages;
mod network;
mod node;
mod notices;
mod payload;
mod peers;
mod planted;
mod proposals;
mod requests;
mod slots;
mod start;
mod status;
mod ticks;
mod tls;
mod transport;

pub use address::Address;
pub use config::{ClusterConfig, ClusterTlsFiles, Followers};
pub use messages::MemberChange;
pub use node::{LogSession, Node};
pub use notices::Place;
pub use payload::{Answer, Call, CommandList, Guard, Payload, Waits};
#[cfg(test)]
pub use planted::Fault;
pub use proposals::ProposeError;
pub use slots::{SLOTS, slot_of};
pub use start::{Running, StartError, start};
pub use status::{Member, Role, Status};
