//! What a request costs the server, beside a bare epoll loop in C, Boost.ASIO and ZeroMQ, in one run.
//!
//! The servers answer requests over loopback from the first core; the load comes from the second. All servers take
//! turns, several times; the figure of each is its best turn, and what counts is the ratio to the bare loop.
//!
//! `cargo bench -p fanin-message -- [WORDS…]` runs the settings whose names contain all the words; `turns=N` and
//! `ms=N` set how often and how long.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod load;
mod server;

use std::time::{Duration, Instant};
use std::{env, io};

use load::{Dialogue, Load, zmtp_frame};
use server::{Kind, Server, kinds, pin, serve};

/// One way to ask.
struct Setting {
    connections: usize,
    depth: usize,
    request: usize,
    reply: usize,
}

#[derive(Clone, Copy)]
struct Figures {
    cpu_ns: f64,
    rate: f64,
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

    fn measure(&self, kind: &Kind, time: Duration) -> io::Result<Figures> {
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
        load.run(time / 4)?;
        let (replies, cpu, start) = (load.replies, server.cpu_ns(), Instant::now());
        load.run(time)?;
        let (replies, cpu) = (load.replies - replies, server.cpu_ns() - cpu);
        let rate = replies as f64 / start.elapsed().as_secs_f64();
        Ok(Figures { cpu_ns: cpu as f64 / replies.max(1) as f64, rate, idle_bytes })
    }
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
    let (turns, time) = (number("turns=", 3), Duration::from_millis(number("ms=", 800)));
    let words: Vec<_> = arguments.iter().filter(|word| !word.contains('=')).collect();
    let kinds = kinds();
    if !kinds.iter().any(|kind| kind.name.starts_with("bare")) {
        println!("Skipped: without the bare epoll loop there is nothing to compare with.");
        return Ok(());
    }
    pin(None, 1);
    for setting in settings() {
        let name = setting.name();
        if !words.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        let mut best: Vec<Option<Figures>> = vec![None; kinds.len()];
        for _ in 0..turns {
            for (kind, best) in kinds.iter().zip(&mut best) {
                match setting.measure(kind, time) {
                    Ok(now) if best.is_none_or(|best| now.cpu_ns < best.cpu_ns) => *best = Some(now),
                    Ok(_) => {}
                    Err(error) => println!("{}: {error}", kind.name),
                }
            }
        }
        let floor = kinds.iter().zip(&best).find(|(kind, _)| kind.name.starts_with("bare"));
        let floor = floor.and_then(|(_, best)| *best).map_or(f64::NAN, |figures| figures.cpu_ns);
        println!("\n{name}");
        println!(
            "  {:<18} {:>12} {:>8} {:>12} {:>14}",
            "server", "us/request", "ratio", "kreq/s", "B/idle conn."
        );
        for (kind, figures) in kinds.iter().zip(&best) {
            let Some(Figures { cpu_ns, rate, idle_bytes }) = figures else { continue };
            let (us, ratio, krate) = (cpu_ns / 1e3, cpu_ns / floor, rate / 1e3);
            println!("  {:<18} {us:>12.3} {ratio:>8.2} {krate:>12.1} {idle_bytes:>14.0}", kind.name);
        }
    }
    Ok(())
}
