//! Thousands of connections of strangers against a running system: idle, slow, half-open, garbage, oversized, of other
//! versions, and a recorded greeting. Its memory, descriptors, read calls and log stay bounded, and it goes on.

mod common;

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use common::System;
use common::hang_guard::HangGuard;
use fanin_dataflow::Peer;
use fanin_message::{
    ConnectionOptions, EndpointEvent, EndpointSettings, MessageEndpoint, RESERVED_KINDS, SharedKey,
};
use fanin_node::config::Role;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

/// The open files that each process of the system may have.
const SYSTEM_FILES: u64 = 600;
/// A quarter of them, as strangers may have.
const STRANGERS: usize = 150;
const IDLE: usize = 10_000;
const SLOW: usize = 2_000;
/// Of each other kind.
const FAULTY: usize = 150;
const REPLAYS: usize = 30;
/// Of requests for metrics: idle ones, and ones of each other kind.
const REQUESTS_IDLE: usize = 3_000;
const REQUESTS: usize = 300;
/// Connections for metrics that a process keeps.
const REQUESTS_KEPT: usize = 64;
/// Size at which a request's head is answered, whole or not.
const HEAD_BYTES_MAX: usize = 8192;
/// Number of connections in a row that the campaign makes from one address, so that none is closed because of its rate.
const FROM_ONE: usize = 600;
/// Address of the flood: that of every program of this host.
const FLOODING: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Connections that the flood keeps open: more than all targets permit.
const FLOOD: usize = 600;
/// The least number of connections that the flood makes.
const FLOOD_MIN: usize = 10 * STRANGERS;
/// Types of the frames before the first message.
const HELLO: u32 = RESERVED_KINDS + 1;
const REFUSAL: u32 = RESERVED_KINDS + 3;
const CHALLENGE: u32 = RESERVED_KINDS + 4;
const PATIENCE: Duration = Duration::from_secs(60);
/// Memory by which an attacked process may grow: four times what was measured.
const GROWTH_KB_MAX: u64 = 4 << 10;
/// Bytes of a greeting that a slow connection sends one by one.
const SLOW_BYTES: u64 = 24;
/// Read calls for a faulty connection: its bytes, and its end.
const FAULTY_READS_MAX: u64 = 2;
/// Read calls for a replayed greeting: its hello, its proof, and its end.
const REPLAY_READS_MAX: u64 = 3;
/// Read calls for a message of the system: its own, and one for a heartbeat before the next one.
const MESSAGE_READS_MAX: u64 = 2;
/// Descriptors of a process's own work that may be open by chance: journals, stored files, clients of its metrics.
const OWN_FILES: usize = 8;

/// Sets the limit of open files of this process and its children; returns the limit that holds.
fn limit_files(wanted: u64) -> u64 {
    let before = getrlimit(Resource::Nofile);
    let current = before.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: before.maximum }).unwrap();
    current
}

/// Memory, processor time and descriptors that a process has used so far.
#[derive(Debug, Clone, Copy)]
struct Usage {
    peak_kb: u64,
    cpu_us: u64,
    files: usize,
}

fn usage(pid: u32) -> Usage {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    let status = read("status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kb = peak.split_whitespace().next().unwrap().parse().unwrap();
    let mut cpu_us = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        // Nanoseconds on a processor; the first of three numbers.
        let Ok(text) = std::fs::read_to_string(task.path().join("schedstat")) else { continue };
        cpu_us += text.split(' ').next().unwrap().parse::<u64>().unwrap() / 1000;
    }
    Usage { peak_kb, cpu_us, files: open_files(pid) }
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Connects from another address of this machine.
fn connect_from(caller: Ipv4Addr, address: SocketAddr) -> OwnedFd {
    let fd = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&fd, &SocketAddr::from((caller, 0))).unwrap();
    // A target that closed a connection within its handshake is no error.
    let _ = rustix::net::connect(&fd, &address);
    fd
}

/// Connects to one target after the other from [`FLOODING`] until `stop` is set, and [`FLOOD_MIN`] times at least. Returns the
/// number of connections.
fn flood(targets: &[SocketAddr], stop: &AtomicBool) -> usize {
    let mut open = VecDeque::new();
    let mut made = 0;
    while made < FLOOD_MIN || !stop.load(Ordering::Relaxed) {
        let fd = connect_from(FLOODING, targets[made % targets.len()]);
        // Without a time to linger, the address and port are free again at once.
        set_socket_linger(&fd, Some(Duration::ZERO)).unwrap();
        open.push_back(fd);
        made += 1;
        if open.len() > FLOOD {
            open.pop_front();
        }
    }
    made
}

/// The bytes that a caller with the key sends to a readout until it is accepted.
fn record_greeting(address: SocketAddr, key: Option<SharedKey>) -> Vec<u8> {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let via = proxy.local_addr().unwrap();
    let caller = std::thread::spawn(move || {
        let settings = EndpointSettings { name: "collector-1".into(), ..EndpointSettings::default() };
        let mut endpoint = MessageEndpoint::new(settings).unwrap();
        endpoint.connect(
            "readout-0",
            via,
            ConnectionOptions { key, backoff: None, ..ConnectionOptions::default() },
        );
        let event = endpoint.poll(Some(Instant::now() + PATIENCE)).unwrap();
        assert!(matches!(event, Some(EndpointEvent::Connected { .. })), "{event:?}");
    });
    let (mut near, _) = proxy.accept().unwrap();
    let mut far = connect(address);
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    }
    let mut recorded = Vec::new();
    let mut block = [0; 4096];
    while !caller.is_finished() {
        if let Ok(count @ 1..) = near.read(&mut block) {
            recorded.extend_from_slice(&block[..count]);
            far.write_all(&block[..count]).unwrap();
        }
        if let Ok(count @ 1..) = far.read(&mut block) {
            // The caller may have ended.
            let _ = near.write_all(&block[..count]);
        }
    }
    caller.join().unwrap();
    recorded
}

/// The connections that attack the system, and how many were made.
struct Campaign {
    targets: Vec<SocketAddr>,
    readout: SocketAddr,
    /// The addresses of the targets' metrics.
    metrics: Vec<SocketAddr>,
    greeting: Vec<u8>,
    open: Vec<TcpStream>,
    made: usize,
    requests: usize,
}

impl Campaign {
    /// Connects from the next address, with a time limit for reads.
    fn connect(&self, address: SocketAddr) -> TcpStream {
        let number = (self.made + self.requests) / FROM_ONE;
        let stream = TcpStream::from(connect_from(Ipv4Addr::new(127, 0, 1, 1 + number as u8), address));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Connects to one target after the other.
    fn stranger(&mut self) -> TcpStream {
        self.made += 1;
        self.connect(self.targets[self.made % self.targets.len()])
    }

    fn idle(&mut self, count: usize) {
        for _ in 0..count {
            let stream = self.stranger();
            self.open.push(stream);
        }
    }

    /// Greetings that arrive byte by byte.
    fn slow(&mut self) {
        let mut slow: Vec<TcpStream> = (0..SLOW).map(|_| self.stranger()).collect();
        for byte in self.greeting.clone().into_iter().take(SLOW_BYTES as usize) {
            // The target closes most of them meanwhile.
            slow.iter_mut().for_each(|stream| drop(stream.write_all(&[byte])));
        }
        self.open.append(&mut slow);
    }

    fn faulty(&mut self) {
        for number in 0..FAULTY {
            // Any bytes; a different beginning each time.
            let garbage: Vec<u8> = (0..600).map(|at| (at * 31 + number * 97) as u8).collect();
            drop(self.stranger().write_all(&garbage));
            // A greeting of nearly 4 GiB, and a message of 512 MB before any greeting.
            for (kind, size) in [(HELLO, u32::MAX), (1, 512 << 20)] {
                let words = [kind, 0, size].map(u32::to_le_bytes).concat();
                drop(self.stranger().write_all(&words));
            }
            // A part of a greeting, and then its end without another byte.
            let mut half = self.stranger();
            let part = 1 + number % (self.greeting.len() - 1);
            drop(half.write_all(&self.greeting[..part.min(40)]));
            drop(half.shutdown(Shutdown::Write));
            self.open.push(half);
            // The greeting of another version: a byte of its head differs.
            let mut other = self.greeting.clone();
            other[12 + number % 8] ^= 0x55;
            drop(self.stranger().write_all(&other));
        }
    }

    /// Connects to the metrics of one target after the other.
    fn client(&mut self) -> TcpStream {
        self.requests += 1;
        self.connect(self.metrics[self.requests % self.metrics.len()])
    }

    /// Requests for metrics that never end, end late, or are as large as permitted. Returns the answers to the large ones.
    fn request(&mut self) -> Vec<String> {
        // More than the target keeps; each one takes a descriptor until it is displaced.
        for _ in 0..REQUESTS_IDLE {
            let stream = self.client();
            self.open.push(stream);
        }
        let mut slow: Vec<TcpStream> = (0..REQUESTS).map(|_| self.client()).collect();
        for byte in "GET /metrics HTTP/1.1\r\nX: ".bytes().chain([b'x'; 100]) {
            // The target closes most of them meanwhile.
            slow.iter_mut().for_each(|stream| drop(stream.write_all(&[byte])));
        }
        self.open.append(&mut slow);
        // Heads without an end; every second one asks for what is costly.
        let mut answers = Vec::new();
        for number in 0..REQUESTS {
            let path = if number % 2 == 0 { "/metrics" } else { "/nothing" };
            let mut head = format!("GET {path} HTTP/1.1\r\nX: ").into_bytes();
            head.resize(HEAD_BYTES_MAX, b'x');
            let mut stream = self.client();
            stream.write_all(&head).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answers.push(answer);
            if answers.last().is_some_and(String::is_empty) {
                // Without an answer at the limit, each further request would take as long.
                break;
            }
        }
        // Large answers that are never read, and requests going on behind the part in question.
        for _ in 0..REQUESTS {
            let mut stream = self.client();
            let line = b"GET /metrics HTTP/1.1\r\n\r\n".repeat(HEAD_BYTES_MAX / 16);
            drop(stream.write_all(&line));
            self.open.push(stream);
        }
        answers
    }

    /// Sends the recorded greeting with its proof; returns the kinds of the frames that answer.
    fn replay(&mut self) -> Vec<u32> {
        self.made += 1;
        let mut stream = self.connect(self.readout);
        stream.write_all(&self.greeting).unwrap();
        let mut answer = Vec::new();
        if let Err(error) = stream.read_to_end(&mut answer) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
        let mut kinds = Vec::new();
        let mut rest = answer.as_slice();
        while let Some((head, after)) = rest.split_first_chunk::<12>() {
            let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
            kinds.push(word(0));
            rest = &after[(word(8) as usize).min(after.len())..];
        }
        kinds
    }
}

/// The largest number of descriptors that each process had so far.
struct PeakFiles(Vec<(u32, usize)>);

impl PeakFiles {
    fn sample(&mut self) {
        for (pid, peak) in &mut self.0 {
            *peak = (*peak).max(open_files(*pid));
        }
    }
}

/// The value of a counter in a process's metrics.
fn counter(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = connect(address);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_flood_of_strangers_costs_little_and_stops_nothing() {
    limit_files(SYSTEM_FILES);
    let mut system = System::start("hostile", &[]);
    let requests = REQUESTS_IDLE + 3 * REQUESTS;
    let files = limit_files((IDLE + SLOW + FAULTY + requests) as u64 + 1000) as usize;
    let idle = IDLE.min(files.saturating_sub(SLOW + FAULTY + requests + 300));
    if idle < IDLE {
        eprintln!("{idle} idle connections instead of {IDLE}: the limit of open files is {files}");
    }
    assert!(idle > 2 * SYSTEM_FILES as usize, "the limit of open files is {files}");
    system.work(1000);
    let attacked = [
        (Role::Supervisor, Peer::Supervisor),
        (Role::Readout, Peer::Readout(0)),
        (Role::Logger, Peer::Logger(0)),
    ];
    let address = |system: &System, peer| system.live.system().address(peer).unwrap().parse().unwrap();
    let targets: Vec<SocketAddr> = attacked.iter().map(|&(_, peer)| address(&system, peer)).collect();
    let pids: Vec<u32> = attacked.iter().map(|&(role, _)| system.live.pid(role, 0).unwrap()).collect();
    let readout = targets[1];
    let greeting = record_greeting(readout, system.live.system().key.clone());
    // The true collector takes its place again.
    system.work(1500);
    let before: Vec<Usage> = pids.iter().map(|&pid| usage(pid)).collect();
    let counted = |system: &System| -> Vec<[u64; 3]> {
        let texts =
            attacked.map(|(role, _)| get(system.live.metrics(&common::name(role, 0)).unwrap(), "/metrics"));
        let names = [
            "fanin_connection_reads_total",
            "fanin_messages_received_total",
            "fanin_connections_too_frequent_total",
        ];
        texts.iter().map(|text| names.map(|name| counter(text, name) as u64)).collect()
    };
    let counted_before = counted(&system);
    let (sender, answers) = mpsc::channel();
    let metrics = attacked.map(|(role, _)| system.live.metrics(&common::name(role, 0)).unwrap()).to_vec();
    let attack = std::thread::spawn(move || {
        let open = Vec::new();
        let mut campaign = Campaign { targets, readout, metrics, greeting, open, made: 0, requests: 0 };
        campaign.idle(idle);
        campaign.slow();
        campaign.faulty();
        (0..REPLAYS).for_each(|_| sender.send(campaign.replay()).unwrap());
        let large = campaign.request();
        (campaign, large)
    });
    let mut peaks = PeakFiles(pids.iter().map(|&pid| (pid, 0)).collect());
    while !attack.is_finished() {
        peaks.sample();
        system.work(5);
        peaks.sample();
        for (role, _) in attacked {
            let answer = get(system.live.metrics(&common::name(role, 0)).unwrap(), "/healthz");
            assert!(answer.starts_with("HTTP/1.1 200 "), "{role}: {answer}");
        }
    }
    let (campaign, large) = attack.join().unwrap();
    for (number, answer) in large.iter().enumerate() {
        let status = if number % 2 == 0 { "HTTP/1.1 200 " } else { "HTTP/1.1 404 " };
        assert!(answer.starts_with(status), "{answer}");
    }
    assert_eq!(campaign.made, idle + SLOW + 5 * FAULTY + REPLAYS);
    // A replay has a challenge and a refusal as answer, or nothing: no greeting.
    let answers: Vec<Vec<u32>> = answers.into_iter().collect();
    assert!(answers.iter().flatten().all(|kind| [REFUSAL, CHALLENGE].contains(kind)), "{answers:x?}");
    assert!(answers.iter().any(|kinds| kinds.len() == 2), "{answers:x?}");
    // A process that dies comes back while all strangers are connected and another address floods its partners.
    let stop = Arc::new(AtomicBool::new(false));
    let flooding = std::thread::spawn({
        let (targets, stop) = (campaign.targets.clone(), Arc::clone(&stop));
        move || flood(&targets, &stop)
    });
    system.work(500);
    system.signal(Role::Collector, 0, Signal::KILL);
    let guard = HangGuard::new();
    let is_back = |system: &System| {
        system.live.restarts() > 0
            && system.live.metrics("collector-0").is_some_and(|address| {
                TcpStream::connect(address).is_ok() && get(address, "/readyz").starts_with("HTTP/1.1 200 ")
            })
    };
    while !is_back(&system) {
        guard.check("the collector to come back");
        peaks.sample();
        system.work(100);
    }
    stop.store(true, Ordering::Relaxed);
    let flooded = flooding.join().unwrap();
    eprintln!("{flooded} connections of the flood");
    let assigned = system.live.assigned();
    let guard = HangGuard::new();
    while system.live.assigned() <= assigned {
        guard.check("an assignment");
        system.work(100);
    }

    // Connections that never send a greeting or a request end by themselves, although their callers keep them open.
    let guard = HangGuard::new();
    while pids.iter().zip(&before).any(|(&pid, before)| open_files(pid) > before.files + OWN_FILES) {
        let open = pids.iter().map(|&pid| open_files(pid)).collect::<Vec<_>>();
        guard.check(format_args!("connections to end; open files: {open:?}"));
        system.work(100);
    }
    let share = |connections: usize| (connections as u64).div_ceil(attacked.len() as u64);
    // A target keeps this many strangers while the slow ones send. Idle ones send nothing, and the target ends them: no read.
    let slow = STRANGERS as u64 * (SLOW_BYTES + 1);
    let sent = slow + FAULTY_READS_MAX * share(5 * FAULTY) + REPLAY_READS_MAX * REPLAYS as u64;
    for ((after, before), (role, _)) in counted(&system).iter().zip(&counted_before).zip(attacked) {
        let [reads, messages, too_frequent] = [0, 1, 2].map(|count| after[count] - before[count]);
        // The flood resets its connections: one read for each that was not closed because of its rate.
        let reads_max = sent + share(flooded).saturating_sub(too_frequent) + MESSAGE_READS_MAX * messages;
        eprintln!("{role}: {reads} read calls, and at most {reads_max} are permitted");
        assert!(reads <= reads_max, "{role}: {reads} read calls, and at most {reads_max} are permitted");
    }
    let mut refused = 0.0;
    for (((&pid, before), (role, _)), (_, peak_files)) in pids.iter().zip(before).zip(attacked).zip(peaks.0) {
        let name = common::name(role, 0);
        let after = usage(pid);
        let cpu_us = after.cpu_us - before.cpu_us;
        let each = cpu_us * 3 / (campaign.made + campaign.requests + flooded) as u64;
        eprintln!(
            "{name}: {before:?}, then {after:?}; {each} us of CPU for each connection, {peak_files} files"
        );
        assert!(after.peak_kb < before.peak_kb + GROWTH_KB_MAX, "{name}: {before:?} {after:?}");
        let files_max = before.files + STRANGERS + REQUESTS_KEPT + OWN_FILES;
        assert!(peak_files <= files_max, "{name}: {peak_files} files, and at most {files_max} are permitted");
        let text = get(system.live.metrics(&name).unwrap(), "/metrics");
        refused += counter(&text, "fanin_connections_refused_total");
        // How many these are depends on the speed of this machine. `CallerRates` is tested with times of its own.
        let too_frequent = counter(&text, "fanin_connections_too_frequent_total");
        eprintln!("{name}: {too_frequent} of {} too frequent", flooded / 3);
        let log = std::fs::read_to_string(system.folder.join(format!("log/{name}.log"))).unwrap();
        assert!(log.contains("refused a connection address=127.0."), "{log}");
        assert!(log.lines().count() < 200, "{name} logs {} lines", log.lines().count());
        assert!(!log.contains("open files") && !log.contains("accepting no further"), "{log}");
    }
    // Those that are open without a greeting are not refused yet.
    assert!(refused >= (campaign.made - 3 * STRANGERS) as f64, "{refused} of {}", campaign.made);
    drop(campaign);
    let finished = system.finish();
    assert_eq!(
        (finished.restarts, finished.incarnations("supervisor"), finished.incarnations("logger-0")),
        (1, 1, 1)
    );
    finished.remove();
}

/// Addresses from which callers are connected to a port, from `/proc/net/tcp`.
fn callers_of(port: u16) -> BTreeSet<Ipv4Addr> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let ends = table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, remote) = (words.next()?.split_once(':')?, words.next()?.split_once(':')?);
        let is_connected = words.next()? == "01";
        let is_caller = is_connected && u16::from_str_radix(remote.1, 16).ok()? == port;
        is_caller.then_some(u32::from_str_radix(local.0, 16).ok()?)
    });
    // The kernel prints the address as a number of this machine, in which it is stored in the order of the network.
    ends.map(|address| Ipv4Addr::from(address.to_ne_bytes())).collect()
}

#[test]
fn peers_on_the_loopback_leave_127_0_0_1_to_others() {
    let mut system = System::start("callers", &[]);
    let readout: SocketAddr = system.live.system().address(Peer::Readout(0)).unwrap().parse().unwrap();
    let own = system.live.system().key.as_ref().unwrap().loopback_address();
    let guard = HangGuard::new();
    // The first event may be assigned before a collector reaches this readout.
    while callers_of(readout.port()).is_empty() {
        guard.check("a collector");
        system.work(50);
    }
    assert_eq!(callers_of(readout.port()), BTreeSet::from([own]));
    system.finish().remove();
}

#[test]
fn a_peer_that_is_missed_because_of_its_key_is_named_so() {
    let folder = std::env::temp_dir().join(format!("fanin-node-foreign-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap();
    drop(held);
    let key = SharedKey::random().unwrap().to_hex();
    let text = format!(
        "scenario = \"replay\"\nset = [\"readout.hosts=4\", \"collectors.hosts_per_rack=1\", \"logger.hosts=1\"]\n\
         key = \"peers.key\"\nfolder = {folder:?}\ndata = {folder:?}\n[hosts]\nsupervisor = \"{address}\"\n\
         readouts = [\"127.0.0.1:[1-4]\"]\ncollectors = [\"127.0.0.1:5\"]\nloggers = [\"127.0.0.1:6\"]\n"
    );
    std::fs::write(folder.join("peers.key"), key).unwrap();
    let path = folder.join("system.toml");
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new(common::program());
    command.arg("node").arg("supervisor").arg(&path).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.by_ref().any(|line| line.contains("listening")), "it does not listen");
    let settings = EndpointSettings { name: "collector-0".into(), ..EndpointSettings::default() };
    let mut endpoint = MessageEndpoint::new(settings).unwrap();
    let key = Some(SharedKey::random().unwrap());
    endpoint.connect(
        "supervisor",
        address,
        ConnectionOptions { key, backoff: None, ..ConnectionOptions::default() },
    );
    let event = endpoint.poll(Some(Instant::now() + PATIENCE)).unwrap();
    assert!(matches!(event, Some(EndpointEvent::Failed { .. })), "{event:?}");
    // Both lines come: the refused connection, and the peer that is missed.
    let refused = lines.by_ref().find(|line| line.contains("refused a connection")).unwrap();
    assert!(refused.contains("collector-0") && refused.contains("another key"), "{refused}");
    let is_about_it = |line: &String| line.contains("no connection to a peer") && line.contains("collector");
    let missed = lines.by_ref().find(is_about_it).unwrap();
    assert!(missed.contains("it has another key"), "{missed}");
    process.kill().unwrap();
    process.wait().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}
