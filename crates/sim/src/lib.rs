//! Packet-level simulation of fan-in networks.

#![forbid(unsafe_code)]

mod fabric;
pub mod network;
pub mod random;
mod schedule;
pub mod tcp;
pub mod topology;
pub mod workload;
mod world;

#[doc(hidden)]
pub fn scratch(servers: u32, requests: u64, size: u64) -> (u64, u64) {
    use fanin_units::*;
    let line = topology::Line { rate: Rate::new(1_000_000_000), delay: Duration::from_micros(25) };
    let (network, nodes) = topology::star(servers + 1, line);
    let settings = workload::barrier::Settings {
        servers,
        request: Bytes::new(100),
        answer: workload::barrier::Answer::Fragment(Bytes::new(size)),
        service_delay_max: Duration::from_micros(100),
        requests: Some(requests),
    };
    let stack = tcp::Config::profile("linux-6").unwrap();
    let mut world = world::World::new(&network, vec![stack], servers as usize + 1, workload::barrier::Barrier::new(settings, 1));
    let mut paths = network::Paths::new(&network).unwrap();
    for server in 0..servers {
        world.connect(&mut paths, [nodes[0], nodes[server as usize + 1]], [0, server + 1], [0, 0]).unwrap();
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let ending = world.run(Instant::FAR_FUTURE, Duration::from_secs(100), &stop, |_| {});
    assert_eq!(ending, world::Ending::Complete);
    world.assert_conserved();
    let bytes: u64 = world.workload.completed.iter().map(|r| r.bytes.get()).sum();
    (world.fabric.hops(), bytes * 8_000_000 / (world.now / 1_000_000))
}
