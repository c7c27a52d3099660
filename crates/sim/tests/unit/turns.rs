use std::collections::BTreeSet;

use fanin_network::{Network, NodeIndex, Roles, topology};
use fanin_recording::EndStats;
use fanin_report::EventRow;
use fanin_scenario::Scenario;
use fanin_units::{Duration, Instant};

use super::play;
use crate::partition::Partition;
use crate::run::{RunControl, assemble};
use crate::workload::{BarrierWorkload, MeasuredWorkload, ReadyWorkload, RecordedSizes, plan};

/// The results of a run as they stand at one time.
#[derive(PartialEq, Eq, Debug)]
struct Results {
    /// Of completed rounds. Timeouts are counted where the sender is.
    rounds: Vec<EventRow>,
    ends: Vec<EndStats>,
    /// By port: bytes that have arrived, and the largest queue.
    ports: Vec<(u64, u64)>,
    frames: u64,
    drops: u64,
    timeouts: u64,
    /// Of PAUSE: signals of each kind, stopped ports of hosts and of switches. Then the longest stop, the longest stopped time of a
    /// port, and the most ingress occupancy.
    pauses: [u64; 7],
}

/// Plays a network as these groups of nodes until `until`.
fn results(scenario: &Scenario, groups: &[BTreeSet<NodeIndex>], until: Instant) -> Results {
    let (network, roles) = topology::build(scenario).expect("a network");
    let mut partitions: Vec<Partition<BarrierWorkload>> =
        groups.iter().map(|nodes| partition(scenario, &network, &roles, nodes)).collect();
    for partition in &mut partitions {
        partition.start(Duration::from_secs(1000), 0);
    }
    play(&mut partitions, until, RunControl::default().stop, |_| {});
    for partition in &mut partitions {
        partition.engine.advance(until.get());
        partition.assert_conserved();
    }
    // Several partitions have each node once.
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
        pauses[4] = figures.longest.max(pauses[4]);
        pauses[5] = figures.stopped_most.max(pauses[5]);
        pauses[6] = figures.input_bytes_max.max(pauses[6]);
    }
    let rows = |partition: &Partition<BarrierWorkload>| partition.workload.rows();
    let mut rounds: Vec<EventRow> = partitions.iter().flat_map(rows).collect();
    rounds.iter_mut().for_each(|row| row.timeouts = 0);
    Results {
        rounds,
        ends,
        ports: network.ports().map(port).collect(),
        frames: totals.iter().map(|totals| totals.frames).sum(),
        drops: totals.iter().map(|totals| totals.drops).sum(),
        timeouts: totals.iter().map(|totals| totals.timeouts).sum(),
        pauses,
    }
}

fn partition(
    scenario: &Scenario,
    network: &Network,
    roles: &Roles,
    nodes: &BTreeSet<NodeIndex>,
) -> Partition<BarrierWorkload> {
    let ReadyWorkload::Barrier(workload) =
        plan(scenario, network, roles, &RecordedSizes::None, 7).expect("a workload")
    else {
        panic!("the scenario has a barrier workload")
    };
    let plays = |node| nodes.contains(&node);
    let assembled = assemble(scenario, 7, &RunControl::default(), network, roles, *workload, plays);
    assembled.expect("a partition").0
}

/// Asserts that a network that is cut into partitions gives the same results; returns them.
fn assert_alike(preset: &str, sets: &[&str], until: Duration) -> Results {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = fanin_scenario::load(preset, &sets).expect("a scenario").scenario;
    let (network, _) = topology::build(&scenario).expect("a network");
    let nodes = 0..network.nodes.len() as NodeIndex;
    let until = Instant::START + until;
    let whole = results(&scenario, &[nodes.clone().collect()], until);
    let split = |parts: u32| -> Vec<BTreeSet<NodeIndex>> {
        (0..parts).map(|part| nodes.clone().filter(|node| node % parts == part).collect()).collect()
    };
    for parts in [2, 3] {
        assert_eq!(results(&scenario, &split(parts), until), whole, "{parts} partitions");
    }
    // Each node by itself.
    let alone: Vec<BTreeSet<NodeIndex>> = nodes.map(|node| BTreeSet::from([node])).collect();
    assert_eq!(results(&scenario, &alone, until), whole, "a partition for each node");
    whole
}

#[test]
fn partitions_played_in_turns_give_the_same_results_to_the_bit() {
    let sets = ["workload.senders=12", "tor.buffer=20 kB"];
    let whole = assert_alike("m21tcp-ffw", &sets, Duration::from_millis(1500));
    assert!(whole.drops > 0 && whole.timeouts > 0 && whole.rounds.len() > 1, "{whole:?}");
}

#[test]
fn signals_of_pause_cross_between_partitions() {
    for (mode, sets) in [("pause", &[][..]), ("priority", &["tor.pause.reaction=0 s", "tor.latency=3 us"])] {
        let mode = format!("tor.pause.mode={mode}");
        let pause =
            ["workload.senders=12", "tor.buffer=1 MB", "tor.pause.xoff=9 kB", "tor.pause.xon=5 kB", &mode];
        let whole = assert_alike("m21tcp-ffw", &[&pause, sets].concat(), Duration::from_millis(400));
        assert!(whole.rounds.len() > 1 && whole.drops == 0, "{whole:?}");
        let [pauses, resumes, hosts, ..] = whole.pauses;
        assert!(pauses > 10 && resumes > 10 && hosts > 1, "{mode}: {whole:?}");
    }
}
