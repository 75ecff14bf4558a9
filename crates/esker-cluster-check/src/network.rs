//! The network between nodes: one TUN device for each, and this process as the switch between them.
//!
//! The nodes speak TCP over the kernel as usual; every packet comes through here, and is passed on,
//! delayed, reordered or dropped as the links say. So the faults need nothing of the kernel but
//! TUN.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tun_rs::{DeviceBuilder, SyncDevice};

/// The port of the clients; nodes have the port of their number.
pub const CLIENTS: usize = 0;
/// The last byte of the address of the clients.
const CLIENTS_BYTE: u8 = 254;
const LONGEST_PACKET: usize = 2048;

/// How links are at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Each packet takes a time of its own up to this, so that packets overtake each other.
    pub most_delay_ms: u64,
    /// So many of a hundred packets are lost.
    pub lost_percent: u32,
}

/// A packet that is on its way: when it arrives, in which order it came, where to.
type Delayed = Reverse<(Instant, u64, usize, Vec<u8>)>;

struct State {
    random: StdRng,
    weather: Weather,
    /// From, to.
    cut: BTreeSet<(usize, usize)>,
    delayed: BinaryHeap<Delayed>,
    sent: u64,
    is_over: bool,
    counts: PacketCounts,
}

/// What became of packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketCounts {
    /// All packets.
    pub all: u64,
    /// Those that a cut link or the weather lost.
    pub lost: u64,
    /// Those that were delayed.
    pub delayed: u64,
}

struct Shared {
    ports: Vec<SyncDevice>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The switch. When it is dropped no packet passes any more.
pub struct Switch {
    shared: Arc<Shared>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The port that a packet is for.
    fn target(&self, packet: &[u8]) -> Option<usize> {
        // The destination of an IPv4 packet is in its bytes 16 to 19.
        let is_ipv4 = packet.first().is_some_and(|byte| byte >> 4 == 4);
        let port = match *packet.get(19).filter(|_| is_ipv4)? {
            CLIENTS_BYTE => CLIENTS,
            byte => usize::from(byte),
        };
        (port < self.ports.len()).then_some(port)
    }

    /// Passes a packet on, or not.
    fn pass(&self, from: usize, packet: &[u8]) {
        let Some(to) = self.target(packet) else { return };
        let mut state = self.state();
        state.counts.all += 1;
        let weather = state.weather;
        let is_lost = weather.lost_percent > 0 && state.random.random_range(0..100) < weather.lost_percent;
        if is_lost || state.cut.contains(&(from, to)) {
            state.counts.lost += 1;
            return;
        }
        if weather.most_delay_ms == 0 {
            drop(state);
            // A node that is gone takes no packets.
            let _ = self.ports[to].send(packet);
            return;
        }
        state.counts.delayed += 1;
        state.sent += 1;
        let delay = Duration::from_micros(state.random.random_range(0..weather.most_delay_ms * 1_000));
        let number = state.sent;
        state.delayed.push(Reverse((Instant::now() + delay, number, to, packet.to_vec())));
        drop(state);
        self.changed.notify_one();
    }

    /// Brings delayed packets when they are due.
    fn bring(&self) {
        let mut state = self.state();
        while !state.is_over {
            let now = Instant::now();
            let due = state.delayed.peek().map(|Reverse((due, ..))| *due);
            state = match due {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) if due > now => {
                    let waited = self.changed.wait_timeout(state, due - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let packet = state.delayed.pop();
                    drop(state);
                    if let Some(Reverse((_, _, to, packet))) = packet {
                        let _ = self.ports[to].send(&packet);
                    }
                    self.state()
                }
            };
        }
    }
}

impl Switch {
    /// A switch with devices of these names, the first for the clients. Each is to be moved to
    /// where it is used, and given its address.
    ///
    /// # Errors
    /// The devices cannot be made, as without the right to.
    pub fn start(names: &[String], seed: u64) -> io::Result<Switch> {
        let device = |name: &String| DeviceBuilder::new().name(name.as_str()).mtu(1400).build_sync();
        let ports = names.iter().map(device).collect::<io::Result<Vec<_>>>()?;
        let random = StdRng::seed_from_u64(seed);
        let state = State {
            random,
            weather: Weather::default(),
            cut: BTreeSet::new(),
            delayed: BinaryHeap::new(),
            sent: 0,
            is_over: false,
            counts: PacketCounts::default(),
        };
        let shared = Arc::new(Shared { ports, state: Mutex::new(state), changed: Condvar::new() });
        for from in 0..names.len() {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut packet = [0; LONGEST_PACKET];
                // Ends when the device is gone.
                while let Ok(length) = shared.ports[from].recv(&mut packet) {
                    if shared.state().is_over {
                        return;
                    }
                    shared.pass(from, &packet[..length]);
                }
            });
        }
        let bringer = Arc::clone(&shared);
        thread::spawn(move || bringer.bring());
        Ok(Switch { shared })
    }

    /// Cuts these links, each in one direction, and no others.
    pub fn cut(&self, links: impl IntoIterator<Item = (usize, usize)>) {
        self.shared.state().cut = links.into_iter().collect();
    }

    /// Sets how all links are.
    pub fn set_weather(&self, weather: Weather) {
        self.shared.state().weather = weather;
    }

    /// What became of the packets so far.
    pub fn counts(&self) -> PacketCounts {
        self.shared.state().counts
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
    }
}
