//! `fanin advise` from outside: each line has its simulations, and wrong input is refused.

mod common;

use common::{Folder, fanin, stderr, stdout};
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
fn each_line_is_simulated_and_linked() {
    let folder = Folder::new("advise-out");
    let out = folder.file("advice");
    let output = advise(&["--out", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let value = json(stdout(&output));
    assert_eq!((&value["schema"], &value["subject"][0]), (&"fanin.advice/1".into(), &"drops=0".into()));
    let lines = |part: &str| value[part].as_array().unwrap().clone();
    let buffers = lines("buffers");
    assert_eq!(buffers.len(), 1, "a star has one class of ports: {buffers:?}");
    assert_eq!(buffers[0]["name"], "tor.buffer");
    // Eight answers of 20 kB with headers, of which some leave meanwhile.
    let answer = buffers[0]["answer"].as_str().unwrap();
    assert!(answer.contains("kB is enough, ") && answer.contains("is not"), "{answer}");
    assert_eq!(lines("techniques").len(), 18);
    assert_eq!(lines("gear").len(), 8);
    for part in ["buffers", "ranges", "techniques", "gear"] {
        for line in lines(part) {
            let is_simulated = !line["meets"].is_null();
            let answer = line["answer"].as_str().unwrap();
            assert_eq!(is_simulated, !answer.starts_with("not possible: "), "{line}");
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
    assert_eq!(json(&std::fs::read_to_string(folder.path().join("advice/advice.json")).unwrap()), value);
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
    assert_eq!((&gear[0]["meets"], &gear[1]["meets"]), (&false.into(), &true.into()));
    assert!(gear[2]["answer"].as_str().unwrap().contains("not possible: its ports have 100 Mb/s"));
    assert!(value["techniques"].is_null(), "only the part asked for");
}

#[test]
fn wrong_input_says_what_would_be_right() {
    let folder = Folder::new("advise-wrong");
    let file = folder.file("gear.toml");
    std::fs::write(&file, "[[gear]]\nname = \"a\"\n").unwrap();
    for (more, what) in [
        (&["--catalogue", "/none.toml"][..], "cannot read the catalogue /none.toml"),
        (&["--catalogue", &file], "switch 1 of the catalogue: `buffer` is missing"),
        (&["--subject", "p99<20"], "`p99` is a time"),
        (&["--subject", "drops<0"], "no value of `drops`"),
        (&["--only", "prices"], "invalid value 'prices'"),
        (&["--set", "tor.bufer=1 MB"], "did you mean `buffer`?"),
    ] {
        let output = advise(more);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(what), "{more:?}: {}", stderr(&output));
    }
}
