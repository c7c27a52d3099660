//! Measurements of the switches and the machine while a system runs.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fanin_report::{NetworkFigures, QueueRow};
use fanin_scenario::Scenario;
use fanin_switch::control::Client;
use fanin_units::wire;
use serde_json::Value;

use super::effort::{Effort, Machine, Work, machine, work};
use super::hosts::HostWork;
use super::switch_process::{SwitchError, SwitchProcess, reset_marks, snapshot};
use super::{LinkEnd, LiveNetwork};

/// Interval of the samples. A switch's snapshot is reused for this time, so more frequent requests return nothing new.
const EVERY: Duration = Duration::from_millis(100);
/// Rounds from one reading of the hosts' processes to the next. Each reading goes through every process of the machine.
const HOSTS_EVERY: u64 = 5;
/// Causes of drops by this machine, not by the network.
const MACHINES: [&str; 3] = ["memory", "handover", "impairment-limit"];
/// Causes of drops outside the system's traffic.
const UNMISSED: [&str; 2] = ["filtered", "no-port"];
/// The cause of frames that a link loses at random.
const LOST: &str = "impairment";

/// The counters of all switches at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetworkTotals {
    /// Frames that hosts sent.
    pub frames: u64,
    /// Bytes on the link of these frames.
    pub bytes: u64,
    /// Frames refused by a full buffer.
    pub drops: u64,
    /// Frames that links lost at random.
    pub link_losses: u64,
    /// Frames that switches marked.
    pub marks: u64,
    /// PAUSE frames that a switch obeyed.
    pub pauses: u64,
    /// Frames lost because this machine was too slow.
    pub missed: u64,
}

/// The measurements of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observed {
    /// Figures of the network, with the simulator's names.
    pub network: NetworkFigures,
    /// Watched queues; times are picoseconds since 1970 minus the base given to [`SwitchWatch::finish`].
    pub queues: Vec<QueueRow>,
    /// Frames lost because this machine was too slow.
    pub missed: u64,
    /// The load on the machine.
    pub effort: Effort,
    /// The load of the busiest last hop to a collector, and of the busiest link between switches, as shares of the rate.
    pub load: (Option<f64>, Option<f64>),
}

#[derive(Debug, Clone)]
struct Sample {
    unix_us: u64,
    queue: usize,
    bytes: u64,
    frames: u64,
    drops: u64,
    marks: u64,
}

/// The state at one moment of the measurement: counters and processor times.
#[derive(Debug, Clone, Default)]
struct Moment {
    at: Option<Instant>,
    totals: NetworkTotals,
    sent: BTreeMap<String, u64>,
    work: Vec<Work>,
    /// Rounds that moved frames, and all rounds, by switch.
    rounds: Vec<(u64, u64)>,
    machine: Machine,
    hosts: HostWork,
}

#[derive(Debug, Default)]
struct QueuePeaks {
    samples: Vec<Sample>,
    /// High-water mark by switch and by the queue's index in the snapshot.
    deepest: BTreeMap<(usize, usize), u64>,
    late_s: f64,
    hosts: HostWork,
    failed: Option<SwitchError>,
}

/// The largest values of the measurement, and the last reading of the hosts' processes.
struct Peaks {
    late_s: f64,
    queue_bytes_max: u64,
    hosts: HostWork,
}

/// Watches the switches in a separate thread.
#[derive(Debug)]
pub struct SwitchWatch {
    network: LiveNetwork,
    clients: Vec<(String, Client, u32)>,
    /// The inode numbers of the hosts' namespaces.
    hosts: Vec<u64>,
    /// Queue names by switch and port.
    names: Vec<String>,
    seen: Arc<Mutex<QueuePeaks>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    from: Moment,
    until: Moment,
}

/// Checks that the switches of a run are still running, and still answer.
#[derive(Debug, Clone)]
pub struct SwitchHealth {
    /// The name and process id of each switch.
    switches: Vec<(String, u32)>,
    seen: Arc<Mutex<QueuePeaks>>,
}

impl SwitchHealth {
    /// Checks that every switch is still running, and has answered the samples until now.
    ///
    /// # Errors
    /// The first switch that has ended, or did not answer.
    pub fn check(&self) -> Result<(), SwitchError> {
        for (name, pid) in &self.switches {
            // A process that has ended and was not waited for yet is a zombie (proc_pid_stat(5)).
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
            if matches!(state, None | Some('Z' | 'X')) {
                return Err(SwitchError::Died { name: name.clone() });
            }
        }
        lock(&self.seen).failed.clone().map_or(Ok(()), Err)
    }
}

impl SwitchWatch {
    /// Returns a check of the switches, which costs very little.
    pub fn health(&self) -> SwitchHealth {
        let switches = self.clients.iter().map(|(name, _, pid)| (name.clone(), *pid)).collect();
        SwitchHealth { switches, seen: Arc::clone(&self.seen) }
    }

    pub(super) fn start(
        network: &LiveNetwork,
        switches: &[SwitchProcess],
        hosts: Vec<u64>,
        scenario: &Scenario,
    ) -> Result<Self, SwitchError> {
        let clients: Vec<_> =
            switches.iter().map(|one| (one.name.clone(), one.client(), one.pid())).collect();
        let mut names = Vec::new();
        // By switch: the place in `names` of each watched port.
        let mut watched: Vec<BTreeMap<String, usize>> = Vec::new();
        for (number, switch) in network.switches.iter().enumerate() {
            let mut ports = BTreeMap::new();
            for ((_, end), port) in network.ports_of(number).into_iter().zip(network.port_names(number)) {
                if is_watched(&scenario.record.queues, &switch.name, network.name_of(end)) {
                    names.push(format!("{}->{port}", switch.name));
                    ports.insert(port, names.len() - 1);
                }
            }
            watched.push(ports);
        }
        let (seen, stop) = (Arc::<Mutex<QueuePeaks>>::default(), Arc::<AtomicBool>::default());
        let mut watch = Self {
            network: network.clone(),
            clients,
            hosts,
            names,
            seen: Arc::clone(&seen),
            stop: Arc::clone(&stop),
            thread: None,
            from: Moment::default(),
            until: Moment::default(),
        };
        watch.from = watch.mark()?;
        let (clients, hosts) = (watch.clients.clone(), watch.hosts.clone());
        let interval = EVERY.max(Duration::from_nanos(scenario.record.queue_interval.as_nanos()));
        watch.thread = Some(std::thread::spawn(move || {
            for turn in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let began = Instant::now();
                if turn % HOSTS_EVERY == 0 {
                    let work = HostWork::of(&hosts);
                    lock(&seen).hosts.update(work);
                }
                let looked = look(&clients, &watched, &seen);
                if let Err(error) = looked {
                    lock(&seen).failed.get_or_insert(error);
                    return;
                }
                std::thread::sleep(interval.saturating_sub(began.elapsed()));
            }
        }));
        Ok(watch)
    }

    /// Begins the measurement: earlier traffic does not count.
    ///
    /// # Errors
    /// If a switch does not answer.
    pub fn begin(&mut self) -> Result<(), SwitchError> {
        for (name, client, _) in &self.clients {
            reset_marks(name, client)?;
        }
        let mut seen = lock(&self.seen);
        seen.late_s = 0.0;
        seen.deepest.clear();
        drop(seen);
        self.from = self.mark()?;
        Ok(())
    }

    /// Ends the measurement. Counters are up to a tenth of a second old, here and in [`Self::begin`], because a switch's
    /// snapshot serves for that time.
    ///
    /// # Errors
    /// If a switch does not answer.
    pub fn end(&mut self) -> Result<(), SwitchError> {
        self.until = self.mark()?;
        Ok(())
    }

    /// Stops watching. Times of rows count from `base_unix_us`.
    ///
    /// # Errors
    /// If a switch did not answer at some time.
    pub fn finish(mut self, base_unix_us: u64) -> Result<Observed, SwitchError> {
        self.halt();
        let mut seen = std::mem::take(&mut *lock(&self.seen));
        // A switch that failed is not asked again.
        if let Some(error) = seen.failed.take() {
            return Err(error);
        }
        if self.until.at.is_none() {
            self.until = self.mark()?;
        }
        let mut samples = seen.samples;
        samples.sort_by_key(|sample| (sample.queue, sample.unix_us));
        let names: Vec<Arc<str>> = self.names.iter().map(|name| Arc::from(name.as_str())).collect();
        let queues =
            samples.into_iter().filter(|sample| sample.unix_us >= base_unix_us).map(|sample| QueueRow {
                queue: names[sample.queue].clone(),
                time_ps: (sample.unix_us - base_unix_us).saturating_mul(1_000_000),
                queue_bytes: sample.bytes,
                queue_frames: sample.frames,
                drops: sample.drops,
                ecn_marks: sample.marks,
                limit_bytes: None,
            });
        let peaks = Peaks {
            late_s: seen.late_s,
            queue_bytes_max: seen.deepest.values().copied().max().unwrap_or_default(),
            hosts: seen.hosts,
        };
        Ok(Observed { queues: queues.collect(), ..self.observed(&self.until, peaks) })
    }

    /// Returns the measurement without its queues: until now, or until its end.
    ///
    /// # Errors
    /// If a switch does not answer.
    pub fn so_far(&self) -> Result<Observed, SwitchError> {
        let now = if self.until.at.is_some() { None } else { Some(self.mark()?) };
        let seen = lock(&self.seen);
        let peaks = Peaks {
            late_s: seen.late_s,
            queue_bytes_max: seen.deepest.values().copied().max().unwrap_or_default(),
            hosts: seen.hosts.clone(),
        };
        drop(seen);
        Ok(self.observed(now.as_ref().unwrap_or(&self.until), peaks))
    }

    /// Returns true if a link loses frames at random.
    fn loses(&self) -> bool {
        self.network.links.iter().any(|link| !link.loss.is_zero())
    }

    fn observed(&self, until: &Moment, mut peaks: Peaks) -> Observed {
        let from = &self.from;
        let seconds = match (from.at, until.at) {
            (Some(from), Some(until)) => (until - from).as_secs_f64(),
            _ => 0.0,
        };
        // Processes that have ended count with their last times.
        peaks.hosts.update(until.hosts.clone());
        let waited = peaks.hosts.since(&from.hosts);
        Observed {
            network: NetworkFigures {
                packets: Some(until.totals.frames - from.totals.frames),
                bytes: Some(until.totals.bytes - from.totals.bytes),
                drops: Some(until.totals.drops - from.totals.drops),
                link_losses: self.loses().then(|| until.totals.link_losses - from.totals.link_losses),
                ecn_marks: Some(until.totals.marks - from.totals.marks),
                pauses: Some(until.totals.pauses - from.totals.pauses),
                queue_bytes_max: Some(peaks.queue_bytes_max),
                ..NetworkFigures::default()
            },
            queues: Vec::new(),
            missed: until.totals.missed - from.totals.missed,
            effort: Effort { hosts: waited, ..effort(from, until, seconds, peaks.late_s) },
            load: self.load(until, seconds),
        }
    }

    /// Returns the loads of the busiest last hop to a collector and of the busiest link between switches, as shares of the
    /// rate. They count the bytes that the switches sent.
    fn load(&self, until: &Moment, seconds: f64) -> (Option<f64>, Option<f64>) {
        let (mut last_hop, mut uplink): (Option<f64>, Option<f64>) = (None, None);
        for (number, switch) in self.network.switches.iter().enumerate() {
            for ((link, end), port) in
                self.network.ports_of(number).into_iter().zip(self.network.port_names(number))
            {
                let name = format!("{}->{port}", switch.name);
                let sent = |mark: &Moment| mark.sent.get(&name).copied().unwrap_or_default();
                let bits = 8.0 * (sent(until) - sent(&self.from)) as f64;
                let share = bits / seconds.max(1e-9) / self.network.links[link].rate.get() as f64;
                let busiest = match end {
                    LinkEnd::Switch(_) => &mut uplink,
                    LinkEnd::Host(host) if self.network.hosts[host].name.starts_with("collector") => {
                        &mut last_hop
                    }
                    LinkEnd::Host(_) => continue,
                };
                *busiest = Some(busiest.map_or(share, |most| most.max(share)));
            }
        }
        (last_hop, uplink)
    }

    fn mark(&self) -> Result<Moment, SwitchError> {
        let hosts = HostWork::of(&self.hosts);
        let mut mark = Moment { at: Some(Instant::now()), machine: machine(), hosts, ..Moment::default() };
        for (number, (name, client, pid)) in self.clients.iter().enumerate() {
            let picture = snapshot(name, client)?;
            self.add(&mut mark, number, &picture);
            let workers = items(&picture["workers"]).iter();
            mark.rounds.push(workers.fold((0, 0), |(busy, all), worker| {
                (busy + count(worker, "busy_rounds"), all + count(worker, "rounds"))
            }));
            mark.work.push(work(*pid));
        }
        Ok(mark)
    }

    fn add(&self, mark: &mut Moment, number: usize, picture: &Value) {
        let ends = self.network.ports_of(number);
        let totals = &mut mark.totals;
        for (place, port) in items(&picture["ports"]).iter().enumerate() {
            let name = port["name"].as_str().unwrap_or_default();
            if matches!(ends.get(place), Some((_, LinkEnd::Host(_)))) {
                totals.frames += count(&port["received"], "frames");
                totals.bytes += wire_bytes(&port["received"]);
            }
            totals.pauses += count(port, "pauses_received");
            totals.missed += count(port, "missed");
            for dropped in items(&port["dropped"]) {
                let cause = dropped["cause"].as_str().unwrap_or_default();
                if MACHINES.contains(&cause) {
                    totals.missed += count(dropped, "frames");
                } else if cause == LOST {
                    totals.link_losses += count(dropped, "frames");
                } else if !UNMISSED.contains(&cause) {
                    totals.drops += count(dropped, "frames");
                }
            }
            add_queue(totals, &port["queue"]);
            let link = format!("{}->{name}", self.network.switches[number].name);
            mark.sent.insert(link, wire_bytes(&port["sent"]));
        }
        for ring in items(&picture["rings"]) {
            add_queue(totals, &ring["queue"]);
        }
    }

    fn halt(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; the samples before it count.
            let _ = thread.join();
        }
    }
}

impl Drop for SwitchWatch {
    fn drop(&mut self) {
        self.halt();
    }
}

fn lock(seen: &Mutex<QueuePeaks>) -> std::sync::MutexGuard<'_, QueuePeaks> {
    seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns true if a pattern of `record.queues` names a port; without any pattern, ports to collectors are watched.
fn is_watched(patterns: &[String], from: &str, to: &str) -> bool {
    let fits = |wanted: &str, name: &str| {
        let kind = name.split_once(':').map_or(name, |(kind, _)| kind);
        wanted == name || wanted == kind || wanted.strip_suffix(":*") == Some(kind)
    };
    if patterns.is_empty() {
        return to.starts_with("collector");
    }
    patterns.iter().filter_map(|pattern| pattern.split_once("->")).any(|(a, b)| fits(a, from) && fits(b, to))
}

fn look(
    clients: &[(String, Client, u32)],
    watched: &[BTreeMap<String, usize>],
    seen: &Mutex<QueuePeaks>,
) -> Result<(), SwitchError> {
    for (number, ((name, client, pid), watched)) in clients.iter().zip(watched).enumerate() {
        let before = work(*pid);
        let picture = snapshot(name, client)?;
        let unix_us = unix_us();
        let after = work(*pid);
        let mut seen = lock(seen);
        let turns = after.turns.saturating_sub(before.turns);
        if turns > 0 {
            let late = after.waited.saturating_sub(before.waited) as f64 / 1e9 / turns as f64;
            seen.late_s = seen.late_s.max(late);
        }
        let mut sums: BTreeMap<&str, (u64, u64, u64, u64)> = BTreeMap::new();
        let ports = items(&picture["ports"]).iter().map(|port| (&port["name"], &port["queue"]));
        let rings = items(&picture["rings"]).iter().map(|ring| (&ring["port"], &ring["queue"]));
        for (place, (port, queue)) in ports.chain(rings).enumerate() {
            // The scenario's buffers count the check sequence, and the switch does not.
            let check_bytes = |frames| u64::from(wire::ETHERNET_CHECK) * frames;
            let most = count(queue, "bytes_max") + check_bytes(count(queue, "frames_max"));
            let deepest = seen.deepest.entry((number, place)).or_default();
            // Samples are much further apart than the duration of a burst: a new high-water mark is the peak since the
            // last sample.
            let is_deeper = most > *deepest;
            *deepest = most.max(*deepest);
            let sum = sums.entry(port.as_str().unwrap_or_default()).or_default();
            let frames = count(queue, if is_deeper { "frames_max" } else { "frames" });
            sum.0 += if is_deeper { most } else { count(queue, "bytes") + check_bytes(frames) };
            sum.1 += frames;
            sum.2 += items(&queue["dropped"]).iter().map(|dropped| count(dropped, "frames")).sum::<u64>();
            sum.3 += count(&queue["marked"], "frames");
        }
        let rows = sums.into_iter().filter_map(|(port, sum)| Some((*watched.get(port)?, sum)));
        seen.samples.extend(rows.map(|(queue, (bytes, frames, drops, marks))| Sample {
            unix_us,
            queue,
            bytes,
            frames,
            drops,
            marks,
        }));
    }
    Ok(())
}

fn add_queue(totals: &mut NetworkTotals, queue: &Value) {
    totals.marks += count(&queue["marked"], "frames");
    totals.drops += items(&queue["dropped"]).iter().map(|dropped| count(dropped, "frames")).sum::<u64>();
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_default()
}

/// Returns the link time of a tally's frames, in bytes.
fn wire_bytes(tally: &Value) -> u64 {
    count(tally, "bytes") + u64::from(wire::ETHERNET_UNCOUNTED) * count(tally, "frames")
}

fn effort(from: &Moment, until: &Moment, seconds: f64, late_s: f64) -> Effort {
    let share = |of: fn(&Work) -> u64| {
        let pairs = from.work.iter().zip(&until.work);
        let used = pairs.map(|(from, until)| of(until).saturating_sub(of(from))).max().unwrap_or_default();
        used as f64 / 1e9 / seconds.max(1e-9)
    };
    // By switch: the share of its rounds that moved frames.
    let busy: Vec<f64> = from
        .rounds
        .iter()
        .zip(&until.rounds)
        .map(|(from, until)| {
            let all = until.1.saturating_sub(from.1).max(1);
            until.0.saturating_sub(from.0) as f64 / all as f64
        })
        .collect();
    let pairs = || from.work.iter().zip(&until.work);
    let working = pairs().zip(&busy).map(|((from, until), busy)| {
        busy * until.ran.saturating_sub(from.ran) as f64 / 1e9 / seconds.max(1e-9)
    });
    let late_mean = pairs().map(|(from, until)| {
        let turns = until.turns.saturating_sub(from.turns).max(1);
        until.waited.saturating_sub(from.waited) as f64 / 1e9 / turns as f64
    });
    let ticks = |of: fn(&Machine) -> u64| of(&until.machine).saturating_sub(of(&from.machine)) as f64;
    let all = ticks(|machine| machine.all).max(1.0);
    Effort {
        switch_cpu: share(|work| work.ran),
        switch_busy: busy.iter().copied().fold(0.0, f64::max),
        switch_working: working.fold(0.0, f64::max),
        switch_wait: share(|work| work.waited),
        switch_late_s: late_s,
        switch_late_mean_s: late_mean.fold(0.0, f64::max),
        machine_cpu: 1.0 - (ticks(|machine| machine.idle) / all).min(1.0),
        steal: ticks(|machine| machine.stolen) / all,
        hosts: None,
    }
}

fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_named_as_in_the_simulator() {
        let named = |pattern: &str, from, to| is_watched(&[pattern.to_owned()], from, to);
        assert!(named("tor->collector:0", "tor:0", "collector:0"));
        assert!(!named("tor->collector:0", "tor:0", "collector:1"));
        assert!(named("core:*->tor:1", "core:0", "tor:1"));
        assert!(is_watched(&[], "tor:0", "collector:3") && !is_watched(&[], "tor:0", "readout:3"));
    }

    #[test]
    fn lost_frames_are_the_networks_or_the_machines() {
        let scenario = fanin_scenario::load("incast", &[]).unwrap().scenario;
        let network = LiveNetwork::of(&scenario).unwrap();
        let watch = SwitchWatch {
            network,
            clients: Vec::new(),
            hosts: Vec::new(),
            names: Vec::new(),
            seen: Arc::default(),
            stop: Arc::default(),
            thread: None,
            from: Moment::default(),
            until: Moment::default(),
        };
        let picture = serde_json::json!({
            "ports": [{
                "name": "collector:0",
                "received": {"frames": 2, "bytes": 120},
                "sent": {"frames": 10, "bytes": 15_140},
                "missed": 3,
                "dropped": [{"cause": "memory", "frames": 4, "bytes": 1}, {"cause": "no-port", "frames": 1, "bytes": 1},
                            {"cause": "impairment", "frames": 8, "bytes": 1}],
                "pauses_received": 0,
                "queue": {"marked": {"frames": 5, "bytes": 1}, "dropped": [{"cause": "output", "frames": 6, "bytes": 1}]},
            }],
            "rings": [{"port": "collector:0", "queue": {"dropped": [{"cause": "ring", "frames": 7, "bytes": 1}]}}],
        });
        let mut mark = Moment::default();
        watch.add(&mut mark, 0, &picture);
        let totals = NetworkTotals {
            frames: 2,
            bytes: 168,
            drops: 13,
            link_losses: 8,
            marks: 5,
            missed: 7,
            ..NetworkTotals::default()
        };
        assert_eq!(mark.totals, totals);
        assert_eq!(mark.sent["tor:0->collector:0"], 15_380);
    }
}
