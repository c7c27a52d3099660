//! The draw of a seed: the size and the settings of a system, and the faults that it meets.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use fanin_dataflow::Random;
use fanin_message::{Limits, SharedKey, Versions};
use fanin_node::codec::VERSIONS;
use fanin_node::config::{LogFormat, PredictedBands, Role, System};
use fanin_node::machine::HostMachine;
use fanin_scenario::Loaded;

use crate::held::{draw_cut_collector, draw_killed_collector};
use crate::rivals::SuccessionPlaces;
use crate::shared::{Host, between};

/// A kind of fault, with its machines and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InjectedFault {
    /// A process ends at once; its machine closes its connections, and files stay as they are.
    Kill(Host),
    /// A process is asked to stop, and started again when it has ended. The fault waits until the system is complete.
    Restart(Host),
    /// A supervisor's machine is lost with its disk. True: its kernel closes the connections; false: they end silently.
    /// If the other supervisor cannot continue alone, only the process is killed.
    LoseForGood(Host, bool),
    /// The machine of a leader is lost with its disk this number of nanoseconds after its follower has a pairing on
    /// disk. The follower may not know yet whether the pairing was decided.
    LoseWhilePairing(u64),
    /// The follower's machine loses its power at this change of its disk from now on. The leader's machine is lost with
    /// its disk `after` nanoseconds later, if the two are a pair.
    LosePair { changes: u64, after: u64 },
    /// One of three readouts ends at once, and loses the record of its votes on the leading supervisor. If one of the
    /// other two does not vote, the readout keeps the record.
    LoseVote(Host),
    /// A machine loses its power: its connections end silently, and files are torn.
    PowerLoss(Host),
    /// A machine loses its power at this change of its disk from now on, in the middle of a turn.
    PowerLossAtChange(Host, u64),
    /// A process is stopped, and continued.
    Pause(Host),
    /// A process takes longer for each turn, by this factor.
    Slow(Host, u64),
    /// Nothing arrives from the first machine at the second.
    CutOneWay(Host, Host),
    /// Nothing arrives between two machines.
    Cut(Host, Host),
    /// Nothing arrives at a machine or from it.
    Isolate(Host),
    /// Everything between two machines takes longer, by this number of nanoseconds.
    SlowLink(Host, Host, u64),
    /// The connections between two machines are reset.
    Reset(Host, Host),
    /// A disk has no free sector.
    DiskFull(Host),
    /// This number of 1000 calls of a disk fails.
    DiskErrors(Host, u64),
    /// A disk takes up to this number of nanoseconds for a group of events.
    SlowDisk(Host, u64),
}

/// A fault with its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedFault {
    pub(crate) at: u64,
    pub(crate) until: u64,
    pub(crate) kind: InjectedFault,
}

/// A process of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessPlace {
    pub(crate) role: Role,
    pub(crate) index: u16,
}

/// Limits of a process's endpoint that decide how it reads and when its peers wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndpointLimits {
    pub(crate) receive_block_bytes: usize,
    pub(crate) outbox_bytes_max: u64,
    /// Memory for received messages, if it is scarce.
    pub(crate) memory: Option<ScarceMemory>,
}

/// Memory for received messages that events in progress fill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScarceMemory {
    pub(crate) bytes_max: u64,
    pub(crate) peer_bytes_max: u64,
}

impl EndpointLimits {
    /// Returns the limits of an endpoint that has `real` ones outside of a world.
    pub(crate) fn applied(self, real: Limits) -> Limits {
        let Self { receive_block_bytes, outbox_bytes_max, memory } = self;
        let limits = Limits { receive_block_bytes, outbox_bytes_max, ..real };
        memory.map_or(limits.clone(), |ScarceMemory { bytes_max, peer_bytes_max }| Limits {
            message_bytes_max: MESSAGE_BYTES_MAX,
            receive_bytes_max: bytes_max,
            peer_receive_bytes_max: peer_bytes_max,
            ..limits
        })
    }
}

/// The system and the faults of one seed.
#[derive(Debug)]
pub(crate) struct WorldPlan {
    /// One machine for each process.
    pub(crate) places: Vec<ProcessPlace>,
    pub(crate) scenario: String,
    pub(crate) faults: Vec<PlannedFault>,
    /// Time at which the launcher stops the system.
    pub(crate) stop_at: u64,
    /// The most bytes that a connection holds in one direction.
    pub(crate) capacity: usize,
    pub(crate) pieces_max: u64,
    pub(crate) latency_max_ns: u64,
    /// Limits of the processes' endpoints.
    pub(crate) limits: EndpointLimits,
    /// True if the system is watched for a while without faults.
    pub(crate) is_long: bool,
    /// True if the processes share a key, and prove that they have it.
    pub(crate) has_key: bool,
    /// True if all processes are restarted in order, one after the other, and nothing else happens. Then no event may
    /// be stored undecided or without a fragment.
    pub(crate) is_rolling: bool,
    /// True if each process keeps few of its closed journals.
    pub(crate) deletes_journals: bool,
    /// True if a collector is cut from the loggers until the journals of its events' assignments are deleted. Then each
    /// event that was ever seen as assigned has to be seen as finished.
    pub(crate) is_held: bool,
    /// Versions of messages that each process speaks at first: those of this release, or the first one alone.
    pub(crate) versions: Vec<Versions>,
    /// Versions of a process that was restarted in order: an upgrade or its reversal, if they differ from the first ones.
    pub(crate) versions_restarted: Option<Versions>,
    /// A time for stopping that is too short for some supervisors: the launcher replaces one that needs more.
    pub(crate) hasty_stop: Option<u64>,
}

const MS: u64 = 1_000_000;
/// The largest message where memory is scarce: an event has at most nine fragments of 1 kB.
pub(crate) const MESSAGE_BYTES_MAX: u32 = 10 << 10;
/// Span of time in which faults begin.
const FAULTS_FROM: u64 = 50 * MS;
const FAULTS_TO: u64 = 1500 * MS;
/// The longest hasty stop.
const HASTY_STOP_MAX: u64 = 500 * MS;
/// The longest duration of a fault.
const FAULT_MAX: u64 = 4000 * MS;

impl WorldPlan {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let readouts = between(random, 1, 3);
        let collectors = between(random, 1, 3);
        let loggers = between(random, 1, 2);
        let mut places = vec![ProcessPlace { role: Role::Supervisor, index: 0 }];
        for (role, count) in
            [(Role::Readout, readouts), (Role::Collector, collectors), (Role::Logger, loggers)]
        {
            places.extend((0..count).map(|index| ProcessPlace { role, index: index as u16 }));
        }
        let is_rolling = between(random, 1, 8) == 1;
        // Draws of its own: the rest of a seed does not depend on them.
        let mut own = Random::new(!random.clone().bits());
        // Scarce memory costs fragments, which restarts in order must not.
        let is_scarce = !is_rolling && between(&mut own, 1, 3) == 1;
        // In every fourth world few journals of each process are kept. The audit proves nothing about older events.
        let journals_kept = if between(&mut own, 1, 4) == 1 { between(&mut own, 1, 4) } else { 0 };
        // In every eighth world, a readout loses the supervisor alone, and misses the clears of many events.
        let misses_clears = !is_rolling && !is_scarce && between(&mut own, 1, 8) == 1;
        // In half of the worlds that keep few journals, an event is to outlive the journal of its assignment.
        let holds_events = !is_rolling && !misses_clears && journals_kept > 0 && between(&mut own, 1, 2) == 1;
        let kind = ScenarioKind { is_rolling, is_scarce, misses_clears, journals_kept, holds_events };
        let (mut scenario, events_max) = scenario(random, readouts, collectors, loggers, kind);
        vary_collections(&mut Random::new(!own.clone().bits()), readouts, &mut scenario);
        let has_standby = between(random, 1, 2) == 1;
        if has_standby {
            places.push(ProcessPlace { role: Role::Supervisor, index: 1 });
        }
        let mut faults = if is_rolling { restarts(random, places.len()) } else { faults(random, &places) };
        if misses_clears {
            let at = between(&mut own, FAULTS_FROM, FAULTS_TO);
            let until = at + between(&mut own, FAULT_MAX / 2, FAULT_MAX);
            let kind = InjectedFault::Cut(0, between(&mut own, 1, readouts) as Host);
            faults.push(PlannedFault { at, until, kind });
            faults.sort_by_key(|fault| fault.at);
        }
        if has_standby && !is_rolling {
            add_loss(random, &mut faults, places.len() as u64);
            // With fewer readouts there is no majority without the one that lost its vote.
            if readouts == 3 && between(random, 1, 3) == 1 {
                let at = between(random, FAULTS_FROM, FAULTS_TO);
                let kind = InjectedFault::LoseVote(between(random, 1, readouts) as Host);
                faults.push(PlannedFault { at, until: at + MS, kind });
                faults.sort_by_key(|fault| fault.at);
            }
        }
        // In one of four worlds without restarts in order, the system may be stopped before all faults are over.
        let faults_end = faults.iter().map(|fault| fault.until).max().unwrap_or(0);
        let is_early = !is_rolling && between(random, 1, 4) == 1;
        let mut stop_at = if is_early { between(random, 200 * MS, FAULTS_TO) } else { faults_end };
        keep_journals(&mut faults, &places, is_early);
        let (versions, versions_restarted) = versions(random, places.len(), is_rolling);
        // Draws of its own: the rest of a seed does not depend on them.
        let mut own = Random::new(!random.clone().bits());
        let succession = SuccessionPlaces { readouts, standby: places.len() - 1 };
        let is_contest = has_standby && !is_rolling && between(&mut own, 1, 3) == 1;
        if is_contest {
            faults = succession.draw_faults(&mut own);
            stop_at = faults.iter().map(|fault| fault.until).max().unwrap_or(0);
        }
        let is_held = holds_events && !is_contest && collectors > 1;
        if is_held {
            let draw = if between(&mut own, 1, 3) == 1 { draw_killed_collector } else { draw_cut_collector };
            faults = draw(&mut own, readouts, collectors, loggers);
            stop_at = faults.iter().map(|fault| fault.until).max().unwrap_or(0);
        }
        let mut limits = EndpointLimits {
            receive_block_bytes: [4 << 10, 16 << 10, 128 << 10][between(&mut own, 0, 2) as usize],
            outbox_bytes_max: [1 << 10, 16 << 10, 64 << 20][between(&mut own, 0, 2) as usize],
            memory: None,
        };
        if is_scarce {
            limits.receive_block_bytes = 4 << 10;
            // Each fragment of an event in progress holds a block. Not all of them fit, and in some worlds hardly those of
            // one event, so that fragments fill the memory.
            let least = 3 * readouts + 8;
            let blocks = between(&mut own, least, (readouts * events_max * 3 / 4 + 6).max(11 * readouts + 1));
            let bytes_max = blocks * limits.receive_block_bytes as u64;
            // A system of many processes gives its peers parts that are together larger than the memory. In half of the worlds
            // with scarce memory, the fragments of readouts may therefore fill all of it.
            let is_filled = between(&mut own, 1, 2) == 1;
            let peer_bytes_max = if is_filled { bytes_max } else { bytes_max / (2 * places.len() as u64) };
            limits.memory = Some(ScarceMemory { bytes_max, peer_bytes_max });
        }
        // Supervisors are replaced at the stop in every sixth world. In restarts in order, nothing else happens.
        let is_hasty = !is_rolling && between(&mut own, 1, 6) == 1;
        let hasty_stop = is_hasty.then(|| between(&mut own, 0, HASTY_STOP_MAX));
        let latencies = [100_000, 1_000_000, 5_000_000, 20_000_000];
        Self {
            places,
            scenario,
            faults,
            stop_at,
            capacity: [1 << 11, 1 << 13, 1 << 16][between(random, 0, 2) as usize],
            pieces_max: between(random, 1, 3),
            latency_max_ns: latencies[between(random, 0, 3) as usize],
            limits,
            has_key: between(random, 1, 4) != 1,
            is_long: between(random, 1, 6) == 1,
            is_rolling,
            deletes_journals: journals_kept > 0,
            is_held,
            versions,
            versions_restarted,
            hasty_stop,
        }
    }

    pub(crate) fn has_standby(&self) -> bool {
        self.places.iter().filter(|place| place.role == Role::Supervisor).count() > 1
    }

    /// Returns the limits of the endpoint of one machine's process.
    pub(crate) fn limits_of(&self, host: Host) -> EndpointLimits {
        // Supervisors send each other pieces of their log that are larger than any event.
        let memory = self.limits.memory.filter(|_| self.places[host].role != Role::Supervisor);
        EndpointLimits { memory, ..self.limits }
    }

    /// Returns the system as the process of one machine reads it from its file.
    pub(crate) fn system(&self, loaded: &Loaded, host: Host) -> System {
        let address = |role: Role| -> Vec<String> {
            let hosts = self.places.iter().enumerate().filter(|(_, place)| place.role == role);
            hosts.map(|(host, _)| format!("10.0.0.{}:7000", host + 1)).collect()
        };
        let folder = PathBuf::from(format!("/machine-{host}"));
        let key = self.has_key.then(|| SharedKey::from_hex(&"7".repeat(64)));
        System {
            path: folder.join("system.toml"),
            loaded: loaded.clone(),
            scenario_folder: PathBuf::new(),
            data: folder.join("data"),
            folder: folder.join("run"),
            run: 7,
            supervisor: address(Role::Supervisor).remove(0),
            standby: address(Role::Supervisor).get(1).cloned(),
            readouts: address(Role::Readout),
            collectors: address(Role::Collector),
            loggers: address(Role::Logger),
            listen: None,
            key: key.and_then(Result::ok),
            key_previous: None,
            open_keys: Vec::new(),
            tls: None,
            metrics: None,
            metrics_option: None,
            ideal_rate: loaded.scenario.link.rate,
            predicted: PredictedBands::default(),
            log_format: LogFormat::Text,
            log_level: tracing::Level::INFO,
            versions: self.versions[host],
            machine: HostMachine::Real,
        }
    }
}

/// Draws the versions of all processes, and the versions after a restart. Two of three worlds with restarts in order
/// upgrade the whole system, or revert an upgrade. A third of all worlds mixes both versions.
fn versions(random: &mut Random, hosts: usize, is_rolling: bool) -> (Vec<Versions>, Option<Versions>) {
    let (old, new) = (Versions::default(), VERSIONS);
    match (between(random, 1, 3), is_rolling) {
        (1, true) => (vec![old; hosts], Some(new)),
        (2, true) => (vec![new; hosts], Some(old)),
        (2 | 3, false) => (vec![new; hosts], None),
        _ => ((0..hosts).map(|_| if between(random, 0, 1) == 0 { old } else { new }).collect(), None),
    }
}

/// Properties of a world that its scenario depends on.
#[derive(Debug, Clone, Copy)]
struct ScenarioKind {
    is_rolling: bool,
    is_scarce: bool,
    /// Events at a high rate, and a clear for each.
    misses_clears: bool,
    journals_kept: u64,
    /// Small journals: a few events fill one.
    holds_events: bool,
}

/// Draws the text of a small scenario with short times. Returns the most events in progress of a collector, too.
fn scenario(
    random: &mut Random,
    readouts: u64,
    collectors: u64,
    loggers: u64,
    kind: ScenarioKind,
) -> (String, u64) {
    let ScenarioKind { is_rolling, is_scarce, misses_clears, journals_kept, holds_events } = kind;
    let mut pick = |least, most| between(random, least, most);
    // More events in progress fill the memory, or allow a high rate.
    let (more_units, factor) = match (is_scarce, misses_clears) {
        (true, _) => (9, 25),
        (false, true) => (9, 0),
        (false, false) => (0, 1),
    };
    let (units, shipping);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "[run]\nseed = {}\n\
         [readout]\nhosts = {readouts}\nfragments_per_host = {}\nfragment_size = \"{} B\"\n\
         response_delay = \"{} us\"\nmemory = \"1 MB\"\n\
         [collectors]\nhosts_per_rack = {collectors}\nunits_per_host = {}\nprocessing_time = \"{} ms\"\n\
         [supervisor]\nrate = \"{} Hz\"\nclear_group = {}\n\
         [logger]\nhosts = {loggers}\naccept = \"0.{}\"\n",
        pick(1, 1 << 30),
        pick(1, 3),
        [10, 100, 1000][pick(0, 2) as usize],
        pick(0, 500),
        {
            units = more_units + pick(1, 3);
            units
        },
        (factor * pick(1, 20)).max(1),
        pick(10, 60) * if misses_clears { 6 } else { 1 },
        pick(1, 20).min(if misses_clears { 1 } else { 20 }),
        pick(1, 9),
    );
    if pick(1, 3) != 1 {
        let _ = write!(text, "[shaping]\nmethod = \"credits\"\ncredits = {}\n", pick(3, 12));
    }
    let _ = write!(
        text,
        "[live]\nprocessors = \"timers\"\nrequest_timeout = \"{} ms\"\nrequest_retries = {}\n\
         readout_wait = \"{} ms\"\nlogger_timeout = \"{} ms\"\nreassign_delay = \"{} ms\"\n\
         silence_max = \"{} ms\"\nlogger_memory = \"{} kB\"\nshipping_max = {}\nfile_size = \"{} kB\"\n\
         journal_sync = true\njournal_size = \"{} kB\"\njournal_parts = {journals_kept}\ndrain = \"60 s\"\n",
        if is_rolling { 3000 } else { pick(100, 500) },
        pick(0, 2),
        // A readout that is restarted is back within this time.
        if is_rolling { 10_000 } else { pick(100, 600) },
        pick(300, 1500),
        pick(50, 600),
        pick(600, 1500),
        [64, 1000][pick(0, 1) as usize],
        {
            shipping = pick(1, 4);
            shipping
        },
        [8, 64, 500][pick(0, 2) as usize],
        match pick(0, 2) {
            _ if holds_events => 2,
            size => [0, 2, 16][size as usize],
        },
    );
    (text, units + shipping)
}

/// Draws how a collector requests the fragments of its events. Paced credits are in every third world. With credits of
/// either kind, three of four worlds name the discipline of requests that wait. Every fourth world with several readouts has
/// two steps.
fn vary_collections(random: &mut Random, readouts: u64, scenario: &mut String) {
    let credits = scenario.find("[shaping]");
    let end = scenario.find("[live]").unwrap_or(scenario.len());
    let mut text = String::new();
    if between(random, 1, 3) == 1 {
        text.push_str("[shaping]\nmethod = \"paced-credits\"\n");
    } else if let Some(begin) = credits {
        text.push_str(&scenario[begin..end]);
    }
    let discipline = between(random, 0, 3) as usize;
    if !text.is_empty() && discipline > 0 {
        let name = ["round-robin", "smallest-remaining", "first-fit"][discipline - 1];
        let _ = writeln!(text, "discipline = \"{name}\"");
    }
    if between(random, 1, 4) == 1 && readouts > 1 {
        let (first, second) = (between(random, 1, 9), between(random, 1, 9));
        for (name, part, accept) in [("L2", "0.5", first), ("EB", "1", second)] {
            let time = between(random, 1, 20);
            let _ = write!(
                text,
                "[[workload.steps]]\nname = \"{name}\"\nfraction = {part}\nprocessing_time = \"{time} ms\"\n\
                 accept = \"0.{accept}\"\n",
            );
        }
    }
    scenario.replace_range(credits.unwrap_or(end)..end, &text);
}

/// Adds the loss of a supervisor for good, in two of three worlds. Half of these lose all their other faults.
fn add_loss(random: &mut Random, faults: &mut Vec<PlannedFault>, hosts: u64) {
    if between(random, 1, 3) == 1 {
        return;
    }
    if between(random, 1, 2) == 1 {
        faults.clear();
        if between(random, 1, 3) == 1 {
            let kind = InjectedFault::LoseWhilePairing(between(random, 0, 40) * MS);
            faults.push(PlannedFault { at: MS, until: FAULTS_TO, kind });
            return;
        }
    }
    let host = if between(random, 1, 4) == 1 { hosts as Host - 1 } else { 0 };
    let at = between(random, 4 * FAULTS_FROM, FAULTS_TO);
    let kind = InjectedFault::LoseForGood(host, between(random, 1, 2) == 1);
    faults.push(PlannedFault { at, until: at + MS, kind });
    faults.sort_by_key(|fault| fault.at);
}

/// Draws the orderly restarts of all processes, in a random order.
fn restarts(random: &mut Random, hosts: usize) -> Vec<PlannedFault> {
    let mut order: Vec<Host> = (0..hosts).collect();
    for place in (1..hosts).rev() {
        order.swap(place, between(random, 0, place as u64) as usize);
    }
    let restart = |(place, host)| {
        let at = FAULTS_FROM + 100 * MS * place as u64;
        PlannedFault { at, until: FAULTS_TO, kind: InjectedFault::Restart(host) }
    };
    order.into_iter().enumerate().map(restart).collect()
}

fn faults(random: &mut Random, places: &[ProcessPlace]) -> Vec<PlannedFault> {
    let count = [0, 1, 2, 3, 5, 8][between(random, 0, 5) as usize];
    let hosts = places.len() as u64;
    let mut all = Vec::new();
    for _ in 0..count {
        let host = between(random, 0, hosts - 1) as Host;
        let other = ((host as u64 + between(random, 1, hosts - 1)) % hosts) as Host;
        let at = between(random, FAULTS_FROM, FAULTS_TO);
        let long = between(random, 1, 4) == 1;
        let lasts = between(random, MS, if long { FAULT_MAX } else { 400 * MS });
        let kind = match between(random, 1, 18) {
            1..=3 => InjectedFault::Kill(host),
            4 | 5 => InjectedFault::PowerLoss(host),
            6 => InjectedFault::Pause(host),
            7 => InjectedFault::Slow(host, between(random, 10, 2000)),
            8 => InjectedFault::CutOneWay(host, other),
            9 => InjectedFault::Cut(host, other),
            10 => InjectedFault::Isolate(host),
            11 => InjectedFault::SlowLink(host, other, between(random, MS, 300 * MS)),
            12 => InjectedFault::Reset(host, other),
            13 => InjectedFault::DiskFull(host),
            14 | 15 => InjectedFault::DiskErrors(host, between(random, 10, 1000)),
            16 => InjectedFault::SlowDisk(host, between(random, 10 * MS, 2000 * MS)),
            _ => InjectedFault::PowerLossAtChange(host, between(random, 1, 12)),
        };
        // The launcher notices a process that was stopped for 3 to 4.5 s, half a second later at most.
        let lasts = if long && matches!(kind, InjectedFault::Pause(_)) { 2 * lasts } else { lasts };
        all.push(PlannedFault { at, until: at + lasts, kind });
    }
    all.sort_by_key(|fault| fault.at);
    all
}

/// Returns true if the process of a machine synchronises its files to disk.
fn is_stored(places: &[ProcessPlace], host: Host) -> bool {
    matches!(places[host].role, Role::Supervisor | Role::Logger)
}

/// Removes the disk faults of collectors and readouts that may die, or are stopped early. Such a process loses lines of its
/// journal, which the audit needs. No promise is made about these lines.
fn keep_journals(faults: &mut Vec<PlannedFault>, places: &[ProcessPlace], is_early: bool) {
    let all = faults.clone();
    let dies = |host: Host| {
        all.iter().any(|fault| match fault.kind {
            InjectedFault::Kill(victim)
            | InjectedFault::LoseVote(victim)
            | InjectedFault::PowerLoss(victim)
            | InjectedFault::PowerLossAtChange(victim, _)
            | InjectedFault::Pause(victim) => victim == host,
            _ => false,
        })
    };
    // A process that the launcher does not start again repairs no journal. It always starts a supervisor again.
    for fault in faults.iter_mut().filter(|_| is_early) {
        if let InjectedFault::PowerLoss(host) | InjectedFault::PowerLossAtChange(host, _) = fault.kind
            && places[host].role != Role::Supervisor
        {
            fault.kind = InjectedFault::Kill(host);
        }
    }
    faults.retain(|fault| match fault.kind {
        InjectedFault::DiskFull(host) | InjectedFault::DiskErrors(host, _) => {
            is_stored(places, host) || !is_early && !dies(host)
        }
        _ => true,
    });
}

impl fmt::Display for WorldPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (host, place) in self.places.iter().enumerate() {
            writeln!(out, "machine {host}: {}-{}, {}", place.role, place.index, self.versions[host])?;
        }
        write!(out, "{}", self.scenario)?;
        if let Some(versions) = self.versions_restarted {
            writeln!(out, "after a restart: {versions}")?;
        }
        for fault in &self.faults {
            writeln!(out, "{} to {} ms: {:?}", fault.at / MS, fault.until / MS, fault.kind)?;
        }
        write!(
            out,
            "{:?}\nstop at {} ms; latency up to {} us, {} B a connection, up to {} pieces, key {}",
            self.limits,
            self.stop_at / MS,
            self.latency_max_ns / 1000,
            self.capacity,
            self.pieces_max,
            self.has_key
        )
    }
}
