//! The aggregator: asks all senders at once, waits for the last answer, asks again.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
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
}

impl Connections {
    fn open(system: &System, stop: &AtomicBool) -> Result<Self, BarrierError> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| BarrierError::Network {
            what: "cannot wait for",
            address: "the senders".to_owned(),
            source: error.into(),
        })?;
        let mut streams = Vec::new();
        let until = Instant::now() + CONNECT_MAX;
        for (place, &address) in system.senders.iter().enumerate() {
            let fail = |source| BarrierError::Network {
                what: "cannot connect to the sender at",
                address: address.to_string(),
                source,
            };
            let stream = connect(address, until, stop).map_err(fail)?;
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
        for (stream, address) in self.streams.iter_mut().zip(&self.addresses) {
            // The last request was answered, so that there is room for this one.
            stream.write_all(&bytes).map_err(|source| BarrierError::Network {
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
                Ok(self.missing[place] == 0)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(source) => {
                Err(BarrierError::Network { what: "cannot read from", address: address(), source })
            }
        }
    }
}

fn connect(address: SocketAddr, until: Instant, stop: &AtomicBool) -> io::Result<TcpStream> {
    loop {
        match TcpStream::connect_timeout(&address, CONNECT_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= until || stop.load(Ordering::Relaxed) => return Err(error),
            Err(_) => std::thread::sleep(CONNECT_EVERY),
        }
    }
}
