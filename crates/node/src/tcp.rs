//! What the kernel's TCP counted on each connection of a process, kept in a file that survives it.
//!
//! `PROCESS.tcp` is replaced as a whole once a second and at the end, so that a process that is killed leaves what was
//! counted up to a second before. It has a part for each life of the process: a line `# fanin tcp 1 PROCESS`, one line a
//! peer with the sums over all connections to it, `# diatcp GRANTED SENDERS LATE` where a window is shared out, and `# end` where the life ended in good order. Without that line the
//! sums lack what came after the last sample, and whoever reads them is told.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanin_dataflow::ShareCounters;
use fanin_message::TcpInfo;
use fanin_report::{FlowRow, Summary, Tcp};
use serde_json::json;

use crate::flows::Numbers;
use crate::transport::Fitted;
use crate::wire::peer;

const HEADER: &str = "# fanin tcp 1";
const END: &str = "# end";
const SHARED: &str = "# diatcp";
const EXTENSION: &str = "tcp";
/// How often the kernel is asked.
const EVERY: Duration = Duration::from_secs(1);
/// Earlier lives that a file keeps: those that a supervisor of processes starts again and again are cut.
const LIVES_BYTES_MAX: usize = 1 << 20;

/// The connections to one peer, one after the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Connections.
    pub connections: u64,
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission time-outs; `None` where this kernel does not count them.
    pub timeouts: Option<u64>,
    /// Segments that the peer had already.
    pub duplicates: u64,
    /// Payload bytes acknowledged.
    pub acked_bytes: u64,
    /// Segments that arrived.
    pub delivered: u64,
    /// Of these, with congestion experienced.
    pub delivered_ce: u64,
    /// Congestion window as last seen, segments.
    pub cwnd: u64,
    /// The largest congestion window that was seen.
    pub cwnd_max: u64,
    /// Smoothed round-trip time as last seen, ns.
    pub rtt_ns: u64,
    /// Smallest round-trip time, ns; zero: none was measured.
    pub rtt_min_ns: u64,
}

impl Sums {
    /// With a connection as it is now.
    fn with(mut self, info: &TcpInfo) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.connections += 1;
        self.segments += info.segments;
        self.retransmits += info.retransmits;
        self.timeouts = if self.connections == 1 {
            info.timeouts
        } else {
            self.timeouts.zip(info.timeouts).map(|(sum, more)| sum + more)
        };
        self.duplicates += info.duplicates;
        self.acked_bytes += info.acked_bytes;
        self.delivered += info.delivered;
        self.delivered_ce += info.delivered_ce;
        self.cwnd = info.cwnd.into();
        self.cwnd_max = self.cwnd_max.max(self.cwnd);
        self.rtt_ns = ns(info.rtt);
        let least = info.rtt_min.map_or(0, ns);
        self.rtt_min_ns = if self.rtt_min_ns == 0 || least == 0 {
            self.rtt_min_ns.max(least)
        } else {
            self.rtt_min_ns.min(least)
        };
        self
    }

    fn fields(&self) -> [u64; 11] {
        [
            self.connections,
            self.segments,
            self.retransmits,
            self.duplicates,
            self.acked_bytes,
            self.delivered,
            self.delivered_ce,
            self.cwnd,
            self.cwnd_max,
            self.rtt_ns,
            self.rtt_min_ns,
        ]
    }

    fn parse<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let timeouts = words.next()?;
        let timeouts = if timeouts == "-" { None } else { Some(timeouts.parse().ok()?) };
        let mut next = || words.next()?.parse().ok();
        Some(Self {
            timeouts,
            connections: next()?,
            segments: next()?,
            retransmits: next()?,
            duplicates: next()?,
            acked_bytes: next()?,
            delivered: next()?,
            delivered_ce: next()?,
            cwnd: next()?,
            cwnd_max: next()?,
            rtt_ns: next()?,
            rtt_min_ns: next()?,
        })
    }
}

/// One peer: connections that have ended, and the one that stands.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    ended: Sums,
    now: Option<TcpInfo>,
    cwnd_max: u64,
}

impl Account {
    fn sums(&self) -> Sums {
        let mut sums = self.now.as_ref().map_or(self.ended, |info| self.ended.with(info));
        sums.cwnd_max = sums.cwnd_max.max(self.cwnd_max);
        sums
    }
}

/// What a process counts.
#[derive(Debug)]
pub struct Accounts {
    path: PathBuf,
    process: String,
    earlier: String,
    peers: BTreeMap<String, Account>,
    asked: Option<Instant>,
    fails: bool,
    /// What sharing out a receiver's window came to.
    pub shared: Option<ShareCounters>,
}

impl Accounts {
    /// Takes up the file of `process` in `folder`, which earlier lives may have left.
    ///
    /// # Errors
    /// If it is there and cannot be read, or cannot be written.
    pub fn open(folder: &Path, process: &str) -> io::Result<Self> {
        let path = folder.join(format!("{process}.{EXTENSION}"));
        let mut earlier = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        while earlier.len() > LIVES_BYTES_MAX {
            match earlier[1..].find(HEADER) {
                Some(second) => drop(earlier.drain(..=second)),
                None => earlier.clear(),
            }
        }
        let process = process.to_owned();
        let accounts =
            Self { path, process, earlier, peers: BTreeMap::new(), asked: None, fails: false, shared: None };
        accounts.write(false)?;
        Ok(accounts)
    }

    /// Whether it is time to ask the kernel again.
    pub fn is_due(&self, now: Instant) -> bool {
        self.asked.is_none_or(|at| now.saturating_duration_since(at) >= EVERY)
    }

    /// A connection as it is now.
    pub fn handle_sample(&mut self, peer: &str, info: TcpInfo) {
        let account = self.account(peer);
        account.cwnd_max = account.cwnd_max.max(info.cwnd.into());
        account.now = Some(info);
    }

    /// A connection has ended, and this is what it came to; `None`: as it was when it was last seen.
    pub fn handle_end(&mut self, peer: &str, info: Option<&TcpInfo>) {
        let account = self.account(peer);
        let now = account.now.take();
        if let Some(info) = info.or(now.as_ref()) {
            account.ended = account.ended.with(info);
        }
    }

    fn account(&mut self, peer: &str) -> &mut Account {
        if !self.peers.contains_key(peer) {
            self.peers.insert(peer.to_owned(), Account::default());
        }
        self.peers.get_mut(peer).expect("it was just made")
    }

    /// Everything was asked; brings it to file.
    pub fn commit(&mut self, now: Instant, is_end: bool) {
        self.asked = Some(now);
        match self.write(is_end) {
            Ok(()) => self.fails = false,
            Err(error) => {
                if !std::mem::replace(&mut self.fails, true) {
                    tracing::error!(%error, file = %self.path.display(), "what TCP counted cannot be written");
                }
            }
        }
    }

    /// All connections of this life together.
    pub fn totals(&self) -> Sums {
        let mut total = Sums { timeouts: Some(0), ..Sums::default() };
        for sums in self.peers.values().map(Account::sums) {
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
        std::fs::write(&new, text)?;
        std::fs::rename(&new, &self.path)
    }
}

/// What the processes of a run counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// A row for each direction of each connection that carried data; several connections between the same two processes
    /// are one row.
    pub rows: Vec<FlowRow>,
    /// Segments that arrived with congestion experienced.
    pub delivered_ce: u64,
    /// Lives of processes that were cut short: what they counted in their last second is not in the rows.
    pub cut: u64,
    /// What sharing out receivers' windows came to: the most of any, and all late answers; `None` where none did.
    pub shared: Option<ShareCounters>,
}

/// Why the counts of a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CountedError {
    /// The system does not give a file.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A line is none.
    #[error("{}, line {line}: not a line of TCP's counts: {text:?}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What stands there.
        text: String,
    },
}

/// Reads what the processes of a run left in its folder; `numbers` has those of its connections.
///
/// # Errors
/// [`CountedError`].
pub fn counted(folder: &Path, numbers: &Numbers) -> Result<Counted, CountedError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |error| CountedError::Io { path, error }
    };
    let mut flows: BTreeMap<(String, String), Sums> = BTreeMap::new();
    let mut counted = Counted::default();
    for entry in std::fs::read_dir(folder).map_err(fail(folder))? {
        let path = entry.map_err(fail(folder))?.path();
        let Some(process) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if path.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(fail(&path))?;
        let (mut lives, mut ends) = (0, 0);
        for (number, line) in text.lines().enumerate() {
            if line.starts_with(HEADER) {
                lives += 1;
                continue;
            }
            if line == END {
                ends += 1;
                continue;
            }
            if let Some(shared) = line.strip_prefix(SHARED) {
                let mut numbers = shared.split_whitespace().map_while(|number| number.parse::<u64>().ok());
                let mut next = || numbers.next().unwrap_or_default();
                let all = counted.shared.get_or_insert_default();
                all.granted_max = all.granted_max.max(next() as u32);
                all.senders_max = all.senders_max.max(next() as u32);
                all.late += next();
                continue;
            }
            let mut words = line.split(' ');
            let peer = words.next().unwrap_or_default();
            let sums = Sums::parse(words).ok_or_else(|| CountedError::Line {
                path: path.clone(),
                line: number + 1,
                text: line.chars().take(200).collect(),
            })?;
            let flow = flows.entry((process.to_owned(), peer.to_owned())).or_default();
            *flow = if flow.connections == 0 { sums } else { add(*flow, sums) };
        }
        counted.cut += lives - ends.min(lives);
    }
    // Only another system's files have connections without a number.
    let mut others: BTreeMap<(String, String), u64> = BTreeMap::new();
    for ((source, destination), sums) in flows.into_iter().filter(|(_, sums)| sums.segments > 0) {
        let known = peer(&source).zip(peer(&destination));
        let flow = known.and_then(|(one, other)| numbers.of_pair(one, other)).unwrap_or_else(|| {
            let mut pair = [source.clone(), destination.clone()];
            pair.sort();
            let [one, other] = pair;
            let next = numbers.all() + others.len() as u64;
            *others.entry((one, other)).or_insert(next)
        });
        let some = |value: u64| (value > 0).then(|| value.saturating_mul(1000));
        counted.delivered_ce += sums.delivered_ce;
        counted.rows.push(FlowRow {
            flow,
            source: Arc::from(source),
            destination: Arc::from(destination),
            acked_bytes: sums.acked_bytes,
            segments: sums.segments,
            retransmits: sums.retransmits,
            timeouts: sums.timeouts,
            // The kernel does not count it by connection.
            fast_retransmits: None,
            spurious_retransmits: Some(sums.duplicates),
            cwnd_packets_max: Some(sums.cwnd_max),
            rtt_min_ps: some(sums.rtt_min_ns),
            rtt_smoothed_ps: some(sums.rtt_ns),
        });
    }
    counted.rows.sort_by_key(|row| row.flow);
    Ok(counted)
}

fn add(one: Sums, other: Sums) -> Sums {
    Sums {
        connections: one.connections + other.connections,
        segments: one.segments + other.segments,
        retransmits: one.retransmits + other.retransmits,
        timeouts: one.timeouts.zip(other.timeouts).map(|(one, other)| one + other),
        duplicates: one.duplicates + other.duplicates,
        acked_bytes: one.acked_bytes + other.acked_bytes,
        delivered: one.delivered + other.delivered,
        delivered_ce: one.delivered_ce + other.delivered_ce,
        cwnd: other.cwnd,
        cwnd_max: one.cwnd_max.max(other.cwnd_max),
        rtt_ns: other.rtt_ns,
        rtt_min_ns: match (one.rtt_min_ns, other.rtt_min_ns) {
            (0, least) | (least, 0) => least,
            (one, other) => one.min(other),
        },
    }
}

impl Counted {
    /// The sums for a summary; `None` where nothing was counted.
    pub fn summary(&self) -> Option<Tcp> {
        (!self.rows.is_empty()).then(|| fanin_report::tcp(&self.rows))
    }

    /// Puts what was counted, and what TCP was told, into a summary: `tcp`, `transport` and the technique's own key.
    pub fn fill(&self, summary: &mut Summary, fitted: &Fitted) {
        summary.tcp = self.summary();
        let socket = &fitted.socket;
        let mut transport = serde_json::Map::new();
        let mut add = |key: &str, value| drop(transport.insert(key.to_owned(), value));
        if let Some(name) = &socket.congestion_control {
            add("congestion_control", json!(name));
        }
        if let Some(time) = socket.rto_min {
            add("rto_min_ms", json!(time.as_secs_f64() * 1e3));
        }
        if !fitted.unmet.is_empty() {
            add("not_in_force", json!(fitted.unmet.join("; ")));
        }
        if self.delivered_ce > 0 {
            add("delivered_ce", json!(self.delivered_ce));
        }
        if self.cut > 0 {
            add("processes_cut_short", json!(self.cut));
        }
        summary.techniques.insert("transport".to_owned(), transport.into());
        if let Some(ShareCounters { granted_max, senders_max, late }) = self.shared {
            let figures = json!({"granted_segments_max": granted_max, "senders_max": senders_max, "answers_late": late});
            summary.techniques.insert("diatcp".to_owned(), figures);
        }
    }

    /// Lines for a terminal: what is not in force, and what is not known.
    pub fn notes(&self, fitted: &Fitted) -> String {
        let mut text = String::new();
        if !fitted.unmet.is_empty() {
            let _ = writeln!(text, "{:<18}not in force: {}", "transport", fitted.unmet.join("; "));
        }
        if self.cut > 0 {
            let _ = writeln!(
                text,
                "{:<18}{} processes were cut short: what TCP did in their last second is not counted",
                "", self.cut
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Numbers {
        Numbers::of(&fanin_scenario::load("replay", &[]).unwrap().scenario)
    }

    fn info(segments: u64, retransmits: u64) -> TcpInfo {
        TcpInfo {
            segments,
            retransmits,
            timeouts: Some(1),
            cwnd: 10,
            rtt: Duration::from_micros(70),
            rtt_min: Some(Duration::from_micros(40)),
            ..TcpInfo::default()
        }
    }

    #[test]
    fn counts_survive_connections_and_lives_and_a_cut_is_told() {
        let folder = std::env::temp_dir().join(format!("fanin-tcp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut first = Accounts::open(&folder, "readout-3").unwrap();
        assert!(first.is_due(Instant::now()));
        first.handle_sample("collector-0", info(5, 1));
        first.handle_end("collector-0", Some(&info(9, 2)));
        first.handle_sample("collector-0", TcpInfo { cwnd: 40, ..info(3, 0) });
        first.handle_sample("collector-0", info(4, 1));
        first.commit(Instant::now(), false);
        assert!(!first.is_due(Instant::now()));
        assert_eq!((first.totals().segments, first.totals().timeouts), (13, Some(2)));
        // Nothing ends in good order here: it is killed.
        drop(first);
        let mut second = Accounts::open(&folder, "readout-3").unwrap();
        second.handle_sample("collector-0", info(1, 0));
        second.handle_end("collector-0", None);
        second.handle_sample("supervisor", TcpInfo { timeouts: None, ..info(2, 0) });
        second.commit(Instant::now(), true);
        let mut other = Accounts::open(&folder, "collector-0").unwrap();
        other.handle_end("readout-3", Some(&info(7, 0)));
        other.commit(Instant::now(), true);

        let counted = counted(&folder, &numbers()).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((counted.rows.len(), counted.cut), (3, 1), "{counted:?}");
        let row =
            counted.rows.iter().find(|row| &*row.source == "readout-3" && row.timeouts.is_some()).unwrap();
        assert_eq!(
            (&*row.destination, row.segments, row.retransmits, row.timeouts),
            ("collector-0", 14, 3, Some(3))
        );
        assert_eq!((row.cwnd_packets_max, row.rtt_min_ps), (Some(40), Some(40_000_000)));
        let back = counted.rows.iter().find(|row| &*row.source == "collector-0").unwrap();
        assert_eq!(back.flow, row.flow, "two directions of one connection");
        let tcp = counted.summary().unwrap();
        assert_eq!((tcp.segments, tcp.retransmits, tcp.timeouts), (Some(23), Some(3), None));
        assert_eq!(tcp.fast_retransmits, None);
    }

    #[test]
    fn what_is_no_count_is_named_by_its_line() {
        let folder = std::env::temp_dir().join(format!("fanin-tcp-bad-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("logger-0.tcp"), format!("{HEADER} logger-0\ncollector-0 1 2 x\n"))
            .unwrap();
        let error = counted(&folder, &numbers()).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(matches!(error, CountedError::Line { line: 2, .. }), "{error}");
    }
}
