//! Measures the capacity of this machine before a run, and limits the run's scale to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fanin_events::sizes::{self, EventSizes};
use fanin_node::barrier::BarrierRole;
use fanin_scenario::{Arrivals, Buffering, CongestionControl, Scenario, SizeModel, role_configs};
use fanin_units::{Bytes, Rate, Ratio};

use super::{Bench, BenchError, LiveNetwork, Part};

/// Length of the measured stream.
const MEASURE: Duration = Duration::from_millis(400);
const BLOCK_BYTES: usize = 64 << 10;
const SENDERS: u16 = 2;
/// Number of connections; their median gives the round-trip time.
const TRIPS: usize = 21;
const PORT: u16 = 6000;
/// A rate far above this machine's: neither host nor port paces the stream.
const UNPACED: Rate = Rate::new(40_000_000_000);
/// The largest rate of a collector's link without pacing on two cores. Above it no incast collapse can be measured.
const LAST_HOP_MAX: u64 = 200_000_000;
/// The share of the measured capacity that an automatically chosen scale uses. The rest is for bursts and the roles' own
/// work. Barrier workloads have no such work.
const SHARE_BUILDING: f64 = 0.10;
const SHARE_BARRIER: f64 = 0.40;
/// The largest share that a run may use: above it nothing is left for bursts.
const SHARE_MAX: f64 = 0.80;
/// The smallest scale; a smaller one would take too long.
const SCALE_MIN: Ratio = Ratio::new(1_000);

/// The capacity of this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// TCP payload through one switch between hosts, in bit/s, with the work at both ends included.
    pub bits_per_s: f64,
    /// Delay from host to host through one switch of this machine: half the median of a connection's first round trip. This
    /// delay includes the wake-up of the waiting process.
    pub one_way: fanin_units::Duration,
}

/// The scale of a run, chosen here or given by the scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chosen {
    /// The scale chosen.
    pub scale: Ratio,
    /// Rate that the system requires of the machine at this scale, in bit/s.
    pub demand_bits_per_s: f64,
    /// True if the scenario gives the scale.
    pub is_given: bool,
}

impl Chosen {
    /// Returns half the scale; `None` if the scenario gives the scale, or half of it is below the smallest one.
    pub fn halved(self) -> Option<Self> {
        let scale = Ratio::new(self.scale.get() / 2);
        let demand_bits_per_s = self.demand_bits_per_s / 2.0;
        (!self.is_given && scale >= SCALE_MIN).then_some(Self { scale, demand_bits_per_s, ..self })
    }
}

/// The scale exceeds this machine's capacity.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "`run.scale` is {scale}: at that scale the system moves {demand:.0} Mb/s through {switches} switches, and this machine \
     carries {capacity:.0} Mb/s through one just now; {advice}"
)]
pub struct TooFast {
    /// The scale given.
    pub scale: Ratio,
    /// The required rate, in Mb/s.
    pub demand: f64,
    /// The machine's rate, in Mb/s.
    pub capacity: f64,
    /// Number of switches on the path.
    pub switches: u64,
    /// A remedy in words, with the largest scale possible.
    pub advice: String,
}

/// Measures the rate of a stream from two hosts to a third through a switch without limits, in less than a second.
///
/// # Errors
/// If the network cannot be built.
pub fn measure(folder: &Path, program: &Path) -> Result<Capacity, BenchError> {
    let sets = [
        "transport.profile=linux-6".to_owned(),
        format!("workload.senders={SENDERS}"),
        "tor.buffering=unlimited".to_owned(),
    ];
    let mut scenario = fanin_scenario::load("incast", &sets).expect("a preset with plain settings").scenario;
    scenario.link.rate = UNPACED;
    scenario.readout.link.rate = UNPACED;
    scenario.link.delay = fanin_units::Duration::ZERO;
    scenario.readout.link.delay = fanin_units::Duration::ZERO;
    scenario.transport.congestion_control = CongestionControl::Cubic;
    scenario.tor.buffering = Buffering::Unlimited;
    let bench = Bench::build(&scenario, folder, program, fanin_units::Duration::ZERO)?;
    let address = |sender| {
        let host = bench
            .network()
            .host_of(Part::Barrier(BarrierRole::Sender(sender)))
            .expect("a sender of this network");
        SocketAddr::from((host.address, PORT))
    };
    let (stop, received) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut listeners = Vec::new();
    for sender in 0..SENDERS {
        let listener = bench
            .namespace(Part::Barrier(BarrierRole::Sender(sender)))
            .run(|| TcpListener::bind(address(sender)));
        listeners.push(flat(listener)?);
    }
    let mut streams = Vec::new();
    for (sender, listener) in (0..SENDERS).zip(&listeners) {
        let to = address(sender);
        let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(5));
        let receiver = flat(bench.namespace(Part::Barrier(BarrierRole::Aggregator)).run(connect))?;
        receiver.set_read_timeout(Some(Duration::from_secs(1))).map_err(network)?;
        let (sender, _) = listener.accept().map_err(network)?;
        sender.set_write_timeout(Some(Duration::from_secs(1))).map_err(network)?;
        streams.push((sender, receiver));
    }
    let one_way = flat(bench.namespace(Part::Barrier(BarrierRole::Aggregator)).run(|| one_way(&address(0))))?;
    let mut seconds = 0.0;
    std::thread::scope(|scope| {
        for (mut sender, mut receiver) in streams {
            let (stop, received) = (&stop, &received);
            scope.spawn(move || {
                let block = vec![0x5a_u8; BLOCK_BYTES];
                while !stop.load(Ordering::Relaxed) && sender.write_all(&block).is_ok() {}
            });
            scope.spawn(move || {
                let mut buffer = vec![0; BLOCK_BYTES];
                while let Ok(read @ 1..) = receiver.read(&mut buffer) {
                    received.fetch_add(read as u64, Ordering::Relaxed);
                }
            });
        }
        // Time for the windows to open.
        std::thread::sleep(MEASURE / 4);
        let (began, before) = (Instant::now(), received.load(Ordering::Relaxed));
        std::thread::sleep(MEASURE);
        seconds = began.elapsed().as_secs_f64();
        received.fetch_sub(before, Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
    });
    let bits_per_s = received.load(Ordering::Relaxed) as f64 * 8.0 / seconds;
    bench.remove()?;
    Ok(Capacity { bits_per_s, one_way })
}

/// Returns half the median time of connecting to `to`, one connection after the other on an idle network.
fn one_way(to: &SocketAddr) -> std::io::Result<fanin_units::Duration> {
    let mut times = Vec::new();
    for _ in 0..TRIPS {
        let began = Instant::now();
        TcpStream::connect_timeout(to, Duration::from_secs(5))?;
        times.push(began.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    times.sort();
    let median = times[times.len() / 2].as_nanos() / 2;
    Ok(fanin_units::Duration::from_nanos(u64::try_from(median).unwrap_or(u64::MAX)))
}

fn network(source: std::io::Error) -> BenchError {
    BenchError::Stream { source }
}

fn flat<T>(result: Result<std::io::Result<T>, crate::InsideError>) -> Result<T, BenchError> {
    result.map_err(crate::BuildError::from)?.map_err(network)
}

/// Returns the rate that a system at full scale requires of the machine: payload in bit/s, counted once in each switch.
///
/// # Panics
/// If the network is not the scenario's.
pub fn demand(scenario: &Scenario, network: &LiveNetwork) -> f64 {
    let most = network.data_rate_max(scenario);
    let switches = network.switches_passed() as f64;
    if scenario.is_barrier() {
        return most * switches;
    }
    let background = match role_configs::background(scenario) {
        None => 0.0,
        Some(traffic) if traffic.has_ends() => most * scenario.background.load.as_f64(),
        Some(_) => most,
    };
    let events = if scenario.supervisor.arrivals == Arrivals::OnDemand {
        most
    } else {
        // Only events that an earlier step accepts reach a step.
        let parts = network.step_parts(scenario);
        let answers: f64 = parts.iter().map(|part| part.reach.as_f64() * part.readouts as f64).sum();
        8.0 * answer_bytes(scenario) * answers * scenario.supervisor.rate.as_hertz_f64()
    };
    (events + background).min(most) * switches
}

/// Returns the smallest time of a collection, in seconds: the time of its data on the collector's link, without headers. With
/// steps it is that of the first one, after which an event may be rejected.
///
/// # Panics
/// If the network is not the scenario's.
pub fn least_collection_s(scenario: &Scenario, network: &LiveNetwork) -> f64 {
    let bytes = if scenario.is_barrier() {
        role_configs::request_size(scenario).block(scenario.workload.senders).get() as f64
    } else {
        answer_bytes(scenario) * network.step_parts(scenario)[0].readouts as f64
    };
    8.0 * bytes / network.last_rate(scenario).get() as f64
}

/// Returns the mean payload of a readout's answer; `None` if the fragment sizes have no known mean.
pub(super) fn answer_payload(scenario: &Scenario) -> Option<Bytes> {
    let bytes = mean_fragment_bytes(scenario)? * f64::from(scenario.readout.fragments_per_host);
    Some(Bytes::new(bytes as u64))
}

/// Returns the mean payload of a readout's answer in bytes. Without a known mean, returns a very large size, so that links count
/// as full.
fn answer_bytes(scenario: &Scenario) -> f64 {
    mean_fragment_bytes(scenario).unwrap_or(f64::MAX) * f64::from(scenario.readout.fragments_per_host)
}

fn mean_fragment_bytes(scenario: &Scenario) -> Option<f64> {
    let (hosts, fragments) = (scenario.readout.hosts, scenario.readout.fragments_per_host);
    let places = scenario.fragments_total();
    let mean = match &scenario.readout.fragment_size {
        SizeModel::File { path } => {
            EventSizes::read(path, hosts, fragments).ok().map(|sizes| sizes.mean(places))
        }
        SizeModel::PerSource { path, sigma } => sizes::read_models(path, hosts, fragments)
            .ok()
            .map(|models| sizes::models_mean(&models, sigma.as_f64(), places)),
        other => other.mean(),
    };
    mean.map(|bytes| bytes.get() as f64)
}

impl Capacity {
    /// Returns the largest scale at which `scenario` stays below this machine's capacity, with headroom; at least 0.001.
    ///
    /// # Panics
    /// If the network is not the scenario's.
    pub fn largest(self, scenario: &Scenario, network: &LiveNetwork) -> Ratio {
        let share = if scenario.is_barrier() { SHARE_BARRIER } else { SHARE_BUILDING };
        let by_load = share * self.bits_per_s / demand(scenario, network);
        let by_link = LAST_HOP_MAX as f64 / network.last_rate(scenario).get() as f64;
        let scale = by_load.min(by_link).min(1.0);
        // Rounded to two digits, so that the next run is likely to get the same scale.
        let digits = 10_f64.powf(scale.log10().floor() - 1.0);
        let ppm = ((scale / digits).floor() * digits * 1e6).round() as u64;
        Ratio::new(ppm).clamp(SCALE_MIN, Ratio::ONE)
    }

    /// Returns the scenario's scale, or without one the [largest](Self::largest).
    ///
    /// # Errors
    /// If the scenario's scale requires more than 80 % of this machine's capacity.
    ///
    /// # Panics
    /// If the network is not the scenario's.
    pub fn choose(self, scenario: &Scenario, network: &LiveNetwork) -> Result<Chosen, TooFast> {
        let whole = demand(scenario, network);
        let given = scenario.run.scale;
        if given.is_zero() {
            let scale = self.largest(scenario, network);
            return Ok(Chosen { scale, demand_bits_per_s: whole * scale.as_f64(), is_given: false });
        }
        let demand_bits_per_s = whole * given.as_f64();
        if demand_bits_per_s > SHARE_MAX * self.bits_per_s {
            return Err(TooFast {
                scale: given,
                demand: demand_bits_per_s / 1e6,
                capacity: self.bits_per_s / 1e6,
                switches: network.switches_passed() as u64,
                advice: format!(
                    "`run.scale={}` leaves headroom, and 0 chooses",
                    self.largest(scenario, network)
                ),
            });
        }
        Ok(Chosen { scale: given, demand_bits_per_s, is_given: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(preset: &str, sets: &[&str]) -> Scenario {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        fanin_scenario::load(preset, &sets).unwrap().scenario
    }

    fn network(scenario: &Scenario) -> LiveNetwork {
        LiveNetwork::of(scenario).unwrap()
    }

    fn demand(scenario: &Scenario) -> f64 {
        super::demand(scenario, &network(scenario))
    }

    fn largest(capacity: Capacity, scenario: &Scenario) -> Ratio {
        capacity.largest(scenario, &network(scenario))
    }

    fn choose(capacity: Capacity, scenario: &Scenario) -> Result<Chosen, TooFast> {
        capacity.choose(scenario, &network(scenario))
    }

    fn least_collection_s(scenario: &Scenario) -> f64 {
        super::least_collection_s(scenario, &network(scenario))
    }

    #[test]
    fn the_largest_scale_leaves_room() {
        let capacity = Capacity { bits_per_s: 2e9, one_way: fanin_units::Duration::ZERO };
        // A link of 1 Gb/s: two cores do not pace up to 200 Mb/s.
        assert_eq!(largest(capacity, &scenario("incast", &[])), Ratio::new(200_000));
        assert_eq!(largest(capacity, &scenario("incast", &["link.rate=100 Mb/s"])), Ratio::ONE);
        // A tenth of 2 Gb/s for 1.03 MB × 200 Hz, from the sample's own sizes.
        let replay = scenario("replay", &[]);
        assert!((1.5e9..1.8e9).contains(&demand(&replay)), "{}", demand(&replay));
        let scale = largest(capacity, &replay);
        assert!(demand(&replay) * scale.as_f64() <= 0.1 * 2e9, "{scale}");
        assert!(demand(&replay.slowed(scale)) <= 0.1 * 2e9 + 1e6);
        let halved = choose(capacity, &replay).unwrap().halved().unwrap();
        assert_eq!(halved.scale.as_f64(), scale.as_f64() / 2.0);
        let weak = Capacity { bits_per_s: 1e3, one_way: fanin_units::Duration::ZERO };
        assert_eq!(largest(weak, &replay), SCALE_MIN);
    }

    #[test]
    fn the_least_time_is_that_of_the_data_on_the_last_link() {
        let sets = ["link.rate=100 Mb/s", "workload.senders=10", "workload.request_size=10 kB"];
        assert_eq!(least_collection_s(&scenario("incast", &sets)), 8e-3);
        // 1.03 MB at 1 Gb/s, from the sample's own sizes.
        let replay = least_collection_s(&scenario("replay", &["link.rate=1 Gb/s"]));
        assert!((7.5e-3..9e-3).contains(&replay), "{replay}");
    }

    #[test]
    fn a_scale_that_does_not_fit_is_refused_with_one_that_does() {
        let capacity = Capacity { bits_per_s: 1e9, one_way: fanin_units::Duration::ZERO };
        let error = choose(capacity, &scenario("incast", &["run.scale=1"])).unwrap_err().to_string();
        assert!(error.contains("carries 1000 Mb/s") && error.contains("run.scale=0.2"), "{error}");
        let chosen = choose(capacity, &scenario("incast", &["run.scale=0.5"])).unwrap();
        assert!(chosen.is_given && (chosen.demand_bits_per_s - 5e8).abs() < 1.0);
        assert!(!choose(capacity, &scenario("incast", &[])).unwrap().is_given);
    }

    #[test]
    fn two_switches_are_twice_the_work() {
        let star = scenario("thesis-a-1000hz", &["network.topology=star"]);
        let racks = scenario("thesis-a-1000hz", &[]);
        assert_eq!(demand(&racks), 2.0 * demand(&star));
    }

    /// The second step asks 45 of 60 readouts more, for a tenth of the events.
    #[test]
    fn the_load_is_that_of_the_readouts_asked() {
        let sets = ["network.topology=star", "supervisor.rate=100 Hz", "readout.hosts=60"];
        let with = |set: &str| scenario("thesis-a-1000hz", &[&sets[..], &[set]].concat());
        let whole = with("workload.fraction=1");
        let half = with("workload.fraction=0.5");
        let steps = with(
            "workload.steps=[{ name = \"L2\", fraction = 0.25, processing_time = \"1 ms\", \
                          accept = 0.1 }, { name = \"EB\", fraction = 1, processing_time = \"1 ms\", accept = 0 }]",
        );
        assert_eq!(demand(&half), demand(&whole) / 2.0);
        assert!((demand(&steps) / demand(&whole) - (15.0 + 4.5) / 60.0).abs() < 1e-9);
        assert_eq!(least_collection_s(&half), least_collection_s(&whole) / 2.0);
        assert_eq!(least_collection_s(&steps), least_collection_s(&whole) / 4.0);
        let ideal =
            |scenario: &Scenario| network(scenario).ideal_rate(scenario).unwrap().unwrap().get() as f64;
        assert!((ideal(&half) / ideal(&whole) - 1.0).abs() < 0.05, "{} {}", ideal(&half), ideal(&whole));
    }

    /// Requests on demand fill the narrowest links of the way, not more.
    #[test]
    fn the_load_is_at_most_that_of_the_narrowest_links() {
        let sets = ["network.topology=star", "supervisor.arrivals=on-demand", "readout.link.rate=50 Mb/s"];
        let slow = scenario("thesis-a-1000hz", &sets);
        assert_eq!(demand(&slow), 50e6 * f64::from(slow.readout.hosts));
    }
}
