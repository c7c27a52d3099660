//! A busy switch: ports in memory with generated traffic, control over HTTP and a local socket.
//!
//! `busy serve HTTP_ADDRESS [SOCKET]` serves until its standard input ends. `busy soak SECONDS` continually changes rings,
//! rules, ports and marks, captures and scrapes, and then accounts for every frame. It exits with 1 if a frame was lost,
//! reordered or changed.

mod churn;
mod traffic;

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fanin_switch::Running;
use fanin_switch::config::HttpAuthentication;
use fanin_switch::control::{ControlServer, ControlSettings};

use crate::traffic::{Counts, Traffic};

/// Frames a second of `busy serve`, few enough to leave the machine idle.
const SERVE_FRAMES_PER_S: u64 = 2_000;
/// Frames a second of the soak.
const SOAK_FRAMES_PER_S: u64 = 40_000;
/// More frames than the soak holds at once: its sources catch up 1024 after a pause of the process.
const SOAK_FRAMES_AT_ONCE: usize = 4096;

const USAGE: &str = "usage: busy serve HTTP_ADDRESS [SOCKET] | busy soak SECONDS";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", http, rest @ ..] if rest.len() < 2 => {
            let Ok(http) = http.parse() else { return wrong() };
            serve(&ControlSettings {
                http: Some(http),
                socket: rest.first().map(Into::into),
                token: None,
                authentication: HttpAuthentication::None,
            })
        }
        ["soak", seconds] => match seconds.parse() {
            Ok(seconds) => soak(Duration::from_secs(seconds)),
            Err(_) => wrong(),
        },
        _ => wrong(),
    }
}

fn wrong() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

#[expect(clippy::print_stdout, reason = "a parent process waits for the address")]
fn serve(settings: &ControlSettings) -> ExitCode {
    let config = traffic::config();
    let traffic = Traffic::new(&config, SERVE_FRAMES_PER_S, Arc::default());
    let running = Running::over(&config, vec![traffic]).expect("the configuration is sound");
    let server = match ControlServer::start(settings, running.operation()) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    println!("http://{}", server.http_address().expect("it listens"));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    server.stop();
    running.stop();
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "this is its result")]
fn soak(time: Duration) -> ExitCode {
    let config = traffic::config();
    let counts = Arc::new(Counts::default());
    let mut traffic = Traffic::new(&config, SOAK_FRAMES_PER_S, Arc::clone(&counts));
    traffic.use_memory(SOAK_FRAMES_AT_ONCE);
    let running = Running::over(&config, vec![traffic]).expect("the configuration is sound");
    let socket = std::env::temp_dir().join(format!("fanin-busy-{}.sock", std::process::id()));
    let settings = ControlSettings { socket: Some(socket.clone()), ..ControlSettings::default() };
    let server =
        ControlServer::start(&settings, running.operation()).expect("a socket in the folder for such");
    let done = churn::run(&socket, time);
    server.stop();
    let ended = running.stop();
    let [sent, arrived, reordered, wrong] = [&counts.sent, &counts.arrived, &counts.reordered, &counts.wrong]
        .map(|count| count.load(Ordering::Relaxed));
    println!("{done}");
    println!(
        "frames: {sent} sent, {arrived} arrived, {} lost, {reordered} reordered, {wrong} wrong; {} dropped by the switch, \
         {} left in its queues",
        sent - arrived.min(sent),
        ended.snapshot.drops(),
        ended.abandoned
    );
    let worker = ended.snapshot.workers[0];
    println!("packet memory: {} of {} chunks free at the end", worker.chunks_free, worker.chunks);
    let is_good = sent == arrived
        && reordered == 0
        && wrong == 0
        && worker.chunks == worker.chunks_free
        && done.refused == 0;
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
