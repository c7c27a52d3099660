//! The aggregator's process: drives the state machine of `fanin_dataflow` over one connection to each sender.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as StdInstant};

use fanin_dataflow::{
    Aggregator, AggregatorConfig, BarrierMessage, BarrierRecord, Peer, Purpose, SeedOwner, stream_seed,
};
use fanin_message::clamp_window;
use fanin_scenario::role_configs;
use fanin_units::{Bytes, Instant};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::config::BarrierSystem;
use super::error::BarrierError;
use super::request::encode;
use super::result::{AGGREGATOR_FILE, AggregatorResult, STARTED_FILE};
use crate::clock::{ProcessClock, std_duration};
use crate::techniques::diatcp::barrier::AdvertisedWindows;

/// Maximum time until all senders are connected, and for the greeting of one sender.
const CONNECT_MAX: Duration = Duration::from_secs(20);
/// Pause between two attempts to connect.
const CONNECT_EVERY: Duration = Duration::from_millis(20);
/// Maximum wait for answers before the clock and `stop` are checked again.
const TURN: Duration = Duration::from_millis(100);
/// Maximum number of bytes that one call reads.
const BUFFER_BYTES: usize = 256 << 10;
/// Maximum number of readable connections that one wait reports.
const EVENTS: usize = 256;

/// Runs the workload for the scenario's warm-up and duration, and writes an [`AggregatorResult`] into the folder's
/// `aggregator.json`. If `stop` is set, ends after the current round, or within it when no answers arrive.
///
/// # Errors
/// [`BarrierError`]. The rounds that were completed before an error are written.
pub fn aggregate(system: &BarrierSystem, stop: &AtomicBool) -> Result<(), BarrierError> {
    let mut connections = Connections::open(system, stop)?;
    let clock = ProcessClock::start();
    let write = |name: &str, text: &[u8]| {
        let path = system.folder.join(name);
        fs::write(&path, text).map_err(|source| BarrierError::file(&path, source))
    };
    write(STARTED_FILE, clock.epoch_us().to_string().as_bytes())?;
    let mut result = AggregatorResult { start_unix_us: clock.epoch_us(), rounds: Vec::new() };
    let outcome = connections.run(system, clock, stop, &mut result.rounds);
    write(AGGREGATOR_FILE, &serde_json::to_vec(&result).expect("numbers are JSON"))?;
    outcome
}

/// The aggregator and its connections to all senders, in the order of `senders` in the file.
struct Connections {
    aggregator: Aggregator,
    streams: Vec<TcpStream>,
    addresses: Vec<SocketAddr>,
    poll: OwnedFd,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    windows: Option<AdvertisedWindows>,
}

impl Connections {
    fn open(system: &BarrierSystem, stop: &AtomicBool) -> Result<Self, BarrierError> {
        let scenario = &system.scenario;
        let aggregator = Aggregator::new(AggregatorConfig {
            stall_limit: Some(scenario.run.stall_limit),
            seed: stream_seed(scenario.run.seed, SeedOwner::Collector, 0, Purpose::Role),
            ..role_configs::aggregator(scenario)
        })?;
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(cannot_wait)?;
        let windows = AdvertisedWindows::new(scenario);
        let mut streams = Vec::new();
        let until = StdInstant::now() + CONNECT_MAX;
        for (place, &address) in system.senders.iter().enumerate() {
            let fail = |source| BarrierError::network("cannot connect to the sender at", &address, source);
            let largest = windows.as_ref().map(AdvertisedWindows::largest);
            let stream = connect(address, largest, until, stop).map_err(fail)?;
            if let Some(windows) = &windows {
                windows.handle_connected(&stream).map_err(fail)?;
            }
            stream.set_nodelay(true).map_err(fail)?;
            if let Some(key) = &system.key {
                // A sender checks up to 64 connections at the same time, so that a full one delays this greeting.
                let greeted = stream
                    .set_read_timeout(Some(CONNECT_MAX))
                    .and_then(|()| key.greet_stream(&mut &stream))
                    .and_then(|()| stream.set_read_timeout(None));
                greeted.map_err(|source| {
                    BarrierError::network("cannot authenticate with the sender at", &address, source)
                })?;
            }
            stream.set_nonblocking(true).map_err(fail)?;
            let data = epoll::EventData::new_u64(place as u64);
            epoll::add(&poll, &stream, data, epoll::EventFlags::IN).map_err(|error| fail(error.into()))?;
            streams.push(stream);
        }
        Ok(Self {
            aggregator,
            streams,
            addresses: system.senders.clone(),
            poll,
            events: Vec::with_capacity(EVENTS),
            buffer: vec![0; BUFFER_BYTES],
            windows,
        })
    }

    /// Drives the aggregator from the first round to the last. Appends the start and end of each completed round to
    /// `rounds`, in picoseconds since the start of `clock`.
    fn run(
        &mut self,
        system: &BarrierSystem,
        clock: ProcessClock,
        stop: &AtomicBool,
        rounds: &mut Vec<(u64, u64)>,
    ) -> Result<(), BarrierError> {
        let run = &system.scenario.run;
        let end = Instant::START + run.warmup + run.duration;
        for sender in 0..self.streams.len() {
            self.aggregator.handle_connected(Instant::START, Peer::Readout(sender as u16));
        }
        self.send_requests(Instant::START)?;
        while !self.aggregator.is_done() {
            self.wait(clock.now())?;
            let now = clock.now();
            let is_stopped = stop.load(Ordering::Relaxed);
            if is_stopped && self.events.is_empty() {
                break;
            }
            if is_stopped || now >= end {
                self.aggregator.handle_stop(now);
            }
            for number in 0..self.events.len() {
                let sender = { self.events[number].data }.u64() as u16;
                self.read(now, sender)?;
            }
            self.aggregator.handle_deadline(now);
            self.drain_records(rounds, std_duration(run.stall_limit))?;
            self.send_requests(now)?;
        }
        Ok(())
    }

    /// Waits until a connection is readable or the aggregator's deadline is reached, at most for [`TURN`].
    fn wait(&mut self, now: Instant) -> Result<(), BarrierError> {
        let deadline = self.aggregator.poll_deadline().map(|at| std_duration(at.saturating_since(now)));
        let timeout = deadline.map_or(TURN, |left| left.min(TURN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.as_nanos() as i64 };
        self.events.clear();
        match epoll::wait(&self.poll, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(cannot_wait(error)),
        }
    }

    /// Reads once from a sender, at most [`BUFFER_BYTES`].
    fn read(&mut self, now: Instant, sender: u16) -> Result<(), BarrierError> {
        let (place, peer) = (usize::from(sender), Peer::Readout(sender));
        let address = self.addresses[place];
        match self.streams[place].read(&mut self.buffer) {
            Ok(0) => {
                self.aggregator.handle_closed(now, peer);
                Ok(())
            }
            Ok(read) => {
                let bytes = Bytes::new(read as u64);
                let is_last = bytes == self.aggregator.owed(sender);
                self.aggregator.handle_message(now, peer, BarrierMessage::Answer { bytes }).map_err(
                    |error| BarrierError::Protocol { address: address.to_string(), why: error.why },
                )?;
                match &mut self.windows {
                    Some(windows) => {
                        windows.handle_bytes(now, sender, is_last, &self.streams).map_err(cannot_share)
                    }
                    None => Ok(()),
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(source) => Err(BarrierError::network("cannot read from", &address, source)),
        }
    }

    fn drain_records(&mut self, rounds: &mut Vec<(u64, u64)>, stall: Duration) -> Result<(), BarrierError> {
        while let Some(record) = self.aggregator.poll_record() {
            match record {
                BarrierRecord::Round { start, end, .. } => rounds.push((start.get(), end.get())),
                BarrierRecord::Lost { sender, round } => {
                    let address = self.addresses[usize::from(sender)].to_string();
                    return Err(BarrierError::Gone { address, round });
                }
                BarrierRecord::Stalled { round, answered } => {
                    let (senders, seconds) = (self.streams.len(), stall.as_secs());
                    return Err(BarrierError::Stalled { answered, senders, round, seconds });
                }
            }
        }
        Ok(())
    }

    fn send_requests(&mut self, now: Instant) -> Result<(), BarrierError> {
        let requests: Vec<_> = std::iter::from_fn(|| self.aggregator.poll_transmit())
            .filter_map(|message| match message {
                (Peer::Readout(sender), BarrierMessage::Request { round, is_measured }) => {
                    Some((sender, encode(round, is_measured)))
                }
                _ => None,
            })
            .collect();
        if let Some(windows) = &mut self.windows
            && !requests.is_empty()
        {
            let senders = requests.iter().map(|&(sender, _)| sender);
            windows.handle_requests(now, senders, &self.streams).map_err(cannot_share)?;
        }
        for (sender, bytes) in requests {
            // A sender updates its window only from a segment with a newer sequence number (RFC 9293 §3.10.7.4, SND.WL1).
            // The second of two segments has one.
            let is_smaller = self.windows.as_ref().is_some_and(|windows| windows.is_smaller(sender));
            let (first, second) = bytes.split_at(usize::from(is_smaller));
            let stream = &mut self.streams[usize::from(sender)];
            // The previous request was answered, so the send buffer has room for this one.
            stream.write_all(first).and_then(|()| stream.write_all(second)).map_err(|source| {
                let address = self.addresses[usize::from(sender)];
                BarrierError::network("cannot send a request to", &address, source)
            })?;
        }
        Ok(())
    }
}

fn cannot_wait(error: rustix::io::Errno) -> BarrierError {
    BarrierError::network("cannot wait for", &"the senders", error.into())
}

fn cannot_share(source: io::Error) -> BarrierError {
    BarrierError::network("cannot divide the window among", &"the senders", source)
}

/// Connects to a sender; tries again until `until`, or until `stop` is set. `window` is the largest window that the
/// connection will ever advertise, in bytes; `None` leaves the window to the kernel.
fn connect(
    address: SocketAddr,
    window: Option<u32>,
    until: StdInstant,
    stop: &AtomicBool,
) -> io::Result<TcpStream> {
    let attempt = || match window {
        None => TcpStream::connect_timeout(&address, CONNECT_MAX),
        Some(bytes) => {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            clamp_window(&socket, bytes).map_err(io::Error::other)?;
            // A buffer of a fixed size keeps the kernel from raising the window while the socket is read.
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 2 * bytes as usize)?;
            rustix::net::connect(&socket, &address)?;
            Ok(TcpStream::from(socket))
        }
    };
    loop {
        match attempt() {
            Ok(stream) => return Ok(stream),
            Err(error) if StdInstant::now() >= until || stop.load(Ordering::Relaxed) => return Err(error),
            Err(_) => std::thread::sleep(CONNECT_EVERY),
        }
    }
}
