//! DIATCP on the kernel's own TCP, behind the software switch: a collector whose window its senders share. Needs root.

mod common;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use common::{PORT, address, privileged, star, switch};
use fanin_dataflow::WindowShares;
use fanin_message::{Endpoint, Event, Options, Peer, SameName, Settings, SocketOptions};
use fanin_testbed::Lab;

const SENDERS: usize = 16;
const ANSWER_BYTES: usize = 20_000;
const ROUNDS: usize = 10;
/// As an MTU of 1500 leaves it, with timestamps.
const SEGMENT_BYTES: u32 = 1448;
/// 36 full frames take 55 of the port's 64 kB; acknowledgements of requests need some room, too.
const GLOBAL_WINDOW: u32 = 36;

fn options(window_clamp: Option<u32>) -> Options {
    let socket = SocketOptions {
        congestion_control: Some("cubic".into()),
        quickack: Some(true),
        window_clamp,
        receive_buffer: window_clamp.map(|bytes| 2 * bytes),
        ..SocketOptions::default()
    };
    Options { socket, same_name: SameName::Allow, ..Options::default() }
}

/// Answers requests until it is told to end.
fn serve(host: usize, ended: &AtomicBool, ready: impl FnOnce()) {
    let mut endpoint = Endpoint::new(Settings::default()).unwrap();
    endpoint.listen(SocketAddr::from((address(host), PORT)), options(None)).unwrap();
    ready();
    let answer = vec![host as u8; ANSWER_BYTES];
    while !ended.load(Ordering::Relaxed) {
        let until = Instant::now() + Duration::from_millis(50);
        if let Some(Event::Message { peer, stream, .. }) = endpoint.poll(Some(until)).unwrap() {
            endpoint.send(peer, 2, stream, &[&answer]).unwrap();
        }
    }
}

/// The switch's drops, and the deepest queue of its port to the collector.
fn incast(lab: &Lab, shared: bool) -> (u64, u64) {
    let running = switch(lab, SENDERS, None);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let (ready, listening) = channel();
        for host in 1..=SENDERS {
            let (ended, ready) = (&ended, ready.clone());
            let namespace = &lab.namespaces()[host];
            scope.spawn(move || namespace.run(|| serve(host, ended, || ready.send(()).unwrap())).unwrap());
        }
        (0..SENDERS).for_each(|_| listening.recv().unwrap());
        lab.namespaces()[0].run(|| collect(shared)).unwrap();
        ended.store(true, Ordering::Relaxed);
    });
    let snapshot = running.stop().snapshot;
    (snapshot.drops(), snapshot.ports[0].queue.bytes_max)
}

fn collect(shared: bool) {
    let start = Instant::now();
    let now =
        || fanin_units::Instant::START + fanin_units::Duration::from_nanos(start.elapsed().as_nanos() as u64);
    let mut endpoint = Endpoint::new(Settings::default()).unwrap();
    let mut shares = WindowShares::new(GLOBAL_WINDOW, fanin_units::Duration::ZERO, false);
    // A window scale, without which the kernel takes no window back.
    let first = shared.then_some(1 << 16);
    let peers: Vec<Peer> = (1..=SENDERS)
        .map(|host| endpoint.connect("", SocketAddr::from((address(host), PORT)), options(first)))
        .collect();
    let place = |peer: Peer| peers.iter().position(|&other| other == peer).unwrap();
    let mut told = [u32::MAX; SENDERS];
    let mut share_out = |endpoint: &mut Endpoint, shares: &mut WindowShares| {
        shares.share_out(now(), |place, segments, _| {
            let bytes = segments.max(1) * SEGMENT_BYTES;
            let peer = peers[place as usize];
            endpoint.set_window_clamp(peer, bytes).unwrap();
            if std::mem::replace(&mut told[place as usize], bytes) > bytes {
                endpoint.send_heartbeat(peer);
            }
        });
    };
    let until = start + Duration::from_secs(60);
    let next =
        |endpoint: &mut Endpoint| endpoint.poll(Some(until)).unwrap().expect("nothing happens any more");
    let mut connected = 0;
    while connected < SENDERS {
        if let Event::Connected { peer, .. } = next(&mut endpoint) {
            connected += 1;
            if shared {
                endpoint.set_window_clamp(peer, SEGMENT_BYTES).unwrap();
            }
        }
    }
    for round in 0..ROUNDS as u32 {
        if shared {
            for place in 0..SENDERS as u32 {
                shares.open(now(), place);
            }
            share_out(&mut endpoint, &mut shares);
        }
        for &peer in &peers {
            endpoint.send(peer, 1, round, &[b"more"]).unwrap();
        }
        let mut missing = SENDERS;
        while missing > 0 {
            match next(&mut endpoint) {
                Event::Message { peer, stream, payload, .. } => {
                    let host = place(peer) + 1;
                    assert!(payload.len() == ANSWER_BYTES && payload.iter().all(|&byte| byte == host as u8));
                    assert_eq!(stream, round);
                    missing -= 1;
                    if shared {
                        shares.close(now(), host as u32 - 1);
                        share_out(&mut endpoint, &mut shares);
                    }
                }
                Event::Closed { reason, .. } => panic!("{reason}"),
                _ => {}
            }
        }
    }
    if shared {
        assert_eq!(shares.counters.senders_max as usize, SENDERS);
        assert!(shares.counters.granted_max <= GLOBAL_WINDOW, "{:?}", shares.counters);
    }
}

#[test]
fn a_shared_window_keeps_the_queue_below_what_it_grants() {
    if !privileged() {
        return;
    }
    let lab = star(SENDERS, true);
    let alone = incast(&lab, false);
    let shared = incast(&lab, true);
    eprintln!("drops and deepest queue: CUBIC {alone:?}, DIATCP {shared:?}");
    assert!(alone.0 > 0, "64 kB were enough: {alone:?}");
    assert!(shared.0 == 0, "{shared:?}");
}
