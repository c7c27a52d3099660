//! `fanin events` from outside: what it prints where, and its exit codes.

mod common;

use common::{Folder, fanin, stderr, stdout};

#[test]
fn info_shows_what_a_sample_holds() {
    let output = fanin(&["events", "info", "km3net"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let text = stdout(&output);
    assert!(text.starts_with("format          frag\nevents          2\n"), "{text}");
    assert!(text.contains("\nfragment_size = { distribution = \"log-normal\", mean = \"2281 B\""), "{text}");

    let output = fanin(&["events", "info", "bes3", "--sources"]);
    assert_eq!(stdout(&output).lines().filter(|line| line.trim_start().starts_with("0xa")).count(), 41);

    let output = fanin(&["events", "info", "bes3", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!((&json["events"], &json["runs"][0]), (&10.into(), &91_668.into()));
    assert_eq!(json["sources"].as_array().unwrap().len(), 42);
}

#[test]
fn the_line_that_info_prints_can_stand_in_a_scenario() {
    let folder = Folder::new("scenario");
    let text = fanin(&["events", "info", "bes3"]);
    let line = stdout(&text).lines().find(|line| line.starts_with("fragment_size = ")).unwrap().to_owned();
    let scenario = folder.file("mine.toml");
    std::fs::write(&scenario, format!("extends = \"replay\"\n[readout]\n{line}\n")).unwrap();
    let output = fanin(&["scenario", "check", &scenario]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn samples_go_through_the_atlas_format_and_back() {
    let folder = Folder::new("convert");
    let (atlas, frag) = (folder.file("slices.data"), folder.file("slices.frag"));
    let output = fanin(&["events", "convert", "km3net", &atlas, "--to", "atlas"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "2 events, 906 fragments, 2066214 bytes in them\n");
    assert_eq!(fanin(&["events", "convert", &atlas, &frag, "--to", "frag"]).status.code(), Some(0));

    let hdf5 = folder.file("slices.h5");
    assert_eq!(fanin(&["events", "convert", &atlas, &hdf5, "--to", "hdf5"]).status.code(), Some(0));
    assert!(std::fs::read(&hdf5).unwrap().starts_with(b"\x89HDF\r\n\x1a\n"));

    for file in [&atlas, &frag] {
        let output = fanin(&["events", "verify", file, "--against", "km3net"]);
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
        assert!(stdout(&output).contains("compared: 906 fragments the same (2066214 bytes), 0 different"));
    }
    let output = fanin(&["events", "verify", &frag, "--against", "bes3", "--cycle"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).ends_with("differs from the file that it was compared with\n"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_fault_is_exit_code_one_and_has_its_place() {
    let folder = Folder::new("fault");
    let path = folder.file("slices.data");
    fanin(&["events", "convert", "km3net", &path, "--to", "atlas"]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[1_000_000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let output = fanin(&["events", "verify", &path]);
    assert_eq!(output.status.code(), Some(1));
    // One bit, two checksums: that of its ROB fragment, and that of the event.
    assert!(
        stdout(&output).contains("2 faults, 908 checksums recomputed\n  at byte 1001"),
        "{}",
        stdout(&output)
    );
    assert!(stderr(&output).ends_with("has 2 faults\n"));

    let output = fanin(&["events", "verify", &path, "--json", "-"]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!((&json["fault_count"], &json["faults"][0]["fault"]["kind"]), (&2.into(), &"checksum".into()));
}

#[test]
fn unreadable_input_exits_with_two() {
    let folder = Folder::new("unreadable");
    let (text, output_file) = (folder.file("notes.txt"), folder.file("out.frag"));
    std::fs::write(&text, "no events in here").unwrap();
    std::fs::write(&output_file, "precious").unwrap();
    for arguments in [
        &["events", "info", &text][..],
        &["events", "verify", &text],
        &["events", "convert", &text, &output_file, "--to", "frag"],
        &["events", "info", "/no/such/file"],
        &["events", "verify", "km3net", "--cycle"],
        &["events", "convert", "km3net", "/no/such/folder/x", "--to", "frag"],
    ] {
        let output = fanin(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
        assert!(stderr(&output).starts_with("error: "), "{arguments:?}: {}", stderr(&output));
    }
    assert_eq!(std::fs::read_to_string(&output_file).unwrap(), "precious");
    let output = fanin(&["events", "info", &text]);
    assert!(
        stderr(&output).contains("at byte 0: no known format begins with 0x65206f6e; ATLAS bytestream, "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_conversion_that_fails_costs_no_file() {
    let folder = Folder::new("costs");
    let (whole, cut) = (folder.file("whole.data"), folder.file("cut.data"));
    fanin(&["events", "convert", "km3net", &whole]);
    let bytes = std::fs::read(&whole).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    // Onto another file, and onto itself.
    for target in [&whole, &cut] {
        let before = std::fs::read(target).unwrap();
        let output = fanin(&["events", "convert", &cut, target, "--to", "atlas"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_eq!(std::fs::read(target).unwrap(), before);
    }
    // In place, where it succeeds.
    let output = fanin(&["events", "convert", &whole, &whole, "--to", "frag"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&fanin(&["events", "info", &whole])).starts_with("format          frag"));
}

#[test]
fn the_name_of_the_output_gives_its_format() {
    let folder = Folder::new("names");
    for (name, begins) in
        [("a.h5", &b"\x89HDF"[..]), ("a.frag", b"DAQFRAG1"), ("a.data", b"\xaa\xaa\x34\x12")]
    {
        let path = folder.file(name);
        assert_eq!(fanin(&["events", "convert", "bes3", &path]).status.code(), Some(0), "{name}");
        assert!(std::fs::read(&path).unwrap().starts_with(begins), "{name}");
    }
    let output = fanin(&["events", "convert", "bes3", &folder.file("a.raw")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("unknown output format; give --to atlas"), "{}", stderr(&output));
}
