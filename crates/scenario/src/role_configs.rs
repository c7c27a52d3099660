//! The configurations of the state machines (`fanin-dataflow`), from a scenario.
//!
//! Both the simulated and the live system start from these functions, so that a key has one meaning. Each side then sets
//! its own seeds and its own settings: timeouts of real processes, or the simulated disk.

use fanin_dataflow::{
    AggregatorConfig, AnswerSize, BackgroundTraffic, BarrierSenderConfig, ClearConfig, CollectionStep,
    CollectorConfig, Delay, FragmentSet, PacedCreditsConfig, ReadoutConfig, Selection, SupervisorConfig,
    UnitModel, answer_bytes,
};
use fanin_units::{Bytes, Duration, Rate, Ratio};

use crate::{Arrivals, BackgroundKind, Scenario, ShapingMethod, Step, StepPart, WorkloadKind};

/// An error: a number of the scenario is too large for the state machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany {
    /// The key; for a total, the product of its keys.
    pub key: &'static str,
    /// The number that was set.
    pub actual: u64,
    /// The largest number that is possible.
    pub max: u16,
}

impl std::fmt::Display for TooMany {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is {}; at most {} is possible", self.key, self.actual, self.max)
    }
}

impl std::error::Error for TooMany {}

/// The keys of the total number of collectors.
pub const COLLECTORS: &str = "collectors.racks × collectors.hosts_per_rack";

/// Converts a number of hosts, units or fragments to the type by which the state machines count.
///
/// # Errors
/// If the number is above 65 535.
pub fn small(key: &'static str, number: u64) -> Result<u16, TooMany> {
    u16::try_from(number).map_err(|_| TooMany { key, actual: number, max: u16::MAX })
}

/// Checks that a request can name all fragments of a readout.
///
/// # Errors
/// If a readout has more fragments than [`FragmentSet::FRAGMENTS_MAX`].
pub fn check_fragments(scenario: &Scenario) -> Result<(), TooMany> {
    let (actual, max) = (u64::from(scenario.readout.fragments_per_host), FragmentSet::FRAGMENTS_MAX);
    if !scenario.is_barrier() && actual > u64::from(max) {
        return Err(TooMany { key: "readout.fragments_per_host", actual, max });
    }
    Ok(())
}

/// Returns the supervisor's settings. The supervisor clears events, and waits for all units at the start.
///
/// # Errors
/// If the number of hosts or units is too large.
pub fn supervisor<P: Default>(scenario: &Scenario) -> Result<SupervisorConfig<P>, TooMany> {
    let units = small("collectors.units_per_host", u64::from(scenario.collectors.units_per_host))?;
    let collectors = small(COLLECTORS, scenario.collectors_total())?;
    let supervisor = &scenario.supervisor;
    Ok(SupervisorConfig {
        units: vec![units; usize::from(collectors)],
        readouts: small("readout.hosts", u64::from(scenario.readout.hosts))?,
        arrivals: supervisor.arrivals,
        rate: supervisor.rate,
        units_awaited: u32::from(units) * u32::from(collectors),
        policy: supervisor.policy,
        tie_break: supervisor.tie_break,
        start_order: supervisor.start_order,
        clear: Some(ClearConfig {
            clear_group: small("supervisor.clear_group", u64::from(supervisor.clear_group))?,
            ..ClearConfig::default()
        }),
        ..SupervisorConfig::default()
    })
}

/// Returns the settings of a readout.
pub fn readout(scenario: &Scenario) -> ReadoutConfig {
    ReadoutConfig {
        response_delay: delay(scenario.readout.response_delay, scenario.readout.response_delay_sd),
        memory: Some(scenario.readout.memory),
        ..ReadoutConfig::default()
    }
}

/// Returns true if a readout could run out of memory in this run. Otherwise fragments need not be stored, with the same
/// results.
pub fn memory_matters(scenario: &Scenario, mean: Bytes) -> bool {
    /// Largest assumed size of a fragment, as a multiple of its mean.
    const LARGEST: f64 = 16.0;
    let readout = &scenario.readout;
    let seconds = (scenario.run.warmup + scenario.run.duration).as_secs_f64();
    // On demand, the event rate is at most the capacity of the links.
    let carried = readout.link.rate.get() as f64 / 8.0 * f64::from(readout.links_per_host) * seconds;
    let event = mean.get() as f64 * f64::from(readout.fragments_per_host) * LARGEST;
    let accepted = match scenario.supervisor.arrivals {
        Arrivals::OnDemand => carried * LARGEST,
        // A Poisson process hardly ever gives more than twice its mean and a hundred.
        _ => event * (2.0 * scenario.supervisor.rate.as_hertz_f64() * seconds + 100.0),
    };
    accepted >= readout.memory.get() as f64
}

/// Returns the settings of collector `place`; `fragments` is the number requested from each readout. The collector's units draw
/// times and decisions. The supervisor clears events, so that no event returns with a restarted collector.
///
/// # Errors
/// If the number of units or loggers is too large.
///
/// # Panics
/// If the scenario has no collectors.
pub fn collector(scenario: &Scenario, place: u64, fragments: Vec<u16>) -> Result<CollectorConfig, TooMany> {
    let (readouts, collectors) = (fragments.len() as u64, scenario.collectors_total());
    // A readout without fragments, such as the one on the collector's own host, is not asked.
    let asked = fragments.iter().filter(|&&fragments| fragments > 0).count() as u64;
    Ok(CollectorConfig {
        units: small("collectors.units_per_host", u64::from(scenario.collectors.units_per_host))?,
        readouts: fragments,
        loggers: small("logger.hosts", u64::from(scenario.logger.hosts))?,
        credits: credits(scenario),
        paced_credits: paced_credits(scenario, collector_rate(scenario, place), answer_bytes(0, Bytes::ZERO)),
        discipline: scenario.shaping.discipline,
        request_order: scenario.shaping.request_order,
        first_readout: first_readout(place, collectors, readouts),
        model: UnitModel::Steps(steps(scenario, asked)),
        clear: None,
        ..CollectorConfig::default()
    })
}

/// Returns the credits of a collector; `None` for other methods.
#[must_use]
pub fn credits(scenario: &Scenario) -> Option<u32> {
    (scenario.shaping.method == ShapingMethod::Credits).then_some(scenario.shaping.credits)
}

/// Returns the settings of paced credits: the collector's part of its host's links, their full frame, the mean fragment and
/// an answer's own bytes. `None` for other methods.
fn paced_credits(scenario: &Scenario, rate: Rate, header: Bytes) -> Option<PacedCreditsConfig> {
    (scenario.shaping.method == ShapingMethod::PacedCredits).then(|| PacedCreditsConfig {
        rate,
        segment: scenario.transport.segment_payload(),
        frame: scenario.full_frame_wire(),
        fragment: scenario.readout.fragment_size.mean().unwrap_or_default(),
        header,
    })
}

/// Returns the rate of collector `place`'s link. In all-to-all workloads, collectors share the links of a readout host, as
/// the star spreads them (`fanin-network`): each has an equal part.
fn collector_rate(scenario: &Scenario, place: u64) -> Rate {
    if scenario.workload.kind != WorkloadKind::AllToAll {
        return scenario.link.rate;
    }
    let (readout, hosts) = (&scenario.readout, u64::from(scenario.readout.hosts));
    let on_host = (scenario.collectors_total() - place % hosts).div_ceil(hosts);
    Rate::new(readout.link.rate.get() * u64::from(readout.links_per_host) / on_host)
}

/// Returns the settings of the aggregator of a barrier workload. The aggregator never reports a stall by itself.
pub fn aggregator(scenario: &Scenario) -> AggregatorConfig {
    AggregatorConfig {
        senders: scenario.workload.senders,
        request_size: request_size(scenario),
        warmup: scenario.run.warmup,
        // Barriers' answers have no header.
        paced_credits: paced_credits(scenario, scenario.link.rate, Bytes::ZERO),
        ..AggregatorConfig::default()
    }
}

/// Returns the settings of sender `place` of a barrier workload.
///
/// # Panics
/// If the sender does not exist.
pub fn barrier_sender(scenario: &Scenario, place: u32) -> BarrierSenderConfig {
    BarrierSenderConfig {
        answer: request_size(scenario).answer(place, scenario.workload.senders),
        service_delay_max: scenario.workload.service_delay_max,
        seed: 0,
    }
}

/// Returns the traffic of each background connection; `None` without background traffic.
pub fn background(scenario: &Scenario) -> Option<BackgroundTraffic> {
    let background = &scenario.background;
    let connections = u128::from(background.connections);
    if connections == 0 {
        return None;
    }
    if background.kind == BackgroundKind::Bulk {
        return Some(BackgroundTraffic::Bulk);
    }
    let (size, payload) = (background.transfer_size, scenario.background_transport().segment_payload());
    let segments = size.get().div_ceil(payload.get().max(1));
    let headers = scenario.full_frame_wire().saturating_sub(payload).get();
    let wire_bits = 8 * (u128::from(size.get()) + u128::from(segments) * u128::from(headers));
    // Picoseconds in a second, and parts of the whole of a ratio.
    let rate = u128::from(scenario.link.rate.get()) * u128::from(background.load.get());
    let interval = wire_bits * connections * 1_000_000_000_000 * 1_000_000 / rate.max(1);
    let interval = Duration::new(u64::try_from(interval).unwrap_or(u64::MAX).max(1));
    Some(BackgroundTraffic::Transfers { interval, size, sigma: background.transfer_sigma })
}

/// Returns a delay with this mean and standard deviation: normal, or constant if the deviation is zero.
fn delay(mean: Duration, sd: Duration) -> Delay {
    if sd.is_zero() { Delay::Constant(mean) } else { Delay::Normal { mean, sd } }
}

/// Returns the first readout of collector `place` out of `collectors` with `shaping.request_order = "rotated"`.
fn first_readout(place: u64, collectors: u64, readouts: u64) -> u16 {
    (place * readouts / collectors) as u16
}

/// Returns the size of the answers of a barrier workload.
pub fn request_size(scenario: &Scenario) -> AnswerSize {
    let size = scenario.workload.request_size;
    match scenario.workload.kind {
        WorkloadKind::FixedBlock => AnswerSize::FixedBlock(size),
        WorkloadKind::FixedFragment
        | WorkloadKind::EventBuilding
        | WorkloadKind::Push
        | WorkloadKind::AllToAll => AnswerSize::FixedFragment(size),
    }
}

/// Returns the steps of a collection from `readouts` readouts that a collector may ask: `workload.steps`, or one step over
/// `workload.fraction`.
pub fn steps(scenario: &Scenario, readouts: u64) -> Vec<CollectionStep> {
    let workload = &scenario.workload;
    let collect = |(share, part): (Ratio, StepPart)| {
        // Rounded up, this share of fewer than a million readouts is the part's number.
        let more = Ratio::new(part.readouts * 1_000_000 / readouts.max(1));
        if share == Ratio::ONE { Selection::Rest } else { Selection::Readouts(more) }
    };
    let parts = workload.step_parts(readouts);
    if workload.steps.is_empty() {
        let collectors = &scenario.collectors;
        return vec![CollectionStep {
            collect: collect((workload.fraction, parts[0])),
            processing_time: delay(collectors.processing_time, collectors.processing_time_sd),
            accept: scenario.logger.accept,
        }];
    }
    let step = |(step, part): (&Step, StepPart)| CollectionStep {
        collect: collect((step.fraction, part)),
        processing_time: Delay::Constant(step.processing_time),
        accept: step.accept,
    };
    workload.steps.iter().zip(parts).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_dataflow::{CreditDiscipline, PacedCredits, RelativeSize};
    use fanin_units::Instant;

    fn scenario(sets: &[&str]) -> Scenario {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        crate::load("thesis-a-1000hz", &sets).unwrap_or_else(|errors| panic!("{errors}")).scenario
    }

    #[test]
    fn a_scenario_without_steps_has_one_step() {
        let whole = scenario(&["collectors.processing_time=3 ms", "collectors.processing_time_sd=0 s"]);
        let [step] = &steps(&whole, 160)[..] else { panic!("{:?}", steps(&whole, 160)) };
        assert!(matches!(step.collect, Selection::Rest));
        assert_eq!(step.processing_time, Delay::Constant(Duration::from_millis(3)));
        let half = scenario(&["workload.fraction=0.5"]);
        assert_eq!(steps(&half, 160)[0].collect, Selection::Readouts(half.workload.fraction));
    }

    #[test]
    fn a_step_asks_what_its_share_lacks() {
        let three = scenario(&[
            "workload.steps=[{ name = \"A\", fraction = 0.1, processing_time = \"1 ms\", accept = 1 }, \
            { name = \"B\", fraction = 0.5, processing_time = \"1 ms\", accept = 1 }, \
            { name = \"C\", fraction = 1, processing_time = \"1 ms\", accept = 1 }]",
        ]);
        let collected = |readouts| -> Vec<_> {
            let counts = |selection: Selection| match selection {
                Selection::Readouts(share) => Some(share.ceil_of(readouts)),
                _ => None,
            };
            steps(&three, readouts).into_iter().map(|step| counts(step.collect)).collect()
        };
        // A tenth is 16, and half is 80. Of 147, they are 15 and 74.
        assert_eq!(collected(160), [Some(16), Some(64), None]);
        assert_eq!(collected(147), [Some(15), Some(59), None]);
        for readouts in [1, 7, 999, 65_535] {
            let parts = three.workload.step_parts(readouts);
            let counts = parts.iter().map(|part| Some(part.readouts)).take(2);
            assert!(counts.eq(collected(readouts)[..2].iter().copied()), "{readouts}");
        }
    }

    #[test]
    fn a_request_names_at_most_128_fragments() {
        assert_eq!(check_fragments(&scenario(&["readout.fragments_per_host=128"])), Ok(()));
        let error = check_fragments(&scenario(&["readout.fragments_per_host=129"])).unwrap_err();
        assert_eq!(error.to_string(), "`readout.fragments_per_host` is 129; at most 128 is possible");
    }

    #[test]
    fn background_transfers_come_at_the_rate_of_their_load() {
        let sets = ["background.connections=4", "background.kind=transfers", "background.load=0.5"];
        assert_eq!(background(&scenario(&[])), None);
        assert_eq!(background(&scenario(&sets[..1])), Some(BackgroundTraffic::Bulk));
        let Some(BackgroundTraffic::Transfers { interval, size, .. }) = background(&scenario(&sets)) else {
            panic!("transfers")
        };
        // 1 MB in 691 segments has 1 062 190 B on the wire: 17 ms at half of 1 Gb/s, by four connections.
        assert_eq!(size.get(), 1_000_000);
        assert_eq!(interval, Duration::from_nanos(67_980_160));
    }

    #[test]
    fn paced_credits_predict_the_bytes_on_the_wire() {
        let predicted = |config: Option<PacedCreditsConfig>| {
            let mut paced = PacedCredits::new(config.expect("paced credits"), 1);
            paced.expect(0, Bytes::new(1_000));
            paced.on_sent(Instant::START, 0, 1, RelativeSize::default()).bytes().get()
        };
        let building = scenario(&["shaping.method=paced-credits"]);
        let sets = ["shaping.method=paced-credits", "transport.profile=linux-6"].map(str::to_owned);
        let barrier = crate::load("incast", &sets).unwrap_or_else(|errors| panic!("{errors}")).scenario;
        // One frame has 90 B of headers, preamble and gap; a message of event building has 22 B of its own.
        assert_eq!(predicted(collector(&building, 0, vec![1]).expect("one unit").paced_credits), 1_112);
        assert_eq!(predicted(aggregator(&barrier).paced_credits), 1_090);
    }

    #[test]
    fn collectors_begin_at_readouts_of_their_own() {
        let firsts: Vec<_> = (0..4).map(|place| first_readout(place, 4, 10)).collect();
        assert_eq!(firsts, [0, 2, 5, 7]);
    }

    #[test]
    fn collectors_on_one_host_share_its_links() {
        let rates = |sets: &[&str]| -> Vec<u64> {
            let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
            let all = crate::load("lcn15-all-to-all", &sets).unwrap().scenario;
            (0..all.collectors_total())
                .map(|place| {
                    let config = collector(&all, place, vec![90; 12]).unwrap();
                    config.paced_credits.unwrap().rate.get()
                })
                .collect()
        };
        let paced = "shaping.method=paced-credits";
        assert_eq!(rates(&[paced]), [833_333_333; 144]);
        // Two hosts have two collectors, and the others have one. `link` leads to no collector.
        let few = rates(&[paced, "collectors.hosts_per_rack=14", "link.rate=1 Mb/s"]);
        assert_eq!(few[..3], [5_000_000_000, 5_000_000_000, 10_000_000_000]);
        assert_eq!(few[11..], [10_000_000_000, 5_000_000_000, 5_000_000_000]);
        assert_eq!(rates(&[paced, "readout.links_per_host=3"]), [2_500_000_000; 144]);
    }

    #[test]
    fn credits_reach_the_collector_under_their_name() {
        let collector = |sets: &[&str]| collector(&scenario(sets), 0, vec![12; 160]).unwrap();
        assert_eq!(collector(&["shaping.credits=96"]).credits, Some(96));
        assert_eq!(collector(&["shaping.method=fastpass"]).credits, None);
        let config = collector(&["shaping.method=paced-credits"]);
        assert_eq!(config.discipline, CreditDiscipline::SmallestRemaining);
        let chosen = collector(&["shaping.method=paced-credits", "shaping.discipline=fifo"]);
        assert_eq!(chosen.discipline, CreditDiscipline::Fifo);
        assert_eq!(collector(&[]).discipline, CreditDiscipline::Fifo);
        let paced = config.paced_credits.unwrap();
        assert_eq!(paced.fragment.get(), 1_100);
        assert_eq!((paced.rate.get(), paced.segment.get(), paced.frame.get()), (1_000_000_000, 1_448, 1_538));
        // A smaller segment has a smaller frame, whatever the MTU is.
        let small_segments = collector(&["shaping.method=paced-credits", "transport.mss=576 B"]);
        let paced = small_segments.paced_credits.unwrap();
        assert_eq!((paced.segment.get(), paced.frame.get()), (564, 654));
        assert_eq!(
            small("readout.hosts", 65_536),
            Err(TooMany { key: "readout.hosts", actual: 65_536, max: 65_535 })
        );
    }
}
