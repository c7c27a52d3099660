//! `fanin advise` from outside: each line has its simulations, and wrong input is refused.

mod common;

use common::{Folder, fanin, stderr, stdout};
use fanin_tune::Gear;
use serde_json::Value;

const SMALL: [&str; 7] = [
    "advise",
    "incast",
    "-q",
    "--set=run.duration=300 ms",
    "--set=workload.request_size=20 kB",
    "--set=workload.senders=8",
    "--json=-",
];

fn advise(more: &[&str]) -> std::process::Output {
    fanin(&SMALL.iter().chain(more).copied().collect::<Vec<_>>())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON alone: {error}\n{text}"))
}

#[test]
fn a_verdict_on_few_requests_says_so() {
    let output = advise(&["--set=run.duration=60 ms", "--only=buffers"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let line = &json(stdout(&output))["buffers"][0];
    let (answer, samples) = (line["answer"].as_str().unwrap(), &line["samples"]);
    let words = format!("({} requests, 1 seed; too few: what happens in up to ", samples["requests"]);
    assert!(answer.contains(&words) && answer.contains("lengthen run.duration"), "{answer}");
    let (count, unseen) = (samples["requests"].as_f64().unwrap(), samples["unseen_share"].as_f64().unwrap());
    assert!(count < 100.0 && (unseen - (1.0 - 0.05_f64.powf(1.0 / count))).abs() < 1e-12, "{samples}");
}

#[test]
fn each_line_is_simulated_and_linked() {
    let folder = Folder::new("advise-out");
    let out = folder.file("advice");
    let output = advise(&["--out", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let value = json(stdout(&output));
    assert_eq!((&value["schema"], &value["subject"][0]), (&"fanin.advice/1".into(), &"drops=0".into()));
    let lines = |part: &str| value[part].as_array().unwrap().clone();
    let buffers = lines("buffers");
    assert_eq!(
        buffers.len(),
        2,
        "a star has one class of ports, and a line for all other buffers: {buffers:?}"
    );
    assert_eq!((&buffers[1]["name"], &buffers[1]["meets"]), (&"no effect".into(), &Value::Null));
    let idle = buffers[1]["answer"].as_str().unwrap();
    for key in
        ["tor.uplink_buffer, core.buffer, core.uplink_buffer", "spine.uplink_buffer (a star has one switch"]
    {
        assert!(idle.contains(key), "{idle}");
    }
    assert_eq!(buffers[0]["name"], "tor.buffer");
    // Eight answers of 20 kB with headers, of which some leave meanwhile.
    let answer = buffers[0]["answer"].as_str().unwrap();
    assert!(answer.contains("kB is enough, ") && answer.contains("is not"), "{answer}");
    // Each verdict says how many events it rests on, which its own search has counted.
    let samples = &buffers[0]["samples"];
    let best = &buffers[0]["search"]["best"];
    assert_eq!(samples["requests"].as_f64(), best["figures"]["requests_completed"]["mean"].as_f64());
    assert!(answer.ends_with(&format!("({} requests, 1 seed)", samples["requests"])), "{answer}");
    assert_eq!(samples["unseen_share"], Value::Null);
    assert_eq!(lines("techniques").len(), 19);
    let gear = lines("gear");
    // A line sums up.
    let (sum, kinds) = gear.split_last().unwrap();
    assert_eq!(sum["name"], "the least costly that works");
    assert_eq!(kinds.len(), Gear::read(Gear::BUILT_IN).unwrap().len());
    assert!(kinds.iter().all(|line| line["cost"]["class"].is_string()), "{gear:?}");
    let jericho = gear.iter().find(|line| line["name"].as_str().unwrap().contains("Jericho 2")).unwrap();
    assert_eq!(jericho["cost"]["class"], "off-chip");
    assert!(jericho["about"].as_str().unwrap().contains("virtual output queues"), "{jericho}");
    for part in ["buffers", "ranges", "techniques", "gear"] {
        for line in lines(part) {
            let is_simulated = !line["meets"].is_null();
            let answer = line["answer"].as_str().unwrap();
            let is_note =
                ["the least costly that works", "no effect"].iter().any(|name| line["name"] == *name);
            assert_eq!(is_simulated || is_note, !answer.starts_with("not possible: "), "{line}");
            if is_simulated {
                let folder = folder.path().join("advice").join(line["folder"].as_str().unwrap());
                assert!(
                    folder.join("index.html").is_file() && folder.join("000/summary.json").is_file(),
                    "{line}"
                );
                assert!(line["search"]["simulations"].as_u64().unwrap() >= 1);
            }
        }
    }
    let techniques = lines("techniques");
    let of = |name: &str| techniques.iter().find(|line| line["name"] == name).unwrap();
    assert_eq!((&of("none")["meets"], &of("deep-buffers")["meets"]), (&false.into(), &true.into()));
    assert!(of("dctcp")["about"].as_str().unwrap().contains("RFC 8257"));
    let text = std::fs::read_to_string(folder.path().join("advice/advice.txt")).unwrap();
    assert!(text.contains("buffers-tor.buffer/index.html"), "{text}");
    let headings = [
        "Smallest buffers (each with all other buffers large)",
        "Ranges that work (mean within 10 % of the best)",
    ];
    for expected in headings {
        assert!(text.contains(expected), "{text}");
    }
    let page = std::fs::read_to_string(folder.path().join("advice/index.html")).unwrap();
    assert!(page.contains("<a href=\"buffers-tor.buffer/index.html\"><bdi>tor.buffer</bdi></a>"), "{page}");
    assert_eq!(json(&std::fs::read_to_string(folder.path().join("advice/advice.json")).unwrap()), value);
    let own = folder.path().join("own.html");
    let (advice, out) = (folder.path().join("advice"), own.to_string_lossy());
    let made = fanin(&["report", &advice.to_string_lossy(), "--out", &out]);
    assert!(made.status.success(), "the folder stands for its JSON: {made:?}");
    assert!(std::fs::read_to_string(&own).unwrap().contains("<bdi>tor.buffer</bdi>"));
}

#[test]
fn a_catalogue_of_ones_own_is_judged() {
    let folder = Folder::new("advise-gear");
    let file = folder.file("gear.toml");
    let one = |name: &str, buffer: &str, port: &str| {
        format!("[[gear]]\nname = \"{name}\"\nbuffer = \"{buffer}\"\nport = \"{port}\"\nsource = \"ours\"\n")
    };
    let text =
        [one("shallow", "32 kB", "1 Gb/s"), one("deep", "1 MB", "1 Gb/s"), one("slow", "1 MB", "100 Mb/s")];
    std::fs::write(&file, text.concat()).unwrap();
    let output = advise(&["--only", "gear", "--catalogue", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let value = json(stdout(&output));
    let gear = value["gear"].as_array().unwrap();
    let of = |name: &str| gear.iter().find(|line| line["name"] == name).unwrap();
    assert_eq!((&of("shallow")["meets"], &of("deep")["meets"]), (&false.into(), &true.into()));
    assert!(of("slow")["answer"].as_str().unwrap().contains("not possible: its ports have 100 Mb/s"));
    assert_eq!(of("the least costly that works")["answer"], "deep");
    assert!(value["techniques"].is_null(), "only the part asked for");
}

#[test]
fn a_laboratory_carries_its_error_to_the_full_system() {
    let folder = Folder::new("advise-laboratory");
    // A tenth of the size with another TCP stack stands for what was measured.
    let laboratory = folder.file("laboratory");
    let small = ["--set=workload.request_size=20 kB", "--set=run.duration=300 ms", "--set=tor.buffer=1 MB"];
    let measured = ["sim", "incast", "-q", "--set=workload.senders=4", "--out", &laboratory];
    let output = fanin(&[&measured[..], &small[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = advise(&["--only", "laboratory", "--measured", &laboratory]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let value = json(stdout(&output));
    let lines = value["laboratory"].as_array().unwrap();
    let figures = &lines[0]["laboratory"]["figures"];
    assert_eq!(figures[0]["figure"], "queue");
    // The same scenario and seed: one of the simulations is the measurement.
    let ratio = figures[0]["measured_over_simulated"].as_array().unwrap();
    assert!(ratio[0].as_f64().unwrap() <= 1.0 && ratio[1].as_f64().unwrap() >= 1.0, "{ratio:?}");
    let about = lines[0]["about"].as_str().unwrap();
    for words in ["not a measurement", "4 sources were measured, the scenario has 8", " requests, 3 seeds"] {
        assert!(about.contains(words), "{words}: {about}");
    }
    assert!(lines[1]["about"].as_str().unwrap().ends_with("to hold from 4 sources to 8"), "{}", lines[1]);
    let needs = &lines[1]["needs"];
    let bytes = |key: &str| needs[key].as_u64().unwrap();
    assert!(bytes("bytes_min") < bytes("simulated_bytes") && bytes("simulated_bytes") <= bytes("bytes_max"));
    assert_eq!((&lines[1]["meets"], &needs["key"]), (&true.into(), &"tor.buffer".into()));
    // A full buffer hides how deep the queue would become.
    let full = folder.file("full");
    let output = fanin(&["sim", "incast", "-q", "--set=run.duration=300 ms", "--out", &full]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = advise(&["--only", "laboratory", "--measured", &full]);
    let value = json(stdout(&output));
    let about = value["laboratory"][0]["about"].as_str().unwrap();
    assert!(about.contains("measure with a larger buffer"), "{about}");
    assert_eq!(value["laboratory"].as_array().unwrap().len(), 1);
}

#[test]
fn wrong_input_says_what_would_be_right() {
    let folder = Folder::new("advise-wrong");
    let file = folder.file("gear.toml");
    std::fs::write(&file, "[[gear]]\nname = \"a\"\n").unwrap();
    for (more, text) in [
        (&["--catalogue", "/none.toml"][..], "cannot read the catalogue /none.toml"),
        (&["--catalogue", &file], "switch 1 of the catalogue: `buffer` is missing"),
        (&["--measured", "/none"], "/none"),
        (&["--subject", "p99<20"], "`p99` is a time"),
        (&["--subject", "drops<0"], "no value of `drops`"),
        (&["--only", "prices"], "invalid value 'prices'"),
        (&["--set", "tor.bufer=1 MB"], "did you mean `buffer`?"),
    ] {
        let output = advise(more);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(text), "{more:?}: {}", stderr(&output));
    }
}
