//! The source's process: sends the transfers of all background connections of its host.

use std::fs;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant as StdInstant};

use fanin_dataflow::{BackgroundSource, Transfer, background_seed};
use fanin_scenario::role_configs;

use super::config::{BackgroundSystem, SourceConnection, source_hosts};
use super::error::BackgroundError;
use super::result::{SourceFlow, SourceResult, source_file, unix_us};
use super::wire::{encode_greeting, encode_transfer};
use crate::barrier::TcpCounts;
use crate::clock::ProcessClock;
use crate::techniques::technique;

/// Maximum time for a sink to listen.
const CONNECT_MAX: Duration = Duration::from_secs(10);
const TURN: Duration = Duration::from_millis(10);
/// Time between two samples of the kernel's counters.
const SAMPLE: Duration = Duration::from_millis(100);
/// Most samples of a process; later counters are in the last one.
const SAMPLES_MAX: usize = 1 << 20;
const BLOCK_BYTES: usize = 64 << 10;

/// Sends the background traffic of a readout's host until `stop` is set. Writes a [`SourceResult`] into the folder's
/// `source-N.json`.
///
/// # Errors
/// [`BackgroundError`].
pub fn send(system: &BackgroundSystem, readout: u16, stop: &AtomicBool) -> Result<(), BackgroundError> {
    let connections = system.connections_of(readout);
    if connections.is_empty() {
        let hosts = format!("{:?}", source_hosts(&system.pairs));
        return Err(BackgroundError::NoSuchHost { host: "readout", index: readout, hosts });
    }
    let mut streams = Vec::new();
    for &one in &connections {
        let Some(stream) = connect(system, one, stop)? else { return Ok(()) };
        streams.push(stream);
    }
    let (clock, skipped) = (ProcessClock::start(), AtomicU64::new(0));
    let mut result = SourceResult::default();
    std::thread::scope(|scope| {
        for (&one, stream) in connections.iter().zip(&streams) {
            let (clock, skipped) = (&clock, &skipped);
            scope.spawn(move || drive(system, readout, one, stream, clock, stop, skipped));
        }
        let mut next = StdInstant::now();
        while !stop.load(Ordering::Relaxed) {
            if next <= StdInstant::now() && result.counts.len() < SAMPLES_MAX {
                next += SAMPLE;
                result.counts.push(sample(&streams));
            }
            std::thread::sleep(TURN);
        }
        result.counts.push(sample(&streams));
        let flow = |(one, stream): (&SourceConnection, &TcpStream)| {
            let info = TcpCounts::of(stream).unwrap_or_default();
            SourceFlow { connection: one.connection, collector: one.pair.collector, info }
        };
        result.flows = connections.iter().zip(&streams).map(flow).collect();
        // Blocked writers end with an error.
        streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    });
    result.skipped = skipped.into_inner();
    let path = system.folder.join(source_file(readout));
    let text = serde_json::to_vec(&result).expect("numbers are JSON");
    fs::write(&path, text).map_err(|source| BackgroundError::file(&path, source))
}

/// Sums the counters of all connections: the time, segments, retransmissions, timeouts.
fn sample(streams: &[TcpStream]) -> [u64; 4] {
    let counts = streams.iter().filter_map(|stream| TcpCounts::of(stream).ok());
    counts.fold([unix_us(), 0, 0, 0], |[at, segments, retransmits, timeouts], one| {
        [at, segments + one.segments, retransmits + one.retransmits, timeouts + one.timeouts]
    })
}

/// Connects to a sink, which may not listen yet. Returns `None` if `stop` was set before.
fn connect(
    system: &BackgroundSystem,
    one: SourceConnection,
    stop: &AtomicBool,
) -> Result<Option<TcpStream>, BackgroundError> {
    let address = system.sinks[one.pair.collector as usize];
    let until = StdInstant::now() + CONNECT_MAX;
    let network = |action| move |source| BackgroundError::network(action, &address, source);
    let mut stream = loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
            Ok(stream) => break stream,
            Err(_) if StdInstant::now() < until => std::thread::sleep(TURN),
            Err(error) => return Err(network("cannot connect to")(error)),
        }
    };
    // The route's congestion control, that of the system, is set by `connect`.
    if let Some(technique) = technique(system.scenario.background.congestion_control) {
        rustix::net::sockopt::set_tcp_congestion(&stream, technique.kernel_name).map_err(|error| {
            network("cannot set the congestion control of the connection to")(error.into())
        })?;
    }
    let greeting = encode_greeting(one.connection);
    stream
        .set_nodelay(system.scenario.transport.nodelay)
        .and_then(|()| stream.write_all(&greeting))
        .map_err(network("cannot set up the connection to"))?;
    Ok(Some(stream))
}

/// Sends the transfers of a connection until `stop` is set or the connection is shut down.
fn drive(
    system: &BackgroundSystem,
    readout: u16,
    one: SourceConnection,
    stream: &TcpStream,
    clock: &ProcessClock,
    stop: &AtomicBool,
    skipped: &AtomicU64,
) {
    // With the default slack of 50 us, transfers would begin late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let scenario = &system.scenario;
    let traffic = role_configs::background(scenario).expect("a source has traffic");
    let seed = background_seed(scenario.run.seed, readout.into(), one.pair.collector, one.pair.number);
    let mut source = BackgroundSource::new(traffic, seed);
    source.handle_connected(clock.now());
    while !stop.load(Ordering::Relaxed) {
        source.handle_deadline(clock.now());
        if let Some(transfer) = source.poll_transmit() {
            if write(stream, clock, transfer).is_err() {
                break;
            }
            continue;
        }
        let due = source.poll_deadline().and_then(|due| clock.system(due));
        let wait = due.map_or(TURN, |due| due.saturating_duration_since(StdInstant::now()));
        std::thread::sleep(wait.min(TURN));
    }
    skipped.fetch_add(source.skipped(), Ordering::Relaxed);
}

/// Writes a whole transfer.
fn write(mut stream: &TcpStream, clock: &ProcessClock, transfer: Transfer) -> std::io::Result<()> {
    let began_unix_ns = clock.epoch_us() * 1_000 + transfer.began.get() / 1_000;
    let mut block = vec![0x5a_u8; BLOCK_BYTES.min(transfer.bytes.get() as usize)];
    let header = encode_transfer(began_unix_ns, transfer.bytes.get());
    block[..header.len()].copy_from_slice(&header);
    let mut left = transfer.bytes.get();
    while left > 0 {
        let bytes = left.min(block.len() as u64);
        stream.write_all(&block[..bytes as usize])?;
        left -= bytes;
    }
    Ok(())
}
