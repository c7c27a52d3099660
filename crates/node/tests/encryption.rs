//! A system whose connections are all encrypted, with certificates on both sides that are made when the test runs.

mod common;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use common::hang_guard::HangGuard;
use fanin_dataflow::EventStep;
use fanin_message::{
    Closed, ConnectionOptions, EndpointEvent, EndpointSettings, MessageEndpoint, SharedKey, Tls,
};
use fanin_node::audit::{AuditScope, audit};
use fanin_node::config::{ConfigError, Role, System};
use fanin_node::journal;
use fanin_node::launch::{LiveSystem, Loopback, Placement, SystemLaunch};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustix::process::Signal;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for a name, and its key.
    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// This machine; before the processes start, their file gets a section more.
struct Encrypted {
    loopback: Loopback,
    system: PathBuf,
    section: String,
}

impl Placement for Encrypted {
    fn address(&mut self, role: Role, index: u16) -> std::io::Result<SocketAddr> {
        self.loopback.address(role, index)
    }

    fn command(&self, role: Role, index: u16, command: Command) -> Command {
        self.loopback.command(role, index, command)
    }

    fn ready(&mut self) {
        let text = std::fs::read_to_string(&self.system).unwrap();
        std::fs::write(&self.system, format!("{text}\n{}", self.section)).unwrap();
        self.loopback.ready();
    }
}

fn stored(folder: &Path) -> u64 {
    let mut stored = 0;
    let _ = journal::read(&folder.join("logger-0.journal"), |_, line| {
        stored += u64::from(matches!(line.record.step, EventStep::Stored { .. }));
    });
    stored
}

/// How an attempt to connect as `collector-0` ends.
fn attempt(address: SocketAddr, tls: Option<Tls>) -> Closed {
    let mut endpoint =
        MessageEndpoint::new(EndpointSettings { name: "collector-0".into(), ..EndpointSettings::default() })
            .unwrap();
    endpoint.connect(
        "readout-0",
        address,
        ConnectionOptions { tls, backoff: None, ..ConnectionOptions::default() },
    );
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match endpoint.poll(Some(until)).unwrap() {
            Some(EndpointEvent::Failed { reason, .. } | EndpointEvent::Closed { reason, .. }) => {
                return reason;
            }
            Some(EndpointEvent::Message { .. } | EndpointEvent::Connected { .. }) | None => {
                panic!("an unauthenticated peer was let in")
            }
            Some(_) => {}
        }
    }
}

#[test]
fn an_encrypted_system_works_survives_a_crash_and_shuts_out_strangers() {
    let base = std::env::temp_dir().join(format!("fanin-node-tls-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&base);
    let keys = base.join("keys");
    std::fs::create_dir_all(&keys).unwrap();
    let authority = Authority::new();
    std::fs::write(keys.join("authority.pem"), &authority.pem).unwrap();
    for name in ["supervisor", "readout-0", "readout-1", "collector-0", "collector-1", "logger-0"] {
        let (certificate, key) = authority.sign(name);
        std::fs::write(keys.join(format!("{name}.pem")), certificate).unwrap();
        std::fs::write(keys.join(format!("{name}.key")), key).unwrap();
    }
    let path = |name: &str| toml::Value::String(keys.join(name).to_string_lossy().into_owned());
    let section = format!(
        "[tls]\ncertificates = {}\nkey = {}\nauthorities = {}\n",
        path("{process}.pem"),
        path("{process}.key"),
        path("authority.pem")
    );
    let sets = [
        "live.replay=bes3",
        "live.processors=timers",
        "readout.hosts=2",
        "collectors.hosts_per_rack=2",
        "collectors.units_per_host=2",
        "collectors.processing_time=2 ms",
        "logger.hosts=1",
        "logger.accept=1",
        "supervisor.rate=100 Hz",
        "live.reassign_delay=300 ms",
        "live.drain=30 s",
    ];
    let sets: Vec<String> = sets.map(str::to_owned).to_vec();
    let loaded = fanin_scenario::load("replay", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let folder = base.join("run");
    let launch = SystemLaunch {
        loaded: &loaded,
        folder: &folder,
        overwrite: false,
        scenario_folder: "".as_ref(),
        data: None,
        program: &common::program(),
        restart: true,
        metrics: false,
        ideal_rate: None,
        predicted: Default::default(),
    };
    // The launcher makes the folder's name canonical, and /tmp may be a link.
    let system = base.canonicalize().unwrap().join("run").join("system.toml");
    let place = Encrypted { loopback: Loopback::default(), system, section };
    let mut live = LiveSystem::start(&launch, place).unwrap_or_else(|error| panic!("{error}"));
    let stop = AtomicBool::new(false);
    assert!(live.wait_ready(&stop).unwrap_or_else(|error| panic!("{error}")));
    let wait = |live: &mut LiveSystem<Encrypted>, count| {
        let guard = HangGuard::new();
        while stored(&folder) < count {
            guard.check(format_args!("{count} stored events, after {}", stored(&folder)));
            live.work(Duration::from_millis(50), &stop, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
        }
    };
    wait(&mut live, 20);

    // Without a certificate, and with one from an authority that the processes do not trust.
    let readout: SocketAddr = live.system().readouts[0].parse().unwrap();
    attempt(readout, None);
    let (certificate, key) = Authority::new().sign("collector-0");
    let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes(), authority.pem.as_bytes()).unwrap();
    let reason = attempt(readout, Some(tls));
    assert!(matches!(reason, Closed::Tls(_)), "{reason}");

    common::send(live.pid(Role::Collector, 1).unwrap(), Signal::KILL);
    let so_far = stored(&folder);
    wait(&mut live, so_far + 40);
    live.stop();
    assert_eq!((live.killed(), live.restarts()), (&[][..], 1));
    let data = live.system().data.clone();
    let assigned_min = live.assigned();
    let scope = AuditScope {
        folders: &[&folder],
        data: &[&data],
        loggers: true,
        assigned_min,
        deletes_journals: false,
    };
    let audit = audit(&scope).unwrap_or_else(|finding| panic!("{finding}"));
    assert!(audit.totals.stored >= 60, "{audit:?}");
    drop(live);
    std::fs::remove_dir_all(base).unwrap();
}

#[test]
fn certificates_without_a_key_are_refused() {
    let folder = std::env::temp_dir().join(format!("fanin-node-tls-key-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("system.toml");
    let load = |line: &str| {
        let text = format!(
            "scenario = \"replay\"\nset = [\"readout.hosts=1\", \"collectors.hosts_per_rack=1\", \"logger.hosts=1\"]\n{line}\n\
             [hosts]\nsupervisor = \"daq:7000\"\nreadouts = [\"ros-0:7100\"]\ncollectors = [\"dcm-0\"]\n\
             loggers = [\"sfo-0:7200\"]\n[tls]\ncertificates = \"a.pem\"\nkey = \"a.key\"\nauthorities = \"b.pem\"\n"
        );
        std::fs::write(&path, text).unwrap();
        System::load(&path)
    };
    // Anyone could compute the proofs of assignments.
    assert!(matches!(load(""), Err(ConfigError::NoAuthentication { .. })));
    std::fs::write(folder.join("peers.key"), SharedKey::random().unwrap().to_hex()).unwrap();
    assert!(load("key = \"peers.key\"").unwrap().key.is_some());
    assert!(load("insecure = true").unwrap().key.is_none());
    std::fs::remove_dir_all(folder).unwrap();
}
