//! Ports with an offered load: frames arrive at a rate by the clock, in receive rings of limited length.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use fanin_switch::{Driver, Received};

/// Frames that a port's receive ring holds, as network cards have it by default; further ones are lost.
pub(crate) const RING_FRAMES: u64 = 1024;
/// The bytes of a frame that hold its arrival time in ns: the last ones of the smallest frame. Nothing reads what they replace.
const STAMP: std::ops::Range<usize> = 52..60;
/// Latencies are counted in eight steps between powers of two.
const STEPS: u64 = 8;

/// Writes the time at which a frame is due, for its latency.
pub(crate) fn put_stamp(frame: &mut [u8], due_ns: u64) {
    frame[STAMP].copy_from_slice(&due_ns.to_ne_bytes());
}

/// The time at which a frame was due.
fn stamp(frame: &[u8]) -> u64 {
    u64::from_ne_bytes(frame[STAMP].try_into().expect("eight bytes"))
}

/// The number of a latency's step.
fn step(latency_ns: u64) -> usize {
    let scaled = latency_ns.max(1) * STEPS;
    let power = scaled.ilog2() - STEPS.ilog2();
    (u64::from(power) * STEPS + (scaled >> power) - STEPS) as usize
}

/// The first latency after a step, ns.
fn step_end(step: usize) -> f64 {
    let (power, eighths) = (step as u64 / STEPS, step as u64 % STEPS + 1);
    2f64.powi(power as i32) * (1.0 + eighths as f64 / STEPS as f64)
}

/// The load at each input port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Frames a second and port.
    pub(crate) rate: f64,
    /// The most frames of a port.
    pub(crate) frames: u64,
}

/// The state of one input port.
#[derive(Clone, Copy, Debug, Default)]
struct Input {
    /// Frames that were due so far: received, waiting in the ring or lost.
    due: u64,
    received: u64,
    lost: u64,
}

/// The frames of one trial.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    /// Frames that arrived at the ports.
    pub(crate) offered: u64,
    /// Frames that the receive rings had no room for.
    pub(crate) lost: u64,
    /// Frames that left the switch.
    pub(crate) sent: u64,
    /// Time from the start of the trial until the last frame, without pauses, ns.
    pub(crate) elapsed_ns: u64,
    /// Time in which other programs had the core, ns.
    pub(crate) paused_ns: u64,
    /// Frames sent, by the step of their latency.
    latencies: Vec<u64>,
}

fn no_latencies() -> Vec<u64> {
    vec![0; step(u64::MAX / STEPS) + 1]
}

impl Count {
    pub(crate) fn new() -> Self {
        Self { offered: 0, lost: 0, sent: 0, elapsed_ns: 0, paused_ns: 0, latencies: no_latencies() }
    }

    /// Counts a frame that leaves the switch.
    pub(crate) fn note_sent(&mut self, frame: &[u8], now_ns: u64) {
        self.latencies[step(now_ns.saturating_sub(stamp(frame)))] += 1;
        self.sent += 1;
    }

    /// The share of frames that were lost.
    pub(crate) fn loss(&self) -> f64 {
        self.lost as f64 / self.offered as f64
    }

    /// The latency in us that this share of the frames does not exceed, rounded up to the end of its step.
    pub(crate) fn latency_us(&self, share: f64) -> f64 {
        let wanted = (share * self.sent as f64).ceil() as u64;
        let mut sum = 0;
        let found = self.latencies.iter().position(|count| {
            sum += count;
            sum >= wanted
        });
        found.map_or(f64::NAN, step_end) / 1e3
    }
}

/// The wall clock without the pauses in which other programs had the core. The switch reads it several times a microsecond;
/// a burst takes it some microseconds.
#[derive(Debug)]
pub(crate) struct Clock {
    began: Instant,
    last_ns: u64,
    pub(crate) paused_ns: u64,
}

/// The shortest gap between two readings that counts as a pause.
const PAUSE_NS: u64 = 50_000;

impl Clock {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), last_ns: 0, paused_ns: 0 }
    }

    pub(crate) fn now_ns(&mut self) -> u64 {
        let now = self.began.elapsed().as_nanos() as u64 - self.paused_ns;
        let gap = now - self.last_ns;
        if gap < PAUSE_NS {
            self.last_ns = now;
        } else {
            self.paused_ns += gap;
        }
        self.last_ns
    }
}

/// Ports that always have frames, and hold each one back until it is due.
#[derive(Debug)]
pub(crate) struct OfferedPorts<D> {
    ports: D,
    /// The headers that a port's frames get in turn; none if they have theirs.
    headers: Vec<Vec<Vec<u8>>>,
    inputs: Vec<Input>,
    load: Load,
    clock: Clock,
    sent: u64,
    latencies: Vec<u64>,
}

impl<D: Driver> OfferedPorts<D> {
    pub(crate) fn new(ports: D, headers: Vec<Vec<Vec<u8>>>) -> Self {
        let inputs = vec![Input::default(); ports.ports_len()];
        let load = Load { rate: 0.0, frames: 0 };
        Self { ports, headers, inputs, load, clock: Clock::start(), sent: 0, latencies: Vec::new() }
    }

    /// Begins a trial. All frames of the one before have left.
    pub(crate) fn begin(&mut self, load: Load) {
        self.load = load;
        self.inputs.fill(Input::default());
        self.sent = 0;
        self.latencies = no_latencies();
        self.clock = Clock::start();
    }

    /// True if all frames of the trial have arrived, and were sent or lost.
    pub(crate) fn is_done(&self) -> bool {
        let all = self.inputs.iter().all(|input| input.due == self.load.frames);
        all && self.sent == self.inputs.iter().map(|input| input.due - input.lost).sum::<u64>()
    }

    /// The frames of the trial so far.
    pub(crate) fn count(&self) -> Count {
        let sum = |part: fn(&Input) -> u64| self.inputs.iter().map(part).sum();
        Count {
            offered: sum(|input| input.due),
            lost: sum(|input| input.lost),
            sent: self.sent,
            elapsed_ns: self.clock.last_ns,
            paused_ns: self.clock.paused_ns,
            latencies: self.latencies.clone(),
        }
    }
}

impl<D: Driver> Driver for OfferedPorts<D> {
    type Handle = D::Handle;

    fn ports_len(&self) -> usize {
        self.ports.ports_len()
    }

    fn receive(&mut self, port: usize, frames_max: usize, into: &mut Vec<Received<D::Handle>>) {
        let now_s = self.clock.now_ns() as f64 * 1e-9;
        let (input, load) = (&mut self.inputs[port], self.load);
        input.due = ((now_s * load.rate) as u64).min(load.frames).max(input.due);
        let waiting = input.due - input.received - input.lost;
        // A network card loses the frames that find the ring full, this ring the oldest: as many.
        input.lost += waiting.saturating_sub(RING_FRAMES);
        let begin = into.len();
        self.ports.receive(port, frames_max.min(waiting.min(RING_FRAMES) as usize), into);
        for frame in &into[begin..] {
            let number = input.received + input.lost;
            let bytes = self.ports.head_mut(frame.handle);
            if let Some(headers) = self.headers.get(port) {
                let header = &headers[(number % headers.len() as u64) as usize];
                bytes[..header.len()].copy_from_slice(header);
            }
            put_stamp(bytes, (number as f64 / load.rate * 1e9) as u64);
            input.received += 1;
        }
    }

    fn transmit(&mut self, port: usize, frames: &[Received<D::Handle>]) -> usize {
        let now = self.clock.now_ns();
        for frame in frames {
            let latency = now.saturating_sub(stamp(self.ports.head(frame.handle)));
            self.latencies[step(latency)] += 1;
        }
        self.sent += frames.len() as u64;
        self.ports.transmit(port, frames)
    }

    fn flush(&mut self, port: usize) {
        self.ports.flush(port);
    }

    fn head(&self, handle: D::Handle) -> &[u8] {
        self.ports.head(handle)
    }

    fn head_mut(&mut self, handle: D::Handle) -> &mut [u8] {
        self.ports.head_mut(handle)
    }

    fn grow_front(&mut self, handle: &mut D::Handle, bytes: u16) -> bool {
        self.ports.grow_front(handle, bytes)
    }

    fn cut_front(&mut self, handle: &mut D::Handle, bytes: u16) {
        self.ports.cut_front(handle, bytes);
    }

    fn make(&mut self, frame: &[u8]) -> Option<D::Handle> {
        self.ports.make(frame)
    }

    fn copy_out(&self, frame: Received<D::Handle>, into: &mut Vec<u8>) {
        self.ports.copy_out(frame, into);
    }

    fn free(&mut self, frame: Received<D::Handle>) {
        self.ports.free(frame);
    }

    fn room(&self) -> usize {
        self.ports.room()
    }

    fn capacity(&self) -> usize {
        self.ports.capacity()
    }

    fn poll_stray(&mut self, worker: usize) -> Option<D::Handle> {
        self.ports.poll_stray(worker)
    }

    fn handle_stray(&mut self, handle: D::Handle) {
        self.ports.handle_stray(handle);
    }

    fn is_up(&mut self, port: usize) -> bool {
        self.ports.is_up(port)
    }

    fn wait(&mut self, timeout: Duration, wake: RawFd) {
        self.ports.wait(timeout, wake);
    }
}
