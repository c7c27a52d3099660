use std::collections::BTreeSet;

use fanin_network::{Network, NodeIndex, Roles, topology};
use fanin_recording::{CompletedTransfer, EndStats};
use fanin_report::EventRow;
use fanin_scenario::Scenario;
use fanin_units::{Duration, Instant};

use super::play;
use crate::partition::Partition;
use crate::run::{RunControl, RunSetup, assemble};
use crate::workload::{
    BarrierWorkload, Building, MeasuredWorkload, ReadyWorkload, RecordedSizes, WithBackground, plan,
};

/// The results of a run as they stand at one time.
#[derive(PartialEq, Eq, Debug)]
struct Results {
    /// Rows of events, or of completed rounds.
    rows: Vec<EventRow>,
    ends: Vec<EndStats>,
    /// By port: bytes that have arrived, and the largest queue.
    ports: Vec<(u64, u64)>,
    frames: u64,
    drops: u64,
    /// Frames lost on links.
    link_losses: u64,
    timeouts: u64,
    /// Background transfers that have arrived.
    transfers: Vec<CompletedTransfer>,
    /// Figures of PAUSE: signals of each kind, stopped ports of hosts and of switches. Then the bits of the longest pause and
    /// of the largest share of a port, and the high-water mark of the ingress occupancy.
    pauses: [u64; 7],
}

/// A workload that can be split over several partitions.
trait CutWorkload: MeasuredWorkload + Sized {
    fn of(workload: ReadyWorkload, setup: &RunSetup<'_>) -> Self;
    /// The rows of the whole network, without timeouts: the sender's partition does not know the received messages.
    fn joined_rows(partitions: Vec<Self>) -> Vec<EventRow>;
}

impl CutWorkload for BarrierWorkload {
    fn of(workload: ReadyWorkload, _: &RunSetup<'_>) -> Self {
        let ReadyWorkload::Barrier(workload) = workload else { panic!("a barrier workload") };
        *workload
    }

    fn joined_rows(partitions: Vec<Self>) -> Vec<EventRow> {
        let mut rows: Vec<EventRow> = partitions.iter().flat_map(Self::rows).collect();
        rows.iter_mut().for_each(|row| row.timeouts = Some(0));
        rows
    }
}

impl CutWorkload for Building {
    fn of(workload: ReadyWorkload, _: &RunSetup<'_>) -> Self {
        let ReadyWorkload::Building(workload) = workload else { panic!("event building") };
        *workload
    }

    fn joined_rows(mut partitions: Vec<Self>) -> Vec<EventRow> {
        let first = partitions.iter().position(|building| building.assigned() > 0);
        let mut whole = partitions.swap_remove(first.expect("events are assigned"));
        partitions.iter().for_each(|other| whole.absorb(other));
        let mut rows = whole.rows();
        rows.iter_mut().for_each(|row| row.timeouts = Some(0));
        rows
    }
}

impl<W: CutWorkload> CutWorkload for WithBackground<W> {
    fn of(workload: ReadyWorkload, setup: &RunSetup<'_>) -> Self {
        let both = Self::new(W::of(workload, setup), setup.scenario, setup.roles, setup.seed);
        both.unwrap_or_else(|_| panic!("background traffic"))
    }

    fn joined_rows(partitions: Vec<Self>) -> Vec<EventRow> {
        W::joined_rows(partitions.into_iter().map(|partition| partition.own).collect())
    }
}

/// Plays a network as these groups of nodes until `until`.
fn results<W: CutWorkload>(scenario: &Scenario, groups: &[BTreeSet<NodeIndex>], until: Instant) -> Results {
    let (network, roles) = topology::build(scenario).expect("a network");
    let mut partitions: Vec<Partition<W>> =
        groups.iter().map(|nodes| partition(scenario, &network, &roles, nodes)).collect();
    for partition in &mut partitions {
        partition.start(Duration::from_secs(1000), 0);
    }
    play(&mut partitions, until, RunControl::default().stop, |_| {});
    for partition in &mut partitions {
        partition.engine.advance(until.get());
        partition.assert_conserved();
    }
    // Each node belongs to one partition.
    let mut ends: Vec<EndStats> = partitions.iter().flat_map(Partition::end_stats).collect();
    ends.sort_unstable_by_key(|end| end.end);
    let totals: Vec<_> = partitions.iter().map(|partition| partition.engine.totals()).collect();
    let port = |port: u32| {
        let arrived = totals.iter().map(|totals| totals.port_bytes[port as usize]).sum();
        let most = partitions.iter().map(|partition| partition.engine.fabric.port_bytes_max(port)).sum();
        (arrived, most)
    };
    let mut pauses = [0; 7];
    for figures in
        partitions.iter().filter_map(|partition| partition.engine.fabric.pause_figures(until.get()))
    {
        pauses[0] += figures.pauses;
        pauses[1] += figures.resumes;
        pauses[2] += figures.hosts_stopped;
        pauses[3] += figures.switch_ports_stopped;
        pauses[4] = figures.stop_ms_max.to_bits().max(pauses[4]);
        pauses[5] = figures.stopped_share_max.to_bits().max(pauses[5]);
        pauses[6] = figures.input_bytes_max.max(pauses[6]);
    }
    let ports = network.ports().map(port).collect();
    let arrived = partitions.iter().flat_map(|partition| partition.workload.transfers());
    let mut transfers: Vec<CompletedTransfer> = arrived.copied().collect();
    transfers.sort_unstable_by_key(|transfer| (transfer.at, transfer.began));
    Results {
        rows: W::joined_rows(partitions.into_iter().map(|partition| partition.workload).collect()),
        ends,
        ports,
        frames: totals.iter().map(|totals| totals.frames).sum(),
        drops: totals.iter().map(|totals| totals.drops).sum(),
        link_losses: totals.iter().filter_map(|totals| totals.link_losses).sum(),
        timeouts: totals.iter().map(|totals| totals.own[2]).sum(),
        transfers,
        pauses,
    }
}

fn partition<W: CutWorkload>(
    scenario: &Scenario,
    network: &Network,
    roles: &Roles,
    nodes: &BTreeSet<NodeIndex>,
) -> Partition<W> {
    let setup = RunSetup { scenario, seed: 7, control: &RunControl::default(), network, roles };
    let planned = plan(scenario, network, roles, &RecordedSizes::None, 7).expect("a workload");
    let assembled = assemble(&setup, W::of(planned, &setup), |node| nodes.contains(&node));
    assembled.expect("a partition").0
}

/// Asserts that a network cut into partitions gives the same results; returns them.
fn assert_alike<W: CutWorkload>(preset: &str, sets: &[&str], until: Duration) -> Results {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = fanin_scenario::load(preset, &sets).expect("a scenario").scenario;
    let (network, _) = topology::build(&scenario).expect("a network");
    let nodes = 0..network.nodes.len() as NodeIndex;
    let until = Instant::START + until;
    let whole = results::<W>(&scenario, &[nodes.clone().collect()], until);
    let split = |parts: u32| -> Vec<BTreeSet<NodeIndex>> {
        (0..parts).map(|part| nodes.clone().filter(|node| node % parts == part).collect()).collect()
    };
    for parts in [2, 3] {
        assert_eq!(results::<W>(&scenario, &split(parts), until), whole, "{parts} partitions");
    }
    // Each node by itself.
    let alone: Vec<BTreeSet<NodeIndex>> = nodes.map(|node| BTreeSet::from([node])).collect();
    assert_eq!(results::<W>(&scenario, &alone, until), whole, "a partition for each node");
    whole
}

#[test]
fn partitions_played_in_turns_give_the_same_results_to_the_bit() {
    let sets = ["workload.senders=12", "tor.buffer=20 kB"];
    let whole = assert_alike::<BarrierWorkload>("m21tcp-ffw", &sets, Duration::from_millis(1500));
    assert!(whole.drops > 0 && whole.timeouts > 0 && whole.rows.len() > 1, "{whole:?}");
}

#[test]
fn signals_of_pause_cross_between_partitions() {
    for (mode, sets) in [("pause", &[][..]), ("priority", &["tor.pause.reaction=0 s", "tor.latency=3 us"])] {
        let mode = format!("tor.pause.mode={mode}");
        let pause =
            ["workload.senders=12", "tor.buffer=1 MB", "tor.pause.xoff=9 kB", "tor.pause.xon=5 kB", &mode];
        let whole = assert_alike::<BarrierWorkload>(
            "m21tcp-ffw",
            &[&pause, sets].concat(),
            Duration::from_millis(400),
        );
        assert!(whole.rows.len() > 1 && whole.drops == 0, "{whole:?}");
        let [pauses, resumes, hosts, ..] = whole.pauses;
        assert!(pauses > 10 && resumes > 10 && hosts > 1, "{mode}: {whole:?}");
    }
}

/// A small rack of the thesis.
const RACK: [&str; 9] = [
    "readout.hosts=12",
    "readout.fragments_per_host=6",
    "collectors.racks=2",
    "collectors.hosts_per_rack=3",
    "collectors.units_per_host=4",
    "collectors.processing_time=2 ms",
    "supervisor.policy=node-round-robin",
    "network.readouts_per_group=6",
    "supervisor.rate=2 kHz",
];

#[test]
fn event_building_is_cut_between_any_hosts() {
    let assert_built = |sets: &[&str]| {
        let whole =
            assert_alike::<Building>("thesis-a-1000hz", &[&RACK, sets].concat(), Duration::from_millis(40));
        let collected = whole.rows.iter().filter(|row| row.collection_time_ps.is_some()).count();
        assert!(collected > 20, "{whole:?}");
        assert!(whole.rows.iter().all(|row| row.ideal_ps <= row.collection_time_ps), "{whole:?}");
        whole
    };
    let credits = assert_built(&["shaping.credits=18"]);
    assert_eq!(credits.drops, 0);
    // Without credits a small buffer overflows, and timeouts hold events up.
    let whole = assert_built(&["shaping.method=none", "tor.buffer=30 kB", "transport.rto_min=1 ms"]);
    assert!(whole.drops > 0 && whole.timeouts > 0, "{whole:?}");
    assert_built(&["workload.kind=push", "shaping.method=none"]);
}

#[test]
fn background_traffic_is_cut_between_any_hosts() {
    let transfers = [
        "background.connections=3",
        "background.kind=transfers",
        "background.transfer_size=40 kB",
        "background.transfer_sigma=1",
        "background.load=0.3",
    ];
    let sets = [&RACK, &transfers[..], &["shaping.credits=18"]].concat();
    let until = Duration::from_millis(40);
    let whole = assert_alike::<WithBackground<Building>>("thesis-a-1000hz", &sets, until);
    assert!(whole.transfers.len() > 100 && whole.rows.len() > 20, "{whole:?}");
    let incast = [
        "workload.senders=6",
        "workload.request_size=30 kB",
        "tor.buffer=60 kB",
        "readout.link.rate=10 Gb/s",
    ];
    let sets = [&incast[..], &["background.connections=2"]].concat();
    let whole = assert_alike::<WithBackground<BarrierWorkload>>("incast", &sets, Duration::from_millis(120));
    // The losses hold the first round up.
    assert!(whole.drops > 100 && whole.frames > 10_000, "{whole:?}");
}

#[test]
fn links_lose_the_same_frames_in_any_partition() {
    let sets = ["workload.senders=12", "link.loss=0.01", "transport.rto_min=10 ms"];
    let whole = assert_alike::<BarrierWorkload>("incast", &sets, Duration::from_millis(150));
    assert!(whole.link_losses > 10 && !whole.rows.is_empty(), "{whole:?}");
    let sets = [&RACK, &["uplink.loss=0.002", "shaping.method=paced-credits"][..]].concat();
    let whole = assert_alike::<Building>("thesis-a-1000hz", &sets, Duration::from_millis(20));
    assert!(whole.link_losses > 1, "{whole:?}");
}

/// A technique on a host or at a switch reads only its state of that host or switch.
#[test]
fn techniques_are_cut_with_their_hosts_and_switches() {
    let incast: [&[&str]; 9] = [
        &["transport.congestion_control=dctcp", "tor.ecn.mode=threshold"],
        &["transport.ecn=true", "tor.ecn.mode=red-mark"],
        &["transport.congestion_control=m21tcp", "tor.m21=true"],
        &["transport.congestion_control=diatcp"],
        &["transport.congestion_control=ictcp"],
        &["transport.congestion_control=swift"],
        &["transport.congestion_control=sird"],
        &["tor.buffering=dynamic-threshold"],
        &["tor.buffering=daqring", "tor.daqring.frames=40", "tor.daqring.rate=900 Mb/s"],
    ];
    for sets in incast {
        let sets = [&["workload.senders=12", "tor.buffer=40 kB", "transport.rto_min=10 ms"], sets].concat();
        let whole = assert_alike::<BarrierWorkload>("incast", &sets, Duration::from_millis(150));
        assert!(!whole.rows.is_empty(), "{sets:?}: {whole:?}");
    }
    let rack: [&[&str]; 6] = [
        &["shaping.method=paced-credits"],
        &["transport.congestion_control=diatcp", "transport.diatcp.global_window=30"],
        &["transport.congestion_control=ictcp"],
        &["tor.pause.mode=pause", "tor.pause.xoff=20 kB", "tor.pause.xon=10 kB"],
        &["core.buffering=daqring", "core.daqring.frames=30", "core.daqring.rate=400 Mb/s"],
        &["supervisor.policy=fcfs", "logger.accept=0.3"],
    ];
    for sets in rack {
        let sets = [&RACK, sets].concat();
        let whole = assert_alike::<Building>("thesis-a-1000hz", &sets, Duration::from_millis(20));
        assert!(whole.rows.iter().any(|row| row.collection_time_ps.is_some()), "{sets:?}: {whole:?}");
    }
}
