//! The sink's process: receives all background connections of its host, and discards their data.

use std::fs;
use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::config::BackgroundSystem;
use super::error::BackgroundError;
use super::result::{ReceivedSeries, SinkResult, sink_file, unix_us};
use super::wire::{HEADER_BYTES, decode_greeting, decode_transfer};

const TURN: Duration = Duration::from_millis(10);
/// Time between two samples of the received bytes.
const SAMPLE: Duration = Duration::from_millis(20);
/// Most samples of a connection; the last one has the bytes at the end.
const SAMPLES_MAX: usize = 1 << 20;
/// Most transfers that a sink notes.
const TRANSFERS_MAX: usize = 1 << 22;
const BUFFER_BYTES: usize = 64 << 10;
/// Maximum time for a connection to name itself.
const GREETING_MAX: Duration = Duration::from_secs(2);

/// A received connection.
struct ReceivedConnection {
    connection: u64,
    bytes: Arc<AtomicU64>,
    stream: TcpStream,
    reader: JoinHandle<()>,
    samples: Vec<(u64, u64)>,
}

/// Receives the background traffic of a collector's host until `stop` is set. Writes a [`SinkResult`] into the folder's
/// `sink-N.json`.
///
/// # Errors
/// [`BackgroundError`].
pub fn receive(system: &BackgroundSystem, collector: u16, stop: &AtomicBool) -> Result<(), BackgroundError> {
    let address = *system.sinks.get(usize::from(collector)).ok_or_else(|| BackgroundError::NoSuchHost {
        host: "collector",
        index: collector,
        hosts: format!("0 to {}", system.sinks.len().saturating_sub(1)),
    })?;
    let network = |action| move |source| BackgroundError::network(action, &address, source);
    let listener = TcpListener::bind(address).map_err(network("cannot listen at"))?;
    listener.set_nonblocking(true).map_err(network("cannot listen at"))?;
    let transfers = Arc::new(Mutex::new(Vec::new()));
    let (mut all, mut next) = (Vec::new(), Instant::now());
    let most = system.scenario.background.connections as usize;
    while !stop.load(Ordering::Relaxed) {
        while all.len() < most
            && let Ok((stream, from)) = listener.accept()
        {
            match accept(stream, &transfers) {
                Ok(received) => all.push(received),
                Err(error) => eprintln!("rejected a connection from {from}: {error}"),
            }
        }
        if next <= Instant::now() {
            next += SAMPLE;
            all.iter_mut().filter(|one| one.samples.len() < SAMPLES_MAX).for_each(ReceivedConnection::sample);
        }
        std::thread::sleep(TURN);
    }
    let mut received = Vec::new();
    for mut one in all {
        one.sample();
        let _ = one.stream.shutdown(Shutdown::Both);
        let _ = one.reader.join();
        received.push(ReceivedSeries { connection: one.connection, samples: one.samples });
    }
    let transfers = std::mem::take(&mut *transfers.lock().unwrap_or_else(|broken| broken.into_inner()));
    let path = system.folder.join(sink_file(collector));
    let text = serde_json::to_vec(&SinkResult { received, transfers }).expect("numbers are JSON");
    fs::write(&path, text).map_err(|source| BackgroundError::file(&path, source))
}

impl ReceivedConnection {
    fn sample(&mut self) {
        self.samples.push((unix_us(), self.bytes.load(Ordering::Relaxed)));
    }
}

/// Starts the reader of a connection that names itself.
fn accept(stream: TcpStream, transfers: &Arc<Mutex<Vec<(u64, u64)>>>) -> io::Result<ReceivedConnection> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(GREETING_MAX))?;
    let mut greeting = [0; HEADER_BYTES];
    (&stream).read_exact(&mut greeting)?;
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "it is not a background connection");
    let connection = decode_greeting(&greeting).ok_or_else(wrong)?;
    stream.set_read_timeout(None)?;
    let (reading, bytes) = (stream.try_clone()?, Arc::new(AtomicU64::new(0)));
    let (counted, transfers) = (Arc::clone(&bytes), Arc::clone(transfers));
    let reader = std::thread::spawn(move || read(&reading, &counted, &transfers));
    Ok(ReceivedConnection { connection, bytes, stream, reader, samples: Vec::new() })
}

/// Reads transfers until the connection ends. Notes when each was due and when it was complete, in nanoseconds since 1970.
fn read(mut stream: &TcpStream, counted: &AtomicU64, transfers: &Mutex<Vec<(u64, u64)>>) {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut header = [0; HEADER_BYTES];
    while stream.read_exact(&mut header).is_ok() {
        let Some((began, bytes)) = decode_transfer(&header) else {
            eprintln!("closed a connection: a transfer is shorter than its header");
            return;
        };
        counted.fetch_add(HEADER_BYTES as u64, Ordering::Relaxed);
        let mut left = bytes - HEADER_BYTES as u64;
        while left > 0 {
            let wanted = left.min(BUFFER_BYTES as u64) as usize;
            let Ok(read @ 1..) = stream.read(&mut buffer[..wanted]) else { return };
            counted.fetch_add(read as u64, Ordering::Relaxed);
            left -= read as u64;
        }
        let mut noted = transfers.lock().unwrap_or_else(|broken| broken.into_inner());
        if noted.len() < TRANSFERS_MAX {
            noted.push((began, unix_ns()));
        }
    }
}

fn unix_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| time.as_nanos() as u64)
}
