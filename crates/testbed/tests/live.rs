//! Scenarios in namespaces through the software switch: these need root and the program `fanin`. They test the network
//! itself; the tests of `fanin-cli` test the program as a whole.

#[path = "../../../tests/hang_guard.rs"]
mod hang_guard;
#[path = "../../../tests/privileged.rs"]
mod privileged;
#[path = "../../../tests/skip.rs"]
mod skip;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fanin_node::audit::{AuditScope, audit};
use fanin_node::barrier::BarrierRole;
use fanin_node::config::{PredictedBands, Role};
use fanin_node::launch::{LiveSystem, Placement, StandbyTerms, SystemLaunch};
use fanin_testbed::live::{Bench, Part, Placed};
use hang_guard::HangGuard;
use privileged::privileged;

const AGGREGATOR: Part = Part::Barrier(BarrierRole::Aggregator);

/// The program `fanin`, built with this test; skips the test without the program, or where no network can be made.
fn program() -> Option<PathBuf> {
    if !privileged() {
        return None;
    }
    let own = std::env::current_exe().unwrap();
    let program = own.parent().and_then(Path::parent).unwrap().join("fanin");
    if !program.is_file() {
        skip::skip(format!("{} is missing; `cargo build -p fanin-cli` makes it", program.display()));
        return None;
    }
    Some(program)
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fanin-place-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// The delays of a network's switch ports, by switch and port, as its configuration files give them.
fn delays(folder: &Path) -> Vec<(String, String, String)> {
    let mut delays = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let config: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
            for port in config.get("port").and_then(toml::Value::as_array).into_iter().flatten() {
                let text = |value: Option<&toml::Value>| {
                    value.and_then(toml::Value::as_str).unwrap_or("").to_owned()
                };
                let delay = text(port.get("impair").and_then(|impair| impair.get("delay")));
                let switch = path.file_stem().unwrap().to_str().unwrap().to_owned();
                delays.push((switch, text(port.get("name")), delay));
            }
        }
    }
    delays.sort();
    delays
}

fn scenario(preset: &str, sets: &[&str]) -> fanin_scenario::Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    fanin_scenario::load(preset, &sets).unwrap().scenario
}

/// Sends a byte in both directions between two hosts; returns the state of the client's socket.
fn talk(bench: &Bench, client: Part, server: Part, port: u16) -> TcpStream {
    let address = SocketAddr::from((bench.network().host_of(server).unwrap().address, port));
    let listener = bench.namespace(server).run(|| TcpListener::bind(address)).unwrap().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_secs(5));
    let mut one = bench.namespace(client).run(connect).unwrap().unwrap();
    let (mut other, _) = listener.accept().unwrap();
    one.write_all(b"?").unwrap();
    other.read_exact(&mut [0]).unwrap();
    other.write_all(b"!").unwrap();
    one.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    one.read_exact(&mut [0]).unwrap();
    one
}

fn congestion_control(socket: &TcpStream) -> String {
    use std::os::fd::AsRawFd;
    let mut name = [0_u8; 16];
    let mut bytes = name.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most as many bytes as the length that it is given.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    assert_eq!(result, 0);
    String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
}

#[test]
fn two_switches_join_hosts_with_the_scenarios_tcp() {
    let Some(program) = program() else { return };
    let scenario = scenario(
        "thesis-a-1000hz",
        &[
            "network.cores=1",
            "readout.hosts=3",
            "collectors.hosts_per_rack=2",
            "collectors.racks=2",
            "transport.congestion_control=newreno",
            "transport.rto_min=20 ms",
            "link.delay=2 ms",
            "uplink.delay=1 ms",
        ],
    );
    let folder = folder("two");
    let bench = Bench::build(&scenario, &folder, &program, fanin_units::Duration::ZERO)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((bench.network().hosts.len(), bench.network().switches.len()), (4 + 3 + 1 + 1, 3));
    // The path from a collector to a readout and back, with the switches' own times and the collector's 2 ms.
    let delays = delays(&folder);
    for (switch, port, delay) in [
        ("tor-0", "core:0", "1 ms"),
        ("core-0", "readout:2", "5 ms"),
        ("core-0", "tor:0", "1 ms"),
        ("tor-0", "collector:0", "5 ms"),
    ] {
        assert!(delays.contains(&(switch.into(), port.into(), delay.into())), "{delays:?}");
    }
    let mut watch = bench.watch(&scenario).unwrap();
    let mut place = Placed::new(&bench);
    let first = place.address(Role::Readout, 2).unwrap();
    assert_eq!(place.address(Role::Readout, 2).unwrap().port(), first.port() + 1);
    for (collector, port) in [(0, 5000), (3, 5001)] {
        let socket = talk(&bench, Part::Role(Role::Collector, collector), Part::Role(Role::Readout, 2), port);
        assert_eq!(congestion_control(&socket), "reno");
    }
    // A switch's snapshot is reused for a tenth of a second.
    std::thread::sleep(Duration::from_millis(200));
    watch.end().unwrap();
    let observed = watch.finish(0).unwrap();
    assert!(observed.network.packets.unwrap() >= 12, "{observed:?}");
    assert_eq!((observed.network.drops, observed.missed), (Some(0), 0));
    let readout = bench.namespace(Part::Role(Role::Readout, 0));
    let rto = readout.run(|| std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rto_min_us")).unwrap().unwrap();
    assert_eq!(rto.trim(), "20000");
    let names: Vec<String> =
        (0..3).map(|readout| bench.namespace(Part::Role(Role::Readout, readout)).name().to_owned()).collect();
    bench.remove().unwrap();
    assert!(names.iter().all(|name| !Path::new("/run/netns").join(name).exists()));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn planes_and_a_hybrid_carry_all_hosts() {
    let Some(program) = program() else { return };
    // CUBIC, which every kernel has; the static windows of one of these scenarios would need BPF programs.
    let small = [
        "readout.hosts=3",
        "collectors.hosts_per_rack=1",
        "transport.profile=linux-6",
        "transport.congestion_control=cubic",
    ];
    let more: [(&str, &[&str], usize); 2] =
        [("leaf-spine", &["collectors.racks=3"], 8 + 3), ("multihost", &["collectors.hosts_per_rack=2"], 3)];
    for (preset, sets, switches) in more {
        let scenario = scenario(preset, &[&small[..], sets].concat());
        let folder = folder(preset);
        let bench = Bench::build(&scenario, &folder, &program, fanin_units::Duration::ZERO)
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(bench.network().switches.len(), switches, "{preset}");
        let (readouts, collectors) = (scenario.readout.hosts as u16, scenario.collectors_total() as u16);
        for (readout, collector) in
            (0..readouts).flat_map(|one| (0..collectors).map(move |other| (one, other)))
        {
            let part = |role, index| Part::Role(role, index);
            talk(&bench, part(Role::Collector, collector), part(Role::Readout, readout), 5000 + collector);
        }
        // A host with links into several planes or to several leaves is reached as well.
        let supervisor = Part::Role(Role::Supervisor, 0);
        talk(&bench, Part::Role(Role::Collector, collectors - 1), supervisor, 6000);
        talk(&bench, Part::Role(Role::Readout, readouts - 1), supervisor, 6001);
        if preset == "multihost" {
            let address = fanin_switch::control::ControlAddress::Socket(folder.join("software-0.socket"));
            let client = fanin_switch::control::Client::new(address);
            let departed =
                |ring: &serde_json::Value| ring["queue"]["departed"]["frames"].as_u64().unwrap_or_default();
            // Each collector has a ring, which carried the readouts' answers. The first reading may be an old snapshot.
            let all_had = (0..100).any(|_| {
                std::thread::sleep(Duration::from_millis(100));
                let picture = client.read("/v1/snapshot").unwrap();
                let rings = picture["rings"].as_array().unwrap();
                rings.len() == 2 && rings.iter().all(|ring| departed(ring) >= 3)
            });
            assert!(all_had, "{}", client.read("/v1/snapshot").unwrap());
        }
        bench.remove().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn sixty_four_senders_use_the_congestion_control_of_the_scenario() {
    let Some(program) = program() else { return };
    let scenario = scenario("incast", &["workload.senders=64", "transport.profile=linux-6"]);
    let folder = folder("many");
    let bench = Bench::build(&scenario, &folder, &program, fanin_units::Duration::ZERO)
        .unwrap_or_else(|error| panic!("{error}"));
    let socket = talk(&bench, AGGREGATOR, Part::Barrier(BarrierRole::Sender(63)), 5000);
    assert_eq!(congestion_control(&socket), "cubic");
    let name = bench.namespace(AGGREGATOR).name().to_owned();
    let routes = Command::new("ip").args(["-n", &name, "route"]).output().unwrap();
    assert!(String::from_utf8_lossy(&routes.stdout).contains("congctl cubic"), "{routes:?}");
    bench.remove().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Runs `ip` in a namespace; returns what it prints.
fn ip(namespace: &str, arguments: &str) -> String {
    let output = Command::new("ip").args(["-n", namespace]).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn terms(live: &LiveSystem<Placed<'_>>) -> StandbyTerms {
    live.standby().unwrap().unwrap()
}

/// Lets a system work until `is_so` returns true.
fn wait(live: &mut LiveSystem<Placed<'_>>, state: &str, is_so: &dyn Fn(&LiveSystem<Placed<'_>>) -> bool) {
    let guard = HangGuard::new();
    while !is_so(live) {
        guard.check(format_args!("{state}, after {:?}", terms(live)));
        live.work(Duration::from_millis(50), &AtomicBool::new(false), &|_| {}).unwrap();
    }
}

#[test]
fn a_standby_takes_over_when_the_link_of_the_supervisor_is_cut() {
    let Some(program) = program() else { return };
    let sets = [
        "live.replay=bes3",
        "live.standby=true",
        "live.silence_max=1 s",
        "live.reassign_delay=400 ms",
        "live.readout_wait=400 ms",
        "live.drain=20 s",
        "readout.hosts=3",
        "collectors.hosts_per_rack=1",
        "collectors.units_per_host=2",
        "supervisor.rate=100 Hz",
        "logger.hosts=1",
        "transport.profile=linux-6",
        "transport.congestion_control=cubic",
    ];
    let loaded = fanin_scenario::load("replay", &sets.map(str::to_owned)).unwrap();
    let folder = folder("cut");
    let bench = Bench::build(&loaded.scenario, &folder, &program, fanin_units::Duration::ZERO)
        .unwrap_or_else(|error| panic!("{error}"));
    let run = folder.join("run");
    let launch = SystemLaunch {
        loaded: &loaded,
        folder: &run,
        overwrite: false,
        scenario_folder: "".as_ref(),
        data: None,
        program: &program,
        restart: true,
        metrics: false,
        ideal_rate: None,
        predicted: PredictedBands::default(),
    };
    let mut live = LiveSystem::start(&launch, Placed::new(&bench)).unwrap_or_else(|error| panic!("{error}"));
    assert!(live.wait_ready(&AtomicBool::new(false)).unwrap());
    wait(&mut live, "paired", &|live| terms(live).paired > 0);
    let supervisor = bench.namespace(Part::Role(Role::Supervisor, 0)).name();
    let routes = ip(supervisor, "route show dev eth0");
    ip(supervisor, "link set eth0 down");
    wait(&mut live, "taken over", &|live| terms(live).takeovers > 0);
    let before = live.assigned();
    wait(&mut live, "assigning again", &|live| live.assigned() > before + 50);
    let paired = terms(&live).paired;
    ip(supervisor, "link set eth0 up");
    for route in routes.lines() {
        ip(supervisor, &format!("route replace {} dev eth0", route.trim()));
    }
    wait(&mut live, "paired again", &|live| terms(live).paired > paired);
    live.stop();
    assert_eq!(live.killed(), [""; 0], "processes that did not end by themselves");
    let data = live.system().data.clone();
    let scope = AuditScope {
        folders: &[&run],
        data: &[&data],
        loggers: true,
        assigned_min: live.assigned(),
        deletes_journals: false,
    };
    let audited = audit(&scope).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(audited.totals.assigned > before + 50, "{audited:?}");
    drop(live);
    bench.remove().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
