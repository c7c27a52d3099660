//! Networks of namespaces in the kernel; these tests need root.

#[path = "../../../tests/privileged.rs"]
mod privileged;
#[path = "../../../tests/skip.rs"]
mod skip;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fanin_testbed::{
    BuildError, InterfaceAddress, Lab, LabNode, LabPlan, LabPlanError, NamespaceRoute, NodeName, Setting,
    VethPair, VethPort, clean, leftovers,
};
use privileged::privileged;

fn node(name: &str) -> LabNode {
    LabNode::new(NodeName::new(name).unwrap())
}

fn port(node: usize, device: &str, last: Option<u8>) -> VethPort {
    let address = last.map(|last| InterfaceAddress { address: Ipv4Addr::new(10, 77, 0, last), prefix: 24 });
    VethPort { address, ..VethPort::new(node, device) }
}

fn two_hosts() -> LabPlan {
    let nodes = vec![node("left"), node("right")];
    let links = vec![VethPair { a: port(0, "eth0", Some(1)), b: port(1, "eth0", Some(2)), mtu: 1500 }];
    LabPlan { nodes, links }
}

#[test]
fn two_hosts_talk_and_nothing_is_left_of_them() {
    if !privileged() {
        return;
    }
    let mut plan = two_hosts();
    plan.nodes[1].settings.push(Setting { key: "net.ipv4.tcp_rto_min_us".into(), value: "8000".into() });
    let options = vec!["quickack".into(), "1".into()];
    plan.nodes[1].routes.push(NamespaceRoute { to: "10.88.0.0/16".into(), device: "eth0".into(), options });
    let lab = Lab::build(&plan).unwrap();
    let names: Vec<_> = lab.namespaces().iter().map(|namespace| namespace.name().to_owned()).collect();

    let [left, right] = lab.namespaces() else { panic!("two namespaces") };
    let server = SocketAddr::from((Ipv4Addr::new(10, 77, 0, 2), 4000));
    let listener = right.run(|| TcpListener::bind(server)).unwrap().unwrap();
    let client = left.run(|| TcpStream::connect_timeout(&server, Duration::from_secs(5))).unwrap().unwrap();
    let (_, from) = listener.accept().unwrap();
    assert_eq!(from, client.local_addr().unwrap());
    assert_eq!(from.ip(), Ipv4Addr::new(10, 77, 0, 1));

    let inside = right.run(|| std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rto_min_us")).unwrap().unwrap();
    let outside = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rto_min_us").unwrap();
    assert_eq!((inside.trim(), outside.trim()), ("8000", "200000"));
    let routes = Command::new("ip").args(["-n", right.name(), "route"]).output().unwrap();
    assert!(String::from_utf8_lossy(&routes.stdout).contains("quickack 1"), "{routes:?}");

    lab.remove().unwrap();
    for name in names {
        assert!(!Path::new("/run/netns").join(&name).exists(), "{name} is still there");
    }
}

#[test]
fn a_network_that_cannot_be_finished_leaves_nothing() {
    if !privileged() {
        return;
    }
    // Names that no other test uses, as all tests run concurrently.
    let mut plan = two_hosts();
    plan.nodes[0].name = NodeName::new("unfinished").unwrap();
    plan.nodes[0].settings.push(Setting { key: "net.ipv4.tcp_no_such_thing".into(), value: "1".into() });
    let error = Lab::build(&plan).unwrap_err();
    let BuildError::Setting { key, value, .. } = &error else { panic!("{error}") };
    assert_eq!((key.as_str(), value.as_str()), ("net.ipv4.tcp_no_such_thing", "1"));

    let mut plan = two_hosts();
    plan.nodes[0].name = NodeName::new("unfinished").unwrap();
    let route = NamespaceRoute { to: "10.99.0.0/16".into(), device: "eth7".into(), options: Vec::new() };
    plan.nodes[0].routes.push(route);
    let error = Lab::build(&plan).unwrap_err();
    assert!(error.to_string().contains("`route replace 10.99.0.0/16 dev eth7"), "{error}");
    let names = std::fs::read_dir("/run/netns")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = names.filter(|name| name.ends_with("-unfinished")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn impossible_plans_are_refused_before_anything_is_made() {
    let refused = |change: &dyn Fn(&mut LabPlan)| {
        let mut plan = two_hosts();
        change(&mut plan);
        match Lab::build(&plan) {
            Err(BuildError::Plan(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|plan| plan.links[0].mtu = 9001), LabPlanError::BadMtu { given: 9001 });
    assert_eq!(refused(&|plan| plan.links[0].b.node = 2), LabPlanError::NoNode { given: 2, nodes: 2 });
    assert_eq!(
        refused(&|plan| plan.nodes[1].name = plan.nodes[0].name.clone()),
        LabPlanError::SameName { name: "left".into() }
    );
    for device in ["", "lo", "-x", "a b", "sixteen-letters-"] {
        let error = refused(&|plan| plan.links[0].a.device = device.into());
        assert_eq!(error, LabPlanError::BadDevice { node: "left".into(), given: device.into() });
    }
    let twice = refused(&|plan| plan.links.push(plan.links[0].clone()));
    assert_eq!(twice, LabPlanError::BadDevice { node: "left".into(), given: "eth0".into() });
    let setting = Setting { key: "kernel.panic".into(), value: "1".into() };
    let machine_wide = refused(&|plan| plan.nodes[0].settings.push(setting.clone()));
    assert_eq!(machine_wide, LabPlanError::NotOurs { key: "kernel.panic".into() });
    let split =
        NamespaceRoute { to: "default".into(), device: "eth0\nnetns del x".into(), options: Vec::new() };
    let words = refused(&|plan| plan.nodes[0].routes.push(split.clone()));
    assert_eq!(words, LabPlanError::BadWord { node: "left".into(), given: "eth0\nnetns del x".into() });
}

#[test]
fn leftovers_of_a_killed_run_are_removed_with_its_processes() {
    if !privileged() {
        return;
    }
    // This test runs itself again in a child that is killed.
    if std::env::var_os("FANIN_TEST_LEAVE").is_some() {
        let lab = Lab::build(&two_hosts()).unwrap();
        // The child does not wait for it: it is killed, and the clean-up must find this process.
        #[allow(clippy::zombie_processes)]
        let inside = lab.namespaces()[0].run(|| Command::new("sleep").arg("60").spawn()).unwrap().unwrap();
        eprintln!("ready {} {}", lab.run(), inside.id());
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    use std::io::{BufRead, BufReader};
    let name = "leftovers_of_a_killed_run_are_removed_with_its_processes";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("FANIN_TEST_LEAVE", "1")
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let ready = lines.find_map(|line| line.split_once("ready ").map(|(_, rest)| rest.to_owned())).unwrap();
    let (run, sleeper) = ready.split_once(' ').unwrap();

    assert!(leftovers().unwrap().iter().all(|ledger| ledger.run.to_string() != run), "it is alive");
    child.kill().unwrap();
    child.wait().unwrap();
    let left = leftovers().unwrap();
    assert!(
        left.iter().any(|ledger| ledger.run.to_string() == run && ledger.namespaces.len() == 2),
        "{left:?}"
    );

    let cleaned = clean().unwrap();
    assert!(cleaned.runs >= 1 && cleaned.namespaces >= 2 && cleaned.processes >= 1, "{cleaned:?}");
    assert!(!Path::new("/run/netns").join(format!("{run}-left")).exists());
    let stat = std::fs::read_to_string(format!("/proc/{sleeper}/stat"));
    assert!(stat.is_err() || stat.unwrap().contains(") Z "), "the process inside still runs");
    assert!(leftovers().unwrap().iter().all(|ledger| ledger.run.to_string() != run));
}

#[test]
fn two_hundred_hosts_stand_around_one_switch() {
    if !privileged() {
        return;
    }
    let mut plan = LabPlan { nodes: vec![node("switch")], links: Vec::new() };
    for host in 1..=200_u8 {
        plan.nodes.push(node(&format!("host{host}")));
        let switch = port(0, &format!("p{host}"), None);
        plan.links.push(VethPair { a: port(usize::from(host), "eth0", Some(host)), b: switch, mtu: 1500 });
    }
    let begin = Instant::now();
    let lab = Lab::build(&plan).unwrap();
    eprintln!("built in {:?}", begin.elapsed());
    assert_eq!(lab.namespaces().len(), 201);
    let begin = Instant::now();
    lab.remove().unwrap();
    eprintln!("removed in {:?}", begin.elapsed());
}
