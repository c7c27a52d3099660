//! The bracket of a verdict that depends holds the simulation's outcome.

use fanin_plan::{BurstOutcome, LossBracket, Losses, Plan, PlanOptions, PlannedScenario, plan};
use fanin_runs::{RunControl, run};
use fanin_scenario::{Scenario, load, load_text};
use fanin_units::Ratio;

fn planned(scenario: &Scenario) -> Plan {
    plan(scenario, &PlanOptions::default()).unwrap()
}

fn preset(name: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    load(name, &sets).unwrap().scenario
}

/// Frames that the simulation drops, and the most bytes waiting in one queue.
fn simulated(scenario: &Scenario, seed: u64) -> (u64, u64) {
    let network = run(scenario, seed, &RunControl::default()).unwrap().summary.network.unwrap();
    (network.drops.unwrap_or_default(), network.queue_bytes_max.unwrap_or_default())
}

/// Events of one mean size at random hosts, behind a shared memory or a dynamic threshold.
fn shared(scheme: &str, buffer: &str, policy: &str, sigma: &str) -> Scenario {
    let text = format!(
        "[readout]\nhosts = 40\nfragments_per_host = 1\nlink = {{ rate = '10 Gb/s' }}\n\
         fragment_size = {{ distribution = 'log-normal', mean = '5 kB', sigma = {sigma} }}\n\
         [collectors]\nhosts_per_rack = 10\nunits_per_host = 8\n\
         processing_time = '100 us'\n[link]\nrate = '10 Gb/s'\n\
         [supervisor]\nrate = '30 kHz'\npolicy = '{policy}'\n[network]\ntopology = 'star'\n\
         [transport]\nprofile = 'linux-6'\n[tor]\nbuffering = '{scheme}'\nbuffer = '{buffer}'\n\
         [run]\nduration = '100 ms'\nwarmup = '0 s'\n"
    );
    load_text("shared", &text, &[]).unwrap().scenario
}

#[test]
fn a_verdict_that_depends_has_a_bracket_in_words_and_json() {
    let scenario = preset(
        "incast",
        &[
            "workload.senders=10",
            "workload.request_size=32 kB",
            "tor.buffer=256 kB",
            "transport.profile=linux-6",
        ],
    );
    let plan = planned(&scenario);
    assert_eq!(plan.losses(), Losses::Depends);
    let LossBracket { waiting, waiting_max, fits, .. } = plan.queues[0].bracket.unwrap();
    assert!(waiting < fits && waiting_max.unwrap() > fits);
    let (outcome, text) = plan.verdict();
    assert_eq!(outcome, BurstOutcome::Fits);
    assert!(text.contains(" wait at tor->collector, where 256 kB fit"), "{text}");
    let name = PlannedScenario { name: "name".to_owned(), hash: "hash".to_owned() };
    let json = serde_json::to_value(plan.summary(name, "0", None)).unwrap();
    let bracket = json.pointer("/plan/verdict/bracket").unwrap();
    assert_eq!(bracket["queue"], "tor->collector");
    assert_eq!(bracket["waiting_bytes_max"], waiting_max.unwrap().get());
}

#[test]
fn nothing_waits_beyond_the_bracket() {
    let mut checked = 0;
    for senders in [4, 16, 32] {
        for size in ["4 kB", "20 kB", "60 kB"] {
            for control in ["newreno", "cubic"] {
                let senders = format!("workload.senders={senders}");
                let size = format!("workload.request_size={size}");
                let control = format!("transport.congestion_control={control}");
                let sets = [senders.as_str(), &size, &control, "tor.buffer=64 MB", "run.duration=200 ms"];
                let scenario = preset("incast", &sets);
                let plan = planned(&scenario);
                let Some(most) = plan.queues[0].bracket.and_then(|bracket| bracket.waiting_max) else {
                    continue;
                };
                let (drops, deepest) = simulated(&scenario, 1);
                assert_eq!(drops, 0);
                assert!(deepest <= most.get(), "{sets:?}: {deepest} wait, {most} at most");
                checked += 1;
            }
        }
    }
    assert!(checked > 5, "only {checked} have a bound");
}

#[test]
fn shared_memories_are_judged_by_shares_of_events() {
    let mut lossy = 0;
    for scheme in ["shared", "dynamic-threshold"] {
        for buffer in ["300 kB", "1 MB", "8 MB"] {
            for policy in ["node-round-robin", "random", "fcfs"] {
                let scenario = shared(scheme, buffer, policy, "0.4");
                let plan = planned(&scenario);
                let at = format!("{scheme} {buffer} {policy}: {}", plan.verdict().1);
                let (drops, _) = simulated(&scenario, 1);
                let bracket = plan.queues[0].bracket;
                if drops > 0 {
                    lossy += 1;
                    assert_ne!(plan.losses(), Losses::Never, "{at}");
                    let most = bracket.and_then(|bracket| bracket.share).map_or(Ratio::ONE, |[_, most]| most);
                    assert!(!most.is_zero(), "{drops} dropped, {at}");
                }
                // A share that is said to be lost at least is lost.
                let least = match plan.losses() {
                    Losses::InShare(share) => share,
                    Losses::Always => Ratio::ONE,
                    _ => bracket.and_then(|bracket| bracket.share).map_or(Ratio::ZERO, |[least, _]| least),
                };
                // Of 3000 events, a hundredth and more show for certain.
                assert!(least < Ratio::new(10_000) || drops > 0, "nothing dropped, {at}");
            }
        }
    }
    assert!(lossy > 5, "only {lossy} lose frames");
}

#[test]
fn a_random_order_of_hosts_loses_no_less_than_hosts_in_turn() {
    for scheme in ["shared", "dynamic-threshold"] {
        let share = |policy: &str| {
            let plan = planned(&shared(scheme, "1 MB", policy, "0.4"));
            plan.queues[0].bracket.and_then(|bracket| bracket.share)
        };
        let (in_turn, either, random) = (share("node-round-robin"), share("fcfs"), share("random"));
        let ([_, in_turn], [least, most], [_, random]) = (in_turn.unwrap(), either.unwrap(), random.unwrap());
        assert!(in_turn <= random && least <= most && most <= random.max(in_turn), "{scheme}");
    }
}

/// Sixty readouts with log-normal or histogram sizes at one switch.
fn readouts(size: &str) -> Scenario {
    let text = format!(
        "[readout]\nhosts = 60\nfragments_per_host = 1\nfragment_size = {size}\nlink = {{ rate = '25 Gb/s' }}\n\
         [collectors]\nhosts_per_rack = 8\nunits_per_host = 4\nprocessing_time = '1 ms'\n\
         [supervisor]\nrate = '10 kHz'\npolicy = 'node-load-balancing'\n[network]\ntopology = 'star'\n\
         [link]\nrate = '25 Gb/s'\n[tor]\nbuffering = 'dedicated'\nbuffer = '1 MB'\n\
         [run]\nduration = '100 ms'\nwarmup = '0 s'\n"
    );
    load_text("readouts", &text, &[]).unwrap().scenario
}

fn verdict_json(plan: &Plan) -> serde_json::Value {
    let name = PlannedScenario { name: "name".to_owned(), hash: "hash".to_owned() };
    let json = serde_json::to_value(plan.summary(name, "0", None)).unwrap();
    json.pointer("/plan/verdict").unwrap().clone()
}

#[test]
fn an_estimate_below_the_allowed_share_is_no_finding() {
    let scenario = readouts("{ distribution='empirical', edges=['0 B', '1 kB', '40 kB'], counts=[70, 30] }");
    let plan = planned(&scenario);
    let json = verdict_json(&plan);
    assert_eq!((&json["outcome"], &json["losses"]), (&"depends".into(), &"depends".into()), "{json}");
    assert!(json.get("loses_frames").is_none() && json.get("losing_share").is_none(), "{json}");
    assert_eq!(json["bracket"]["losing_share_expected"], 1e-5, "{json}");
    let text = json["text"].as_str().unwrap();
    let said =
        "depends on how events meet: expected in about 0.0010 % of the events (0 to 5.4 %; allowed: 0.1 %)";
    assert!(text.starts_with(said), "{text}");
    assert_eq!(simulated(&scenario, 1).0, 0);
}

#[test]
fn the_estimate_comes_before_the_bracket() {
    let plan = planned(&readouts("{ distribution='log-normal', mean='20 kB', sigma=1.0 }"));
    let (_, text) = plan.verdict();
    let said = "loses frames in about 36 % of the events (0 to 100 %; allowed: 0.1 %): burst 1200 kB";
    assert!(text.starts_with(said), "{text}");
}

#[test]
fn large_buffers_are_expected_never_to_lose() {
    let text = planned(&preset("thesis-a-500hz", &["tor.buffer=1 GB"])).verdict().1;
    assert!(text.starts_with("depends on how events meet: expected never at "), "{text}");
    assert!(
        text.contains(" load; 2116.1 kB or more wait at tor->collector, where 1000 MB fit; not proven"),
        "{text}"
    );
}

#[test]
fn text_and_json_give_one_of_four_verdicts() {
    let mut seen = std::collections::BTreeSet::new();
    for (name, sets) in [
        ("thesis-a-1000hz", &[][..]),
        ("thesis-a-1000hz", &["shaping.credits=120"]),
        ("thesis-a-1000hz", &["workload.fraction=0.25"]),
        ("thesis-a-1000hz", &["workload.fraction=0.25", "supervisor.policy=random"]),
        ("thesis-b-500hz", &[]),
        ("phase2", &[]),
        ("multihost", &[]),
        ("incast", &["workload.senders=4"]),
    ] {
        let plan = planned(&preset(name, sets));
        let json = verdict_json(&plan);
        let text = json["text"].as_str().unwrap().to_owned();
        let (losses, start, lost) = match plan.losses() {
            Losses::Never => ("never", "never loses frames: ", Some(false)),
            Losses::InShare(_) => ("in-share", "loses frames in about ", Some(true)),
            Losses::Always => ("always", "always loses frames: ", Some(true)),
            Losses::Depends => ("depends", "depends on how events meet: ", None),
        };
        assert!(text.starts_with(start), "{name} {sets:?}: {text}");
        assert_eq!(json["losses"], losses, "{name} {sets:?}");
        assert_eq!(json.get("loses_frames").and_then(serde_json::Value::as_bool), lost, "{name} {sets:?}");
        assert_eq!(json["outcome"] == "depends", lost.is_none(), "{name} {sets:?}: {json}");
        seen.insert(losses);
    }
    assert!(seen.len() >= 3, "{seen:?}");
}

#[test]
fn queues_without_a_limit_never_lose() {
    // Three layers of switches; sections of switches that the network lacks have limits.
    let sets = ["tor.buffering=unlimited", "core.buffering=unlimited"];
    let plan = planned(&preset("thesis-a-500hz", &sets));
    assert_eq!(plan.losses(), Losses::Never);
    assert_eq!(plan.verdict().1, "never loses frames: no switch has a limit");
    let marking = preset("thesis-a-500hz", &[&sets[..], &["tor.ecn.mode=threshold"]].concat());
    let (_, text) = planned(&marking).verdict();
    assert!(
        text.contains("whose queues have no limit") && text.contains("since tor signals congestion"),
        "{text}"
    );
}

#[test]
fn a_verdict_says_its_sizes_once() {
    let sets = ["workload.senders=4", "workload.request_size=64 kB", "tor.buffer=128 kB"];
    let (_, text) = planned(&preset("incast", &sets)).verdict();
    assert!(text.contains("163.46 kB wait at once > 128 kB") && text.ends_with("can wait there"), "{text}");
    assert_eq!((text.matches("163.46 kB").count(), text.matches("128 kB").count()), (1, 1), "{text}");
}
