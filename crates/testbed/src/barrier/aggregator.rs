//! The aggregator: asks all senders at once, waits for the last answer, asks again.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fanin_dataflow::WindowShares;
use fanin_message::clamp_window;
use fanin_scenario::{CongestionControl, Scenario};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};

use super::{BarrierError, System, request};

/// Senders may start a little later.
const CONNECT_MAX: Duration = Duration::from_secs(20);
const CONNECT_EVERY: Duration = Duration::from_millis(20);
/// How often it looks whether it is to stop.
const TURN: Duration = Duration::from_millis(100);
/// What one call reads.
const BUFFER_BYTES: usize = 256 << 10;
const EVENTS: usize = 256;

/// What an aggregator has to tell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rounds {
    /// When the first round began, microseconds since 1970 began.
    pub start_unix_us: u64,
    /// Beginning and end of each round that was completed, picoseconds since the first began.
    pub rounds: Vec<(u64, u64)>,
}

/// The file that appears when the first round begins.
pub(super) const STARTED: &str = "aggregator.started";
/// The file with [`Rounds`].
pub(super) const RESULT: &str = "aggregator.json";

/// Runs the workload for the scenario's warm-up and duration, and writes what it has to tell into `aggregator.json` of
/// the folder. Ends after the current round where `stop` is set.
///
/// # Errors
/// [`BarrierError`]; what was measured until then is written.
pub fn aggregate(system: &System, stop: &AtomicBool) -> Result<(), BarrierError> {
    let mut connections = Connections::open(system, stop)?;
    let run = &system.scenario.run;
    let nanos = |time: fanin_units::Duration| Duration::from_nanos(time.as_nanos());
    let (warmup, end) = (nanos(run.warmup), nanos(run.warmup + run.duration));
    let stall = nanos(run.stall_limit);
    let mut told = Rounds { start_unix_us: unix_us(), rounds: Vec::new() };
    let write = |name: &str, text: &[u8]| {
        let path = system.folder.join(name);
        fs::write(&path, text).map_err(|source| BarrierError::File { path, source })
    };
    write(STARTED, told.start_unix_us.to_string().as_bytes())?;
    let start = Instant::now();
    let mut now = Duration::ZERO;
    let mut outcome = Ok(true);
    while now < end && !stop.load(Ordering::Relaxed) {
        let began = now;
        outcome = connections.round(told.rounds.len() as u64, began >= warmup, stall, stop);
        if !matches!(outcome, Ok(true)) {
            break;
        }
        now = start.elapsed();
        told.rounds.push((ps(began), ps(now)));
    }
    write(RESULT, &serde_json::to_vec(&told).expect("numbers are JSON"))?;
    outcome.map(|_| ())
}

fn ps(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).map_or(u64::MAX, |nanos| nanos.saturating_mul(1000))
}

fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

struct Connections {
    streams: Vec<TcpStream>,
    addresses: Vec<SocketAddr>,
    wanted: Vec<u64>,
    /// Bytes of this round's answers that have not come.
    missing: Vec<u64>,
    poll: std::os::fd::OwnedFd,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    shares: Option<Shares>,
}

/// DIATCP: the window, shared out among the senders that owe an answer (ICC'15 §IV.D).
#[derive(Debug)]
struct Shares {
    windows: WindowShares,
    segment_bytes: u32,
    /// What each connection may advertise now, bytes.
    clamps: Vec<u32>,
    start: Instant,
}

impl Shares {
    /// The least window that has a scale, bytes; without one the kernel takes no window back.
    const SCALED_MIN: u32 = 1 << 16;

    fn new(scenario: &Scenario, senders: usize) -> Option<Self> {
        let transport = &scenario.transport;
        (transport.congestion_control == CongestionControl::Diatcp).then(|| {
            let diatcp = &transport.diatcp;
            let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let segment_bytes = small(transport.segment_payload().get());
            let deadline = scenario.workload.deadline;
            Self {
                windows: WindowShares::new(
                    small(diatcp.global_window.get()),
                    deadline,
                    diatcp.deadline_aware,
                ),
                segment_bytes,
                // A connection begins with a window of the kernel's.
                clamps: vec![u32::MAX; senders],
                start: Instant::now(),
            }
        })
    }

    fn now(&self) -> fanin_units::Instant {
        fanin_units::Instant::new(ps(self.start.elapsed()))
    }

    /// Shares out anew where something changed. The kernel knows no window of zero: who gets none keeps a segment.
    fn share_out(&mut self, streams: &[TcpStream]) -> io::Result<()> {
        let now = self.now();
        let (clamps, segment_bytes) = (&mut self.clamps, self.segment_bytes);
        let mut outcome = Ok(());
        self.windows.share_out(now, |sender, segments, _| {
            let bytes = segments.max(1).saturating_mul(segment_bytes);
            clamps[sender as usize] = bytes;
            if let Err(error) = clamp_window(&streams[sender as usize], bytes) {
                outcome = Err(io::Error::other(error));
            }
        });
        outcome
    }
}

impl Connections {
    fn open(system: &System, stop: &AtomicBool) -> Result<Self, BarrierError> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| BarrierError::Network {
            what: "cannot wait for",
            address: "the senders".to_owned(),
            source: error.into(),
        })?;
        let mut streams = Vec::new();
        let shares = Shares::new(&system.scenario, system.senders.len());
        let until = Instant::now() + CONNECT_MAX;
        for (place, &address) in system.senders.iter().enumerate() {
            let fail = |source| BarrierError::Network {
                what: "cannot connect to the sender at",
                address: address.to_string(),
                source,
            };
            let window = shares.as_ref().map(|shares| {
                let most = system.scenario.transport.diatcp.global_window.get();
                let most = u32::try_from(most).unwrap_or(u32::MAX).saturating_mul(shares.segment_bytes);
                most.max(Shares::SCALED_MIN)
            });
            let stream = connect(address, window, until, stop).map_err(fail)?;
            if let Some(shares) = &shares {
                clamp_window(&stream, shares.segment_bytes).map_err(io::Error::other).map_err(fail)?;
            }
            stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).map_err(fail)?;
            let data = epoll::EventData::new_u64(place as u64);
            epoll::add(&poll, &stream, data, epoll::EventFlags::IN).map_err(|error| fail(error.into()))?;
            streams.push(stream);
        }
        let wanted: Vec<u64> = (0..streams.len() as u64).map(|sender| system.answer_bytes(sender)).collect();
        Ok(Self {
            addresses: system.senders.clone(),
            missing: vec![0; streams.len()],
            wanted,
            streams,
            poll,
            events: Vec::with_capacity(EVENTS),
            buffer: vec![0; BUFFER_BYTES],
            shares,
        })
    }

    /// One round; `false` where it was stopped.
    fn round(
        &mut self,
        round: u64,
        measured: bool,
        stall: Duration,
        stop: &AtomicBool,
    ) -> Result<bool, BarrierError> {
        let bytes = request(round, measured);
        self.missing.clone_from(&self.wanted);
        let before = self.shares.as_ref().map(|shares| shares.clamps.clone()).unwrap_or_default();
        if let Some(shares) = &mut self.shares {
            let now = shares.now();
            for sender in 0..self.streams.len() as u32 {
                shares.windows.open(now, sender);
            }
            shares.share_out(&self.streams).map_err(not_shared)?;
        }
        for (place, (stream, address)) in self.streams.iter_mut().zip(&self.addresses).enumerate() {
            // TCP heeds a smaller window only with a new offset (RFC 9293 §3.10.7.4, SND.WL1), which the second of two
            // segments has.
            let is_less = |shares: &Shares| shares.clamps[place] < before[place];
            let first = usize::from(self.shares.as_ref().is_some_and(is_less));
            // The last request was answered, so that there is room for this one.
            let asked = stream.write_all(&bytes[..first]).and_then(|()| stream.write_all(&bytes[first..]));
            asked.map_err(|source| BarrierError::Network {
                what: "cannot ask",
                address: address.to_string(),
                source,
            })?;
        }
        let mut unanswered = self.streams.len();
        let mut moved = Instant::now();
        while unanswered > 0 {
            let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: TURN.as_nanos() as i64 };
            self.events.clear();
            match epoll::wait(&self.poll, spare_capacity(&mut self.events), Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    return Err(BarrierError::Network {
                        what: "cannot wait for",
                        address: "the senders".to_owned(),
                        source: error.into(),
                    });
                }
            }
            if self.events.is_empty() {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                if moved.elapsed() > stall {
                    let senders = self.streams.len();
                    let (answered, seconds) = (senders - unanswered, stall.as_secs());
                    return Err(BarrierError::Stalled { answered, senders, round, seconds });
                }
                continue;
            }
            moved = Instant::now();
            for number in 0..self.events.len() {
                let place = { self.events[number].data }.u64() as usize;
                unanswered -= usize::from(self.read(place, round)?);
            }
        }
        Ok(true)
    }

    /// Reads what has come from one sender; `true` where that completes its answer.
    fn read(&mut self, place: usize, round: u64) -> Result<bool, BarrierError> {
        let before = self.missing[place];
        let address = || self.addresses[place].to_string();
        match self.streams[place].read(&mut self.buffer) {
            Ok(0) => Err(BarrierError::Gone { address: address(), round }),
            Ok(read) if read as u64 > before => Err(BarrierError::Nonsense { address: address() }),
            Ok(read) => {
                self.missing[place] -= read as u64;
                let is_whole = self.missing[place] == 0;
                if let Some(shares) = &mut self.shares {
                    if is_whole {
                        shares.windows.close(shares.now(), place as u32);
                        shares.share_out(&self.streams).map_err(not_shared)?;
                    }
                    // The kernel has raised it when the data came.
                    clamp_window(&self.streams[place], shares.clamps[place])
                        .map_err(|error| not_shared(io::Error::other(error)))?;
                }
                Ok(is_whole)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(source) => {
                Err(BarrierError::Network { what: "cannot read from", address: address(), source })
            }
        }
    }
}

fn not_shared(source: io::Error) -> BarrierError {
    BarrierError::Network {
        what: "cannot share the window out among",
        address: "the senders".to_owned(),
        source,
    }
}

/// Connects, with a largest window that is set before, where there is one.
fn connect(
    address: SocketAddr,
    window: Option<u32>,
    until: Instant,
    stop: &AtomicBool,
) -> io::Result<TcpStream> {
    let attempt = || match window {
        None => TcpStream::connect_timeout(&address, CONNECT_MAX),
        Some(bytes) => {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            clamp_window(&socket, bytes).map_err(io::Error::other)?;
            // A buffer of a chosen size keeps the kernel from raising the window while it is read from.
            let buffer = 2 * bytes as usize;
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, buffer)?;
            rustix::net::connect(&socket, &address)?;
            Ok(TcpStream::from(socket))
        }
    };
    loop {
        match attempt() {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= until || stop.load(Ordering::Relaxed) => return Err(error),
            Err(_) => std::thread::sleep(CONNECT_EVERY),
        }
    }
}
