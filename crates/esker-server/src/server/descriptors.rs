//! File descriptors: each client takes one, and so do the files of the engine.

/// Descriptors kept for the engine and the listeners, if at least as many remain for clients.
const KEPT: u64 = 1024;

/// How many clients a process with so many descriptors serves.
fn clients_within(descriptors: u64, wanted: usize) -> usize {
    let kept = KEPT.min(descriptors / 2);
    usize::try_from(descriptors - kept).unwrap_or(usize::MAX).clamp(1, wanted.max(1))
}

/// Raises the descriptor limit of the process to what `wanted` clients need, as far as the system
/// permits, and returns the number of clients that the limit suffices for. The limit keeps some
/// descriptors for the engine: without one a flush fails, and then every write.
#[cfg(unix)]
pub fn limit_clients(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // No limit at all.
    let Some(mut current) = current else { return wanted };
    let least = (wanted as u64).saturating_add(KEPT);
    if current < least {
        let raised = maximum.map_or(least, |maximum| maximum.min(least)).max(current);
        match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
            Ok(()) => current = raised,
            Err(error) => tracing::warn!(%error, "the limit of open files was not raised"),
        }
    }
    let clients = clients_within(current, wanted);
    if clients < wanted {
        tracing::warn!(
            clients,
            wanted,
            descriptors = current,
            "fewer clients are served than were to be; raise the limit of open files (ulimit -n, LimitNOFILE)"
        );
    }
    clients
}

/// There is no such limit here.
#[cfg(not(unix))]
pub fn limit_clients(wanted: usize) -> usize {
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_descriptors_to_the_engine() {
        for (descriptors, wanted, clients) in [
            (20_000, 10_000, 10_000),
            (11_024, 10_000, 10_000),
            (11_023, 10_000, 9_999),
            (1024, 10_000, 512),
            (1024, 100, 100),
            (1, 10_000, 1),
            (u64::MAX, usize::MAX, usize::MAX - KEPT as usize),
        ] {
            assert_eq!(clients_within(descriptors, wanted), clients, "{descriptors} {wanted}");
        }
    }
}
