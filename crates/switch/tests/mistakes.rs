//! Each problem of a configuration names its place and gives advice.

use fanin_switch::config::load_text;

const GOOD: &str = r#"
[switch]
mtu = "9000 B"
memory = "256 MB"
mac_hold = "50 ms"
buffering = "dedicated"
buffer = "64 kB"

[[port]]
name = "uplink"
interface = "eth0"
rate = "10 Gb/s"
storm = { broadcast = "10 Mb/s" }
pause = { react = true, xoff = "1 MB" }

[[port]]
name = "rack"
interface = "eth1"
untagged = 7
tagged = [8, 9]
impair = { delay = "1 ms", jitter = "10 us", loss = "0.1 %", reorder = "1 %" }
ecn = { mode = "threshold", threshold = "30 kB" }

[[ring]]
name = "dcm-1"
port = "rack"
frames = 14000
rate = "0.78 Gb/s"
alarm = "80 %"

[[rule]]
name = "to-dcm-1"
ring = "dcm-1"
destination_ip = "10.0.0.7"
protocol = "tcp"
source_port = "5000-5063"
priority = 10

[[station]]
mac = "02:00:00:00:00:07"
port = "rack"
vlan = 8
"#;

/// A change to the good configuration and its problem: a text of its line, and words of the message.
const WRONG: &[(&str, &str, &str, &str)] = &[
    ("mtu = \"9000 B\"", "mtu = \"9001 B\"", "mtu", "between 68 B and 9000 B"),
    ("mtu = \"9000 B\"", "mtu = 9000", "mtu", "needs a unit"),
    ("memory = \"256 MB\"", "memory = \"256 kB\"", "memory", "packet memory lies between"),
    ("mac_hold = \"50 ms\"", "mac_hold = \"1 h\"", "mac_hold", "at most `mac_age` (300 s)"),
    ("mac_hold", "mac_holt", "mac_holt", "did you mean `mac_hold`?"),
    ("buffering = \"dedicated\"", "buffering = \"dedicate\"", "buffering", "did you mean `dedicated`?"),
    ("buffering = \"dedicated\"", "module_ports = 0", "module_ports", "at least 1 port"),
    ("buffering = \"dedicated\"", "pool_split = 1", "pool_split", "buffering = \"shared\""),
    (
        "buffering = \"dedicated\"",
        "buffering = \"shared\"\ninput_limit = \"60 B\"",
        "input_limit",
        "at least a frame",
    ),
    ("interface = \"eth1\"", "interface = \"eth0\"", "eth0", "two ports on the interface `eth0`"),
    ("interface = \"eth1\"", "", "[[port]]", "has no device"),
    (
        "interface = \"eth1\"",
        "interface = \"a-name-that-is-too-long\"",
        "interface",
        "not a valid name of an interface",
    ),
    ("name = \"rack\"", "name = \"uplink\"", "uplink", "two ports are named `uplink`"),
    ("name = \"rack\"", "name = \"the rack\"", "the rack", "is not a valid name of a port"),
    ("rate = \"10 Gb/s\"", "rate = \"10 b/s\"", "rate", "rate lies between"),
    ("xoff = \"1 MB\"", "xoff = \"1 MB\", xon = \"2 MB\"", "pause", "must lie below"),
    ("xoff = \"1 MB\"", "xon = \"2 MB\"", "pause", "does nothing"),
    ("tagged = [8, 9]", "tagged = [7]", "tagged", "not both"),
    ("tagged = [8, 9]", "tagged = [4095]", "tagged", "from 1 to 4094"),
    ("delay = \"1 ms\", ", "", "impair", "nothing to overtake"),
    ("loss = \"0.1 %\"", "loss = \"101 %\"", "impair", "at most 1"),
    ("ecn = { mode = \"threshold\", threshold = \"30 kB\" }", "ecn = {}", "ecn", "has no `mode`"),
    ("mode = \"threshold\", threshold = \"30 kB\"", "threshold = 20", "ecn", "has no `mode`"),
    (
        "ecn = { mode = \"threshold\", threshold = \"30 kB\" }",
        "mark = { frames = 20 }",
        "mark",
        "ecn = { mode",
    ),
    ("\"30 kB\"", "\"30 kb\"", "30 kb", "did you mean kB?, or packets, as in \"20 packets\""),
    ("\"30 kB\"", "1.5", "ecn", "a queue holds whole packets, not 1.5"),
    ("\"30 kB\"", "-3", "ecn", "a queue holds zero or more packets, not -3"),
    ("\"30 kB\"", "true", "ecn", "a number of packets, or of bytes with its unit"),
    (
        "{ mode = \"threshold\", threshold = \"30 kB\" }",
        "{ mode = \"red-drop\", min = 25 }",
        "ecn",
        "must lie below",
    ),
    (
        "{ mode = \"threshold\", threshold = \"30 kB\" }",
        "{ mode = \"red-drop\", weight = \"0 %\" }",
        "ecn",
        "weight must be above 0",
    ),
    // Less than 2^36 bytes in packets of 1518 B, and more in those of this MTU.
    (
        "{ mode = \"threshold\", threshold = \"30 kB\" }",
        "{ mode = \"red-mark\", unit = \"bytes\", max = 8000000 }",
        "ecn",
        "neither exceeds 2^36 bytes or packets; these are 135.27 kB and 72144 MB",
    ),
    ("{ mode = \"threshold\", threshold = \"30 kB\" }", "{ mode = \"red\" }", "red", "red-mark"),
    ("mtu = \"9000 B\"", "full_frame = \"99 PB\"", "full_frame", "a full frame takes"),
    ("frames = 14000", "", "[[ring]]", "has no capacity"),
    ("frames = 14000", "frames = 0", "frames", "1 to 16777216 frames"),
    (
        "tagged = [8, 9]",
        "tagged = [8, 9]\nplain_frames = 0",
        "plain_frames",
        "the plain queue holds 1 to 16777216 frames",
    ),
    ("frames = 14000", "bytes = \"99.99 PB\"", "bytes", "all of the packet memory"),
    ("tagged = [8, 9]", "tagged = [8, 9]\nmac_entries = 0", "mac_entries", "at least one station"),
    ("rate = \"0.78 Gb/s\"", "burst = \"3 kB\"", "burst", "without a rate"),
    ("port = \"rack\"\nframes", "port = \"rick\"\nframes", "rick", "there is no port `rick`"),
    ("ring = \"dcm-1\"", "ring = \"dcm-2\"", "dcm-2", "there is no ring `dcm-2`"),
    ("ring = \"dcm-1\"", "", "[[rule]]", "does nothing"),
    ("ring = \"dcm-1\"", "ring = \"dcm-1\"\ndrop = true", "drop", "not both"),
    ("protocol = \"tcp\"", "", "source_port", "only TCP and UDP have ports"),
    ("protocol = \"tcp\"", "protocol = \"tpc\"", "tpc", "\"tcp\", \"udp\""),
    ("\"5000-5063\"", "\"5063-5000\"", "5063-5000", "a range such as"),
    ("\"10.0.0.7\"", "\"10.0.0.7/24\"", "10.0.0.7/24", "is not a valid IP address or prefix"),
    ("02:00:00:00:00:07", "ff:ff:ff:ff:ff:ff", "mac", "not the address of a single station"),
    ("vlan = 8", "vlan = 0", "vlan", "from 1 to 4094"),
    ("priority = 10", "priority = 65536", "priority", "a whole number from 0 to 65535"),
    ("priority = 10", "priority = \"high\"", "priority", "a whole number from 0 to 65535"),
    ("mtu = \"9000 B\"", "cores = [-1]", "cores", "a whole number from 0 to 65535"),
    ("mtu = \"9000 B\"", "cores = 2", "cores", "expected a list"),
    ("\n[[port]]", "\n[control]\nhttp = \"localhost:9414\"\n[[port]]", "http", "such as \"127.0.0.1:9414\""),
    ("\n[[port]]", "\n[control]\nhttp = \"127.0.0.1:9414\"\n[[port]]", "http", "give a `token_file`"),
    (
        "\n[[port]]",
        "\n[control]\nhttp = \"0.0.0.0:9414\"\nauthentication = \"none\"\n[[port]]",
        "http",
        "listen on 127.0.0.1",
    ),
    (
        "\n[[port]]",
        "\n[control]\nhttp = \"127.0.0.1:9414\"\nauthentication = \"none\"\ntoken_file = \"t\"\n[[port]]",
        "authentication",
        "has no effect",
    ),
    ("\n[[port]]", "\n[buffering]\nscheme = \"shared\"\n[[port]]", "[buffering]", "`buffering = \"shared\"`"),
    ("[[station]]", "[station]", "[station]", "double brackets"),
    ("\"dedicated\"", "\"dynamic-threshold\"\nalpha = 0", "alpha", "no queue may hold a frame"),
    ("buffer = \"64 kB\"", "buffer = \"0 B\"", "buffer", "at least a frame"),
    (
        "ecn = { mode = \"threshold\", threshold = \"30 kB\" }",
        "m21 = { buffer = \"1 kB\" }",
        "m21",
        "does not hold one segment",
    ),
    (
        "ecn = { mode = \"threshold\", threshold = \"30 kB\" }",
        "buffer = \"1 B\"",
        "buffer",
        "at least a frame",
    ),
    ("name = \"to-dcm-1\"", "name = \"\"", "name", "is not a valid name of a rule"),
    ("rate = \"0.78 Gb/s\"", "rate = \"fast\"", "rate", "number"),
    ("rate = \"0.78 Gb/s\"", "rate = \"0.78 Gbit\"", "rate", "expected one of"),
    ("frames = 14000", "frames = -3", "frames", "zero or more"),
    ("alarm = \"80 %\"", "alarm = 80", "alarm", "at most 1"),
];

#[test]
fn a_good_configuration_has_no_problems() {
    let loaded = load_text("switch.toml", GOOD).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(loaded.warnings.problems().is_empty(), "{}", loaded.warnings.render(false));
    assert!(loaded.config.has_vlans());
    let example =
        load_text("example.toml", fanin_switch::config::EXAMPLE).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(example.warnings.problems().is_empty(), "{}", example.warnings.render(false));
}

#[test]
fn every_mistake_is_reported_at_its_place() {
    for &(from, to, at, words) in WRONG {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let errors = match load_text("switch.toml", &text) {
            Ok(_) => panic!("`{to}` was taken"),
            Err(errors) => errors,
        };
        let is_there = |problem: &fanin_scenario::Problem| {
            let (_, line, column) =
                problem.location().unwrap_or_else(|| panic!("`{to}`: no place: {errors}"));
            let shown = text.lines().nth(line - 1).unwrap_or_default();
            shown.contains(at) && column <= shown.len()
        };
        assert!(errors.problems().iter().any(is_there), "`{to}` is reported elsewhere: {errors}");
        let said = errors.render(false);
        assert!(said.contains(words), "`{to}`: {said}");
    }
}

#[test]
fn several_mistakes_are_reported_at_once() {
    let text = GOOD.replace("\"eth0\"", "0").replace("frames = 14000", "frames = \"many\"");
    assert_eq!(load_text("switch.toml", &text).unwrap_err().problems().len(), 2);
}

#[test]
fn several_workers_share_a_pool_and_pause_their_neighbours() {
    let text = GOOD.replace("mtu = \"9000 B\"", "cores = [0, 1]").replace("\"dedicated\"", "\"shared\"");
    let loaded = load_text("switch.toml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(loaded.config.workers(), 2);
}

#[test]
fn rings_beyond_the_memory_are_warned_of() {
    let text = GOOD.replace("memory = \"256 MB\"", "memory = \"16 MB\"");
    let warnings = load_text("switch.toml", &text).unwrap().warnings.render(false);
    assert!(warnings.contains("more than there is packet memory"), "{warnings}");
}

#[test]
fn signals_that_nothing_reads_are_warned_of() {
    let warnings_of = |ecn: &str| {
        let text = GOOD.replace("{ mode = \"threshold\", threshold = \"30 kB\" }", ecn);
        load_text("switch.toml", &text).unwrap_or_else(|errors| panic!("{errors}")).warnings.render(false)
    };
    for (ecn, words) in [
        ("{ mode = \"threshold\", gentle = true }", "nothing reads `port.1.ecn.gentle`: ecn.mode is neither"),
        ("{ mode = \"red-mark\", threshold = 7 }", "nothing reads `port.1.ecn.threshold`"),
        ("{ mode = \"off\", not_capable = \"pass\" }", "nothing reads `port.1.ecn.not_capable`"),
        ("{ mode = \"threshold\", threshold = \"3 kB\", unit = \"bytes\" }", "ecn.threshold is in bytes"),
    ] {
        assert!(warnings_of(ecn).contains(words), "{ecn}: {}", warnings_of(ecn));
    }
    assert_eq!(warnings_of("{ mode = \"off\" }"), "");
}

#[test]
fn buffers_that_no_full_frame_fits_are_warned_of() {
    let text =
        GOOD.replace("frames = 14000", "bytes = \"8 kB\"").replace("buffer = \"64 kB\"", "buffer = \"5 kB\"");
    let warnings = load_text("switch.toml", &text).unwrap().warnings.render(false);
    assert_eq!(warnings.matches("full frames of 9014 B never fit").count(), 2, "{warnings}");
}

#[test]
fn settings_survive_a_round_trip() {
    let config = load_text("switch.toml", GOOD).unwrap().config;
    let text = toml::to_string(&config).unwrap();
    assert_eq!(load_text("again.toml", &text).unwrap_or_else(|errors| panic!("{errors}")).config, config);
}
