//! The ready scenarios: every set-up of the papers, each sound and each saying where it comes from.

use fanin_scenario::{SizeModel, load, load_text, presets};
use fanin_units::{Bytes, Duration, Rate};

#[test]
fn every_preset_is_sound_and_survives_show() {
    for preset in presets() {
        let loaded = load(preset.name, &[]).unwrap_or_else(|errors| panic!("{}:\n{errors}", preset.name));
        assert!(preset.text.starts_with("# "), "{} has no comment that says what it stands for", preset.name);
        assert!(!loaded.scenario.source.is_empty(), "{} has no source", preset.name);
        let own = load_text(preset.name, preset.text, &[]).unwrap();
        assert_eq!(own.warnings.render(false), "", "{} sets what nothing reads", preset.name);
        for text in [loaded.to_toml_with_origins(), loaded.to_toml()] {
            let again =
                load_text("again", &text, &[]).unwrap_or_else(|errors| panic!("{}:\n{errors}", preset.name));
            assert_eq!(again.scenario, loaded.scenario, "{}", preset.name);
            assert_eq!(again.hash(), loaded.hash());
            assert_eq!(again.warnings.render(false), "", "a setting of {} has no effect", preset.name);
        }
    }
}

#[test]
fn every_file_in_scenarios_is_a_preset() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let preset = presets().iter().find(|preset| preset.name == name);
            assert!(preset.is_some(), "scenarios/{name}.toml is not in the table of presets");
            let by_path = load(path.to_str().unwrap(), &[]).unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(by_path.scenario, load(&name, &[]).unwrap().scenario);
        }
    }
}

#[test]
fn the_names_that_outsiders_rely_on_exist() {
    let names = [
        "thesis-a-500hz",
        "thesis-a-1000hz",
        "thesis-b-500hz",
        "thesis-b-1000hz",
        "icc15-1dcm",
        "icc15-147",
        "icc15-39dcm",
        "icc15-router",
        "lcn15-all-to-all",
        "lcn15-all-to-one",
        "multihost",
        "m21tcp-ffw",
        "m21tcp-fbw",
        "incast",
        "replay",
        "phase2",
    ];
    for name in names {
        assert!(presets().iter().any(|preset| preset.name == name), "{name}");
    }
    let keys = [
        "run.duration=2 s",
        "run.warmup=1 s",
        "readout.hosts=160",
        "readout.fragments_per_host=12",
        "readout.fragment_size=1.1 kB",
        "collectors.hosts_per_rack=39",
        "collectors.racks=1",
        "supervisor.rate=1 kHz",
        "supervisor.policy=node-round-robin",
        "shaping.method=credits",
        "shaping.credits=480",
        "transport.profile=linux-2.6.32",
        "transport.congestion_control=static",
        "transport.static_window=2",
        "transport.rto_min=200 ms",
        "transport.delayed_ack=true",
        "transport.mss=1460 B",
        "tor.buffering=dedicated",
        "tor.buffer=786 kB",
        "core.buffer=1.5 GB",
        "workload.kind=event-building",
        "link.rate=1 Gb/s",
        "link.delay=1 us",
    ];
    let sets: Vec<_> = keys.iter().map(|&key| key.to_owned()).collect();
    load("thesis-a-1000hz", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let barrier = ["workload.kind=fixed-fragment", "workload.senders=32", "workload.request_size=256 kB"];
    let sets: Vec<_> = barrier.iter().map(|&key| key.to_owned()).collect();
    load("incast", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    for policy in ["fcfs", "random", "node-round-robin", "node-load-balancing", "unit-round-robin"] {
        load("thesis-a-500hz", &[format!("supervisor.policy={policy}")]).unwrap();
    }
}

/// Claims T009, T010, T011, T012 and T042: the thesis' set-up, to the letter.
#[test]
fn the_thesis_scenario_is_the_thesis() {
    let a = load("thesis-a-1000hz", &[]).unwrap().scenario;
    assert_eq!((a.readout.hosts, a.fragments_total(), a.units_total()), (160, 1920, 936));
    assert_eq!(a.readout.fragment_size, SizeModel::Fixed(Bytes::new(1100)));
    assert_eq!(a.tor.buffer, Bytes::new(786_000));
    assert_eq!(a.tor.uplink_buffer, Bytes::new(4_800_000));
    assert_eq!(a.core.buffer, Bytes::new(1_500_000_000));
    assert_eq!(a.transport.rto_min, Duration::from_millis(200));
    assert_eq!(a.link.rate, Rate::new(1_000_000_000));
    let b = load("thesis-b-500hz", &[]).unwrap().scenario;
    assert_eq!(b.tor.buffer, Bytes::new(12_600_000));
    assert_eq!(b.tor.port_limit.0, Some(Bytes::new(8_000_000)));
}

/// Claim M001: the set-up of the M21TCP paper.
#[test]
fn the_scenario_of_m21tcp_is_the_papers() {
    let m = load("m21tcp-ffw", &[]).unwrap().scenario;
    assert_eq!((m.link.rate, m.link.delay), (Rate::new(1_000_000_000), Duration::from_micros(25)));
    assert_eq!((m.transport.mss, m.tor.buffer), (Bytes::new(576), Bytes::new(65_536)));
    assert_eq!((m.transport.rto_min, m.run.duration), (Duration::from_millis(200), Duration::from_secs(5)));
    assert_eq!(m.workload.request_size, Bytes::new(256_000));
}

#[test]
fn origins_name_the_file_the_set_and_the_default() {
    let loaded = load("thesis-b-500hz", &["shaping.credits=480".to_owned()]).unwrap();
    assert_eq!(loaded.origin("shaping.credits"), "--set");
    assert_eq!(loaded.origin("shaping.method"), "because shaping.credits is set");
    assert_eq!(loaded.origin("shaping.discipline"), "default");
    assert!(loaded.origin("supervisor.rate").starts_with("thesis-b-500hz.toml:"));
    assert!(loaded.origin("readout.hosts").starts_with("thesis-a-1000hz.toml:"));
    assert_eq!(loaded.origin("readout.link.rate"), "as link.rate");
    let text = loaded.to_toml_with_origins();
    assert!(text.contains("credits = 480"), "{text}");
}

/// Sections of one type have defaults of their own, also where a file sets only some of their keys.
#[test]
fn a_partly_written_section_keeps_its_own_defaults() {
    let defaults = load_text("empty", "", &[]).unwrap().scenario;
    let sets = ["uplink.delay=3 us", "core.module_ports=4", "supervisor.link.delay=2 us", "leaf.alpha=2"];
    let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
    let changed = load_text("empty", "", &sets).unwrap().scenario;
    assert_eq!(changed.uplink.rate, defaults.uplink.rate);
    assert_eq!(changed.uplink.rate, Rate::new(10_000_000_000));
    assert_eq!(changed.core.buffering, defaults.core.buffering);
    assert_eq!(changed.core.buffer, Bytes::new(1_500_000_000));
    assert_eq!(changed.supervisor.link.rate, Rate::new(10_000_000_000));
    assert_eq!(changed.leaf.buffering, defaults.leaf.buffering);
    assert_eq!(defaults, fanin_scenario::Scenario::default());
}

/// A stored result is taken again only where nothing that decides it has changed.
#[test]
fn a_points_key_follows_settings_seed_version_and_sizes() {
    let key = |sets: &[&str], version| {
        let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
        load("incast", &sets).unwrap().point_key(version)
    };
    let plain = key(&[], "1.0.0");
    assert!(plain.len() == 32 && plain.chars().all(|digit| digit.is_ascii_hexdigit()), "{plain}");
    assert_eq!(plain, key(&["run.seed=1"], "1.0.0"));
    assert_ne!(plain, key(&["run.seed=2"], "1.0.0"));
    assert_ne!(plain, key(&["tor.buffer=65 kB"], "1.0.0"));
    assert_ne!(plain, key(&[], "1.0.1"));
    let sizes = std::env::temp_dir().join(format!("fanin-sizes-{}.txt", std::process::id()));
    let set = format!("readout.fragment_size.path={}", sizes.display());
    let with_sizes = |text: &str| {
        std::fs::write(&sizes, text).unwrap();
        let sets = ["readout.fragment_size.distribution=file".to_owned(), set.clone()];
        load("replay", &sets).unwrap().point_key("1.0.0")
    };
    let (first, second) = (with_sizes("1000\n"), with_sizes("1001\n"));
    std::fs::remove_file(&sizes).unwrap();
    assert_ne!(first, second);
}
