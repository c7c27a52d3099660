//! Every kind of mistake is found, where it stands, with what would be right.

use fanin_scenario::{load, load_text};

/// The problems of a file: for each its line, column and the whole rendered text.
fn wrong(text: &str) -> Vec<(usize, usize, String)> {
    match load_text("mine.toml", text, &[]) {
        Ok(_) => Vec::new(),
        Err(errors) => errors
            .problems()
            .iter()
            .map(|problem| {
                let (_, line, column) = problem.location().unwrap_or_default();
                (line, column, errors.render(false))
            })
            .collect(),
    }
}

#[track_caller]
fn one(text: &str, line: usize, column: usize, words: &[&str]) {
    let found = wrong(text);
    assert_eq!(found.len(), 1, "{found:#?}");
    let (at_line, at_column, rendered) = &found[0];
    assert_eq!((*at_line, *at_column), (line, column), "{rendered}");
    for word in words {
        assert!(rendered.contains(word), "no `{word}` in\n{rendered}");
    }
    assert!(rendered.contains(&format!("mine.toml:{line}:{column}")) && rendered.contains('^'), "{rendered}");
}

#[test]
fn unknown_keys_name_the_nearest() {
    one("[tor]\nbufer = '1 MB'\n", 2, 1, &["unknown key `bufer`", "did you mean `buffer`?"]);
    one("[tore]\nbuffer = '1 MB'\n", 1, 2, &["unknown key `tore`", "did you mean `tor`?"]);
    one("readout.fragment-size = '1 kB'", 1, 9, &["did you mean `fragment_size`?"]);
    one("[tor.pause]\nxof = '1 kB'", 2, 1, &["did you mean `xoff`?"]);
    one(
        "[readout]\nfragment_size = { distribution = 'log-normal', mean = '1 kB', sigm = 0.2 }",
        2,
        63,
        &["did you mean `sigma`?"],
    );
}

#[test]
fn background_traffic_has_its_limits() {
    one("[background]\nconnections = 4097\n", 2, 15, &["`background.connections` is 4097", "at most 4096"]);
    one("[background]\nconections = 4\n", 2, 1, &["did you mean `connections`?"]);
    one("[background]\nkind = 'burst'\n", 2, 8, &["bulk", "transfers"]);
    one(
        "[background]\nconnections = 2\ncongestion_control = 'static'\n",
        3,
        22,
        &["other applications do not use \"static\"", "\"cubic\""],
    );
    one(
        "transport.profile = 'linux-2.6.32'\n[background]\nconnections = 2\ncongestion_control = 'bbr'\n",
        4,
        22,
        &["profile \"linux-6\"", "the profile of all hosts"],
    );
    let transfers = "[background]\nconnections = 2\nkind = 'transfers'\n";
    for load in ["0", "1.01"] {
        one(&format!("{transfers}load = {load}\n"), 4, 8, &["not above 0 and up to 1", "bulk"]);
    }
    one(&format!("{transfers}transfer_size = '10 B'\n"), 4, 17, &["10 B on average", "1 TiB"]);
    one(&format!("{transfers}transfer_sigma = 4\n"), 4, 18, &["σ of the transfers is 4", "at most 3"]);
    one(
        &format!("{transfers}load = 1\ntransfer_size = '64 B'\n[link]\nrate = '400 Gb/s'\n"),
        5,
        17,
        &["transfers a second begin to each collector", "the load"],
    );
    assert!(wrong(&format!("{transfers}load = 1\ntransfer_size = '64 B'\n")).is_empty());
}

#[test]
fn losses_are_shares_below_one() {
    // Nothing else is wrong where the other links follow.
    let text = "[uplink]\nloss = 1\n";
    one(text, 2, 8, &["a link cannot lose 1 of its frames", "not below 1"]);
    // A mistake that other links follow is reported once.
    one("[link]\nloss = 1\n", 2, 8, &["a link cannot lose 1 of its frames"]);
    one("[link]\ndelay = '2 s'\n", 2, 9, &["a delay of 2 s"]);
    one("[link]\nloss = -0.1\n", 2, 8, &["-0.1"]);
    assert!(wrong("[link]\nloss = 0.999999\n").is_empty());
    let followed = load_text("mine.toml", "[link]\nloss = '0.01 %'\n", &[]).unwrap();
    for key in ["readout.link.loss", "uplink.loss", "supervisor.link.loss", "logger.link.loss"] {
        assert_eq!(followed.origin(key), "as link.loss");
    }
}

#[test]
fn wrong_values_say_what_is_expected() {
    one("[link]\nrate = '10 GB'\n", 2, 8, &["unknown unit for a bit rate", "Gb/s"]);
    one("[link]\nrate = 10\n", 2, 8, &["a bit rate needs a unit and quotes"]);
    one("[link]\ndelay = '25 US'\n", 2, 9, &["did you mean us?"]);
    one("[run]\nduration = '0.5 ps'\n", 2, 12, &["finer than 1 ps"]);
    one(
        "[supervisor]\npolicy = 'round-robin'\n",
        2,
        10,
        &["unknown value \"round-robin\"", "node-round-robin"],
    );
    one("[supervisor]\npolicy = 3\n", 2, 10, &["expected one of \"fcfs\"", "not a whole number"]);
    one("[readout]\nhosts = 'many'\n", 2, 9, &["invalid type: string"]);
    one("[readout]\nhosts = -1\n", 2, 9, &["-1", "a whole number from 1 to 65535"]);
    one("[readout]\nhosts = 0\n", 2, 9, &["`readout.hosts` is 0", "from 1 to 65535"]);
    one("[transport]\nsack = 'yes'\n", 2, 8, &["invalid type: string \"yes\", expected true or false"]);
    one("[logger]\naccept = 1.5\n", 2, 10, &["more than the whole"]);
    one(
        "[readout]\nfragment_size = { distribution = 'log-normal', mean = '1 kB' }",
        2,
        17,
        &["needs `sigma`"],
    );
    one(
        "[readout]\nfragment_size = { distribution = 'file', path = 'x', mean = '1 kB' }",
        2,
        17,
        &["`mean` has no meaning"],
    );
}

#[test]
fn impossible_combinations_point_at_the_setting_to_blame() {
    one(
        "[shaping]\ncredits = 5\n",
        2,
        11,
        &["5 credits are too few for a request", "needs 12", "give at least 12"],
    );
    one("[workload]\nfraction = 1.5\n", 2, 12, &["2880 fragments are requested, but an event has 1920"]);
    one("[workload]\nfraction = 0.001\n", 2, 12, &["less than one host"]);
    one("[tor]\nbuffer = '1 kB'\n", 2, 10, &["smaller than a frame", "give at least \"1518 B\""]);
    let framing = "[network]\nframing = 'point-to-point'\n[tor]\nbuffer = ";
    one(&format!("{framing}'1501 B'\n"), 4, 10, &["smaller than a frame", "give at least \"1502 B\""]);
    assert_eq!(wrong(&format!("{framing}'1502 B'\n")), []);
    one("[tor]\nbuffering = 'shared'\nbuffer = '1 MB'\nport_limit = '2 MB'\n", 4, 14, &["above the pool"]);
    one("[transport]\nmss = '1480 B'\n", 2, 7, &["do not fit into packets", "give at most \"1460 B\""]);
    one("[transport]\nrto_min = '200 s'\n", 2, 11, &["above the largest"]);
    one("[transport]\ncongestion_control = 'dctcp'\n", 2, 22, &["needs a switch that marks", "tor.ecn.mode"]);
    one("[transport]\ncongestion_control = 'm21tcp'\n", 2, 22, &["tor.m21 = true"]);
    one("[network]\ntopology = 'star'\n[collectors]\nracks = 2\n", 4, 9, &["one switch"]);
    one("[tor.pause]\nmode = 'pause'\nxoff = '10 kB'\nxon = '20 kB'\n", 4, 7, &["resumed at"]);
    one(
        "[tor]\nbuffering = 'daqring'\ndaqring = { rate = '1 Gb/s', burst = '100 B' }\n",
        3,
        38,
        &["smaller than a frame of"],
    );
    one("[logger]\nhosts = 0\naccept = 0.1\n", 2, 9, &["no logger stores them"]);
    one(
        "[transport]\ndelayed_ack_timeout = '0 s'\n",
        2,
        23,
        &["delay of acknowledgements is zero", "delayed_ack = false"],
    );
    one(
        "[transport]\ncongestion_control = 'diatcp'\ndiatcp.deadline_aware = true\n",
        3,
        25,
        &["need a deadline", "set workload.deadline"],
    );
    one(
        "[transport]\ncongestion_control = 'm21tcp'\n[tor]\nm21 = true\nbuffering = 'unlimited'\n",
        4,
        7,
        &["this buffer is unlimited", "tor.buffering = \"dedicated\""],
    );
    one(
        "[transport]\ncongestion_control = 'swift'\nswift = { target = '0 s', scaling = '0 s' }\n",
        3,
        20,
        &["windows only ever fall"],
    );
    one("[transport]\ncongestion_control = 'swift'\nswift.beta = 0\n", 3, 14, &["windows never fall"]);
    let ringed = |more: &str| format!("[tor]\nbuffering = 'daqring'\n{more}");
    one(&ringed("ecn.mode = 'red-drop'\n"), 3, 12, &["neither marks nor drops early", "rings"]);
    one(
        &ringed("m21 = true\n[transport]\ncongestion_control = 'm21tcp'\n"),
        3,
        7,
        &["does not write the M21TCP"],
    );
    one(&ringed("pause.mode = 'pause'\n"), 3, 14, &["PAUSE is not simulated in a network with rings"]);
    one(&ringed("[core]\npause.mode = 'pause'\n"), 4, 14, &["set core.pause.mode = \"off\""]);
    one(
        &ringed("[core]\nbuffering = 'daqring'\n[aggregation]\npause.mode = 'pause'\n"),
        6,
        14,
        &["set aggregation.pause.mode = \"off\"", "another tor.buffering"],
    );
    let flows = |rule: &str| ringed(&format!("daqring.flows = ['{rule}']\n"));
    one(&flows("readout->none"), 3, 17, &["is not a rule for flows"]);
    one(&flows("readout:160->collector:*"), 3, 17, &["readout 160", "give a number from 0 to 159"]);
    one(&flows("readout->collector:39"), 3, 17, &["collector 39", "there are 39"]);
    one(
        "[workload]\nkind = 'fixed-block'\n[network]\ntopology = 'star'\n[shaping]\ncredits = 480\n",
        2,
        8,
        &["this workload has no events"],
    );
    one(
        "[workload]\nkind = 'push'\n[shaping]\nmethod = 'paced-credits'\n",
        4,
        10,
        &["credits limit requests, and a push workload has none"],
    );
    one("[transport.sird]\nbucket = 0\n", 2, 10, &["without credit no message is sent"]);
    one("[transport.sird]\ntimeout = '0 s'\n", 2, 11, &["everything is requested twice"]);
    one("[transport.sird]\ngain = 2\n", 2, 8, &["more than the whole"]);
    one(
        "[transport]\ncongestion_control = 'sird'\n[shaping]\nmethod = 'fastpass'\n",
        4,
        10,
        &["cannot both schedule the senders", "receivers grant credit"],
    );
    one(
        "[[workload.steps]]\nname = 'L2'\nfraction = 0.5\nprocessing_time = '1 ms'\naccept = 0.1\n\
         [[workload.steps]]\nname = 'EB'\nfraction = 0.5\nprocessing_time = '1 ms'\naccept = 0\n",
        8,
        12,
        &["no more fragments than `L2`"],
    );
}

#[test]
fn events_beyond_the_memory_of_a_live_collector_are_pointed_out() {
    let warned = |text: &str| load_text("mine.toml", text, &[]).unwrap().warnings.render(false);
    let text = |units: u32, loggers: u32| {
        format!(
            "[readout]\nhosts = 10\nfragments_per_host = 1\nfragment_size = '2 MB'\n\
             [collectors]\nunits_per_host = {units}\n[logger]\nhosts = {loggers}\n[live]\nshipping_max = 20\n"
        )
    };
    // Events have 20 MB, and 2 GiB hold 85 of them with a quarter more for buffers.
    assert_eq!((warned(&text(85, 0)), warned(&text(65, 1))), (String::new(), String::new()));
    for beyond in [text(86, 0), text(66, 1)] {
        let warning = warned(&beyond);
        assert!(warning.contains("86 events of 20 MB") && warning.contains("mine.toml:6:18"), "{warning}");
        assert!(warning.contains("lower `collectors.units_per_host`"), "{warning}");
    }
}

#[test]
fn a_readout_whose_memory_holds_no_event_names_what_makes_it_large() {
    let text = "[readout]\nfragment_size = '1 GB'\nmemory = '2 GB'\n";
    one(text, 3, 10, &["smaller than an event, which takes 12 GB", "a smaller readout.fragment_size"]);
}

#[test]
fn settings_that_nothing_reads_are_pointed_out() {
    let warned = |text: &str| load_text("mine.toml", text, &[]).unwrap().warnings.render(false);
    let senders = warned("[workload]\nsenders = 4\n");
    assert!(senders.starts_with("warning: `workload.senders` has no effect"), "{senders}");
    assert!(senders.contains("mine.toml:2:1"), "{senders}");
    assert!(
        warned("[shaping]\nfastpass = { slot_mtus = 2 }\n").contains("shaping.method is not \"fastpass\"")
    );
    let cases = [
        ("[tor.ecn]\nmode = 'threshold'\nnot_capable = 'pass'\n", "transport.ecn is false"),
        ("[tor.ecn]\nthreshold = 40\n", "tor.ecn.mode is not \"threshold\""),
        ("[tor.ecn]\nmode = 'threshold'\nmin = 7\n", "neither \"red-mark\" nor \"red-drop\""),
        ("[tor.ecn]\nmode = 'red-drop'\nhard_drop = false\n", "tor.ecn.mode is not \"red-mark\""),
        ("[core.pause]\nxoff = '90 kB'\n", "core.pause.mode is \"off\""),
        ("[tor.daqring]\nrate = '1 Gb/s'\n", "tor.buffering is not \"daqring\""),
        ("[tor]\nm21 = true\n", "is not \"m21tcp\""),
        ("[tor]\nalpha = 2\n", "tor.buffering is not \"dynamic-threshold\""),
        ("[tor]\nport_limit = '90 kB'\n", "is not \"shared\", \"dynamic-threshold\" or \"voq\""),
        ("[tor]\nbuffering = 'unlimited'\nbuffer = '1 MB'\n", "is not a scheme with a limit"),
        ("[transport]\necn = true\n", "no switch marks"),
        (
            "[transport]\ndelayed_ack = false\ndelayed_ack_timeout = '1 ms'\n",
            "transport.delayed_ack is false",
        ),
        ("[transport]\ncongestion_control = 'sird'\nrto_min = '5 ms'\n", "is not TCP"),
        (
            "[transport]\ncongestion_control = 'm21tcp'\nm21tcp.header = '58 B'\n[tor]\nm21 = true\n",
            "is not \"flow\"",
        ),
        ("[workload]\ndeadline = '10 ms'\n", "only barrier workloads count deadlines"),
        ("[shaping]\ndiscipline = 'round-robin'\n", "neither \"credits\" nor \"paced-credits\""),
        (
            "[shaping]\nmethod = 'paced-credits'\nutilisation = 0.9\n",
            "neither shaping.method = \"fastpass\" nor",
        ),
        ("[shaping]\nutilisation = 0.9\n", "neither shaping.method = \"fastpass\" nor"),
        ("[background]\nload = 0.5\n", "background.connections is zero"),
        ("[background]\nconnections = 2\nload = 0.5\n", "background.kind is not \"transfers\""),
        ("[shaping]\nmethod = 'fastpass'\nfastpass.standby = false\n", "the arbiter never fails"),
        ("[shaping]\nmethod = 'barrel-shifter'\nbarrel_shifter.slot = '1 ms'\n", "barrier is not \"clock\""),
        ("[shaping]\nmethod = 'barrel-shifter'\nbarrel_shifter.fail_at = '1 ms'\n", "names a host"),
        ("[network]\ntopology = 'star'\nflow_distribution = 'ecmp'\n", "one path"),
        ("[network]\ntopology = 'star'\ncores = 1\n", "no core routers"),
        ("[network]\nreadouts_per_group = 0\n[aggregation]\nbuffering = 'shared'\n", "no groups of readouts"),
        ("[supervisor]\ntie_break = 'random'\n", "is not \"node-load-balancing\""),
        ("extends = 'incast'\n[record]\nevents = [3]\n", "workload.kind is a barrier workload"),
    ];
    for (text, why) in cases {
        let found = warned(text);
        assert_eq!(
            (found.matches("has no effect here").count(), found.contains(why)),
            (1, true),
            "{text}: {found}"
        );
    }
    // Settings at their default give no warning. Those taken over from another file may have lost their use without a mistake.
    assert_eq!(warned("[workload]\nsenders = 16\n"), "");
    assert_eq!(warned("extends = 'm21tcp-fbw'\nworkload.kind = 'event-building'\n"), "");
}

#[test]
fn an_unknown_section_is_one_mistake() {
    one("[switches]\nbuffer = '1 MB'\nports = 4\n", 1, 2, &["unknown key `switches`"]);
    one("[switches.a]\nbuffer = 1\n", 1, 2, &["unknown key `switches`"]);
}

#[test]
fn several_mistakes_are_all_found() {
    let found =
        wrong("[tor]\nbufer = '1 MB'\n[link]\nrate = '10 GB'\n[supervisor]\npolicy = 'fifo'\nrate = 3\n");
    assert_eq!(found.len(), 4, "{found:#?}");
    assert_eq!(found.iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [2, 4, 6, 7]);
}

#[test]
fn broken_toml_points_at_the_break() {
    one("[tor\nbuffer = '1 MB'\n", 1, 5, &["not valid TOML"]);
    assert!(!wrong("= = =").is_empty());
    assert!(wrong("[tor]\nbuffer = '1 MB'\nbuffer = '2 MB'\n")[0].2.contains("duplicate key"));
    assert!(wrong("x = 1979-05-27").first().is_some_and(|found| found.2.contains("no dates")));
}

#[test]
fn extends_finds_its_way_or_says_why_not() {
    one(
        "extends = 'thesis-a-1000'\n",
        1,
        11,
        &["neither a file nor a preset", "did you mean the preset `thesis-a-1000hz`?"],
    );
    let folder = std::env::temp_dir().join(format!("fanin-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    write("a.toml", "extends = 'b.toml'\n");
    write("b.toml", "extends = 'a.toml'\n");
    write("base.toml", "[readout]\nhosts = 7\nfragments_per_host = 3\n");
    write("top.toml", "extends = 'base.toml'\n[readout]\nhosts = 9\n");
    write("wrong.toml", "extends = 'base.toml'\n[shaping]\ncredits = 2\n");
    let circle = load(&path("a.toml"), &[]).unwrap_err().to_string();
    assert!(circle.contains("extend one another in a circle"), "{circle}");
    let top = load(&path("top.toml"), &[]).unwrap().scenario;
    assert_eq!((top.readout.hosts, top.readout.fragments_per_host), (9, 3));
    // The clash is between two files: both are shown.
    let both = load(&path("wrong.toml"), &[]).unwrap_err().to_string();
    assert!(both.contains("wrong.toml:3:11") && both.contains("base.toml:3"), "{both}");
    // A preset's name means the preset.
    write("incast", "extends = 'incast'\n[readout]\nhosts = 7\n");
    write("name.toml", "extends = 'incast'\n");
    write("path.toml", "extends = './incast'\n");
    let name = load(&path("name.toml"), &[]).unwrap();
    assert_eq!(name.scenario, load("incast", &[]).unwrap().scenario);
    let warned = name.warnings.problems().first().map(|problem| (problem.message(), problem.location()));
    let (message, place) = warned.unwrap();
    assert!(message.contains("`incast` is the preset") && message.contains("`./incast`"), "{message}");
    assert_eq!(place.map(|(_, line, column)| (line, column)), Some((1, 11)));
    assert_eq!(load(&path("path.toml"), &[]).unwrap().scenario.readout.hosts, 7);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn sets_are_checked_like_the_file() {
    let wrong = |set: &str| load("thesis-a-1000hz", &[set.to_owned()]).unwrap_err().to_string();
    assert!(wrong("shaping.credit=480").contains("did you mean `credits`?"));
    assert!(wrong("shaping.credits").contains("has no `=`"));
    assert!(wrong("=3").contains("no dotted key"));
    assert!(wrong("tor.buffer=1 MBit").contains("unknown unit"));
    assert!(load("no-such-thing", &[]).unwrap_err().to_string().contains("fanin scenario list"));
    assert!(load("thesis-a-1000", &[]).unwrap_err().to_string().contains("did you mean the preset"));
    assert!(load("thesis-a-1000hz", &["tor.buffer=1 MB".to_owned(), "title=\"x\"".to_owned()]).is_ok());
}

#[test]
fn a_wrong_value_is_reported_once() {
    for set in ["tor.buffer=64 KB", "tor.buffer=-1 MB", "link.rate=10 GX", "transport.mtu=2 XB"] {
        let errors = load("incast", &[set.to_owned()]).unwrap_err();
        assert_eq!(errors.problems().len(), 1, "{errors}");
        assert_eq!(errors.problems()[0].location().unwrap().0, "--set", "{errors}");
    }
    one("[run]\nduration = '1 sec'\n", 2, 12, &["expected one of ps, ns, us, ms, s, min, h"]);
}

#[test]
fn keys_of_the_top_level_name_their_section() {
    // The key that takes the value, or has a choice like it; else a key of the section.
    for (value, setting) in [
        ("transport = 'linux-6'\n", "such as `transport.profile = \"linux-6\"`"),
        ("transport = 'linux6'\n", "such as `transport.profile = \"linux-6\"`"),
        ("transport = 'cubic'\n", "such as `transport.congestion_control = \"cubic\"`"),
        ("network = 'star'\n", "such as `network.topology = \"star\"`"),
        ("transport = 7\n", "such as `transport.profile`"),
    ] {
        let column = value.find('=').unwrap() + 3;
        one(value, 1, column, &["expected a section with keys", setting]);
    }
    let set = load("incast", &["transport=linux-6".to_owned()]).unwrap_err().to_string();
    assert!(set.contains("such as `transport.profile = \"linux-6\"`"), "{set}");
    one("buffer = '1 MB'\n", 1, 1, &["unknown key `buffer`", "key of a section: tor, core"]);
    one("[switch]\nbuffer = '1 MB'\n", 1, 2, &["unknown key `switch`", "sections are tor, core"]);
}

#[test]
fn a_section_is_no_list() {
    // A list would fill the section's keys in their order.
    let no_list = "invalid type: a list, expected a section with keys";
    one("tor = [1]\n", 1, 7, &[no_list]);
    one("supervisor = []\n", 1, 14, &[no_list]);
    one("[tor]\npause = ['priority']\n", 2, 9, &[no_list]);
    one("[[tor]]\nbuffer = '1 MB'\n", 1, 1, &["one section of this name", "single brackets"]);
    let set = load("incast", &["tor=[1]".to_owned()]).unwrap_err().to_string();
    assert!(set.contains("`tor` is a section"), "{set}");
}

#[test]
fn a_file_that_is_no_scenario_says_why() {
    let folder = std::env::temp_dir().join(format!("fanin-no-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let wrong = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        load(path.to_str().unwrap(), &[]).unwrap_err().to_string()
    };
    let latin = wrong("latin.toml", b"[run]\ntitle = \"caf\xe9\"\n");
    assert!(latin.contains("the byte 0xe9 is not UTF-8") && latin.contains("latin.toml:2:13"), "{latin}");
    let empty = wrong("empty.toml", b" \n");
    assert!(empty.contains("is empty") && empty.contains("extends"), "{empty}");
    for text in ["# [run]\n# duration = \"1 s\"\n", "[run]\n[tor]\n# buffer = \"1 MB\"\n"] {
        let bare = wrong("bare.toml", text.as_bytes());
        assert!(bare.contains("has no setting") && bare.contains("extends"), "{bare}");
    }
    let itself = load(folder.to_str().unwrap(), &[]).unwrap_err().to_string();
    assert!(itself.contains("is a folder, not a scenario file"), "{itself}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn connections_to_be_traced_are_there() {
    one(
        "readout.hosts = 4\ncollectors.hosts_per_rack = 2\n[record]\nwindows = [0, 15, 16]\n",
        4,
        19,
        &["there is no connection 16: the system has 16", "give numbers from 0 to 15"],
    );
    let barrier =
        "network.topology = 'star'\nworkload = { kind = 'fixed-block', senders = 3 }\nrecord.windows = [3]\n";
    one(barrier, 3, 19, &["there is no connection 3: the system has 3", "give numbers from 0 to 2"]);
}

#[test]
fn networks_that_no_machine_can_build_are_refused() {
    one(
        "[collectors]\nracks = 4096\nhosts_per_rack = 4096\n",
        3,
        18,
        &["16777376 hosts", "collectors.racks × collectors.hosts_per_rack = 16777216", "at most 1000000"],
    );
    assert!(wrong("[collectors]\nracks = 1000\nhosts_per_rack = 900\n").is_empty());
}

#[test]
fn times_and_sizes_that_no_run_can_hold() {
    for key in ["sird.timeout", "swift.target", "rto_max", "m21tcp.idle"] {
        one(&format!("[transport]\n{key} = '25 h'\n"), 2, key.len() + 4, &["the maximum is 24 h"]);
    }
    one("[shaping.fastpass]\nclock_error = '5124 h'\n", 2, 15, &["the maximum is 24 h"]);
    one("[transport]\ncongestion_control = 'sird'\nsird.timeout = '1 ps'\n", 3, 16, &["at least \"1 us\""]);
    one("[tor]\nframe_overhead = '1 GB'\nbuffering = 'unlimited'\n", 2, 18, &["at most \"1 MiB\""]);
    one("[tor]\nbuffering = 'daqring'\ndaqring.slot = '1 PB'\n", 3, 16, &["at most \"1 MiB\""]);
    one("[tor]\nbuffering = 'daqring'\ndaqring.frames = 16777217\n", 3, 18, &["at most 16777216"]);
    for rate in ["9 kb/s", "5 Tb/s"] {
        let text = format!("[tor]\nbuffering = 'daqring'\ndaqring.rate = '{rate}'\n");
        one(&text, 3, 16, &["\"10 kb/s\" to \"4 Tb/s\""]);
    }
    let burst = "[tor]\nbuffering = 'daqring'\ndaqring = { rate = '1 Mb/s', burst = '11 GB' }\n";
    one(burst, 3, 38, &["takes more than 24 h to accrue"]);
    assert!(wrong(&burst.replace("11 GB", "10 GB")).is_empty());
    let slot =
        "[shaping]\nmethod = 'barrel-shifter'\nbarrel_shifter = { barrier = 'clock', slot = '1 ps' }\n";
    one(slot, 3, 46, &["ends before a full packet is sent", "12304 ns"]);
    assert!(wrong(&slot.replace("1 ps", "12304 ns")).is_empty());
    one(&slot.replace("1 ps", "12 h"), 3, 46, &["160 slots of 43200 s", "the maximum is 24 h", "at most"]);
    // Segments below the MTU, and links without Ethernet's gap, have shorter frames: 576 + 40 + 2 bytes.
    let small = format!("{slot}[transport]\nmss = '576 B'\n[network]\nframing = 'point-to-point'\n");
    one(&small, 3, 46, &["ends before a full packet is sent", "4944 ns"]);
    assert!(wrong(&small.replace("1 ps", "4944 ns")).is_empty());
}

#[test]
fn windows_for_answers_that_a_barrel_shifter_holds_back() {
    let few = "[transport]\ncongestion_control = 'diatcp'\ndiatcp.global_window = '11 packets'\n\
               [readout]\nhosts = 12\n[shaping]\nmethod = 'barrel-shifter'\n";
    one(few, 3, 24, &["12 readouts", "11 of them have a window", "at least 12"]);
    assert!(wrong(&few.replace("11 packets", "12 packets")).is_empty());
}

#[test]
fn numbers_that_no_network_and_no_file_can_hold() {
    one("[workload]\nkind = 'fixed-block'\nsenders = 65536\n", 3, 11, &["from 1 to 65535"]);
    one("[run]\nseed = 9223372036854775808\n", 2, 8, &["above 9223372036854775807"]);
    let errors =
        load_text("test", "", &["run.seed=9223372036854775808".to_owned()]).unwrap_err().render(false);
    assert!(errors.contains("above 9223372036854775807, the largest whole number of TOML"), "{errors}");
}

#[test]
fn a_switch_has_a_largest_number_of_ports() {
    one("[tor]\nports = 4294967295\n", 2, 9, &["4294967295 ports", "at most 65536"]);
    assert!(load("incast", &["tor.ports=65536".to_owned()]).is_ok());
}

#[test]
fn an_event_has_a_largest_size() {
    let words = ["an event of 65535 GB", "workload.senders × workload.request_size", "61."];
    let star = "network.topology = 'star'\n[workload]\nkind = 'fixed-fragment'\n";
    one(&format!("{star}senders = 65535\nrequest_size = '1 GB'\n"), 5, 16, &words);
    assert!(load("incast", &["workload.senders=65535".to_owned()]).is_ok());
}

/// The sizes of `replay` are in a file, so that an event's size is not known here.
#[test]
fn a_memory_of_zero_is_refused_with_any_sizes() {
    let error = load("replay", &["readout.memory=0 B".to_owned()]).unwrap_err().render(false);
    assert!(error.contains("readout.memory") && error.contains("2 GB"), "{error}");
}
