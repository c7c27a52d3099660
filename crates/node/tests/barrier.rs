//! A barrier workload's processes serve their aggregator alone.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fanin_message::SharedKey;
use fanin_node::barrier::{BarrierSystem, aggregate, send};

#[test]
fn a_sender_answers_its_aggregator_and_no_caller_without_the_key() {
    let folder = std::env::temp_dir().join(format!("fanin-node-barrier-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = held.local_addr().unwrap();
    drop(held);
    std::fs::write(folder.join("peers.key"), SharedKey::random().unwrap().to_hex()).unwrap();
    let sets =
        ["workload.senders=1", "workload.request_size=10 kB", "run.warmup=10 ms", "run.duration=50 ms"];
    let loaded =
        fanin_scenario::load("incast", &sets.map(str::to_owned)).unwrap_or_else(|errors| panic!("{errors}"));
    std::fs::write(folder.join("scenario.toml"), loaded.to_toml()).unwrap();
    let path = folder.join("barrier.toml");
    std::fs::write(&path, BarrierSystem::text("scenario.toml", Some("peers.key"), &[address])).unwrap();
    let system = BarrierSystem::load(&path).unwrap_or_else(|error| panic!("{error}"));
    let serving = system.clone();
    let sender = std::thread::spawn(move || send(&serving, 0));
    // A stranger asks as an aggregator does, and another one has a key of its own.
    let connect = || loop {
        if let Ok(stream) = TcpStream::connect(address) {
            break stream;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut stranger = connect();
    let mut request = [0; 128];
    request[..8].copy_from_slice(b"fanin-rq");
    stranger.write_all(&request).unwrap();
    let mut answer = Vec::new();
    let _ = stranger.read_to_end(&mut answer);
    assert!(answer.len() <= 64, "a stranger received {} B", answer.len());
    assert!(SharedKey::random().unwrap().greet_stream(&mut connect()).is_err());
    aggregate(&system, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{error}"));
    sender.join().unwrap().unwrap_or_else(|error| panic!("{error}"));
    let text = std::fs::read_to_string(folder.join("aggregator.json")).unwrap();
    assert!(text.contains("\"rounds\":[["), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}
