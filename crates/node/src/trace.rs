//! Records windows of connections over time, for `record.windows`: each change of a sample adds a line to a file.
//!
//! `PROCESS.windows` has lines `FLOW TIME CWND RWND IN_FLIGHT`: the connection's number, a time and three numbers of bytes.
//! Times are picoseconds since the epoch of the header line `# fanin windows 1 PROCESS epoch-us MICROSECONDS` before them.
//! `RWND` is `-` if the kernel does not report the peer's window. Each start of the process writes a header. The last line
//! may be incomplete.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fanin_message::TcpInfo;
use fanin_report::WindowRow;
use fanin_scenario::Record;

use crate::clock::{ProcessClock, std_duration};
use crate::lines;

const HEADER: &str = "# fanin windows 1";
const EXTENSION: &str = "windows";
/// Minimum interval between samples.
const EVERY_MIN: Duration = Duration::from_micros(100);

/// Returns the interval at which windows are sampled: `record.queue_interval`, at least 100 µs.
pub fn interval(record: &Record) -> Duration {
    std_duration(record.queue_interval).max(EVERY_MIN)
}

/// Records the windows of connections of a process.
#[derive(Debug)]
pub struct Trace {
    out: BufWriter<File>,
    clock: ProcessClock,
    /// The last sample of each connection.
    last: BTreeMap<u64, [u64; 3]>,
    fails: bool,
}

impl Trace {
    /// Opens or creates the file of `process` in `folder`, cuts off an incomplete last line, and writes a header.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open(folder: &Path, process: &str) -> io::Result<Self> {
        let path = folder.join(format!("{process}.{EXTENSION}"));
        let mut file = OpenOptions::new().create(true).read(true).write(true).truncate(false).open(path)?;
        let good = lines::whole(&mut file)?;
        file.set_len(good)?;
        file.seek(SeekFrom::Start(good))?;
        let clock = ProcessClock::start();
        let mut out = BufWriter::new(file);
        writeln!(out, "{HEADER} {process} epoch-us {}", clock.epoch_us())?;
        out.flush()?;
        Ok(Self { out, clock, last: BTreeMap::new(), fails: false })
    }

    /// Records a sample of connection `flow`, if it differs from the last one. A failed write is logged once.
    pub fn handle_sample(&mut self, flow: u64, info: &TcpInfo) {
        let cwnd = u64::from(info.cwnd) * u64::from(info.mss);
        let peer = info.peer_window_bytes.map_or(u64::MAX, u64::from);
        let now = [cwnd, peer, info.in_flight_bytes];
        if self.last.insert(flow, now) == Some(now) {
            return;
        }
        let at = self.clock.now().get();
        let written = match info.peer_window_bytes {
            Some(peer) => writeln!(self.out, "{flow} {at} {cwnd} {peer} {}", info.in_flight_bytes),
            None => writeln!(self.out, "{flow} {at} {cwnd} - {}", info.in_flight_bytes),
        };
        self.note(written);
    }

    /// Writes buffered samples to the file.
    pub fn flush(&mut self) {
        let flushed = self.out.flush();
        self.note(flushed);
    }

    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && !std::mem::replace(&mut self.fails, true)
        {
            tracing::error!(%error, "cannot write the file of windows; tracing ends");
        }
    }
}

/// Errors of reading a run's windows.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A line is invalid.
    #[error("{}, line {line}: {text:?} is not a line of windows", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The first 200 characters of the line.
        text: String,
    },
}

/// Reads the traced windows of a run, sorted by connection and time. Times count from `start_unix_us` (microseconds since
/// 1970); earlier samples are left out.
///
/// # Errors
/// [`TraceError`].
pub fn windows(folder: &Path, start_unix_us: u64) -> Result<Vec<WindowRow>, TraceError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |error| TraceError::Io { path, error }
    };
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail(folder))? {
        let path = entry.map_err(fail(folder))?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            read(&path, start_unix_us, &mut rows)?;
        }
    }
    rows.sort_by_key(|row: &WindowRow| (row.flow, row.time_ps));
    Ok(rows)
}

fn read(path: &Path, start_unix_us: u64, rows: &mut Vec<WindowRow>) -> Result<(), TraceError> {
    let io = |error| TraceError::Io { path: path.to_owned(), error };
    let mut input = BufReader::new(File::open(path).map_err(io)?);
    let (mut text, mut number, mut epoch_us) = (String::new(), 0, None);
    loop {
        text.clear();
        input.read_line(&mut text).map_err(io)?;
        let Some(line) = text.strip_suffix('\n') else { return Ok(()) };
        number += 1;
        if let Some(header) = line.strip_prefix(HEADER) {
            epoch_us = header.rsplit(' ').next().and_then(|us| us.parse::<u64>().ok());
            continue;
        }
        let row = epoch_us.and_then(|epoch_us| parse(line, epoch_us));
        let Some((at, row)) = row else {
            let text = line.chars().take(200).collect();
            return Err(TraceError::Line { path: path.to_owned(), line: number, text });
        };
        let since = at.checked_sub(u128::from(start_unix_us) * 1_000_000);
        if let Some(time_ps) = since.and_then(|since| u64::try_from(since).ok()) {
            rows.push(WindowRow { time_ps, ..row });
        }
    }
}

/// Parses a line; returns its time in picoseconds since 1970, and its row without the time.
fn parse(line: &str, epoch_us: u64) -> Option<(u128, WindowRow)> {
    let mut words = line.split(' ');
    let mut next = || words.next();
    let flow = next()?.parse().ok()?;
    let at = u128::from(epoch_us) * 1_000_000 + u128::from(next()?.parse::<u64>().ok()?);
    let cwnd_bytes = next()?.parse().ok()?;
    let rwnd_bytes = match next()? {
        "-" => None,
        bytes => Some(bytes.parse().ok()?),
    };
    let in_flight_bytes = next()?.parse().ok()?;
    words
        .next()
        .is_none()
        .then_some((at, WindowRow { flow, time_ps: 0, cwnd_bytes, rwnd_bytes, in_flight_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(cwnd: u32, in_flight_bytes: u64) -> TcpInfo {
        TcpInfo { cwnd, mss: 1000, in_flight_bytes, peer_window_bytes: Some(65_536), ..TcpInfo::default() }
    }

    #[test]
    fn rows_hold_changes_over_restarts_and_no_torn_line() {
        let folder = std::env::temp_dir().join(format!("fanin-trace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let start = ProcessClock::start().epoch_us();
        let mut first = Trace::open(&folder, "readout-1").unwrap();
        for sample in [info(10, 0), info(10, 0), info(10, 3000), info(11, 3000)] {
            first.handle_sample(4, &sample);
        }
        first.handle_sample(1, &TcpInfo { peer_window_bytes: None, ..info(2, 0) });
        first.flush();
        drop(first);
        let path = folder.join("readout-1.windows");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("4 17 100");
        std::fs::write(&path, &text).unwrap();
        let read = windows(&folder, start).unwrap();
        let rows: Vec<_> =
            read.iter().map(|row| (row.flow, row.cwnd_bytes, row.rwnd_bytes, row.in_flight_bytes)).collect();
        let peer = Some(65_536);
        assert_eq!(
            rows,
            [(1, 2000, None, 0), (4, 10_000, peer, 0), (4, 10_000, peer, 3000), (4, 11_000, peer, 3000)]
        );
        assert!(read.iter().all(|row| row.time_ps < 60_000_000_000_000), "{read:?}");
        // Another incarnation cuts off the incomplete line, and keeps the rest.
        let mut second = Trace::open(&folder, "readout-1").unwrap();
        second.handle_sample(4, &info(1, 0));
        second.flush();
        assert_eq!(windows(&folder, start).unwrap().len(), 5);
        // Samples before the start are left out.
        assert_eq!(windows(&folder, start + 3_600_000_000).unwrap(), []);
        std::fs::write(&path, text.replace(" 11000 ", " eleven ")).unwrap();
        let error = windows(&folder, start).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(matches!(error, TraceError::Line { line: 4, .. }), "{error}");
    }
}
