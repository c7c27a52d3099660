//! One worker's part of a switch, and the round over its ports.

mod commands;
#[cfg(test)]
mod ended_tests;
mod path;
mod picture;
#[cfg(test)]
mod workers_tests;

use std::sync::Arc;

use fanin_queueing::NextDeparture;
use fanin_scenario::Errors;
use fanin_units::Instant;

use crate::capture::{Captures, Tap, TapPlace};
use crate::config::Config;
use crate::driver::{BURST, Driver, Received};
use crate::snapshot::Cause;
use crate::workers::{PeerMessage, Peers, SharedCounts};

use crate::datapath::forwarding::Forwarding;
use crate::datapath::m21::M21Stage;
use crate::datapath::outputs::{Outputs, StagedFrame};
use crate::datapath::pause::PauseControl;
use crate::datapath::ports::PortState;
use crate::datapath::rules::Rules;
use crate::datapath::timers::{DueTasks, WorkerTimers};

/// The result of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// Frames received and sent.
    pub frames: usize,
    /// The next time at which work is due if no frame arrives: `None` for never, a past time for at once.
    pub next: Option<Instant>,
}

/// One worker's part of a switch: its ports and their queues, driven by [`Self::poll`].
///
/// `path.rs` moves frames through the parts, `commands.rs` changes them, `picture.rs` reports them.
#[derive(Debug)]
pub struct Switch<D: Driver> {
    driver: D,
    config: Config,
    now: Instant,
    // Parts.
    peers: Peers<D::Handle>,
    ports: Vec<PortState>,
    forwarding: Forwarding,
    rules: Rules,
    outputs: Outputs<D::Handle>,
    pauses: PauseControl,
    m21: Option<M21Stage>,
    tap: Tap,
    timers: WorkerTimers,
    rounds: RoundCounters,
    // Frames between two steps of the path; empty between rounds.
    burst: Vec<Received<D::Handle>>,
    staged: Vec<StagedFrame<D::Handle>>,
    batch: Vec<Received<D::Handle>>,
    /// True if frames of the burst may pass empty queues.
    may_cut_through: bool,
    scratch: Vec<u8>,
}

/// Rounds of a worker.
#[derive(Debug, Clone, Copy, Default)]
struct RoundCounters {
    all: u64,
    /// Rounds in which a frame moved.
    busy: u64,
}

impl<D: Driver> Switch<D> {
    /// Makes a switch of one worker over open ports. The driver has as many ports as the configuration.
    ///
    /// # Errors
    /// If the configuration is wrong.
    ///
    /// # Panics
    /// If the numbers of ports differ.
    pub fn new(config: Config, driver: D) -> Result<Self, Errors> {
        let config = config.checked()?;
        let shared = Arc::new(SharedCounts::new(config.workers(), config.port.len()));
        let peers = Peers::alone(0, &config.owners());
        Self::for_worker(config, driver, peers, shared)
    }

    /// Makes one worker's part of a switch from a checked configuration.
    pub(crate) fn for_worker(
        config: Config,
        driver: D,
        peers: Peers<D::Handle>,
        shared: Arc<SharedCounts>,
    ) -> Result<Self, Errors> {
        assert_eq!(
            config.port.len(),
            driver.ports_len(),
            "the driver has other ports than the configuration"
        );
        let now = Instant::START;
        let has_vlans = config.has_vlans();
        let worker = peers.worker();
        let mut switch = Self {
            driver,
            now,
            ports: config.port.iter().map(|spec| PortState::new(spec, has_vlans)).collect(),
            forwarding: Forwarding::new(&config, now),
            rules: Rules::new(&config),
            outputs: Outputs::new(&config, &shared)?,
            m21: M21Stage::new(&config, &shared),
            pauses: PauseControl::new(&config, worker, peers.has_others(), shared),
            tap: Captures::new(worker + 1, 0).tap(worker),
            peers,
            timers: WorkerTimers::new(),
            rounds: RoundCounters::default(),
            burst: Vec::with_capacity(BURST),
            staged: Vec::with_capacity(BURST),
            batch: Vec::with_capacity(BURST),
            may_cut_through: false,
            scratch: Vec::new(),
            config,
        };
        switch.rebuild_rules();
        Ok(switch)
    }

    /// Lets these captures copy this worker's frames.
    pub fn attach(&mut self, captures: &Captures) {
        self.tap = captures.tap(self.peers.worker());
    }

    /// Returns the driver, for reading its state.
    pub const fn driver(&self) -> &D {
        &self.driver
    }

    /// Returns the driver, for injecting and taking frames.
    pub const fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// Returns the current configuration.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the number of this worker.
    pub(crate) const fn worker(&self) -> usize {
        self.peers.worker()
    }

    /// Returns the number of frames that are queued, wait for the driver, or are delayed by an impairment.
    pub fn frames_held(&self) -> u64 {
        self.peers.ports().iter().map(|&port| self.outputs.output(port).frames_held()).sum()
    }

    /// Returns true if no frame is held.
    pub fn is_drained(&self) -> bool {
        self.frames_held() == 0
    }

    /// Returns true if drivers have sent all accepted frames.
    pub(crate) fn is_sent(&self) -> bool {
        !self.peers.ports().iter().any(|&port| self.driver.has_unsent(port))
    }

    /// Returns true if another worker has sent a message.
    pub(crate) fn has_messages(&self) -> bool {
        self.peers.has_messages()
    }

    /// Rebuilds the classifiers, after rings or rules have changed.
    fn rebuild_rules(&mut self) {
        self.rules.rebuild(&self.config, &self.outputs.ring_places());
    }

    /// Finds the ports and rings of captures, after captures or rings have changed.
    fn find_captured(&mut self) {
        let Self { config, outputs, peers, tap, .. } = self;
        tap.find(|point| {
            TapPlace::of(point, config, peers.ports(), |port, ring| outputs.output(port).ring(ring))
        });
    }

    /// Makes one round over all ports of this worker: transmits frames that may leave, and receives new ones. `receives` is
    /// false while the switch drains.
    pub fn poll(&mut self, now: Instant, receives: bool) -> Activity {
        self.now = now;
        if let Some(due) = self.timers.poll(now) {
            self.run_tasks(now, due);
        }
        if self.tap.poll() {
            self.find_captured();
        }
        let mut frames = 0;
        let mut next = NextDeparture::Never;
        for place in 0..self.peers.ports().len() {
            let (sent, next_of_port) = self.transmit(now, self.peers.ports()[place]);
            frames += sent;
            next = next.min(next_of_port);
        }
        if receives {
            for place in 0..self.peers.ports().len() {
                frames += self.receive(now, self.peers.ports()[place]);
            }
        }
        if self.peers.has_others() {
            frames += self.receive_from_peers(now);
        }
        if self.transmit_all_cut_through(now) {
            next = NextDeparture::Now;
        }
        if self.pauses.is_sending() {
            next = next.or_at(self.send_pauses(now));
        }
        for place in 0..self.peers.ports().len() {
            self.driver.flush(self.peers.ports()[place]);
        }
        self.rounds.all += 1;
        self.rounds.busy += u64::from(frames > 0);
        let next = match next {
            NextDeparture::Now => Some(now),
            NextDeparture::At(at) => Some(at),
            // A frame of this round may leave at once.
            NextDeparture::Never if frames > 0 => Some(now),
            NextDeparture::Never => None,
        };
        Activity { frames, next }
    }

    /// Sends the due PAUSE frames. Returns the time of the next possible one.
    fn send_pauses(&mut self, now: Instant) -> Option<Instant> {
        self.pauses.publish();
        let mut next: Option<Instant> = None;
        for &port in self.peers.ports() {
            if let Some(bytes) = self.pauses.poll_frame(now, port)
                && let Some(handle) = self.driver.make(&bytes)
            {
                let frame = Received { handle, bytes: bytes.len() as u32 };
                if self.driver.transmit(port, &[frame]) == 1 {
                    self.pauses.handle_sent(now, port);
                } else {
                    self.driver.free(frame);
                }
            }
            next = [next, self.pauses.next_at(now, port)].into_iter().flatten().min();
        }
        next
    }

    #[cold]
    fn run_tasks(&mut self, now: Instant, due: DueTasks) {
        self.forwarding.age(now, &mut self.peers);
        if let Some(m21) = &mut self.m21 {
            m21.expire(now, self.peers.ports());
        }
        if cfg!(debug_assertions) && due.period {
            self.assert_conserved();
        }
        if due.sample {
            for &port in self.peers.ports() {
                self.outputs.sample(port);
            }
        }
        if due.links {
            self.check_links();
        }
        if due.period {
            self.outputs.end_period(self.peers.ports());
        }
    }

    /// Reads the state of every link from the driver. Stations behind a link that went down are forgotten.
    fn check_links(&mut self) {
        for place in 0..self.peers.ports().len() {
            let port = self.peers.ports()[place];
            if self.ports[port].set_up(self.driver.is_up(port)) {
                self.forwarding.flush(Some(port));
                self.peers.announce(PeerMessage::Down { port: port as u16 });
            }
        }
    }

    /// Asserts between two rounds that the occupancies of outputs, inputs and pools agree with the queued frames.
    ///
    /// # Panics
    /// If one differs.
    pub fn assert_conserved(&self) {
        assert!(self.staged.is_empty(), "frames are staged between two rounds");
        self.outputs.assert_conserved(&self.pauses);
    }

    /// Drops and counts the queued frames after the drain timeout. Returns their number.
    pub fn abandon(&mut self) -> u64 {
        let mut abandoned = 0;
        for place in 0..self.peers.ports().len() {
            let port = self.peers.ports()[place];
            let frames = self.outputs.drain(self.now, port, &mut self.pauses);
            for frame in frames {
                abandoned += 1;
                self.drop_frame(port, port, frame, Cause::Stopped);
            }
        }
        abandoned
    }
}
