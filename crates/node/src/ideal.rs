//! Ideal collection times over the loopback: from the throughput of one connection, measured before a run.
//!
//! The loopback has no links, no frames and no queues, so the ideal times of `fanin-network` do not apply to it. This ideal
//! is a measured rate, and no prediction of a network.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use fanin_network::ideal_time;
use fanin_report::{EventRow, IdealFigures};
use fanin_scenario::Scenario;
use fanin_units::{Bytes, Rate};

/// Duration of the measured stream.
const MEASURE: Duration = Duration::from_millis(200);
const BLOCK_BYTES: usize = 256 << 10;

/// Throughput of the loopback.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoopbackRate {
    /// Throughput of one connection with both ends in this process, bytes a second.
    pub bytes_per_s: f64,
}

impl LoopbackRate {
    /// Returns the throughput in bits a second.
    pub fn rate(self) -> Rate {
        Rate::new((8.0 * self.bytes_per_s) as u64)
    }

    /// Returns the ideal time for `bytes` in picoseconds: `readout.response_delay`, then the bytes at this throughput.
    fn time_ps(self, bytes: u64, scenario: &Scenario) -> u64 {
        ideal_time(scenario.readout.response_delay, Bytes::new(bytes), self.rate()).get()
    }
}

/// Measures the throughput of the loopback for 200 ms.
///
/// # Errors
/// If a connection over the loopback fails.
pub fn measure_loopback() -> io::Result<LoopbackRate> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut sender = TcpStream::connect(listener.local_addr()?)?;
    let (mut receiver, _) = listener.accept()?;
    let block = vec![0x5a_u8; BLOCK_BYTES];
    let sending = std::thread::spawn(move || while sender.write_all(&block).is_ok() {});
    let mut buffer = vec![0; BLOCK_BYTES];
    let (began, mut bytes) = (Instant::now(), 0_u64);
    while began.elapsed() < MEASURE {
        bytes += receiver.read(&mut buffer)? as u64;
    }
    let seconds = began.elapsed().as_secs_f64();
    drop(receiver);
    // The sender's next write fails, which ends its thread.
    let _ = sending.join();
    Ok(LoopbackRate { bytes_per_s: bytes as f64 / seconds })
}

/// Sets `ideal_ps` of each event that was collected.
pub fn fill(rows: &mut [EventRow], scenario: &Scenario, speed: LoopbackRate) {
    for row in rows.iter_mut().filter(|row| row.last_byte_ps.is_some()) {
        row.ideal_ps = Some(speed.time_ps(row.size_bytes, scenario));
    }
}

/// Returns the ideal of an event of mean size; `None` if no event was collected.
pub fn state(scenario: &Scenario, rows: &[EventRow], speed: LoopbackRate) -> Option<IdealFigures> {
    let sizes: Vec<u64> =
        rows.iter().filter(|row| row.last_byte_ps.is_some()).map(|row| row.size_bytes).collect();
    let mean = sizes.iter().sum::<u64>().checked_div(sizes.len() as u64)?;
    let ideal_ms = speed.time_ps(mean, scenario) as f64 / 1e9;
    let delay = scenario.readout.response_delay;
    Some(IdealFigures {
        collection_time_ms: Some(ideal_ms),
        goodput_bps: Some(speed.bytes_per_s * 8.0),
        how: Some(format!(
            "{delay} until an answer, then {mean} B at {:.2} GB/s, the stream of one connection over this loopback, \
             measured before the run = {ideal_ms:.3} ms",
            speed.bytes_per_s / 1e9
        )),
    })
}
