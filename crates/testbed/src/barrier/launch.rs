//! The workload's processes from one command, and what they had to tell.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fanin_node::roles::processor::PARENT;
use fanin_node::trace::windows;
use fanin_report::{EventRow, FlowRow, Outcome, Tcp, WindowRow};
use fanin_scenario::{Loaded, Scenario};
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;

use super::aggregator::{RESULT, STARTED};
use super::config::answer_bytes;
use super::{BarrierError, Rounds, Sent, System};
use crate::live::{Bench, Part};

/// Where every sender listens on its own host.
const PORT: u16 = 7000;
const READY_MAX: Duration = Duration::from_secs(30);
/// Beyond what a round may take, until the aggregator is ended by force.
const END_MARGIN: Duration = Duration::from_secs(5);
const TURN: Duration = Duration::from_millis(20);

/// How a workload is started.
#[derive(Debug)]
pub struct Launch<'a> {
    /// What it is.
    pub loaded: &'a Loaded,
    /// A folder for its files, which exists.
    pub folder: &'a Path,
    /// The `fanin` program.
    pub program: &'a Path,
    /// The network that it runs in; by default the loopback of this machine as it is.
    pub bench: Option<&'a Bench>,
}

/// A workload that runs; no process of it outlives this.
#[derive(Debug)]
pub struct Live {
    folder: PathBuf,
    senders: Vec<Process>,
    aggregator: Process,
    stall: Duration,
}

#[derive(Debug)]
struct Process {
    name: String,
    child: Child,
}

impl Process {
    /// `Some` where it has ended: whether well, and how.
    fn ended(&mut self) -> Option<(bool, String)> {
        let status = self.child.try_wait().ok()??;
        Some((status.success(), status.to_string()))
    }
}

impl Live {
    /// Starts all senders, then the aggregator.
    ///
    /// # Errors
    /// If a file or process cannot be made; nothing runs then.
    pub fn start(launch: &Launch<'_>) -> Result<Self, BarrierError> {
        let folder = launch.folder.canonicalize().map_err(|source| file(launch.folder, source))?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|source| file(&path, source)).map(|()| path)
        };
        for stale in [STARTED, RESULT] {
            let _ = fs::remove_file(folder.join(stale));
        }
        write("scenario.toml", &launch.loaded.to_toml())?;
        let count = launch.loaded.scenario.workload.senders as u16;
        let addresses = addresses(launch, count)?;
        let config = write("barrier.toml", &System::text("scenario.toml", &addresses))?;
        let mut senders = Vec::new();
        for index in 0..count {
            for what in ["json", "windows"] {
                let _ = fs::remove_file(folder.join(format!("sender-{index}.{what}")));
            }
            let number = index.to_string();
            let spawned = spawn(launch, &folder, Part::Sender(index), &config, &["--index", &number]);
            match spawned {
                Ok(process) => senders.push(process),
                Err(error) => {
                    end(&mut senders);
                    return Err(error);
                }
            }
        }
        match spawn(launch, &folder, Part::Aggregator, &config, &[]) {
            Ok(aggregator) => {
                let stall = launch.loaded.scenario.run.stall_limit;
                Ok(Self { folder, senders, aggregator, stall: Duration::from_nanos(stall.as_nanos()) })
            }
            Err(error) => {
                end(&mut senders);
                Err(error)
            }
        }
    }

    /// Waits until the first round begins; `false` where `stop` was set.
    ///
    /// # Errors
    /// If a process ends.
    pub fn wait_ready(&mut self, stop: &AtomicBool) -> Result<bool, BarrierError> {
        let until = Instant::now() + READY_MAX;
        while !self.folder.join(STARTED).exists() {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            self.look()?;
            if Instant::now() >= until {
                let status = format!("still waiting after {} s", READY_MAX.as_secs());
                let (process, said) = (self.aggregator.name.clone(), self.said(&self.aggregator.name));
                return Err(BarrierError::Ended { process, status, said });
            }
            std::thread::sleep(TURN);
        }
        Ok(true)
    }

    /// Lets it work for a while; `tick` is told how long it did. Ends early where `stop` is set.
    ///
    /// # Errors
    /// If a process ends that should not.
    pub fn work(
        &mut self,
        time: Duration,
        stop: &AtomicBool,
        tick: &dyn Fn(Duration),
    ) -> Result<(), BarrierError> {
        let start = Instant::now();
        while start.elapsed() < time && !stop.load(Ordering::Relaxed) && self.aggregator.ended().is_none() {
            self.look()?;
            tick(start.elapsed());
            std::thread::sleep(TURN.min(time.saturating_sub(start.elapsed())));
        }
        Ok(())
    }

    /// Waits until the last round is over and all have written what they have to tell.
    ///
    /// # Errors
    /// If one ends otherwise.
    pub fn finish(&mut self, stop: &AtomicBool) -> Result<(), BarrierError> {
        let until = Instant::now() + self.stall + END_MARGIN;
        let mut told = false;
        loop {
            if let Some((well, status)) = self.aggregator.ended() {
                if well {
                    break;
                }
                let (process, said) = (self.aggregator.name.clone(), self.said(&self.aggregator.name));
                return Err(BarrierError::Ended { process, status, said });
            }
            if (stop.load(Ordering::Relaxed) || Instant::now() >= until) && !told {
                told = true;
                signal(&self.aggregator.child, Signal::TERM);
            }
            if Instant::now() >= until + END_MARGIN {
                let _ = self.aggregator.child.kill();
            }
            std::thread::sleep(TURN);
        }
        let until = Instant::now() + END_MARGIN;
        for place in 0..self.senders.len() {
            while Instant::now() < until && self.senders[place].ended().is_none() {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        self.look()
    }

    /// Whether nobody has ended in a bad way.
    fn look(&mut self) -> Result<(), BarrierError> {
        for place in 0..self.senders.len() {
            if let Some((false, status)) = self.senders[place].ended() {
                let process = self.senders[place].name.clone();
                let said = self.said(&process);
                return Err(BarrierError::Ended { process, status, said });
            }
        }
        match self.aggregator.ended() {
            Some((false, status)) => {
                let (process, said) = (self.aggregator.name.clone(), self.said(&self.aggregator.name));
                Err(BarrierError::Ended { process, status, said })
            }
            _ => Ok(()),
        }
    }

    fn said(&self, process: &str) -> String {
        fs::read_to_string(log(&self.folder, process)).unwrap_or_default().trim_end().to_owned()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.aggregator.child.kill();
        let _ = self.aggregator.child.wait();
        end(&mut self.senders);
    }
}

fn end(processes: &mut [Process]) {
    for one in processes {
        let _ = one.child.kill();
        let _ = one.child.wait();
    }
}

fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // Not waited for yet, its number is still its own.
        let _ = kill_process(pid, signal);
    }
}

fn file(path: &Path, source: std::io::Error) -> BarrierError {
    BarrierError::File { path: path.to_owned(), source }
}

fn log(folder: &Path, process: &str) -> PathBuf {
    folder.join("log").join(format!("{process}.log"))
}

fn addresses(launch: &Launch<'_>, count: u16) -> Result<Vec<SocketAddr>, BarrierError> {
    if let Some(bench) = launch.bench {
        let hosts = (0..count).filter_map(|index| bench.network().host_of(Part::Sender(index)));
        return Ok(hosts.map(|host| SocketAddr::from((host.address, PORT))).collect());
    }
    // All are held until all are chosen, so that none comes twice.
    let held: Result<Vec<TcpListener>, _> =
        (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect();
    held.and_then(|held| held.iter().map(TcpListener::local_addr).collect()).map_err(|source| {
        BarrierError::Network { what: "cannot listen at", address: "127.0.0.1".to_owned(), source }
    })
}

fn spawn(
    launch: &Launch<'_>,
    folder: &Path,
    part: Part,
    config: &Path,
    more: &[&str],
) -> Result<Process, BarrierError> {
    let (role, name) = match part {
        Part::Sender(index) => ("sender", format!("sender-{index}")),
        _ => ("aggregator", "aggregator".to_owned()),
    };
    let fail = |source| BarrierError::Spawn { process: name.clone(), source };
    let path = log(folder, &name);
    fs::create_dir_all(folder.join("log")).map_err(fail)?;
    let log = File::create(path).map_err(fail)?;
    let mut command = Command::new(launch.program);
    command.arg("node").arg(role).arg(config).args(more);
    command.env(PARENT, std::process::id().to_string());
    command.stdin(Stdio::null()).stdout(log.try_clone().map_err(fail)?).stderr(log);
    // Ctrl-C is for the parent alone: it stops the others in order.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut command = match launch.bench {
        Some(bench) => bench.place(part, command),
        None => command,
    };
    let child = command.spawn().map_err(fail)?;
    Ok(Process { name, child })
}

/// What the processes of a run had to tell.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// One row a round; times count from the first.
    pub rows: Vec<EventRow>,
    /// One row a sender, of the measured rounds.
    pub flows: Vec<FlowRow>,
    /// Windows of the connections that `record.windows` names.
    pub windows: Vec<WindowRow>,
    /// All connections together; what the kernel does not tell is absent.
    pub tcp: Tcp,
    /// When the first round began, microseconds since 1970 began.
    pub start_unix_us: u64,
}

/// Reads what the processes of a run wrote into its folder.
///
/// # Errors
/// If a file is missing or garbled.
pub fn told(folder: &Path, scenario: &Scenario) -> Result<Told, BarrierError> {
    let rounds: Rounds = read(&folder.join(RESULT))?;
    let senders = u64::from(scenario.workload.senders);
    let block: u64 = (0..senders).map(|sender| answer_bytes(scenario, sender)).sum();
    let mut timeouts: BTreeMap<u64, u64> = BTreeMap::new();
    let mut flows = Vec::new();
    for index in 0..senders {
        let sent: Sent = read(&folder.join(format!("sender-{index}.json")))?;
        for (round, count) in sent.timeouts {
            *timeouts.entry(round).or_default() += count;
        }
        flows.push(FlowRow {
            flow: index,
            source: Arc::from(format!("readout:{index}")),
            destination: Arc::from("collector:0"),
            acked_bytes: sent.info.acked_bytes,
            segments: sent.info.segments,
            retransmits: sent.info.retransmits,
            timeouts: Some(sent.info.timeouts),
            fast_retransmits: None,
            spurious_retransmits: Some(sent.info.duplicates),
            cwnd_packets_max: None,
            rtt_min_ps: Some(sent.info.rtt_min_us * 1_000_000),
            rtt_smoothed_ps: Some(sent.info.rtt_us * 1_000_000),
        });
    }
    let tcp = fanin_report::tcp(&flows);
    let row = |(round, &(start, end)): (u64, &(u64, u64))| EventRow {
        id: round,
        size_bytes: block,
        assigned_ps: start,
        first_request_ps: Some(start),
        last_byte_ps: Some(end),
        collection_time_ps: Some(end - start),
        timeouts: timeouts.get(&round).copied().unwrap_or_default(),
        outcome: Outcome::Collected,
        ..EventRow::default()
    };
    let rows = (0..).zip(&rounds.rounds).map(row).collect();
    let start_unix_us = rounds.start_unix_us;
    Ok(Told { rows, flows, windows: windows(folder, start_unix_us)?, tcp, start_unix_us })
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, BarrierError> {
    let bytes = fs::read(path).map_err(|source| file(path, source))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| BarrierError::Garbled { path: path.to_owned(), text: error.to_string() })
}
