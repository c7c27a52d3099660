//! Any valid scenario survives show and check; any text at all is read or refused.

use fanin_scenario::{CongestionControl, json_schema, keys, load_text, reference_markdown};
use proptest::prelude::*;

/// Settings that fit together, in any combination.
fn settings() -> impl Strategy<Value = Vec<String>> {
    let choice = |key: &'static str, values: &'static [&'static str]| {
        proptest::option::of(proptest::sample::select(values))
            .prop_map(move |v| v.map(|v| format!("{key} = {v}")))
    };
    let number = |key: &'static str, range: std::ops::RangeInclusive<u32>| {
        proptest::option::of(range).prop_map(move |v| v.map(|v| format!("{key} = {v}")))
    };
    let bytes = |key: &'static str, range: std::ops::RangeInclusive<u64>| {
        proptest::option::of(range).prop_map(move |v| v.map(|v| format!("{key} = '{v} B'")))
    };
    let picoseconds = |key: &'static str, range: std::ops::RangeInclusive<u64>| {
        proptest::option::of(range).prop_map(move |v| v.map(|v| format!("{key} = '{v} ps'")))
    };
    let roles = (
        number("readout.hosts", 16..=65_535),
        number("readout.fragments_per_host", 1..=64),
        bytes("readout.fragment_size", 1..=1_000_000),
        picoseconds("readout.response_delay", 0..=1_000_000_000),
        number("collectors.racks", 1..=50),
        number("collectors.hosts_per_rack", 1..=60),
        picoseconds("collectors.processing_time", 0..=1_000_000_000_000),
        choice("supervisor.policy", &["'fcfs'", "'random'", "'node-load-balancing'", "'unit-round-robin'"]),
        choice("supervisor.arrivals", &["'periodic'", "'poisson'", "'on-demand'"]),
        choice("logger.accept", &["0.5", "0.125", "1", "'3 %'"]),
    );
    let network = (
        choice("transport.profile", &["'linux-6'", "'textbook'", "'ns3-newreno'", "'linux-2.6.26'"]),
        choice("transport.congestion_control", &["'newreno'", "'cubic'", "'diatcp'"]),
        picoseconds("transport.rto_min", 1_000_000..=1_000_000_000_000),
        bytes("transport.mtu", 576..=9_000),
        number("shaping.credits", 64..=1_000_000),
        choice("tor.buffering", &["'dedicated'", "'shared'", "'dynamic-threshold'", "'unlimited'"]),
        bytes("tor.buffer", 10_000..=100_000_000),
        bytes("tor.frame_overhead", 0..=200),
        choice("core.buffering", &["'voq'", "'shared'", "'unlimited'"]),
        picoseconds("link.delay", 0..=1_000_000_000),
        choice("workload.fraction", &["0.25", "0.5", "1"]),
    );
    (roles, network).prop_map(|(r, n)| {
        [
            r.0, r.1, r.2, r.3, r.4, r.5, r.6, r.7, r.8, r.9, n.0, n.1, n.2, n.3, n.4, n.5, n.6, n.7, n.8,
            n.9, n.10,
        ]
        .into_iter()
        .flatten()
        .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn show_then_check_gives_the_same_scenario(lines in settings()) {
        let text = lines.join("\n");
        let loaded = load_text("any.toml", &text, &[]).map_err(|e| TestCaseError::fail(format!("{text}\n{e}")))?;
        let shown = loaded.to_toml_with_origins();
        let again = load_text("again.toml", &shown, &[]).map_err(|e| TestCaseError::fail(format!("{shown}\n{e}")))?;
        prop_assert_eq!(&again.scenario, &loaded.scenario);
        prop_assert_eq!(again.hash(), loaded.hash());
        // The same settings by --set give the same scenario.
        let sets: Vec<_> = lines.iter().map(|line| line.replacen(" = ", "=", 1)).collect();
        let by_sets = load_text("empty.toml", "", &sets).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(by_sets.scenario, loaded.scenario);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z\\[\\]={}'\".,0-9 \n#_]{0,120}", set in "[a-z.=0-9 '\"]{0,40}") {
        if let Err(errors) = load_text("any.toml", &text, &[set]) {
            prop_assert!(!errors.render(false).is_empty());
            prop_assert!(!errors.render(true).is_empty());
        }
    }

    #[test]
    fn any_value_at_any_key_is_read_or_refused(
        key in proptest::sample::select(&[
            "tor.buffer", "readout.fragment_size", "workload.steps", "link", "network.leaf_spine.pods", "run.seed",
            "transport.mtu", "tor.daqring.rate", "extends", "collectors", "shaping.credits", "logger.accept",
        ][..]),
        value in proptest::sample::select(&[
            "0", "-1", "9223372036854775807", "1e300", "nan", "true", "[]", "{}", "[1, 'x']", "''", "'18446744073709551615 B'",
            "'0 B'", "{ distribution = 'file' }", "'1 ps'", "[[[[1]]]]", "'é'", "4294967295",
        ][..]),
    ) {
        if let Err(errors) = load_text("any.toml", &format!("{key} = {value}\n"), &[]) {
            prop_assert!(errors.problems().iter().all(|problem| !problem.message().is_empty()));
            prop_assert!(!errors.render(true).is_empty());
        }
    }
}

#[test]
fn the_reference_names_every_section_and_choice() {
    let page = reference_markdown();
    for words in
        ["## [tor]", "## [tor.pause]", "## [[workload.steps]]", "`node-round-robin`", "`fragment_size`"]
    {
        assert!(page.contains(words), "no `{words}`");
    }
    assert!(!page.contains("| value |"), "a key has no readable type:\n{page}");
}

#[test]
fn each_congestion_control_is_listed_and_its_key_exists() {
    let keys = keys();
    for (place, control) in CongestionControl::ALL.into_iter().enumerate() {
        assert!(!CongestionControl::ALL[..place].contains(&control), "{control:?} is listed twice");
        if let Some(own) = control.facts().key {
            let path = format!("transport.{own}");
            assert!(keys.iter().any(|key| *key == path || key.starts_with(&format!("{path}."))), "{path}");
        }
    }
    let schema = json_schema();
    let names = schema["$defs"]["CongestionControl"]["oneOf"].as_array().expect("one entry a name");
    assert_eq!(names.len(), CongestionControl::ALL.len());
}
