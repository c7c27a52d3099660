//! Connections of endpoints over the simulated network: order, cuts, suspended processes, versions, names.

use fanin_message::{
    Closed, ConnectionOptions, EndpointEvent, EndpointSettings, MessageEndpoint, SimulatedNetwork as _,
    Versions,
};

use crate::machine::ProcessLife;
use crate::net::ProcessNetwork;
use crate::shared::{Core, SharedCore, WorldStep, nanoseconds};
use crate::world::World;

/// Two endpoints on two machines, which are polled whenever something happens.
struct Pair {
    shared: SharedCore,
    ends: [MessageEndpoint; 2],
    polls: [bool; 2],
    events: Vec<(usize, EndpointEvent)>,
}

impl Pair {
    fn new() -> Self {
        Self::with([Versions::default(); 2])
    }

    fn with(versions: [Versions; 2]) -> Self {
        let mut core = Core::new(1, 2);
        core.hosts.iter_mut().for_each(|host| (host.is_running, host.life) = (true, 1));
        let shared = SharedCore::new(core);
        let end = |host: usize| {
            let network = ProcessNetwork { shared: shared.clone(), life: ProcessLife { host, number: 1 } };
            let (name, versions) = (format!("end-{host}"), versions[host]);
            let settings = EndpointSettings { name, versions, ..EndpointSettings::default() };
            MessageEndpoint::simulated(settings, Box::new(network)).unwrap()
        };
        let ends = [end(0), end(1)];
        Self { shared, ends, polls: [true, true], events: Vec::new() }
    }

    /// Lets the world run for some milliseconds.
    fn run(&mut self, ms: u64) {
        let until = self.shared.lock().now + ms * 1_000_000;
        self.shared.lock().at(until, WorldStep::Look);
        loop {
            for host in (0..2).filter(|&host| self.polls[host]) {
                while let Some(event) = self.ends[host].poll(None).unwrap() {
                    self.events.push((host, event));
                }
                if let Some(at) = self.ends[host].poll_deadline() {
                    self.shared.lock().call(host, nanoseconds(at));
                }
            }
            let mut core = self.shared.lock();
            match core.next() {
                Some(WorldStep::Connect(request)) => core.handle_connect(request),
                Some(WorldStep::Arrive(segment)) => core.handle_segment(segment),
                Some(WorldStep::Turn(host)) => core.hosts[host].turn_at = u64::MAX,
                Some(WorldStep::Look) if core.now >= until => return,
                Some(_) => {}
                None => panic!("nothing happens any more"),
            }
        }
    }
}

fn without_retry() -> ConnectionOptions {
    ConnectionOptions { backoff: None, ..ConnectionOptions::default() }
}

/// Segments that a cut link holds back arrive before those sent behind them, as TCP promises.
#[test]
fn segments_arrive_in_order_through_a_cut() {
    let mut pair = Pair::new();
    let address = "10.0.0.2:7000".parse().unwrap();
    pair.ends[1].listen(address, ConnectionOptions::default()).unwrap();
    let sender = pair.ends[0].connect("end-1", address, without_retry());
    pair.run(500);
    for number in 0..60_u32 {
        if number % 20 == 5 {
            let mut core = pair.shared.lock();
            let until = core.now + 30_000_000;
            core.net.cut(0, 1, until, 7_000_000);
        }
        pair.ends[0].send(sender, number, 0, &[]).unwrap();
        pair.run(3);
    }
    pair.run(500);
    let kinds = pair.events.iter().filter_map(|(_, event)| match event {
        EndpointEvent::Message { kind, .. } => Some(*kind),
        _ => None,
    });
    assert_eq!(kinds.collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
}

/// Bytes that wait after a suspension are no reason to stop looking for silence, or to send no heartbeats.
#[test]
fn a_connection_that_was_suspended_still_notices_that_its_peer_is_gone() {
    let mut pair = Pair::new();
    let address = "10.0.0.2:7000".parse().unwrap();
    pair.ends[1].listen(address, ConnectionOptions::default()).unwrap();
    pair.ends[0].connect("end-1", address, without_retry());
    pair.run(500);
    assert_eq!(pair.events.len(), 2, "both are connected: {:?}", pair.events);
    // One end is suspended for longer than the silence that it allows. Heartbeats wait, then the peer loses its power.
    pair.polls[0] = false;
    pair.run(3_000);
    pair.polls[1] = false;
    pair.shared.lock().close_all(1, false);
    pair.shared.lock().hosts[1].is_up = false;
    pair.run(3_000);
    pair.polls[0] = true;
    pair.run(15_000);
    let reasons = pair.events.iter().filter_map(|(host, event)| match event {
        EndpointEvent::Closed { reason, .. } => Some((*host, reason.clone())),
        _ => None,
    });
    let reasons: Vec<_> = reasons.filter(|(host, _)| *host == 0).collect();
    assert!(matches!(reasons[..], [(0, Closed::Silent(_))]), "{reasons:?}");
}

/// A caller that is refused for its versions tries again at growing intervals, and gets in once its peer was upgraded.
#[test]
fn a_peer_of_other_versions_is_called_less_and_less_often() {
    let newer = Versions { lowest: 2, highest: 3 };
    let mut pair = Pair::with([newer, Versions::default()]);
    let address = "10.0.0.2:7000".parse().unwrap();
    pair.ends[1].listen(address, ConnectionOptions::default()).unwrap();
    pair.ends[0].connect("end-1", address, ConnectionOptions::default());
    pair.run(60_000);
    let refused = |host: usize| {
        pair.events.iter().filter(move |(at, event)| {
            let is_refusal =
                matches!(event, EndpointEvent::Failed { reason: Closed::NoCommonVersion(_), .. });
            *at == host && is_refusal
        })
    };
    // Pauses grow from 100 ms to between 2.5 s and 5 s.
    let attempts = refused(0).count();
    assert!((12..30).contains(&attempts), "{attempts}");
    assert_eq!(refused(1).count(), attempts);
    assert_eq!(pair.events.len(), 2 * attempts, "{:?}", pair.events);
    // The accepting side has a new program.
    pair.events.clear();
    let network = ProcessNetwork { shared: pair.shared.clone(), life: ProcessLife { host: 1, number: 1 } };
    let settings = EndpointSettings { name: "end-1".into(), versions: newer, ..EndpointSettings::default() };
    pair.ends[1] = MessageEndpoint::simulated(settings, Box::new(network)).unwrap();
    pair.ends[1].listen(address, ConnectionOptions::default()).unwrap();
    pair.run(10_000);
    let connected = pair.events.iter().filter_map(|(host, event)| match event {
        EndpointEvent::Connected { version, .. } => Some((*host, *version)),
        _ => None,
    });
    let mut connected: Vec<_> = connected.collect();
    connected.sort_unstable();
    assert_eq!(connected, [(0, 3), (1, 3)]);
}

/// An edge-triggered watch reports bytes once. A process that waits without reading them never reads them.
#[test]
fn bytes_that_were_reported_and_not_read_are_noticed() {
    let mut pair = Pair::new();
    let address = "10.0.0.2:7000".parse().unwrap();
    pair.ends[1].listen(address, ConnectionOptions::default()).unwrap();
    let sender = pair.ends[0].connect("end-1", address, without_retry());
    pair.run(500);
    pair.polls[1] = false;
    pair.ends[0].send(sender, 7, 0, &[b"bytes"]).unwrap();
    pair.run(100);
    assert!(!pair.shared.lock().net.forgets_input(1), "they are to be reported");
    let life = ProcessLife { host: 1, number: 1 };
    ProcessNetwork { shared: pair.shared.clone(), life }.ready(&mut Vec::new());
    assert!(pair.shared.lock().net.forgets_input(1));
}

/// An endpoint with two listeners, as on a host with two addresses, reports both connections of a name. The process must
/// end the older one itself.
#[test]
fn a_name_is_replaced_at_its_own_listener_only() {
    let mut pair = Pair::new();
    let addresses = ["10.0.0.2:7000", "10.0.0.2:7001"].map(|address| address.parse().unwrap());
    for address in addresses {
        pair.ends[1].listen(address, ConnectionOptions::default()).unwrap();
        pair.ends[0].connect("end-1", address, without_retry());
    }
    pair.run(500);
    let accepted = pair.events.iter().filter(|(host, _)| *host == 1);
    let is_connected = |event: &EndpointEvent| matches!(event, EndpointEvent::Connected { .. });
    assert!(accepted.clone().all(|(_, event)| is_connected(event)), "{:?}", pair.events);
    assert_eq!(accepted.count(), 2);
}

/// Seeds draw worlds in which a peer waits because its messages fill its part of the memory.
#[test]
fn peers_wait_for_their_part_of_scarce_memory() {
    let (mut played, mut stopped) = (0, 0);
    for seed in 0..120 {
        let mut world = World::new(seed);
        if world.plan.limits.memory.is_some_and(|memory| memory.peer_bytes_max < memory.bytes_max) {
            world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
            played += 1;
            stopped += u32::from(world.peer_stops > 0);
        }
    }
    assert!(played >= 10 && 4 * stopped > played, "peers waited in {stopped} of {played} worlds");
}
