//! The sender's process: drives the state machine of `fanin_dataflow` to serve one aggregator.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant as StdInstant};

use fanin_dataflow::{
    BarrierMessage, BarrierSender, BarrierSenderConfig, Peer, Purpose, SeedOwner, stream_seed,
};
use fanin_message::{CallerRates, SharedKey};
use fanin_scenario::role_configs;

use super::config::BarrierSystem;
use super::counts::TcpCounts;
use super::error::BarrierError;
use super::request::{REQUEST_BYTES, decode};
use super::result::{SenderResult, sender_file};
use crate::clock::ProcessClock;
use crate::trace::{self, Trace};
use crate::wire::CALLER_CONNECTIONS_PER_SECOND_MAX;

/// Name of the aggregator in the state machine.
const AGGREGATOR: Peer = Peer::Collector(0);

/// Maximum time for a peer to prove that it has the key.
const GREETING_MAX: Duration = Duration::from_secs(2);
/// Number of peers that are greeted at the same time.
const STRANGERS_MAX: usize = 64;

/// Sets the timer slack of this thread to 1 ns instead of 50 µs (`PR_SET_TIMERSLACK`).
fn sleep_exactly() {
    // With the default slack, answers leave up to 50 µs later than the drawn delay.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Serves one aggregator until it closes the connection, and writes a [`SenderResult`] into the folder's `sender-N.json`.
///
/// # Errors
/// [`BarrierError`].
pub fn send(system: &BarrierSystem, index: u16) -> Result<(), BarrierError> {
    let count = system.senders.len();
    let address =
        *system.senders.get(usize::from(index)).ok_or(BarrierError::NoSuchSender { index, count })?;
    let network = |action| move |source| BarrierError::network(action, &address, source);
    let listener = TcpListener::bind(address).map_err(network("cannot listen at"))?;
    sleep_exactly();
    let (stream, from) = match &system.key {
        Some(key) => accept_with_key(&listener, key, CALLER_CONNECTIONS_PER_SECOND_MAX),
        None => listener.accept(),
    }
    .map_err(network("cannot accept a connection at"))?;
    stream.set_nodelay(true).map_err(network("cannot set up the connection to"))?;
    drop(listener);
    let result = if system.scenario.record.windows.contains(&index.into()) {
        serve_traced(system, index, &stream, from)
    } else {
        serve(system, index, &stream, from)
    }?;
    let path = system.folder.join(sender_file(index.into()));
    let text = serde_json::to_vec(&result).expect("numbers are JSON");
    fs::write(&path, text).map_err(|source| BarrierError::file(&path, source))
}

/// Accepts connections until a peer proves that it has the key. Peers are greeted at the same time, so that a silent one
/// delays no other. Connections of an address beyond `per_second` are closed.
fn accept_with_key(
    listener: &TcpListener,
    key: &SharedKey,
    per_second: u32,
) -> io::Result<(TcpStream, SocketAddr)> {
    let (sender, greeted) = mpsc::channel();
    let (accepting, key) = (listener.try_clone()?, key.clone());
    let strangers = Arc::new(AtomicUsize::new(0));
    let mut rates = CallerRates::new(per_second);
    // These threads end by themselves: at the latest at their peer's deadline.
    std::thread::spawn(move || {
        loop {
            // The backlog holds further connections.
            while strangers.load(Ordering::Acquire) >= STRANGERS_MAX {
                std::thread::sleep(Duration::from_millis(1));
            }
            let (stream, from) = match accepting.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    let _ = sender.send(Err(error));
                    return;
                }
            };
            if !rates.admit(from.ip(), StdInstant::now()) {
                continue;
            }
            strangers.fetch_add(1, Ordering::AcqRel);
            let (sender, key, strangers) = (sender.clone(), key.clone(), Arc::clone(&strangers));
            std::thread::spawn(move || {
                match greet(&stream, &key) {
                    Ok(()) => drop(sender.send(Ok((stream, from)))),
                    // This peer is not the aggregator.
                    Err(error) => eprintln!("rejected a connection from {from}: {error}"),
                }
                strangers.fetch_sub(1, Ordering::AcqRel);
            });
        }
    });
    let accepted = greeted.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
    // This ends the first thread's `accept`.
    rustix::net::shutdown(listener, rustix::net::Shutdown::Both)?;
    accepted
}

/// Checks that a peer has the key, within [`GREETING_MAX`] in all.
fn greet(stream: &TcpStream, key: &SharedKey) -> io::Result<()> {
    key.accept_stream(&mut UntilDeadline { stream, until: StdInstant::now() + GREETING_MAX })?;
    stream.set_read_timeout(None)
}

/// A connection whose reads fail after a deadline, however few bytes each of them returns.
struct UntilDeadline<'a> {
    stream: &'a TcpStream,
    until: StdInstant,
}

impl Read for UntilDeadline<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(StdInstant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

impl Write for UntilDeadline<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Serves the aggregator as [`serve`] does, while a second thread traces the connection's congestion window.
fn serve_traced(
    system: &BarrierSystem,
    index: u16,
    stream: &TcpStream,
    from: SocketAddr,
) -> Result<SenderResult, BarrierError> {
    let mut trace = Trace::open(&system.folder, &format!("sender-{index}"))
        .map_err(|source| BarrierError::file(&system.folder, source))?;
    let every = trace::interval(&system.scenario.record);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let tracer = scope.spawn(|| {
            sleep_exactly();
            while !ended.load(Ordering::Relaxed) {
                if let Ok(info) = fanin_message::TcpInfo::of(stream) {
                    trace.handle_sample(index.into(), &info);
                }
                std::thread::park_timeout(every);
            }
            trace.flush();
        });
        let result = serve(system, index, stream, from);
        ended.store(true, Ordering::Relaxed);
        tracer.thread().unpark();
        result
    })
}

fn serve(
    system: &BarrierSystem,
    index: u16,
    mut stream: &TcpStream,
    from: SocketAddr,
) -> Result<SenderResult, BarrierError> {
    let (scenario, clock) = (&system.scenario, ProcessClock::start());
    let config = BarrierSenderConfig {
        seed: stream_seed(scenario.run.seed, SeedOwner::Readout, index.into(), Purpose::Role),
        ..role_configs::barrier_sender(scenario, index.into())
    };
    let answer = config.answer;
    let mut sender = BarrierSender::new(config);
    sender.handle_connected(clock.now(), AGGREGATOR);
    let network = |action| move |source| BarrierError::network(action, &from, source);
    let protocol = |why| BarrierError::Protocol { address: from.to_string(), why };
    let count =
        || TcpCounts::of(stream).map_err(network("cannot read the kernel's counts of the connection to"));
    let block = vec![0x5a_u8; answer.get() as usize];
    let mut timeouts = RoundTimeouts { last: count()?.timeouts, round: None, counted: Vec::new() };
    let mut base = None;
    let mut bytes = [0; REQUEST_BYTES];
    // The aggregator closes the connection after the last round.
    while stream.read_exact(&mut bytes).is_ok() {
        let now = clock.now();
        let message = decode(&bytes).ok_or_else(|| protocol("it sent something else than a request"))?;
        sender.handle_message(now, AGGREGATOR, message).map_err(|error| protocol(error.why))?;
        let counts = count()?;
        timeouts.handle_count(counts.timeouts);
        if let BarrierMessage::Request { round, is_measured } = message {
            timeouts.round = Some(round);
            if is_measured && base.is_none() {
                base = Some(counts);
            }
        }
        while let Some(due) = sender.poll_deadline() {
            if let Some(due) = clock.system(due) {
                std::thread::sleep(due.saturating_duration_since(StdInstant::now()));
            }
            sender.handle_deadline(clock.now());
        }
        while let Some((_, message)) = sender.poll_transmit() {
            let size = message.wire_bytes().get() as usize;
            stream.write_all(&block[..size]).map_err(network("cannot send the answer to"))?;
        }
    }
    let counts = count()?;
    timeouts.handle_count(counts.timeouts);
    Ok(SenderResult { info: counts.since(base.unwrap_or(counts)), timeouts: timeouts.counted })
}

/// The kernel's count of retransmission timeouts, divided by round.
struct RoundTimeouts {
    last: u64,
    /// The round of the last request.
    round: Option<u64>,
    counted: Vec<(u64, u64)>,
}

impl RoundTimeouts {
    /// Adds the timeouts since the last call to the round in progress. `count` is the kernel's present count.
    fn handle_count(&mut self, count: u64) {
        let more = count.saturating_sub(self.last);
        self.last = count;
        if let (Some(round), 1..) = (self.round, more) {
            self.counted.push((round, more));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_strangers_keep_no_aggregator_out() {
        let key = SharedKey::random().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let strangers: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
        let own = key.clone();
        let accepted = std::thread::spawn(move || accept_with_key(&listener, &own, 1000));
        let mut aggregator = TcpStream::connect(address).unwrap();
        // One after the other, the strangers would take 40 s.
        aggregator.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        key.greet_stream(&mut aggregator).unwrap();
        let (_, from) = accepted.join().unwrap().unwrap();
        assert_eq!(from, aggregator.local_addr().unwrap());
        drop(strangers);
    }

    #[test]
    fn an_address_connects_at_a_limited_rate() {
        let key = SharedKey::random().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let own = key.clone();
        let accepted = std::thread::spawn(move || accept_with_key(&listener, &own, 1));
        let is_closed = || {
            let mut stranger = TcpStream::connect(address).unwrap();
            stranger.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            matches!(stranger.read(&mut [0; 1]), Ok(0))
        };
        // An admitted stranger receives nothing before it greets.
        assert!((0..20).any(|_| is_closed()), "no connection was closed at once");
        let mut aggregator = TcpStream::connect(address).unwrap();
        while key.greet_stream(&mut aggregator).is_err() {
            std::thread::sleep(Duration::from_millis(50));
            aggregator = TcpStream::connect(address).unwrap();
        }
        accepted.join().unwrap().unwrap();
    }

    #[test]
    fn a_stranger_gains_no_time_with_single_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stranger = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let dribbling = std::thread::spawn(move || {
            while stranger.write_all(&[0]).is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let error = greet(&stream, &SharedKey::random().unwrap()).unwrap_err();
        // A whole greeting with a wrong proof would be `PermissionDenied`.
        assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error}");
        drop(stream);
        dribbling.join().unwrap();
    }

    #[test]
    fn timeouts_belong_to_the_round_in_progress() {
        let mut timeouts = RoundTimeouts { last: 3, round: None, counted: Vec::new() };
        timeouts.handle_count(4);
        timeouts.round = Some(0);
        timeouts.handle_count(4);
        timeouts.round = Some(1);
        timeouts.handle_count(6);
        assert_eq!(timeouts.counted, [(1, 2)]);
    }
}
