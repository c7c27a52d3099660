//! Files of other tools become scenarios that load, and what they lack is named.

use fanin_scenario::import::{ImportError, ImportOptions, Imported, import};
use fanin_scenario::{Buffering, Depth, EcnMode, PauseMode, QueueUnit, Scenario, Topology, load_text};
use fanin_units::{Bytes, Duration, Packets, Rate, Ratio};

const LEAF_SPINE: &str = include_str!("import/leaf-spine.clab.yml");
const STAR: &str = include_str!("import/star.mn");
const CONFIG_DB: &str = include_str!("import/config_db.json");

fn collectors(names: &[&str]) -> ImportOptions {
    ImportOptions {
        collectors: names.iter().map(|&name| name.to_owned()).collect(),
        ..ImportOptions::default()
    }
}

fn queue(number: u8) -> ImportOptions {
    ImportOptions { queue: Some(number), ..ImportOptions::default() }
}

/// The import, and the scenario that it loads as.
fn read(text: &str, options: &ImportOptions) -> (Imported, Scenario) {
    let imported = import("file", text, options).unwrap_or_else(|error| panic!("{error}"));
    let toml = imported.to_toml();
    let loaded =
        load_text("file", &toml, &[]).unwrap_or_else(|errors| panic!("{}\n{toml}", errors.render(false)));
    (imported, loaded.scenario)
}

fn why(imported: &Imported, key: &str) -> String {
    let found = imported.refused.iter().find(|refused| refused.key == key);
    found.unwrap_or_else(|| panic!("{key} is not refused: {:#?}", imported.refused)).why.clone()
}

fn message(text: &str, options: &ImportOptions) -> String {
    import("file", text, options).unwrap_err().to_string()
}

#[test]
fn a_leaf_spine_network_of_containerlab_is_one_of_racks() {
    let (imported, scenario) = read(LEAF_SPINE, &collectors(&["dcm*"]));
    assert_eq!(
        (imported.format, scenario.title.as_str()),
        ("containerlab", "daq, imported from containerlab")
    );
    let network = &scenario.network;
    assert_eq!((network.topology, network.cores, network.uplinks_per_core), (Topology::Racks, 2, 1));
    assert_eq!((scenario.collectors.racks, scenario.collectors.hosts_per_rack), (2, 2));
    assert_eq!((scenario.readout.hosts, network.readouts_per_group), (3, 3));
    for key in ["link.rate", "uplink.rate", "readout.link.delay"] {
        assert!(why(&imported, key).contains("the file has none"));
    }
    assert!(why(&imported, "topology.links[13]").contains("mgmt-net"));
    assert!(why(&imported, "topology.links.*.mtu").contains("transport.mtu"));
    assert!(why(&imported, "topology.nodes.*: image").contains("containers"));
    why(&imported, "mgmt");
    assert!(
        imported.to_toml().contains("# Collectors: dcm1, dcm2, dcm3, dcm4. The other 3 hosts are readouts.")
    );
}

#[test]
fn a_star_of_miniedit_has_its_rates_and_delays() {
    let (imported, scenario) = read(STAR, &collectors(&["client"]));
    assert_eq!(imported.format, "MiniEdit");
    assert_eq!(scenario.network.topology, Topology::Star);
    assert_eq!(
        (scenario.collectors.racks, scenario.collectors.hosts_per_rack, scenario.readout.hosts),
        (1, 1, 3)
    );
    assert_eq!(scenario.link.rate, Rate::new(100_500_000));
    assert_eq!(scenario.readout.link.rate, Rate::new(1_000_000_000));
    assert_eq!(scenario.readout.link.delay, Duration::from_micros(50));
    assert!(why(&imported, "links[3].opts.delay").contains("no unit"));
    assert!(why(&imported, "link.delay").contains("has none"));
    assert!(why(&imported, "links.*.opts.max_queue_size").contains("buffer"));
    assert!(why(&imported, "s2").contains("without links"));
    why(&imported, "controllers");
    assert!(why(&imported, "hosts.*.opts: ip").contains("addresses"));
    let keys: Vec<&str> = imported.refused.iter().map(|refused| refused.key.as_str()).collect();
    assert!(!keys.contains(&"links.*.opts.loss"), "it is empty");
}

#[test]
fn losses_of_miniedit_are_taken_over() {
    let lossy = STAR
        .replace("\"delay\": \"50us\"", "\"delay\": \"50us\", \"loss\": 0.5")
        .replace("\"loss\": \"\", ", "");
    let (imported, scenario) = read(&lossy, &collectors(&["client"]));
    assert_eq!(scenario.readout.link.loss, Ratio::new(5_000), "{:?}", imported.refused);
    assert_eq!(scenario.link.loss, Ratio::ZERO);
    let one = STAR.replacen("\"loss\": \"\"", "\"loss\": \"0.01\"", 1);
    let (imported, _) = read(&one, &collectors(&["client"]));
    assert!(why(&imported, "readout.link.loss").contains("2 × 0, 1 × 0.0001"), "{:?}", imported.refused);
    let whole = STAR.replacen("\"loss\": \"\"", "\"loss\": 100", 1);
    assert!(message(&whole, &collectors(&["client"])).contains("links[0].opts.loss"));
}

#[test]
fn links_that_differ_are_named_with_their_numbers() {
    let text = STAR.replacen("\"bw\": 1000", "\"bw\": 10", 1);
    let (imported, scenario) = read(&text, &collectors(&["client"]));
    assert!(
        why(&imported, "readout.link.rate").contains("2 × 1 Gb/s, 1 × 10 Mb/s"),
        "{:?}",
        imported.refused
    );
    assert_eq!(scenario.readout.link.rate, scenario.link.rate, "the scenario's own rule");
}

#[test]
fn shapes_that_no_scenario_has_are_refused_with_their_place() {
    let by_dcm = collectors(&["dcm*"]);
    let with = |from: &str, to: &str| {
        assert!(LEAF_SPINE.contains(from), "{from}");
        LEAF_SPINE.replacen(from, to, 1)
    };
    let change = |from: &str, to: &str| message(&with(from, to), &by_dcm);
    assert!(
        message(LEAF_SPINE, &ImportOptions::default()).contains("--collector ros1; the hosts are ros1, ros2")
    );
    assert!(message(LEAF_SPINE, &collectors(&["dcm9"])).contains("no node `dcm9`; the nodes are ros1"));
    assert!(message(LEAF_SPINE, &collectors(&["*"])).contains("no readout is left"));
    assert!(
        change("\"dcm4:eth1\", \"tor2:e1-4\"", "\"dcm4:eth1\", \"tor1:e1-9\"")
            .contains("tor2: has 1 collectors, and tor1 has 3")
    );
    assert!(
        change("\"ros3:eth1\", \"leaf1:eth5\"", "\"ros3:eth1\", \"tor1:e1-9\"")
            .contains("ros3: a readout is on tor1")
    );
    assert!(
        change("\"ros3:eth1\", \"leaf1:eth5\"", "\"ros3:eth1\", \"spine1:e1-9\"")
            .contains("spine1: some readouts are on it")
    );
    assert!(
        change("\"ros3:eth1\", \"leaf1:eth5\"", "\"ros3:eth1\", \"ros2:e1-9\"")
            .contains("ros3–ros2: a link joins two hosts")
    );
    assert!(
        change("\"leaf1:eth2\", \"spine2:e1-3\"", "\"leaf1:eth2\", \"spine1:e1-9\"")
            .contains("leaf1: a switch of readouts")
    );
    assert!(change("\"tor2:e1-2\", \"spine2:e1-2\"", "\"tor2:e1-2\", \"spine1:e1-9\"").contains("links to"));
    assert!(
        change("\"tor2:e1-2\", \"spine2:e1-2\"", "\"tor2:e1-2\", \"tor1:e1-9\"")
            .contains("joined to another one")
    );
    assert!(change("leaf1:eth5", "leaf9:eth5").contains("no node `leaf9`"));
    assert!(
        change("[\"ros3:eth1\", \"leaf1:eth5\"]", "[\"ros3:eth1\"]")
            .contains("`topology.links[8].endpoints` is missing")
    );
    assert!(change("  defaults:\n    kind: linux\n", "").contains("`topology.nodes.ros1.kind` is missing"));
}

#[test]
fn hosts_without_a_link_are_left_out_and_named() {
    let text = LEAF_SPINE.replacen("    - endpoints: [\"ros3:eth1\", \"leaf1:eth5\"]\n", "", 1);
    let (imported, scenario) = read(&text, &collectors(&["dcm*"]));
    assert_eq!((scenario.readout.hosts, scenario.network.readouts_per_group), (2, 2));
    assert_eq!(why(&imported, "ros3"), "a host without links");
    assert!(imported.to_toml().contains("The other 2 hosts are readouts."));
    // A host that collects needs a link.
    assert!(
        message(&text, &collectors(&["ros3"])).contains("no node `ros3`; the nodes are ros1, ros2, dcm1")
    );
}

#[test]
fn a_topology_of_a_mininet_script_has_its_name() {
    let text = STAR.replacen('{', "{\"topo\": \"IncastTopo\",", 1);
    let (imported, scenario) = read(&text, &collectors(&["client"]));
    assert_eq!((imported.format, scenario.title.as_str()), ("Mininet", "IncastTopo, imported from Mininet"));
}

#[test]
fn linux_nodes_are_switches_where_the_user_says_so() {
    let text = "
topology:
  nodes:
    sw: {kind: linux}
    a: {kind: linux}
    b: {kind: linux}
  links:
    - endpoints: [\"a:eth1\", \"sw:eth1\"]
    - endpoints: [\"b:eth1\", \"sw:eth2\"]
";
    let mut options = collectors(&["a"]);
    assert!(message(text, &options).contains("a–sw: a link joins two hosts"));
    options.switches = vec!["sw".to_owned()];
    let (_, scenario) = read(text, &options);
    assert_eq!((scenario.network.topology, scenario.readout.hosts), (Topology::Star, 1));
}

#[test]
fn readouts_on_the_cores_are_dealt_out_as_a_scenario_does() {
    let text = |extra: &str| {
        format!(
            "
topology:
  nodes: {{c1: {{kind: bridge}}, c2: {{kind: bridge}}, t: {{kind: bridge}}, d: {{kind: linux}}, r1: {{kind: linux}}, r2: {{kind: linux}}}}
  links:
    - endpoints: [\"t:1\", \"c1:1\"]
    - endpoints: [\"t:2\", \"c2:1\"]
    - endpoints: [\"d:1\", \"t:3\"]
    - endpoints: [\"r1:1\", \"c1:2\"]
{extra}"
        )
    };
    let (_, scenario) = read(&text("    - endpoints: [\"r2:1\", \"c2:2\"]\n"), &collectors(&["d"]));
    assert_eq!((scenario.network.readouts_per_group, scenario.readout.hosts), (0, 2));
    assert!(
        message(&text("    - endpoints: [\"r2:1\", \"c1:3\"]\n"), &collectors(&["d"]))
            .contains("deals them out as [1, 1]")
    );
    let twice = "    - endpoints: [\"r1:2\", \"c2:3\"]\n    - endpoints: [\"r2:1\", \"c2:2\"]\n    - endpoints: [\"r2:2\", \"c1:3\"]\n";
    let (_, scenario) = read(&text(twice), &collectors(&["d"]));
    assert_eq!((scenario.readout.links_per_host, scenario.readout.hosts), (2, 2));
}

#[test]
fn a_lossless_queue_of_sonic_is_paused_and_marked() {
    let (imported, scenario) = read(CONFIG_DB, &queue(3));
    assert_eq!(scenario.title, "tor-07, imported from SONiC");
    assert_eq!(scenario.link.rate, Rate::new(100_000_000_000), "the port that is down does not count");
    let tor = &scenario.tor;
    assert_eq!(
        (tor.buffering, tor.buffer, tor.port_limit.0),
        (Buffering::Shared, Bytes::new(13_945_824), None)
    );
    assert_eq!((tor.pause.mode, tor.pause.xon), (PauseMode::Priority, Bytes::new(2288)));
    // An eighth of the free memory: a ninth of 12 MB where one input is alone.
    let threshold = why(&imported, "BUFFER_PROFILE|pg_lossless_100000_5m_profile|dynamic_th");
    assert!(threshold.contains("2^-3 times") && threshold.contains("1.333333 MB"), "{threshold}");
    assert!(why(&imported, "BUFFER_PROFILE|pg_lossless_100000_5m_profile|xoff").contains("headroom"));
    assert!(why(&imported, "BUFFER_POOL|ingress_lossless_pool|xoff").contains("shared headroom"));
    assert!(why(&imported, "BUFFER_PROFILE|pg_lossless_100000_5m_profile|size").contains("priority group"));
    let ecn = &tor.ecn;
    assert_eq!((ecn.mode, ecn.unit), (EcnMode::RedMark, QueueUnit::Bytes));
    assert_eq!(
        (ecn.min, ecn.max),
        (Packets::new(69), Packets::new(206)),
        "104000 and 312000 B in frames of 1518 B"
    );
    assert_eq!((ecn.probability_max, ecn.weight), (Ratio::new(50_000), Ratio::ONE));
    assert!(!ecn.hard_drop);
    assert!(why(&imported, "WRED_PROFILE|AZURE_LOSSLESS: yellow and red").contains("one colour"));
    for key in ["SCHEDULER", "PFC_WD", "PORT.*.mtu", "VLAN, BGP_NEIGHBOR"] {
        why(&imported, key);
    }
}

#[test]
fn a_lossy_queue_has_a_dynamic_threshold_and_no_pause() {
    let (imported, scenario) = read(CONFIG_DB, &queue(0));
    let tor = &scenario.tor;
    assert_eq!((tor.buffering, tor.buffer), (Buffering::DynamicThreshold, Bytes::new(7_719_936)));
    assert_eq!((tor.alpha, tor.pause.mode), (Ratio::new(250_000), PauseMode::Off));
    assert_eq!(tor.ecn.mode, EcnMode::RedDrop);
    assert_eq!(tor.ecn.probability_max, Ratio::ONE, "SAI's default");
    assert!(why(&imported, "BUFFER_PROFILE|egress_lossy_profile|size").contains("reserves"));
}

#[test]
fn fixed_thresholds_of_pause_and_of_marks_are_taken() {
    let (_, scenario) = read(CONFIG_DB, &queue(6));
    let tor = &scenario.tor;
    assert_eq!((tor.pause.xoff, tor.pause.xon), (Bytes::new(200_000), Bytes::new(150_000)));
    assert_eq!((tor.ecn.mode, tor.ecn.threshold), (EcnMode::Threshold, Depth::Packets(Packets::new(100))));
}

#[test]
fn without_a_queue_nothing_is_guessed() {
    let (imported, scenario) = read(CONFIG_DB, &ImportOptions::default());
    assert_eq!(scenario.tor, load_text("file", "", &[]).unwrap().scenario.tor, "the defaults");
    for table in ["BUFFER_QUEUE", "PORT_QOS_MAP.*.pfc_enable", "QUEUE"] {
        assert!(why(&imported, table).contains("--queue"), "{table}");
    }
    assert!(why(&imported, "BUFFER_QUEUE").contains("egress_lossy_profile for 0-2"));
}

#[test]
fn a_wred_profile_that_the_file_lacks_is_named() {
    let file = |more: &str| {
        format!(
            r#"{{"PORT": {{"Ethernet0": {{"speed": "100000"}}}},
            "QUEUE": {{"Ethernet0|3": {{"wred_profile": "GONE"}}{more}}}}}"#
        )
    };
    let (imported, _) = read(&file(""), &queue(3));
    assert!(why(&imported, "WRED_PROFILE|GONE").contains("QUEUE refers to it"));
    let other = r#", "Ethernet0|4": {"wred_profile": "AWAY"}"#;
    let (imported, _) = read(&file(other), &ImportOptions::default());
    assert!(why(&imported, "QUEUE").contains("AWAY for 4; GONE for 3: choose one with --queue"));
}

#[test]
fn a_queue_that_no_entry_is_about_is_refused() {
    let said = message(CONFIG_DB, &queue(9));
    assert!(said.contains("no entry is about queue 9; the queues are 0, 0-2, 3"), "{said}");
    let other = r#"{"PORT": {"Ethernet0": {"speed": "100000"}}, "BUFFER_POOL": {}}"#;
    let imported = import("file", other, &queue(9)).expect("a file without queues has none to compare with");
    let toml = imported.to_toml();
    assert!(toml.contains("speed of 1 port") && !toml.contains("1 ports"), "{toml}");
}

#[test]
fn keys_of_sonic_that_are_not_read_are_named_with_table_and_row() {
    let changed = CONFIG_DB
        .replace("\"Ethernet4|0-2\": {\"profile\"", "\"Ethernet4|0-2\": {\"proflie\"")
        .replace(
            "\"mode\": \"dynamic\", \"size\": \"7719936\"",
            "\"percentage\": \"40\", \"size\": \"7719936\"",
        )
        .replace("\"dynamic_th\": \"-2\"", "\"dynamic_th\": \"-2\", \"packet_discard_action\": \"drop\"")
        .replace("\"Ethernet0|6\": {\"profile\": \"pg", "\"Ethernet0:6\": {\"profile\": \"pg")
        .replace("\"pfc_enable\": \"3,4,6\"", "\"pfc_enabled\": \"3,4,6\"")
        .replace("\"ecn\": \"ecn_none\"", "\"ecn\": \"ecn_none\", \"green_drop_probabilty\": \"5\"");
    let (imported, scenario) = read(&changed, &queue(0));
    assert_eq!(scenario.tor.buffer, Bytes::new(7_719_936), "the other row has the profile");
    for (key, parts) in [
        ("BUFFER_QUEUE|Ethernet4|0-2|proflie", ["Did you mean `profile`?", "Only this key is read: profile"]),
        ("BUFFER_POOL|egress_lossy_pool|percentage", ["unknown key", "These keys are read: size, xoff"]),
        (
            "BUFFER_PROFILE|egress_lossy_profile|packet_discard_action",
            ["unknown key", "dynamic_th, static_th"],
        ),
        ("BUFFER_PG|Ethernet0:6", ["not read", "such as Ethernet0|3-4"]),
        ("PORT_QOS_MAP.*.pfc_enabled", ["in the rows Ethernet0, Ethernet4", "Did you mean `pfc_enable`?"]),
        ("PORT_QOS_MAP.*: dscp_to_tc_map, tc_to_queue_map", ["one class", "only pfc_enable is read"]),
        (
            "WRED_PROFILE|DROPS|green_drop_probabilty",
            ["Did you mean `green_drop_probability`?", "These keys are read: ecn"],
        ),
        ("QUEUE.*: scheduler", ["serves one queue", "only wred_profile is read"]),
        ("DEVICE_METADATA.*: hwsku, type", ["not about buffers", "only hostname is read"]),
    ] {
        let said = why(&imported, key);
        assert!(parts.iter().all(|part| said.contains(part)), "{key}: {said}");
    }
}

#[test]
fn tables_rows_and_fields_of_sonic_of_another_type_are_refused() {
    let change = |from: &str, to: &str| {
        assert!(CONFIG_DB.contains(from), "{from}");
        message(&CONFIG_DB.replace(from, to), &queue(0))
    };
    for (from, to, said) in [
        (
            "\"QUEUE\": {",
            "\"QUEUE\": [], \"OTHER\": {",
            "`QUEUE` is missing or wrong; needed: an object of rows",
        ),
        ("{\"wred_profile\": \"STEP\"}", "\"STEP\"", "`QUEUE|Ethernet0|6` is missing or wrong"),
        (
            "\"pfc_enable\": \"3,4,6\"",
            "\"pfc_enable\": 3",
            "`PORT_QOS_MAP|Ethernet0|pfc_enable` is missing or wrong; needed: a text",
        ),
        ("\"pfc_enable\": \"3,4,6\"", "\"pfc_enable\": \"3-4\"", "priorities from 0 to 7"),
        ("\"profile\": \"egress_lossy_profile\"", "\"profile\": 7", "`BUFFER_QUEUE|Ethernet0|0-2|profile`"),
        (
            "\"ecn\": \"ecn_none\"",
            "\"ecn\": \"none\"",
            "`WRED_PROFILE|DROPS|ecn` is missing or wrong; needed: `ecn_none`",
        ),
        ("\"wred_green_enable\": \"true\"}", "\"wred_green_enable\": \"yes\"}", "`true` or `false`"),
        ("\"admin_status\": \"down\"", "\"admin_status\": \"off\"", "`PORT|Ethernet8|admin_status`"),
    ] {
        let error = change(from, to);
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn settings_go_to_the_section_and_extend_a_scenario() {
    let mut options = queue(0);
    options.section = Some("core".to_owned());
    options.extends = Some("thesis-a-1000hz".to_owned());
    let (imported, scenario) = read(CONFIG_DB, &options);
    assert_eq!((scenario.core.buffer, scenario.readout.hosts), (Bytes::new(7_719_936), 160));
    assert!(why(&imported, "PORT.*.speed").contains("2 × 100 Gb/s"));
    options.section = Some("edge".to_owned());
    assert_eq!(
        import("file", CONFIG_DB, &options).unwrap_err(),
        ImportError::UnknownSection("edge".to_owned())
    );
}

#[test]
fn damaged_files_are_refused_with_their_place() {
    let none = ImportOptions::default();
    assert!(message("a: [1\nb: 2", &none).contains("line 2"));
    assert!(message("{\"a\": 1, \"b\": 2}", &none).contains("its keys are a, b"));
    assert!(message("", &none).contains("its keys are none"));
    let change = |from: &str, to: &str| message(&CONFIG_DB.replace(from, to), &queue(0));
    assert!(
        change("\"-2\"", "\"high\"")
            .contains("`BUFFER_PROFILE|egress_lossy_profile|dynamic_th` is missing or wrong")
    );
    assert!(change("\"-2\"", "\"-20\"").contains("from -10 to 10"));
    assert!(change("\"7719936\"", "\"-1\"").contains("`BUFFER_POOL|egress_lossy_pool|size`"));
    let (imported, _) = read(&CONFIG_DB.replace("\"size\": \"7719936\",", ""), &queue(0));
    assert!(why(&imported, "BUFFER_POOL|egress_lossy_pool|size").contains("computes it on the switch"));
    let star = |from: &str, to: &str| message(&STAR.replacen(from, to, 1), &collectors(&["client"]));
    assert!(star("\"bw\": 1000", "\"bw\": \"fast\"").contains("`links[0].opts.bw`"));
    assert!(star("\"dest\": \"s1\"", "\"dest\": \"s9\"").contains("no node `s9`"));
    assert!(star("\"delay\": \"50us\"", "\"delay\": \"soon\"").contains("`links[0].opts.delay`"));
}
