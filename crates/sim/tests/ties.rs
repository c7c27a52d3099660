//! Hosts that act at the same instant: they share losses fairly, in whatever order they are listed.

use fanin_dataflow::Random;
use fanin_network::{Network, NodeIndex, Roles, topology};
use fanin_report::{Records, Summary};
use fanin_scenario::{load, load_text};
use fanin_sim::{RecordedSizes, RunControl, RunEnd, RunOutcome, run, run_on};

/// Seeds over which the shares are averaged.
const SEEDS: u64 = 64;

#[test]
fn every_sender_has_its_share_of_the_losses() {
    for senders in [2, 3, 8] {
        let sets = [
            format!("workload.senders={senders}"),
            "workload.service_delay_max=0 s".into(),
            "tor.buffer=16 kB".into(),
            "run.duration=300 ms".into(),
        ];
        let scenario = load("incast", &sets).unwrap().scenario;
        // By sender: the sum over the seeds of its share of all retransmissions, and of that share's square.
        let mut sums = vec![(0.0, 0.0); senders];
        for seed in 0..SEEDS {
            let outcome = run(&scenario, seed, &RunControl::default()).unwrap();
            let mut lost = vec![0; senders];
            for flow in outcome.records.flows {
                if let Some(sender) = flow.source.strip_prefix("readout:") {
                    lost[sender.parse::<usize>().unwrap()] += flow.retransmits;
                }
            }
            let total: u64 = lost.iter().sum();
            assert!(total > 20, "{senders} senders lose too little to compare: {lost:?}");
            for (sum, lost) in sums.iter_mut().zip(lost) {
                let share = lost as f64 / total as f64;
                *sum = (sum.0 + share, sum.1 + share * share);
            }
        }
        let fair = 1.0 / senders as f64;
        for (sender, (sum, squares)) in sums.into_iter().enumerate() {
            let mean = sum / SEEDS as f64;
            let error = ((squares / SEEDS as f64 - mean * mean) / SEEDS as f64).sqrt();
            assert!(
                (mean - fair).abs() < 4.0 * error && error < 0.25 * fair,
                "readout:{sender} of {senders} has {mean:.3} of the losses, standard error {error:.3}"
            );
        }
    }
}

/// The same network with its nodes and links listed in another order.
fn relisted(network: &Network, roles: &Roles, random: &mut Random) -> (Network, Roles) {
    let mut listed: Vec<NodeIndex> = (0..network.nodes.len() as NodeIndex).collect();
    random.shuffle(&mut listed);
    let new = |node: NodeIndex| listed.iter().position(|&old| old == node).unwrap() as NodeIndex;
    let mut other = network.clone();
    other.nodes = listed.iter().map(|&node| network.nodes[node as usize].clone()).collect();
    other.links.iter_mut().for_each(|link| link.ends = link.ends.map(new));
    random.shuffle(&mut other.links);
    let all = |nodes: &[NodeIndex]| nodes.iter().map(|&node| new(node)).collect();
    let roles = Roles {
        supervisor: roles.supervisor.map(new),
        readouts: all(&roles.readouts),
        collectors: all(&roles.collectors),
        racks: roles.racks.clone(),
        loggers: all(&roles.loggers),
        software: roles.software.map(new),
    };
    (other, roles)
}

/// The results without those that follow the network's order or the machine's speed.
fn figures(outcome: RunOutcome) -> (Summary, Records) {
    assert_eq!(outcome.end, RunEnd::Complete);
    let mut summary = outcome.summary;
    (summary.speed, summary.ports) = (None, Vec::new());
    (summary, outcome.records)
}

#[test]
fn the_results_do_not_depend_on_the_order_in_which_hosts_are_listed() {
    let incast = "extends = \"incast\"\n[run]\nduration = \"30 ms\"\n[workload]\nsenders = 8\nservice_delay_max = \"0 s\"\n";
    let systems = [
        format!("{incast}[tor]\nbuffer = \"16 kB\"\n"),
        format!("{incast}[tor]\nbuffering = \"shared\"\nbuffer = \"40 kB\"\n[tor.pause]\nmode = \"pause\"\nxoff = \"3 kB\"\nxon = \"2 kB\"\n"),
        format!("{incast}[tor.ecn]\nmode = \"red-drop\"\n"),
        "[run]\nduration = \"30 ms\"\nwarmup = \"0 s\"\n[readout]\nhosts = 12\nresponse_delay_sd = \"0 s\"\n[collectors]\nracks = 1\n\
         hosts_per_rack = 3\nunits_per_host = 4\nprocessing_time = \"5 ms\"\n[supervisor]\nrate = \"1 kHz\"\n[network]\n\
         topology = \"star\"\n[tor]\nbuffering = \"dedicated\"\nbuffer = \"16 kB\"\n"
            .into(),
    ];
    let mut random = Random::new(5);
    for text in systems {
        let scenario = load_text("test", &text, &[])
            .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
            .scenario;
        let (network, roles) = topology::build(&scenario).unwrap();
        let run = |network: &Network, roles: &Roles| {
            figures(
                run_on(&scenario, &RecordedSizes::None, 3, &RunControl::default(), network, roles).unwrap(),
            )
        };
        let (summary, records) = run(&network, &roles);
        let losses: u64 = records.flows.iter().map(|flow| flow.retransmits).sum();
        assert!(losses > 0 || text.contains("pause"), "the order decides something: {text}");
        for _ in 0..3 {
            let (network, roles) = relisted(&network, &roles, &mut random);
            assert_eq!(run(&network, &roles), (summary.clone(), records.clone()), "{text}");
        }
    }
}
