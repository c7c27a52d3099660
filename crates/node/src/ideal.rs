//! The throughput of the loopback alone: a stream of one connection, measured before a run.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use fanin_report::{EventRow, Ideal};
use fanin_scenario::Scenario;
use fanin_units::Rate;

/// Duration of the measured stream.
const MEASURE: Duration = Duration::from_millis(200);
const BLOCK_BYTES: usize = 256 << 10;

/// The speed of the loopback, in bytes a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoopbackRate {
    /// Rate of one connection, both ends in this process.
    pub bytes_per_s: f64,
}

impl LoopbackRate {
    /// The same in bits a second.
    pub fn rate(self) -> Rate {
        Rate::new((8.0 * self.bytes_per_s) as u64)
    }

    /// The least time for `bytes`, the answers' delay included, in picoseconds.
    fn time_ps(self, bytes: u64, scenario: &Scenario) -> u64 {
        scenario.readout.response_delay.get() + (bytes as f64 / self.bytes_per_s * 1e12) as u64
    }
}

/// Measures the loopback for a fifth of a second.
///
/// # Errors
/// If there is none.
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
    // It ends at its next write.
    let _ = sending.join();
    Ok(LoopbackRate { bytes_per_s: bytes as f64 / seconds })
}

/// Gives each event that was collected its own ideal.
pub fn fill(rows: &mut [EventRow], scenario: &Scenario, speed: LoopbackRate) {
    for row in rows.iter_mut().filter(|row| row.last_byte_ps.is_some()) {
        row.ideal_ps = Some(speed.time_ps(row.size_bytes, scenario));
    }
}

/// The ideal of an event of mean size; `None` where no event was collected.
pub fn state(scenario: &Scenario, rows: &[EventRow], speed: LoopbackRate) -> Option<Ideal> {
    let sizes: Vec<u64> =
        rows.iter().filter(|row| row.last_byte_ps.is_some()).map(|row| row.size_bytes).collect();
    let mean = sizes.iter().sum::<u64>().checked_div(sizes.len() as u64)?;
    let ideal_ms = speed.time_ps(mean, scenario) as f64 / 1e9;
    let delay = scenario.readout.response_delay;
    Some(Ideal {
        collection_time_ms: Some(ideal_ms),
        goodput_bps: Some(speed.bytes_per_s * 8.0),
        how: Some(format!(
            "{delay} until an answer, then {mean} B at {:.2} GB/s, the stream of one connection over this loopback, \
             measured before the run = {ideal_ms:.3} ms",
            speed.bytes_per_s / 1e9
        )),
    })
}
