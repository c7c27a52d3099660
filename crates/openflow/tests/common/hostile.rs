//! Arbitrary bytes as a configuration, and as a description of a hybrid. An accepted text survives a round trip and
//! makes a switch; a refused text has a message with a place in it.

use fanin_openflow::{CheckedHybrid, commands, flows, json, ovsdb, removal};
use fanin_scenario::Errors;
use fanin_switch::config::load_text;

/// Words that mutations insert.
#[allow(dead_code, reason = "a fuzzer has its own corpus")]
pub const WORDS: &[&str] = &[
    "[[port]]\n",
    "[[ring]]\n",
    "[[rule]]\n",
    "[[station]]\n",
    "[switch]\n",
    "[control]\n",
    "[openflow]\n",
    "[[host_port]]\n",
    "[[collector]]\n",
    "[[flow]]\n",
    "name = ",
    "rate = ",
    "bytes = ",
    "frames = ",
    "\"1 Gb/s\"",
    "\"64 kB\"",
    "\"1 ms\"",
    "\"5 %\"",
    "0",
    "-1",
    "1e400",
    "nan",
    "18446744073709551615",
    "18446744073709551616",
    "true",
    "{ ",
    " }",
    "[",
    "]",
    "\"\"",
    "\"\\u0000\"",
    "\"é\"",
    "\n",
    "#",
    "\"dynamic-threshold\"",
    "\"strict-priority\"",
    "\"10.0.0.0/8\"",
    "\"::/0\"",
    "\"5-4\"",
    "\"0-65535\"",
    "cores = [0, 1]\n",
];

/// Checks that each line and column of the errors exists in the text.
fn has_places(text: &str, errors: &Errors) {
    assert!(!errors.problems().is_empty(), "a refusal without a problem");
    assert!(!errors.render(false).is_empty());
    for problem in errors.problems() {
        let Some((_, line, column)) = problem.location() else { continue };
        let lines: Vec<&str> = text.split('\n').collect();
        assert!((1..=lines.len()).contains(&line), "line {line} of {}", lines.len());
        assert!(column <= lines[line - 1].len() + 1, "column {column} of `{}`", lines[line - 1]);
    }
}

/// Parses the bytes as both.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match load_text("switch.toml", text) {
        Ok(loaded) => {
            let written = toml::to_string(&loaded.config).expect("a configuration can be written");
            let again =
                load_text("again.toml", &written).unwrap_or_else(|errors| panic!("{errors}\n{written}"));
            assert_eq!(again.config, loaded.config);
            let _ = loaded.warnings.render(false);
        }
        Err(errors) => has_places(text, &errors),
    }
    match CheckedHybrid::parse("hybrid.toml", text, None) {
        Ok((hybrid, _)) => {
            assert!(!commands(&hybrid).is_empty() && !removal(&hybrid).is_empty());
            let _ = (flows(&hybrid), json(&hybrid), ovsdb(&hybrid));
        }
        Err(errors) => has_places(text, &errors),
    }
}
