//! The questions that people come with: does it keep up, why was an event late, is this file sound?

mod common;

use common::{Folder, fanin, stderr, stdout};
use serde_json::Value;

fn simulated(arguments: &[&str]) -> (Value, String, String) {
    // Tests run in threads of one process.
    let folder = Folder::new(&format!("answers-{:?}", std::thread::current().id()));
    let out = folder.file("out");
    let output = fanin(&[&["sim"][..], arguments, &["--out", &out]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary = std::fs::read_to_string(folder.file("out/summary.json")).unwrap();
    let page = std::fs::read_to_string(folder.file("out/report.html")).unwrap();
    (serde_json::from_str(&summary).unwrap(), stdout(&output).to_owned(), page)
}

/// A rack whose uplinks carry about a thousand events a second, and whose units take about three hundred.
const RACK: [&str; 9] = [
    "thesis-a-1000hz",
    "--set",
    "run.duration=300 ms",
    "--set",
    "run.warmup=100 ms",
    "--set",
    "shaping.credits=480",
    "--set",
    "collectors.units_per_host=1",
];

#[test]
fn a_system_that_does_not_keep_up_says_so_and_why() {
    let with = |set: &'static str| [&RACK[..], &["--set", set]].concat();
    let (summary, text, page) = simulated(&with("supervisor.rate=4 kHz"));
    let overload = &summary["overload"];
    assert!(summary["events"]["assigned"].as_u64().unwrap() > 100, "some events are assigned: {summary}");
    assert_eq!((&overload["wanted_hz"], &overload["cause"]), (&4000.0.into(), &"units".into()), "{overload}");
    let said = overload["text"].as_str().unwrap();
    assert!(said.contains("supervisor.rate asks for 4000 events a second"), "{said}");
    assert!(said.contains("all 39 processing units are busy"), "{said}");
    assert!(text.contains(&format!("overload          {}", said.trim_end_matches('.'))), "{text}");
    for expected in ["Too many events", "all 39 processing units are busy"] {
        assert!(page.contains(expected), "the page lacks {expected}");
    }
    // More units fill the link, and fewer events are no overload.
    let (summary, ..) =
        simulated(&[&with("supervisor.rate=4 kHz")[..], &["--set", "collectors.units_per_host=24"]].concat());
    assert_eq!(summary["overload"]["cause"], "link", "{}", summary["overload"]);
    let (summary, text, page) = simulated(&with("supervisor.rate=200 Hz"));
    assert!(summary["overload"].is_null() && !text.contains("overload"), "{}", summary["overload"]);
    assert!(!page.contains("Too many events"));
}

#[test]
fn the_summary_has_the_latest_events_causes_where_no_port_lost_frames() {
    // An event near its ideal has no causes.
    let (summary, text, _) = simulated(&[&RACK[..], &["--set", "shaping.credits=160"]].concat());
    assert_eq!(summary["late"]["chain"], serde_json::json!([]));
    assert!(text.contains(" ms; no event was late"), "{text}");
    let sets = ["shaping.credits=480", "run.duration=60 ms", "run.warmup=100 ms", "supervisor.rate=1800 Hz"];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let (summary, text, _) = simulated(&["thesis-a-1000hz"].into_iter().chain(sets).collect::<Vec<_>>());
    assert_eq!(summary["network"]["drops"], 0);
    let late = &summary["late"];
    let causes: Vec<&str> =
        late["chain"].as_array().unwrap().iter().map(|cause| cause["what"].as_str().unwrap()).collect();
    assert_eq!(causes, ["credit-wait", "queue"], "{late}");
    // Wait and event have the same start.
    let number = |value: &Value| value.as_f64().unwrap();
    for cause in late["chain"].as_array().unwrap() {
        let wait = number(&cause["until_ms"]) - number(&cause["from_ms"]);
        assert!(wait <= number(&late["time_ms"]) + 1e-6, "{late}");
    }
    // Earlier events hold the credits of the first request, too.
    assert_eq!(
        (&late["chain"][0]["from_ms"], &late["chain"][0]["count"]),
        (&0.0.into(), &160.into()),
        "{late}"
    );
    let said = late["text"].as_str().unwrap();
    assert!(said.contains("for credits") && text.contains(said.trim_end_matches('.')), "{said}: {text}");
    // From credits to timers, where frames are lost.
    let (summary, ..) = simulated(&["incast", "--set", "run.duration=1 s"]);
    let late = &summary["late"];
    let causes: Vec<&str> =
        late["chain"].as_array().unwrap().iter().map(|cause| cause["what"].as_str().unwrap()).collect();
    assert_eq!(causes, ["queue", "loss", "rto"], "{late}");
    // The stalls lie within the span of their cause.
    let timer = &late["chain"][2];
    let span = number(&timer["until_ms"]) - number(&timer["from_ms"]);
    assert!(number(&timer["time_ms"]) > 190.0 && span >= number(&timer["time_ms"]), "{timer}");
    assert_eq!(*late, summary["ports"][0]["late"], "the port that held it up");
}

/// Eight units of one collector share each source's connection.
const UNITS: &str = "[readout]\nhosts = 16\nfragments_per_host = 1\nfragment_size = '20 kB'\n\
    [collectors]\nhosts_per_rack = 1\nracks = 1\nunits_per_host = 8\nprocessing_time = '1 ms'\n\
    [supervisor]\nrate = '150 Hz'\n[network]\ntopology = 'star'\n[transport]\nprofile = 'linux-2.6.32'\n\
    [tor]\nbuffering = 'dedicated'\nbuffer = '100 kB'\n[run]\nduration = '400 ms'\nwarmup = '0 s'\n";

fn units(name: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    let file = folder.file("units.toml");
    std::fs::write(&file, UNITS).unwrap();
    (folder, file)
}

#[test]
fn an_event_before_and_after_the_slowest_one_takes_no_place_of_its_requests() {
    // Another event has answers before and after the assignment of the slowest one, and is then incomplete.
    let size = "readout.fragment_size={distribution=\"log-normal\",mean=\"8 kB\",sigma=\"1.2\"}";
    let sets = [
        "readout.hosts=20",
        "collectors.hosts_per_rack=2",
        "run.duration=0.3 s",
        "run.warmup=0.02 s",
        "supervisor.arrivals=poisson",
        "supervisor.rate=100 Hz",
        "shaping.method=paced-credits",
        "shaping.discipline=round-robin",
        size,
    ];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let (summary, ..) =
        simulated(&["thesis-a-500hz", "--seed", "4"].into_iter().chain(sets).collect::<Vec<_>>());
    assert_eq!(summary["late"]["chain"][0]["what"], "credit-wait", "{}", summary["late"]);
}

#[test]
fn the_slowest_event_of_a_collection_in_steps_is_the_slowest() {
    let sets = [
        "shaping.method=fastpass",
        "readout.hosts=40",
        "collectors.hosts_per_rack=2",
        "run.duration=0.3 s",
        "run.warmup=20 ms",
        "supervisor.rate=50 Hz",
        "readout.fragment_size=2 kB",
        "tor.buffering=unlimited",
    ];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let (summary, ..) =
        simulated(&["icc15-39dcm", "--seed", "35"].into_iter().chain(sets).collect::<Vec<_>>());
    let number = |value: &Value| value.as_f64().unwrap();
    let late = &summary["late"];
    let said = late["text"].as_str().unwrap();
    let words: Vec<&str> = said.split(' ').collect();
    let times = words.iter().position(|&word| word == "times").expect(said);
    let slowdown: f64 = words[times - 1].parse().unwrap();
    assert!(slowdown > number(&summary["slowdown"]["max"]) / 1.06, "{slowdown}: {late}");
}

#[test]
fn the_causes_of_the_slowest_event_account_for_its_time() {
    let (_folder, file) = units("answers-units");
    let (summary, text, page) = simulated(&[&file]);
    let late = &summary["late"];
    let chain = late["chain"].as_array().unwrap();
    // It lost no frame itself: an earlier event on the same connection did, and waited for its timer.
    assert!(chain.iter().all(|cause| cause["what"] != "loss"), "{late}");
    let timer = chain.iter().find(|cause| cause["what"] == "rto").expect("a timer is the cause");
    let earlier = timer["event"].as_u64().expect("that of an earlier event");
    assert!(earlier < late["event"].as_u64().unwrap(), "{late}");
    let number = |value: &Value| value.as_f64().unwrap();
    let time = number(&late["time_ms"]);
    assert!(number(&timer["time_ms"]) > 0.75 * time, "{late}");
    let sum: f64 = chain.iter().filter_map(|cause| cause["time_ms"].as_f64()).sum();
    assert!(sum <= time && number(&late["explained"]) > 0.95, "{sum} of {time}: {late}");
    let said = late["text"].as_str().unwrap();
    let first = said.split(": ").nth(1).unwrap();
    assert!(
        first.contains(&format!("behind event {earlier}, which waited for a retransmission timer")),
        "{said}"
    );
    assert!(
        said.contains("after a loss at tor:0->collector:0") && text.contains(first.trim_end_matches('.'))
    );
    assert!(page.contains(&format!("behind event {earlier}, which waited")));
    // The waterfall marks that timer in the row of its connection.
    for expected in ["loss of another event on the connection, until its timer", "<path class=\"rto other\""]
    {
        assert!(page.contains(expected), "the page lacks {expected}");
    }
    // Many events lost frames.
    let share = number(&summary["network"]["losing_share"]);
    assert!(share > 0.3 && share < 1.0, "{share}");
    assert!(text.contains(&format!("lost frames       {:.1} % of the events\n", 100.0 * share)), "{text}");
}

#[test]
fn a_wait_outside_the_ports_of_switches_is_explained() {
    let short = ["run.duration=30 ms", "run.warmup=10 ms"];
    let plain = "tor.buffering=dedicated";
    let cases: [(&str, &[&str], &str, &str); 6] = [
        ("lcn15-all-to-all", &[], "ring", "in its collector's ring at tor:0->readout:"),
        ("lcn15-all-to-all", &["tor.buffering=unlimited"], "link", "sharing the link of readout:"),
        ("multihost", &[], "ring", "in its collector's ring at software:0->core:0, limited to 344 Mb/s"),
        (
            "icc15-39dcm",
            &["shaping.method=fastpass"],
            "timeslot-wait",
            "waiting for timeslots of the arbiter",
        ),
        (
            "lcn15-all-to-all",
            &["transport.congestion_control=sird", plain],
            "grant-wait",
            "waiting for credit of the receiver",
        ),
        (
            "thesis-a-500hz",
            &[
                "link.rate=25 Gb/s",
                "tor.buffer=16 MB",
                "readout.fragments_per_host=1",
                "readout.response_delay_sd=200 us",
            ],
            "response-delay",
            "ms in no queue, until readout:",
        ),
    ];
    for (scenario, more, kind, words) in cases {
        let sets: Vec<&str> = short.iter().chain(more).flat_map(|set| ["--set", set]).collect();
        let (summary, ..) = simulated(&[&[scenario][..], &sets].concat());
        let late = &summary["late"];
        let chain = late["chain"].as_array().unwrap();
        let cause = chain.iter().find(|cause| cause["what"] == kind && cause["time_ms"].as_f64() > Some(0.0));
        assert!(cause.is_some(), "{scenario} {more:?}: {late}");
        assert!(late["text"].as_str().unwrap().contains(words), "{scenario} {more:?}: {late}");
        assert!(late["explained"].as_f64().unwrap() > 0.97, "{scenario} {more:?}: {late}");
    }
}

#[test]
fn losses_of_the_warm_up_are_named_as_the_cause() {
    let (_folder, file) = units("answers-warmup");
    let sets =
        ["collectors.units_per_host=1", "supervisor.rate=1 kHz", "run.warmup=20 ms", "run.duration=100 ms"];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let (summary, text, page) = simulated(&[&[file.as_str()][..], &sets].concat());
    assert_eq!(summary["network"]["drops"], 0, "{summary}");
    assert!(summary["warmup"]["drops"].as_u64().unwrap() > 0, "{summary}");
    let overload = &summary["overload"];
    assert_eq!(overload["cause"], "losses", "{overload}");
    let said = overload["text"].as_str().unwrap();
    assert!(said.starts_with("Losses of the warm-up hold the system up"), "{said}");
    assert!(
        said.contains("frames were dropped within the warm-up") && text.contains("within the warm-up"),
        "{said}"
    );
    assert!(
        page.contains("Frames dropped in the warm-up hold up the measured time")
            && !page.contains("Too many events")
    );
    assert!(
        page.contains("losses of the warm-up hold all events up")
            && !page.contains("Look at supervisor.rate")
    );
}

#[test]
fn a_wait_for_credits_is_said_and_drawn() {
    let sets = ["shaping.credits=480", "run.duration=60 ms", "run.warmup=100 ms", "supervisor.rate=1800 Hz"];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let (summary, _, page) = simulated(&["thesis-a-1000hz"].into_iter().chain(sets).collect::<Vec<_>>());
    let late = &summary["late"];
    let wait = late["chain"][0]["time_ms"].as_f64().unwrap();
    assert!(wait > 0.9 * late["time_ms"].as_f64().unwrap(), "{late}");
    for expected in
        ["Lossless, but events wait for credits", "waits for credits, not yet asked", "class=\"credit\""]
    {
        assert!(page.contains(expected), "the page lacks {expected}");
    }
}

#[test]
fn a_port_is_drawn_with_the_goodput_of_its_own_collector() {
    let folder = Folder::new("answers-port");
    let out = folder.file("out");
    let sets = [
        "--set",
        "run.duration=100 ms",
        "--set",
        "run.warmup=0 s",
        "--set",
        "supervisor.policy=node-round-robin",
        "--quiet",
        "--out",
        &out,
    ];
    let output = fanin(&[&["sim", "thesis-a-500hz"][..], &sets].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let picture = std::fs::read_to_string(folder.file("out/picture.json")).unwrap();
    let picture: Value = serde_json::from_str(&picture).unwrap();
    let sum = |bins: &Value| bins.as_array().unwrap().iter().map(|bin| bin.as_u64().unwrap()).sum::<u64>();
    let timeline = &picture["timeline"];
    let summary: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.file("out/summary.json")).unwrap()).unwrap();
    let events = summary["events"]["collected"].as_u64().unwrap();
    // Fragments of 160 readouts with their headers, and what is asked for.
    assert!(sum(&timeline["delivered_bytes"]) > events * 2_112_000);
    let mut own = 0;
    for port in timeline["ports"].as_array().unwrap() {
        let name = port["name"].as_str().unwrap();
        assert_eq!(port["delivered_bytes"].is_null(), !name.contains("->collector:"), "{name}");
        if name.contains("->collector:") {
            let bytes = sum(&port["delivered_bytes"]);
            // One or two of about fifty events.
            assert!(bytes > 2_112_000 && bytes < 6 * 2_200_000, "{name}: {bytes}");
            let bin_s = timeline["bin_ps"].as_f64().unwrap() / 1e12;
            let most =
                port["delivered_bytes"].as_array().unwrap().iter().map(|bin| bin.as_u64().unwrap()).max();
            assert!(most.unwrap() as f64 * 8.0 / bin_s <= 1e9, "no more than its link carries: {name}");
            own += 1;
        }
    }
    let page = std::fs::read_to_string(folder.file("out/report.html")).unwrap();
    let first = timeline["ports"][0]["name"].as_str().unwrap();
    let words = match first.split_once("->") {
        Some((_, host)) if host.starts_with("collector") => format!("payload delivered to {host}"),
        _ => "payload delivered to all hosts".to_owned(),
    };
    assert!(page.contains(&words) && own > 0, "{words}, {own} ports of collectors");
}

/// Large events at eight ports that share a memory.
const POOL: &str = "[readout]\nhosts = 60\nfragments_per_host = 1\nlink = { rate = '25 Gb/s' }\n\
    fragment_size = { distribution = 'log-normal', mean = '20 kB', sigma = 1 }\n\
    [collectors]\nhosts_per_rack = 8\nunits_per_host = 4\nprocessing_time = '1 ms'\n\
    [supervisor]\nrate = '10 kHz'\npolicy = 'node-load-balancing'\n[network]\ntopology = 'star'\n\
    [link]\nrate = '25 Gb/s'\n[tor]\nbuffering = 'dynamic-threshold'\nbuffer = '4 MB'\n\
    [run]\nduration = '20 ms'\nwarmup = '0 s'\n";

#[test]
fn a_limit_that_falls_is_given_as_it_was_and_all_drops_are_counted() {
    let folder = Folder::new("answers-pool");
    let file = folder.file("pool.toml");
    std::fs::write(&file, POOL).unwrap();
    let (summary, text, _) = simulated(&[&file]);
    let ports = summary["ports"].as_array().unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let fallen: Vec<_> = ports.iter().filter(|port| !port["first_drop_limit_bytes"].is_null()).collect();
    assert!(!fallen.is_empty(), "{ports:?}");
    for port in fallen {
        assert!(number(&port["first_drop_limit_bytes"]) < number(&port["limit_bytes"]), "{port}");
    }
    assert!(text.contains(", limit falls as the pool fills, "), "{text}");
    let named: u64 = ports.iter().map(|port| number(&port["drops"])).sum();
    let others = number(&summary["network"]["drops"]) - named;
    assert!(others > 0 && text.contains(&format!("other ports: {others} dropped")), "{others}: {text}");
}

#[test]
fn seeds_alone_give_means_with_intervals() {
    let folder = Folder::new("answers-seeds");
    let run = |repeat: &str, out: &str| {
        let sets = ["--set=run.duration=1 s", "--set=run.warmup=0 s", "--set=workload.senders=10"];
        let output = fanin(&[&["sim", "incast", "--repeat", repeat][..], &sets, &["--out", out]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).to_owned()
    };
    let out = folder.file("three");
    let text = run("3", &out);
    let line = text.lines().find(|line| line.starts_with("all ")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains(" ± "), "{text}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join("three").join(name)).unwrap();
    let value: Value = serde_json::from_str(&read("sweep.json")).unwrap();
    let over = &value["over_seeds"][0];
    assert_eq!((&over["set"], &over["seeds"]), (&serde_json::json!([]), &serde_json::json!([1, 2, 3])));
    assert!(over["figures"]["time_ms_mean"]["low"].is_f64(), "{over}");
    assert!(read("seeds.csv").starts_with("seeds,requests_completed,"), "{}", read("seeds.csv"));
    let page = read("index.html");
    let head = &page[..page.find("</header>").unwrap()];
    for expected in
        ["3 of 3 seeds", "<dt>Mean time</dt>", "<small>± ", "class=\"of-seeds\"", "intervals of 95 %"]
    {
        assert!(head.contains(expected), "the first screen lacks {expected}");
    }
    let reported = fanin(&["report", &out, "--out", &folder.file("page.html")]);
    assert_eq!(reported.status.code(), Some(0), "{}", stderr(&reported));
    assert!(std::fs::read_to_string(folder.file("page.html")).unwrap().contains("3 of 3 seeds"));
    // One seed is a run as any other.
    let one = run("1", &folder.file("one"));
    assert!(!one.contains('±') && folder.path().join("one/summary.json").is_file(), "{one}");
}

#[test]
fn a_sweep_says_what_its_curves_bands_and_cells_are() {
    let folder = Folder::new("answers-sweep");
    let out = folder.file("out");
    let output = fanin(&[
        "sim",
        "incast",
        "--sweep=workload.senders=2..4:1",
        "--sweep=tor.buffer=log:64..256:3 kB",
        "--repeat=2",
        "--set=run.duration=60 ms",
        "--set=run.warmup=0 s",
        "--set=workload.request_size=32 kB",
        "--out",
        &out,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let read = |name: &str| std::fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    let sweep: Value = serde_json::from_str(&read("sweep.json")).unwrap();
    assert_eq!(sweep["keys"], serde_json::json!(["workload.senders", "tor.buffer"]), "no derived key");
    let rows = read("sweep.csv");
    assert!(
        rows.starts_with("workload.senders,tor.buffer,seed,") && rows.lines().count() == 1 + 18,
        "{rows}"
    );
    let page = read("index.html");
    for expected in [
        "Lines join the means over seeds. Bands reach from the least seed to the largest.",
        "The darker a cell, the longer the time, on a logarithmic scale; means over seeds. ✕: frames were lost, or worse.",
        "18 of 18 results: The run measures 60 ms, less than five minimum RTOs of 200 ms: timeouts hardly show.",
        "results: Fewer than 10 requests were measured: means and quantiles say little.",
        "10 of 18 results, evenly chosen",
    ] {
        assert!(page.contains(expected), "the page lacks {expected}");
    }
}

#[test]
fn check_refuses_what_sim_refuses() {
    let folder = Folder::new("answers-check");
    let file = folder.file("mine.toml");
    std::fs::write(
        &file,
        "extends = \"incast\"\n[record]\nqueues = [\n  \"tor->collector\",\n  \"tor->collecter:0\",\n]\n",
    )
    .unwrap();
    let line = format!("{file}:5:3");
    let planes = folder.file("planes.toml");
    let links = "extends = \"leaf-spine\"\n[network.leaf_spine]\npods = 64\nspines = 1024\nplanes = 64\n";
    std::fs::write(&planes, links).unwrap();
    let planes_line = format!("{planes}:5:10");
    let cases: [(&[&str], &[&str]); 5] = [
        (
            &[&file],
            &[
                "no queue is called \"tor->collecter:0\"",
                &line,
                "this network has collector->tor, readout->tor, tor->collector",
            ],
        ),
        (&["incast", "--set", "record.windows=[16]"], &["there is no connection 16", "from 0 to 15"]),
        (
            &["incast", "--set", "record.capture=tor->x"],
            &["no link is called \"tor->x\"", "tor:0->collector:0"],
        ),
        (&["incast", "--set", "record.queues=[\"*\"]"], &["no queue is called \"*\""]),
        (&[&planes], &["network.leaf_spine.planes: the network has more than 2000000 links", &planes_line]),
    ];
    for (arguments, expected) in cases {
        for verb in [&["scenario", "check"][..], &["sim"]] {
            // A capture is asked for by its option.
            let capture: &[&str] = if verb.len() == 1 { &["--pcap", "/dev/null"] } else { &[] };
            let output = fanin(&[verb, arguments, capture].concat());
            assert_eq!(output.status.code(), Some(2), "{verb:?} {arguments:?}: {}", stdout(&output));
            for words in expected {
                assert!(stderr(&output).contains(words), "{verb:?} {arguments:?}: {}", stderr(&output));
            }
        }
    }
    let sound = ["scenario", "check", "thesis-a-1000hz", "--set", "record.queues=[\"tor->collector:0\"]"];
    let output = fanin(&sound);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
}
