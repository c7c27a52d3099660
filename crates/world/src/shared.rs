//! The shared state of all machines of a world: time, random numbers, the order of steps, sockets and disks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use fanin_dataflow::Random;
use fanin_node::machine::TurnTask;

use crate::disk::Disks;
use crate::net::{ConnectionRequest, WorldNetwork, WorldSegment};

/// The number of a machine; each runs one process.
pub(crate) type Host = usize;

/// Microseconds since 1970 at which every world begins.
pub(crate) const EPOCH_US: u64 = 1_800_000_000_000_000;

/// Requests that one step may make, far more than correct processes make.
const REQUESTS_MAX: u64 = 100_000;

/// A step of the world.
#[derive(Debug)]
pub(crate) enum WorldStep {
    /// A process takes a turn, unless the turn was moved to another time.
    Turn(Host),
    /// The writer of a logger takes a turn.
    Store(Host),
    /// The launcher starts a process.
    Start(Host),
    Connect(ConnectionRequest),
    Arrive(WorldSegment),
    /// A socket may have room again.
    Room(u64),
    /// The fault of this number begins.
    InjectedFault(usize),
    /// The fault of this number ends.
    Heal(usize),
    /// Checks the progress of the world.
    Look,
}

struct Entry {
    at: u64,
    sequence: u64,
    step: WorldStep,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// A machine as the world sees it.
pub(crate) struct HostState {
    /// Counts the starts and ends of its process: handles of an earlier life do not work any more.
    pub(crate) life: u32,
    /// True while its process runs.
    pub(crate) is_running: bool,
    /// True while it has power.
    pub(crate) is_up: bool,
    /// Losses of power so far.
    pub(crate) boots: u32,
    /// End of its process's pause.
    pub(crate) paused_until: u64,
    /// Factor by which its process takes longer.
    pub(crate) slowness: u64,
    /// Time of its process's next turn; `u64::MAX`: when something arrives.
    pub(crate) turn_at: u64,
    /// The writer of a logger.
    pub(crate) store: Option<Arc<Mutex<dyn TurnTask>>>,
    pub(crate) store_at: u64,
}

impl HostState {
    fn new() -> Self {
        Self {
            life: 0,
            is_running: false,
            is_up: true,
            boots: 0,
            paused_until: 0,
            slowness: 1,
            turn_at: u64::MAX,
            store: None,
            store_at: u64::MAX,
        }
    }
}

/// The shared state of a world.
pub(crate) struct Core {
    /// Nanoseconds since the world began.
    pub(crate) now: u64,
    pub(crate) random: Random,
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
    pub(crate) hosts: Vec<HostState>,
    pub(crate) net: WorldNetwork,
    pub(crate) disks: Disks,
    /// A machine that lost power within the present step.
    pub(crate) power_failed: Option<Host>,
    /// Checksum of all steps so far; equal in all runs of a seed.
    pub(crate) trace: u64,
    /// Requests to the world since its last step.
    requests: u64,
}

impl Core {
    pub(crate) fn new(seed: u64, hosts: usize) -> Self {
        Self {
            now: 0,
            random: Random::new(seed),
            heap: BinaryHeap::new(),
            sequence: 0,
            hosts: (0..hosts).map(|_| HostState::new()).collect(),
            net: WorldNetwork::new(hosts),
            disks: Disks::new(hosts),
            power_failed: None,
            trace: seed,
            requests: 0,
        }
    }

    /// Schedules a step for a time, at the earliest now.
    pub(crate) fn at(&mut self, at: u64, step: WorldStep) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at: at.max(self.now), sequence: self.sequence, step }));
    }

    /// Takes the next step, and advances the time to it; `None` if no step is left.
    pub(crate) fn next(&mut self) -> Option<WorldStep> {
        let Reverse(Entry { at, step, .. }) = self.heap.pop()?;
        (self.now, self.requests) = (at, 0);
        Some(step)
    }

    /// Schedules a turn of a process for a time, unless an earlier turn is scheduled. A paused process takes its turn
    /// after the pause.
    pub(crate) fn call(&mut self, host: Host, at: u64) {
        let state = &mut self.hosts[host];
        let at = at.max(self.now).max(state.paused_until);
        if state.is_running && at < state.turn_at {
            state.turn_at = at;
            self.at(at, WorldStep::Turn(host));
        }
    }

    /// Draws a whole number from `least` to `most`.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        between(&mut self.random, least, most)
    }

    /// Returns true with a probability of 1 / `of`.
    pub(crate) fn one_in(&mut self, of: u64) -> bool {
        self.between(1, of) == 1
    }

    /// Mixes a number into the trace.
    pub(crate) fn note(&mut self, word: u64) {
        self.trace = (self.trace ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) ^ self.now;
    }

    pub(crate) fn is_alive(&self, host: Host, life: u32) -> bool {
        let state = &self.hosts[host];
        state.is_running && state.life == life
    }

    pub(crate) fn since_1970(&self) -> Duration {
        Duration::from_micros(EPOCH_US) + Duration::from_nanos(self.now)
    }
}

/// Draws a whole number from `least` to `most`.
pub(crate) fn between(random: &mut Random, least: u64, most: u64) -> u64 {
    least + random.bits() % (most - least + 1)
}

/// The shared state, for everything that runs in the world.
#[derive(Clone)]
pub(crate) struct SharedCore(Arc<Mutex<Core>>);

impl SharedCore {
    pub(crate) fn new(core: Core) -> Self {
        Self(Arc::new(Mutex::new(core)))
    }

    /// Locks the shared state for one request of a step.
    ///
    /// # Panics
    /// If one step makes more than [`REQUESTS_MAX`] requests: its process spins.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        let mut core = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        core.requests += 1;
        // Panics only once: values that are dropped while a panic unwinds make requests, too.
        assert!(core.requests != REQUESTS_MAX, "a step made {REQUESTS_MAX} requests to its machine");
        core
    }
}

impl fmt::Debug for SharedCore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SharedCore")
    }
}

/// Converts nanoseconds since the world began to an [`Instant`]. Only differences of such instants have a meaning.
pub(crate) fn instant(ns: u64) -> Instant {
    start() + Duration::from_nanos(ns)
}

/// Returns the nanoseconds from the start of the world to `at`; zero for earlier times.
pub(crate) fn nanoseconds(at: Instant) -> u64 {
    at.saturating_duration_since(start()).as_nanos() as u64
}

fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    // A process may subtract from a time: times before the beginning have to exist.
    *START.get_or_init(|| Instant::now() + Duration::from_secs(3600))
}
