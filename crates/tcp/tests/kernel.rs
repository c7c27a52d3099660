//! Plays the scripts under `scripts/` against the profile that each names. A real kernel wrote their expected output
//! (`record.py`).
//!
//! The sent segments must agree exactly, and in order. If the kernel answered an input, the time must be that of the
//! input. After a timer, the time must be within two timer ticks, as the phase of the kernel's ticks is unknown.

mod harness;

use std::fmt::Write;

use fanin_tcp::{Config, Flags, SackBlock, Segment, SynOptions, TcpConnection};
use fanin_units::{Duration, Instant};

/// Delay of the kernel's answers until they were recorded, in milliseconds: two thread switches.
const ANSWER_TOLERANCE_MS: f64 = 1.0;
/// Two ticks at HZ 250, plus the delay of an answer, for each timer since the last input.
const TIMER_TOLERANCE_MS: f64 = 9.0;

enum Action {
    Write(u64),
    Inject { segment: Segment, echo: Option<usize>, sack: Vec<(u64, u64)> },
}

struct Script {
    profile: String,
    rtt: Duration,
    window: u32,
    until: f64,
    actions: Vec<(f64, Action)>,
    expected: Vec<(f64, String)>,
}

fn range(text: &str) -> (u64, u64) {
    let (start, end) = text.split_once(':').expect("a range");
    (start.parse().unwrap(), end.parse().unwrap())
}

fn parse(text: &str) -> Script {
    let mut script = Script {
        profile: String::new(),
        rtt: Duration::from_millis(10),
        window: 1 << 20,
        until: 0.0,
        actions: Vec::new(),
        expected: Vec::new(),
    };
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let words: Vec<_> = line.split(' ').collect();
        match words[0] {
            "profile" => script.profile = words[1].into(),
            "rtt" => script.rtt = Duration::from_millis(words[1].parse().unwrap()),
            "window" => script.window = words[1].parse().unwrap(),
            "until" => script.until = words[1].parse().unwrap(),
            _ => {
                let at: f64 = words[0].parse().expect("a time");
                match words[1] {
                    ">" => script.expected.push((at, words[2..].join(" "))),
                    "write" => script.actions.push((at, Action::Write(words[2].parse().unwrap()))),
                    "<" => script.actions.push((at, parse_segment(&words[2..], script.window))),
                    other => panic!("{other} in {line}"),
                }
            }
        }
    }
    script
}

fn parse_segment(words: &[&str], window: u32) -> Action {
    let (start, end) = range(words[0]);
    assert_eq!(words[1], "ack");
    let mut segment = Segment {
        offset: start,
        payload: (end - start) as u16,
        ack: words[2].parse().unwrap(),
        window: window >> 7 << 7,
        flags: Flags::ACK | Flags::TIMESTAMP,
        ..Segment::default()
    };
    if end > start {
        segment.flags.insert(Flags::PSH);
    }
    let (mut echo, mut sack, mut at) = (None, Vec::new(), 3);
    while at < words.len() {
        match words[at] {
            "sack" => {
                while at + 1 < words.len() && words[at + 1].contains(':') {
                    at += 1;
                    sack.push(range(words[at]));
                }
            }
            "echo" => {
                at += 1;
                echo = Some(words[at].parse().unwrap());
            }
            "win" => {
                at += 1;
                segment.window = words[at].parse().unwrap();
            }
            "more" => segment.flags.remove(Flags::PSH),
            other => panic!("{other}"),
        }
        at += 1;
    }
    Action::Inject { segment, echo, sack }
}

fn show(segment: &Segment) -> String {
    let mut text =
        format!("{}:{} ack {}", segment.offset, segment.offset + u64::from(segment.payload), segment.ack);
    for (index, block) in segment.sack[..segment.sack_count()].iter().enumerate() {
        let at = |relative: i32| segment.ack.wrapping_add_signed(i64::from(relative));
        let _ =
            write!(text, "{}{}:{}", if index == 0 { " sack " } else { " " }, at(block.start), at(block.end));
    }
    text
}

fn play(script: &Script) -> Vec<(f64, bool, String)> {
    let config = Config::profile(&script.profile).expect("a profile");
    let mut connection = TcpConnection::new(config.clone());
    connection.connect().expect("a closed connection");
    // The connection opens some time before the script's zero, off the timer's ticks.
    let mut now = Instant::START + Duration::from_micros(100_700);
    let syn = connection.poll_transmit(now).expect("a SYN");
    assert!(syn.flags.contains(Flags::SYN));
    now = now + script.rtt;
    let mut answer = Segment {
        flags: Flags::SYN | Flags::ACK | Flags::TIMESTAMP,
        window: 65_535,
        ts_value: 1,
        ts_echo: syn.ts_value,
        ..Segment::default()
    };
    answer.set_syn_options(SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true });
    connection.handle_segment(now, &answer);
    assert!(connection.poll_transmit(now).is_some(), "the handshake's ACK");
    assert_eq!(connection.config(), &config, "the kernel agrees to everything");
    // From here on the connection's endpoint, whose application reads at once.
    let mut end = connection.endpoint().clone();
    end.set_reading(true);
    now = now + Duration::from_millis(50);
    let window = script.window >> 7 << 7;
    let opening = Segment { flags: Flags::ACK, window, ts_echo: 1, ..Segment::default() };
    end.handle_segment(&config, now, &opening);
    assert!(end.poll_transmit(&config, now).is_none());
    let zero = now + Duration::from_millis(50);

    let mut seen = Vec::new();
    let mut stamps = Vec::new();
    let mut last_stamp = syn.ts_value;
    let mut peer_clock = 1000;
    let millis = |now: Instant| (now.get() as f64 - zero.get() as f64) / 1e9;
    let at = |ms: f64| Instant::new(zero.get() + (ms * 1e9) as u64);
    let mut actions = script.actions.iter().peekable();
    loop {
        let due = actions.peek().map_or(at(script.until), |action| at(action.0));
        let deadline = end.poll_deadline();
        let timer = deadline < due;
        now = now.max(due.min(deadline));
        if timer {
            end.handle_deadline(&config, now);
        } else {
            match actions.next() {
                None => break,
                Some((_, Action::Write(bytes))) => end.write(*bytes),
                Some((_, Action::Inject { segment, echo, sack })) => {
                    let mut segment = *segment;
                    peer_clock += 1;
                    segment.ts_value = peer_clock;
                    segment.ts_echo = echo.map_or(last_stamp, |line| stamps[line - 1]);
                    for (slot, &(start, stop)) in segment.sack.iter_mut().zip(sack) {
                        let relative = |offset: u64| (offset as i64 - segment.ack as i64) as i32;
                        *slot = SackBlock { start: relative(start), end: relative(stop) };
                    }
                    // A block below the acknowledgement is a duplicate's report (RFC 2883).
                    if sack.first().is_some_and(|block| block.0 < segment.ack) {
                        segment.flags.insert(Flags::DSACK);
                    }
                    end.handle_segment(&config, now, &segment);
                }
            }
        }
        while let Some(segment) = end.poll_transmit(&config, now) {
            last_stamp = segment.ts_value;
            stamps.push(segment.ts_value);
            seen.push((millis(now), timer, show(&segment)));
        }
        end.check(&config);
    }
    seen
}

/// The first disagreement, with both sides; `None` if there is none.
fn compare(script: &Script) -> Option<String> {
    let seen = play(script);
    let mut text = String::new();
    let mut timers = 0;
    let mut wrong = seen.len() != script.expected.len();
    for index in 0..seen.len().max(script.expected.len()) {
        let expected = script.expected.get(index);
        let actual = seen.get(index);
        let agree = match (expected, actual) {
            (Some((at, event)), Some((when, timer, sent))) => {
                timers = if *timer { timers + 1 } else { 0 };
                let tolerance =
                    if *timer { TIMER_TOLERANCE_MS * f64::from(timers) } else { ANSWER_TOLERANCE_MS };
                event == sent && (at - when).abs() <= tolerance
            }
            _ => false,
        };
        wrong |= !agree;
        let left = expected.map_or(String::new(), |(at, event)| format!("{at:9.3} {event}"));
        let right = actual.map_or(String::new(), |(at, timer, event)| {
            format!("{at:9.3} {event}{}", if *timer { " (timer)" } else { "" })
        });
        let _ = writeln!(text, "{} {left:60} {right}", if agree { ' ' } else { '!' });
    }
    wrong.then_some(text)
}

#[test]
fn the_kernel_agrees() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 10, "the scripts are there");
    let mut report = String::new();
    for path in paths {
        let script = parse(&std::fs::read_to_string(&path).unwrap());
        assert!(!script.expected.is_empty(), "{} was recorded", path.display());
        if let Some(difference) = compare(&script) {
            let _ = writeln!(report, "{}: kernel | here\n{difference}", path.display());
        }
    }
    assert!(report.is_empty(), "\n{report}");
}
