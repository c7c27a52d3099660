//! Throughput of event building on the loopback, compared with iperf3 on the same loopback in the same run.
//!
//! 8 readouts, 4 collectors, events of 2.07 MB: two KM3NeT slices each, 906 fragments. Every fragment's checksum is
//! checked by its collector; units decide at once and reject, so that nothing is stored. Peers authenticate by a key, and
//! do not with `FANIN_INSECURE` in the environment. `cargo bench -p fanin-node`.

#![allow(clippy::print_stdout, reason = "what it measured is what it is for")]

#[path = "../examples/process.rs"]
#[allow(dead_code, reason = "the example has a main function of its own")]
mod process;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fanin_events::{Events, frag, sample};
use fanin_node::launch::{LiveSystem, Loopback, SystemLaunch};
use fanin_node::result::read_tables;

const WARMUP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(4);
/// How far the sources of the second slice are from those of the first.
const SECOND: u32 = 0x4000_0000;

fn main() {
    if std::env::args().nth(1).is_some_and(|first| first == "node") {
        process::run().unwrap_or_else(|error| panic!("{error}"));
        return;
    }
    let folder = std::env::temp_dir().join(format!("fanin-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    let peer = iperf3();
    let (bytes, seconds, cpu) = build(&folder);
    let _ = std::fs::remove_dir_all(&folder);
    let rate = bytes as f64 / seconds / 1e9;
    let gigabytes = bytes as f64 / 1e9;
    println!("events built   {rate:.3} GB/s of fragments, {:.3} CPU s a GB, all processes", cpu / gigabytes);
    match peer {
        Some((peer_rate, peer_cpu)) => {
            println!("iperf3         {peer_rate:.3} GB/s, one connection, {peer_cpu:.3} CPU s a GB");
            println!("ratio          {:.3} in GB/s; at least 0.5 is wanted", rate / peer_rate);
            // Other work on the machine takes time from 13 processes and from 2 in different shares, but hardly from this.
            println!("               {:.3} in GB a CPU second", peer_cpu / (cpu / gigabytes));
        }
        None => println!("iperf3         skipped: it is not installed (apt install iperf3)"),
    }
}

/// One file with one event: both slices of the sample.
fn replay_file(path: &Path) {
    let bytes = sample::km3net();
    let events: Vec<_> = Events::open(&bytes).expect("a sample").map(|event| event.expect("whole")).collect();
    let fragments: Vec<(u32, &[u8])> = events
        .iter()
        .zip([0, SECOND])
        .flat_map(|(event, shift)| event.fragments.iter().map(move |f| (f.source ^ shift, f.bytes)))
        .collect();
    let mut writer = frag::FragWriter::new(Vec::new()).expect("memory");
    writer.write_event(0, fragments.iter().copied()).expect("memory");
    std::fs::write(path, writer.finish().expect("memory")).expect("a file");
}

/// Bytes of fragments that were collected, the time they took, and the processor time of all processes for them.
fn build(folder: &Path) -> (u64, f64, f64) {
    let replay = folder.join("two.frag");
    replay_file(&replay);
    let sets = [
        format!("live.replay={}", replay.display()),
        "live.processors=timers".to_owned(),
        "readout.hosts=8".to_owned(),
        "readout.response_delay=0 s".to_owned(),
        "collectors.hosts_per_rack=4".to_owned(),
        "collectors.units_per_host=2".to_owned(),
        "collectors.processing_time=0 s".to_owned(),
        "supervisor.arrivals=on-demand".to_owned(),
        "shaping.request_order=rotated".to_owned(),
        "logger.accept=0".to_owned(),
        "logger.hosts=1".to_owned(),
    ];
    let loaded = fanin_scenario::load("replay", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let live_folder = folder.join("live");
    let launch = SystemLaunch {
        overwrite: true,
        loaded: &loaded,
        folder: &live_folder,
        scenario_folder: Path::new(""),
        data: None,
        program: &std::env::current_exe().expect("this program"),
        restart: false,
        metrics: false,
        ideal_rate: None,
        predicted: Default::default(),
    };
    let never = AtomicBool::new(false);
    let mut live = LiveSystem::start(&launch, Loopback::default()).unwrap_or_else(|error| panic!("{error}"));
    live.wait_ready(&never).unwrap_or_else(|error| panic!("{error}"));
    live.work(WARMUP, &never, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    let (began, cpu_before) = (Instant::now(), live.cpu_seconds());
    live.work(MEASURED, &never, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), live.cpu_seconds() - cpu_before);
    live.stop();
    drop(live);
    let rows = read_tables(&[&live_folder], &[0; 4]).unwrap_or_else(|error| panic!("{error}")).rows;
    let from = WARMUP.as_nanos() as u64 * 1000;
    let until = from + (seconds * 1e12) as u64;
    let within = rows.iter().filter(|row| row.last_byte_ps.is_some_and(|at| (from..until).contains(&at)));
    (within.map(|row| row.size_bytes).sum(), seconds, cpu)
}

/// GB/s and processor seconds a GB of iperf3; `None` where it is not installed.
fn iperf3() -> Option<(f64, f64)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port().to_string();
    let serve = ["-s", "-1", "-B", "127.0.0.1", "-p", &port];
    let mut server = Command::new("iperf3").args(serve).stdout(Stdio::null()).spawn().ok()?;
    std::thread::sleep(Duration::from_millis(300));
    let ask = ["-c", "127.0.0.1", "-p", &port, "-t", "3", "-O", "1", "-J"];
    let client = Command::new("iperf3").args(ask).output();
    let _ = server.kill();
    let _ = server.wait();
    let output: serde_json::Value = serde_json::from_slice(&client.ok()?.stdout).ok()?;
    let end = &output["end"];
    let rate = end["sum_received"]["bits_per_second"].as_f64()? / 8e9;
    let percent = end["cpu_utilization_percent"].as_object()?;
    let cpu: f64 = ["host_total", "remote_total"].iter().filter_map(|key| percent[*key].as_f64()).sum();
    Some((rate, cpu / 100.0 / rate))
}
