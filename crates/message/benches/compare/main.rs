//! The server's processor time per request, compared with a bare epoll loop in C, Boost.ASIO and ZeroMQ in one run.
//!
//! The servers answer requests over loopback from the first core; the load comes from the second. Each server takes
//! many short turns with the bare loop, with all connections of both in place. Other work of the machine slows down
//! both. The result is the median of the ratios of neighbouring turns.
//!
//! `cargo bench -p fanin-message -- [WORDS…]` runs the settings whose names contain all the words. `turns=N` and `ms=N`
//! set the number of turns and their duration; `server=WORD` selects the servers with this word in their names.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod load;
mod server;

use std::time::{Duration, Instant};
use std::{env, io};

use load::{Dialogue, Load, zmtp_frame};
use server::{Kind, Server, kinds, pin, serve};

/// Longest wait of a turn for answers to requests of the previous one.
const CARRIED_MAX: Duration = Duration::from_secs(2);

/// One setting of the load.
struct Setting {
    connections: usize,
    depth: usize,
    request: usize,
    reply: usize,
}

/// A server with all its connections.
struct Pair {
    server: Server,
    load: Load,
    /// Number of open requests at any time.
    under_way: u64,
    idle_bytes: f64,
}

/// The turns of a server: the cost of a request, and its ratio to the bare loop's cost in the neighbouring turn.
#[derive(Default)]
struct Turns {
    cpu_ns: Vec<f64>,
    ratios: Vec<f64>,
    idle_bytes: f64,
}

fn settings() -> Vec<Setting> {
    let small = |connections, depth| Setting { connections, depth, request: 10, reply: 1000 };
    let large = |connections| Setting { connections, depth: 1, request: 1_000_000, reply: 10 };
    vec![
        small(100, 1),
        small(100, 8),
        small(1000, 1),
        small(1000, 4),
        small(2000, 1),
        small(5000, 1),
        small(5000, 4),
        small(9000, 1),
        small(9000, 4),
        large(1),
        large(10),
        large(100),
    ]
}

impl Setting {
    fn name(&self) -> String {
        let Self { connections, depth, request, reply } = self;
        format!("{connections} x {depth}, {request} B -> {reply} B")
    }

    fn start(&self, kind: &Kind) -> io::Result<Pair> {
        let server = Server::start(kind, self.reply)?;
        let empty = server.memory();
        let dialogue = if kind.zmtp {
            let reply_bytes = zmtp_frame(self.reply).len();
            Dialogue { request: zmtp_frame(self.request), reply_bytes, zmtp: true }
        } else {
            let mut request = Vec::new();
            for word in [1, 0, self.request as u32] {
                request.extend(word.to_le_bytes());
            }
            request.resize(12 + self.request, 0);
            Dialogue { request, reply_bytes: 12 + self.reply, zmtp: false }
        };
        let mut load = Load::connect(server.port, self.connections, self.depth, dialogue)?;
        std::thread::sleep(Duration::from_millis(100));
        let idle_bytes = server.memory().saturating_sub(empty) as f64 / self.connections as f64;
        load.begin()?;
        let under_way = (self.connections * self.depth) as u64;
        Ok(Pair { server, load, under_way, idle_bytes })
    }

    /// Lets a server and the bare loop take turns.
    fn compare(&self, kind: &Kind, floor: &Kind, turns: u64, time: Duration) -> io::Result<Turns> {
        let (mut ours, mut bare) = (self.start(kind)?, self.start(floor)?);
        // A warm-up: buffers grow, caches fill.
        ours.turn(time)?;
        bare.turn(time)?;
        let mut found = Turns { idle_bytes: ours.idle_bytes, ..Turns::default() };
        let mut before = bare.turn(time)?;
        for _ in 0..turns {
            let cost = ours.turn(time)?;
            let after = bare.turn(time)?;
            found.cpu_ns.push(cost);
            found.ratios.push(2.0 * cost / (before + after));
            before = after;
        }
        Ok(found)
    }
}

impl Pair {
    /// Runs for `time`; returns the processor time of the server per request, ns.
    fn turn(&mut self, time: Duration) -> io::Result<f64> {
        // Requests in flight at the end of the last turn were answered between turns, unmeasured.
        let fresh = self.load.replies + self.under_way;
        let until = Instant::now() + CARRIED_MAX;
        while self.load.replies < fresh && Instant::now() < until {
            self.load.run(time / 10)?;
        }
        let (replies, cpu) = (self.load.replies, self.server.cpu_ns());
        self.load.run(time)?;
        let replies = self.load.replies - replies;
        Ok((self.server.cpu_ns() - cpu) as f64 / replies.max(1) as f64)
    }
}

/// The value below which this share of the values lies.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len().max(1) - 1) as f64 * share;
    values.get(place.round() as usize).copied().unwrap_or(f64::NAN)
}

/// The machine's load average of the last minute.
fn machine_load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [serve_word, backend, reply] = &arguments[..]
        && serve_word == "--serve"
    {
        return serve(backend, reply.parse().map_err(io::Error::other)?);
    }
    let number = |key: &str, otherwise: u64| {
        arguments.iter().find_map(|word| word.strip_prefix(key)?.parse().ok()).unwrap_or(otherwise)
    };
    let (turns, time) = (number("turns=", 15), Duration::from_millis(number("ms=", 100)));
    let server = arguments.iter().find_map(|word| word.strip_prefix("server=")).unwrap_or_default();
    let words: Vec<_> = arguments.iter().filter(|word| !word.contains('=')).collect();
    let kinds = kinds();
    let Some(floor) = kinds.iter().find(|kind| kind.name.starts_with("bare")) else {
        println!("Skipped: without the bare epoll loop there is nothing to compare with.");
        return Ok(());
    };
    pin(None, 1);
    for setting in settings() {
        let name = setting.name();
        if !words.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        println!("\n{name} (load of the machine: {})", machine_load());
        println!(
            "  {:<18} {:>12} {:>8} {:>15} {:>14} {:>14}",
            "server", "us/request", "ratio", "middle half", "kreq/s a core", "B/idle conn."
        );
        for kind in kinds.iter().filter(|kind| kind.name.contains(server)) {
            match setting.compare(kind, floor, turns, time) {
                Ok(mut found) => {
                    let us = quantile(&mut found.cpu_ns, 0.5) / 1e3;
                    let [low, ratio, high] = [0.25, 0.5, 0.75].map(|at| quantile(&mut found.ratios, at));
                    println!(
                        "  {:<18} {us:>12.3} {ratio:>8.2} {:>15} {:>14.1} {:>14.0}",
                        kind.name,
                        format!("{low:.2} to {high:.2}"),
                        1e3 / us,
                        found.idle_bytes
                    );
                }
                Err(error) => println!("  {}: {error}", kind.name),
            }
        }
    }
    Ok(())
}
