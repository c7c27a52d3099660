use std::collections::BTreeSet;

use fanin_network::{Network, NodeIndex, Roles, topology};
use fanin_recording::EndStats;
use fanin_report::EventRow;
use fanin_scenario::Scenario;
use fanin_units::{Duration, Instant};

use super::play;
use crate::partition::Partition;
use crate::run::{RunControl, assemble};
use crate::workload::{BarrierWorkload, MeasuredWorkload, ReadyWorkload, plan};

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
        partition.engine.now = until.get();
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
    }
}

fn partition(
    scenario: &Scenario,
    network: &Network,
    roles: &Roles,
    nodes: &BTreeSet<NodeIndex>,
) -> Partition<BarrierWorkload> {
    let ReadyWorkload::Barrier(workload) = plan(scenario, network, roles, 7).expect("a workload") else {
        panic!("the scenario has a barrier workload")
    };
    let plays = |node| nodes.contains(&node);
    let assembled = assemble(scenario, 7, &RunControl::default(), network, roles, *workload, plays);
    assembled.expect("a partition").0
}

#[test]
fn partitions_played_in_turns_give_the_same_results_to_the_bit() {
    let sets = ["workload.senders=12", "tor.buffer=20 kB"].map(str::to_owned);
    let scenario = fanin_scenario::load("m21tcp-ffw", &sets).expect("a scenario").scenario;
    let (network, _) = topology::build(&scenario).expect("a network");
    let nodes = 0..network.nodes.len() as NodeIndex;
    let until = Instant::START + Duration::from_millis(1500);
    let whole = results(&scenario, &[nodes.clone().collect()], until);
    assert!(whole.drops > 0 && whole.timeouts > 0 && whole.rounds.len() > 1, "{whole:?}");
    let split = |parts: u32| -> Vec<BTreeSet<NodeIndex>> {
        (0..parts).map(|part| nodes.clone().filter(|node| node % parts == part).collect()).collect()
    };
    for parts in [2, 3] {
        assert_eq!(results(&scenario, &split(parts), until), whole, "{parts} partitions");
    }
    // Each node by itself.
    let alone: Vec<BTreeSet<NodeIndex>> = nodes.map(|node| BTreeSet::from([node])).collect();
    assert_eq!(results(&scenario, &alone, until), whole, "a partition for each node");
}
