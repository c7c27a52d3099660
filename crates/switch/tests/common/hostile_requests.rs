//! Arbitrary bytes as requests to a running switch, over its local socket. Each request is answered or its connection closed,
//! and the switch continues to work.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fanin_switch::Running;
use fanin_switch::control::{ControlServer, ControlSettings};

#[path = "../../examples/busy/traffic.rs"]
mod traffic;

/// Words that mutations insert.
#[allow(dead_code, reason = "a fuzzer has its own corpus")]
pub const WORDS: &[&str] = &[
    "GET ",
    "POST ",
    "PATCH ",
    "DELETE ",
    "/v1/",
    "rings",
    "rules",
    "ports",
    "stations",
    "capture",
    "?",
    "&",
    "%00",
    "%ff",
    "null",
    "true",
    "{}",
    "[]",
    "\"name\":",
    "\"port\":",
    "\"rate\":",
    "\"bytes\":",
    "\"frames\":",
    "\"burst\":",
    "\"ring\":",
    "\"priority\":",
    "\"ecn\":",
    "\"impair\":",
    "\"storm\":",
    "\"source-1\"",
    "\"collector-8\"",
    "\"ring-8\"",
    "\"1 Gb/s\"",
    "\"10 kb/s\"",
    "\"1 B\"",
    "\"64 GiB\"",
    "\"1 s\"",
    "\"50 %\"",
    "-1",
    "1e309",
    "0",
    "4294967296",
    "18446744073709551616",
    "\\u0000",
    "\\ud800",
    "transfer-encoding: chunked\r\n",
    "content-length: 5\r\n",
    "expect: 100-continue\r\n",
    "upgrade: h2c\r\n",
    "\r\n\r\n",
    "HTTP/1.1",
    "HTTP/0.9",
    "RAW\n",
];

/// The longest time to wait for an answer; the server's limits are 10 s.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Inputs after which a new switch is started.
const INPUTS_MAX: u32 = 2_000;
/// Frames a second, so that changes meet frames.
const FRAMES_PER_S: u64 = 2_000;

struct Bed {
    running: Running,
    server: ControlServer,
    socket: PathBuf,
    inputs: u32,
}

impl Bed {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = std::env::temp_dir().join(format!("fanin-fuzz-{}-{number}.sock", std::process::id()));
        let config = traffic::config();
        let ports = traffic::Traffic::new(&config, FRAMES_PER_S, Arc::default());
        let running = Running::over(&config, vec![ports]).expect("the configuration is sound");
        let settings = ControlSettings { socket: Some(socket.clone()), ..ControlSettings::default() };
        let server = ControlServer::start(&settings, running.operation()).expect("a socket of our own");
        Self { running, server, socket, inputs: 0 }
    }

    /// Sends bytes, and reads until the other side closes; of a capture, reads only the head.
    fn exchange(&self, request: &[u8], ends: bool) -> Vec<u8> {
        let mut stream = UnixStream::connect(&self.socket).expect("the switch listens");
        stream.set_read_timeout(Some(ANSWER_MAX)).expect("a socket takes a timeout");
        // The other side may close before it has read all of it.
        let _ = stream.write_all(request);
        if ends {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let mut answer = Vec::new();
        let mut part = [0; 4096];
        loop {
            match stream.read(&mut part) {
                Ok(0) => return answer,
                Ok(read) => answer.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return answer,
                Err(error) => {
                    panic!("no answer and no end: {error}; so far: {}", String::from_utf8_lossy(&answer))
                }
            }
            // A capture continues for its duration: its head is enough.
            if find(&answer, b"x-pcapng").is_some() && find(&answer, b"\r\n\r\n").is_some() {
                return answer;
            }
        }
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// Checks an answer to any request; `is_one` if it is the complete answer to one request.
fn is_answer(answer: &[u8], is_one: bool) {
    if answer.is_empty() {
        return;
    }
    let text = String::from_utf8_lossy(answer);
    let status: u16 = text
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| text.strip_prefix("HTTP/1.0 "))
        .and_then(|rest| rest.get(..3)?.parse().ok())
        .unwrap_or_else(|| panic!("no answer of HTTP: {text}"));
    assert!(status != 500, "{text}");
    if is_one
        && let Some(end) = find(answer, b"\r\n\r\n")
        && find(&answer[..end], b"application/problem+json").is_some()
        && end + 4 < answer.len()
        && find(answer, b"transfer-encoding: chunked").is_none()
    {
        let body = &answer[end + 4..];
        let problem: serde_json::Value =
            serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(problem["status"], status, "{text}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{text}");
    }
}

/// The first line is a method and a path, and the rest a body of JSON; after a line `RAW`, the bytes are sent unchanged.
pub fn check(input: &[u8]) {
    thread_local! {
        static BED: RefCell<Option<Bed>> = const { RefCell::new(None) };
    }
    let mut bed = BED.take().unwrap_or_else(Bed::new);
    let (request, ends) = if let Some(raw) = input.strip_prefix(b"RAW\n") {
        (raw.to_vec(), true)
    } else {
        let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
        let body = input.get(end + 1..).unwrap_or_default();
        let more = format!(
            " HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        ([&input[..end], more.as_bytes(), body].concat(), false)
    };
    is_answer(&bed.exchange(&request, ends), !ends);
    assert!(!bed.running.has_failed(), "the data path has failed");
    bed.inputs += 1;
    if bed.inputs.is_multiple_of(50) {
        let answer =
            bed.exchange(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", false);
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "it is not well: {}", String::from_utf8_lossy(&answer));
    }
    if bed.inputs < INPUTS_MAX {
        BED.set(Some(bed));
    } else {
        bed.server.stop();
        drop(bed.running.stop());
    }
}
