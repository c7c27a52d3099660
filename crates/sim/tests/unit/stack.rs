//! The settings of a profile: those of `fanin-tcp` against those that a scenario with this profile has.

use std::collections::BTreeSet;

use super::*;
use fanin_tcp::PROFILES;

/// The fields of `Config` in which a scenario with a profile differs on purpose: the profile, the field, the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("linux-2.6.26", "segmentation", OFFLOAD),
    ("linux-2.6.32", "segmentation", OFFLOAD),
    ("linux-6", "segmentation", OFFLOAD),
    ("linux-6", "receive_window", "4 MiB for all Linux profiles; the library has the 6 MiB of Linux 6"),
    ("ns3-newreno", "receive_window", "1 MiB by the scenario; the library has 6 MiB"),
    ("ns3-newreno", "receive_window_initial", "all of the receive window, as in the library"),
    ("ns3-newreno", "window_scale", WINDOW_SCALE),
    ("ns3-newreno", "rto", "the same largest timeout for all profiles but textbook: 120 s"),
    ("ns3-newreno", "timer_granularity", TICK),
    ("textbook", "initial_window", "4 segments, the most of RFC 5681; the library has the 10 of RFC 6928"),
    ("textbook", "receive_window", "4 MiB, the default of all scenarios; the library has 1 MiB"),
    ("textbook", "window_scale", WINDOW_SCALE),
    ("textbook", "timer_granularity", TICK),
    ("textbook", "probe_delayed_ack", "the least timeout, which is 1 s; no tail loss probe uses it"),
];
const OFFLOAD: &str =
    "single segments, unless `transport.offload_burst` is set; the library has a kernel's bursts";
const WINDOW_SCALE: &str = "a window field of 16 bits; the library shows a peer the window to the byte";
const TICK: &str = "a tick of the simulated host; the library has exact timers";

/// Returns the names of the fields in which two settings differ.
fn differing(own: &Config, other: &Config) -> BTreeSet<String> {
    let fields = |config: &Config| -> Vec<(String, String)> {
        let text = format!("{config:#?}");
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in text.lines() {
            match line.strip_prefix("    ").filter(|field| !field.starts_with([' ', '}', ')'])) {
                Some(field) => {
                    let (name, value) = field.split_once(": ").expect("a field has a value");
                    fields.push((name.to_owned(), value.to_owned()));
                }
                None => {
                    if let Some((_, value)) = fields.last_mut() {
                        value.push_str(line);
                    }
                }
            }
        }
        fields
    };
    let (own, other) = (fields(own), fields(other));
    assert!(own.len() > 30 && own.len() == other.len(), "fields: {}, {}", own.len(), other.len());
    own.into_iter().zip(other).filter(|(one, two)| one != two).map(|((name, _), _)| name).collect()
}

#[test]
fn a_scenario_with_a_profile_has_its_settings() {
    let mut found = BTreeSet::new();
    for profile in PROFILES {
        let text = format!("[transport]\nprofile = '{profile}'\n");
        let transport = fanin_scenario::load_text("profile", &text, &[]).unwrap().scenario.transport;
        let fields = differing(&stack(&transport).unwrap(), &Config::profile(profile).unwrap());
        found.extend(fields.into_iter().map(|field| (profile, field)));
    }
    let wanted = EXCEPTIONS.iter().map(|&(profile, field, _)| (profile, field.to_owned()));
    assert_eq!(found, wanted.collect());
    assert!(EXCEPTIONS.iter().all(|(.., reason)| !reason.is_empty()));
}
