//! TCP's counters of a running process, written to its file once a second.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fanin_dataflow::ShareCounters;
use fanin_message::TcpInfo;

use crate::machine::HostMachine;

use super::format::{END, EXTENSION, HEADER, SHARED};
use super::sums::Sums;

/// Interval at which the kernel is polled.
const EVERY: Duration = Duration::from_secs(1);
/// Maximum number of bytes of earlier incarnations that a file keeps. The oldest incarnations are dropped.
const INCARNATIONS_BYTES_MAX: usize = 1 << 20;

/// Counters of one peer: the sums over ended connections, and the current connection.
#[derive(Debug, Clone, Copy, Default)]
struct PeerAccount {
    ended: Sums,
    now: Option<TcpInfo>,
    cwnd_max: u64,
}

impl PeerAccount {
    fn sums(&self) -> Sums {
        let mut sums = self.now.as_ref().map_or(self.ended, |info| self.ended.with(info));
        sums.cwnd_max = sums.cwnd_max.max(self.cwnd_max);
        sums
    }
}

/// Counters of a process's connections, written to its file.
#[derive(Debug)]
pub struct Accounts {
    machine: HostMachine,
    path: PathBuf,
    process: String,
    earlier: String,
    peers: BTreeMap<String, PeerAccount>,
    asked: Option<Instant>,
    fails: bool,
    /// Number of failed attempts to read or write the file.
    failures: u64,
    shared: Option<ShareCounters>,
}

impl Accounts {
    /// Opens or creates the file of `process` in `folder`, and keeps the parts of earlier incarnations. A failure is logged and
    /// counted, as in [`Self::commit`]: a process works without the file.
    pub fn open(machine: &HostMachine, folder: &Path, process: &str) -> Self {
        let path = folder.join(format!("{process}.{EXTENSION}"));
        let (mut earlier, unread) = match machine.read(&path) {
            Ok(bytes) => (String::from_utf8_lossy(&bytes).into_owned(), None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (String::new(), None),
            Err(error) => (String::new(), Some(error)),
        };
        while earlier.len() > INCARNATIONS_BYTES_MAX {
            match earlier[1..].find(HEADER) {
                Some(second) => drop(earlier.drain(..=second)),
                None => earlier.clear(),
            }
        }
        let process = process.to_owned();
        let mut accounts = Self {
            machine: machine.clone(),
            path,
            process,
            earlier,
            peers: BTreeMap::new(),
            asked: None,
            fails: false,
            failures: 0,
            shared: None,
        };
        unread.into_iter().for_each(|error| accounts.note_failure(&error));
        accounts.write_or_log(false);
        accounts
    }

    /// Returns the number of times that the file could not be read or written.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    fn note_failure(&mut self, error: &io::Error) {
        self.failures += 1;
        if !std::mem::replace(&mut self.fails, true) {
            let file = self.path.display();
            tracing::error!(%error, %file, "cannot write the TCP counters; going on without them");
        }
    }

    fn write_or_log(&mut self, is_end: bool) {
        match self.write(is_end) {
            Ok(()) => self.fails = false,
            Err(error) => self.note_failure(&error),
        }
    }

    /// Sets the present counters of a shared receiver window; `None` without one.
    pub fn set_shared(&mut self, shared: Option<ShareCounters>) {
        self.shared = shared;
    }

    /// Returns true if a second has passed since the last [`Self::commit`].
    pub fn is_due(&self, now: Instant) -> bool {
        self.asked.is_none_or(|at| now.saturating_duration_since(at) >= EVERY)
    }

    /// Sets the present counters of the connection to a peer.
    pub fn handle_sample(&mut self, peer: &str, info: TcpInfo) {
        let account = self.account(peer);
        account.cwnd_max = account.cwnd_max.max(info.cwnd.into());
        account.now = Some(info);
    }

    /// Adds the last counters of a connection that has ended. `None` takes those of the last sample.
    pub fn handle_end(&mut self, peer: &str, info: Option<&TcpInfo>) {
        let account = self.account(peer);
        let now = account.now.take();
        if let Some(info) = info.or(now.as_ref()) {
            account.ended = account.ended.with(info);
        }
    }

    fn account(&mut self, peer: &str) -> &mut PeerAccount {
        if !self.peers.contains_key(peer) {
            self.peers.insert(peer.to_owned(), PeerAccount::default());
        }
        self.peers.get_mut(peer).expect("it was just made")
    }

    /// Writes the counters to the file, after all connections were sampled. `is_end` marks an orderly end of the process.
    pub fn commit(&mut self, now: Instant, is_end: bool) {
        self.asked = Some(now);
        self.write_or_log(is_end);
    }

    /// Returns the sums over all connections of this incarnation. Windows and round-trip times are the largest ones.
    pub fn totals(&self) -> Sums {
        let mut total = Sums { timeouts: Some(0), ..Sums::default() };
        for sums in self.peers.values().map(PeerAccount::sums) {
            total.connections += sums.connections;
            total.segments += sums.segments;
            total.retransmits += sums.retransmits;
            total.timeouts = total.timeouts.zip(sums.timeouts).map(|(sum, more)| sum + more);
            total.duplicates += sums.duplicates;
            total.acked_bytes += sums.acked_bytes;
            total.delivered += sums.delivered;
            total.delivered_ce += sums.delivered_ce;
            total.cwnd = total.cwnd.max(sums.cwnd);
            total.cwnd_max = total.cwnd_max.max(sums.cwnd_max);
            total.rtt_ns = total.rtt_ns.max(sums.rtt_ns);
        }
        total
    }

    fn write(&self, is_end: bool) -> io::Result<()> {
        let mut text = format!("{}{HEADER} {}\n", self.earlier, self.process);
        for (peer, account) in &self.peers {
            let sums = account.sums();
            // Writing to a string cannot fail.
            let _ = match sums.timeouts {
                Some(timeouts) => write!(text, "{peer} {timeouts}"),
                None => write!(text, "{peer} -"),
            };
            for field in sums.fields() {
                let _ = write!(text, " {field}");
            }
            text.push('\n');
        }
        if let Some(ShareCounters { granted_max, senders_max, late }) = self.shared {
            let _ = writeln!(text, "{SHARED} {granted_max} {senders_max} {late}");
        }
        if is_end {
            text.push_str(END);
            text.push('\n');
        }
        let new = self.path.with_extension("tcp-new");
        self.machine.write(&new, text.as_bytes())?;
        self.machine.rename(&new, &self.path)
    }
}
