//! Sweeps of `fanin sim` with refused values, and with more points than the memory takes.

mod common;

use std::path::Path;

use common::{Folder, fanin, stderr, stdout};

#[test]
fn a_refused_value_costs_only_its_point() {
    let folder = Folder::new("sweep-refused-value");
    let sweep = ["sim", "incast", "--set", "run.duration=10 ms", "--sweep", "tor.buffer=64 kB,100 B,128 kB"];
    for (out, more) in [("numbers", &[][..]), ("hashes", &["--resume"])] {
        let out = folder.file(out);
        let output = fanin(&[&sweep, &["--out", &out][..], more].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let why = "tor.buffer=100 B has no result: a buffer of 100 B is smaller than a frame";
        assert!(said.contains(why), "{said}");
        assert!(said.contains("error: these points have no result: tor.buffer=100 B"), "{said}");
        let shown = stdout(&output);
        assert!(shown.contains("tor.buffer=64 kB") && shown.contains("tor.buffer=128 kB"), "{shown}");
        assert!(Path::new(&out).join("sweep.csv").exists());
    }
    // The folder of a point keeps the point's number.
    let numbers = folder.file("numbers");
    let is_there = ["000", "001", "002"].map(|point| Path::new(&numbers).join(point).exists());
    assert_eq!(is_there, [true, false, true]);
}

#[test]
fn without_any_sound_value_the_first_reason_is_the_error() {
    let output = fanin(&["sim", "incast", "--sweep", "tor.buffer=100 B,200 B"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("a buffer of 100 B") && !said.contains("has no result"), "{said}");
}

/// No machine has 3 TB for the results of 100 million points.
#[test]
fn more_points_than_the_memory_takes_are_refused() {
    let sweep = ["--sweep", "workload.senders=1..10000:1", "--sweep", "run.seed=1..10000:1"];
    let output = fanin(&[&["sim", "incast"], &sweep[..]].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("100000000 runs need about 3") && said.contains("fewer values"), "{said}");
}
