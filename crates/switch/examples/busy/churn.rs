//! A stream of changes, each answered before the next, with concurrent scrapes and captures.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fanin_switch::control::{Client, ControlAddress};
use serde_json::json;

use crate::traffic::{COLLECTORS, SOURCES};

/// Pause between two changes, so that frames meet every state.
const PAUSE: Duration = Duration::from_millis(2);

/// Counts of requests.
#[derive(Debug, Default)]
pub(crate) struct Done {
    counts: BTreeMap<&'static str, u64>,
    /// Requests that were refused by mistake.
    pub(crate) refused: u64,
    time: Duration,
}

impl fmt::Display for Done {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} s:", self.time.as_secs())?;
        for (name, count) in &self.counts {
            write!(out, " {count} {name},")?;
        }
        write!(out, " {} refused", self.refused)
    }
}

/// Changes the switch at this socket for a time.
pub(crate) fn run(socket: &Path, time: Duration) -> Done {
    let start = Instant::now();
    let client = || Client::new(ControlAddress::Socket(socket.to_owned()));
    let mut done = thread::scope(|scope| {
        let looking = scope.spawn(move || look(&client(), start, time));
        let mut done = change(&client(), start, time);
        let looked = looking.join().expect("the scraper does not panic");
        done.refused += looked.refused;
        done.counts.extend(looked.counts);
        done
    });
    done.time = start.elapsed();
    done
}

impl Done {
    fn ask(
        &mut self,
        name: &'static str,
        client: &Client,
        method: &str,
        path: &str,
        body: Option<&serde_json::Value>,
    ) {
        match client.send(method, path, body) {
            Ok(_) => *self.counts.entry(name).or_default() += 1,
            Err(error) => {
                eprintln!("{method} {path}: {error}");
                self.refused += 1;
            }
        }
    }
}

fn change(client: &Client, start: Instant, time: Duration) -> Done {
    let mut done = Done::default();
    let mut round = 0u64;
    while start.elapsed() < time {
        round += 1;
        let collector = SOURCES + round as usize % COLLECTORS;
        let ring = format!("/v1/rings/ring-{collector}");
        // At least the traffic's rate, and a buffer for its frames during a change.
        let rate = format!("{} Mb/s", 2_000 + round % 8 * 1_000);
        let frames = format!("{} packets", 4_096 << (round % 3));
        done.ask("rings changed", client, "PATCH", &ring, Some(&json!({"rate": rate, "frames": frames})));
        let extra = format!("extra-{}", round % 16);
        let port = format!("collector-{collector}");
        let spec = json!({"name": extra, "port": port, "frames": "512 packets", "rate": "1 Gb/s"});
        done.ask("rings added", client, "POST", "/v1/rings", Some(&spec));
        // It matches no frame, but takes part in classification.
        let rule = json!({"name": extra, "ring": extra, "priority": round % 100, "source_mac": "02:ff:00:00:00:00/24"});
        done.ask("rules added", client, "POST", "/v1/rules", Some(&rule));
        thread::sleep(PAUSE);
        done.ask("rules removed", client, "DELETE", &format!("/v1/rules/{extra}"), None);
        done.ask("rings removed", client, "DELETE", &format!("/v1/rings/{extra}"), None);
        if round.is_multiple_of(16) {
            let body = json!({"rate": format!("{} Gb/s", 5 + round % 5), "flood": round.is_multiple_of(32)});
            done.ask("ports changed", client, "PATCH", &format!("/v1/ports/{port}"), Some(&body));
            done.ask("resets of marks", client, "POST", "/v1/marks/reset", None);
            done.ask("tables flushed", client, "DELETE", "/v1/stations", None);
        }
    }
    done
}

fn look(client: &Client, start: Instant, time: Duration) -> Done {
    let mut done = Done::default();
    while start.elapsed() < time {
        done.ask("scrapes", client, "GET", "/metrics", None);
        for path in ["/v1/rings", "/v1/ports", "/v1/stations"] {
            done.ask("lists read", client, "GET", path, None);
        }
        let path = format!("/v1/capture?port=collector-{SOURCES}&seconds=1&snap=64");
        match client.download(&path, io::sink()) {
            Ok(bytes) => {
                *done.counts.entry("captures").or_default() += 1;
                *done.counts.entry("bytes captured").or_default() += bytes;
            }
            Err(error) => {
                eprintln!("{path}: {error}");
                done.refused += 1;
            }
        }
    }
    done
}
