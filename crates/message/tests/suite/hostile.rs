//! Faulty, stalling, vanishing and foreign peers: each meets a bounded, named and counted reaction.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::common::{
    PATIENCE, endpoint, frame, has_backend, hello, hello_of, listen, quick, raw, raw_from, read_frame, step,
    until, wait_for, with_limits,
};
use crate::hang_guard::HangGuard;
use fanin_message::{
    BadHello, Closed, ConnectionOptions, EndpointEvent, Greeting, Limits, MessageEndpoint, NotAccepting,
    Oversize, SameName, Timing,
};

fn end_of(event: EndpointEvent) -> Option<Closed> {
    match event {
        EndpointEvent::Closed { reason, .. } | EndpointEvent::Failed { reason, .. } => Some(reason),
        _ => None,
    }
}

/// The reason with which a server ends the connection of a peer that writes `bytes` and then waits.
fn reaction(bytes: &[u8], options: ConnectionOptions, limits: Limits) -> (Closed, MessageEndpoint) {
    let mut server = with_limits("server", limits);
    let (_, address) = listen(&mut server, options);
    let mut peer = raw(address);
    peer.write_all(bytes).unwrap();
    let reason = wait_for(&mut server, end_of);
    assert!(server.is_empty());
    (reason, server)
}

#[test]
fn wrong_greetings_are_refused() {
    if !has_backend() {
        return;
    }
    let cases: [(Vec<u8>, BadHello); 6] = [
        (frame(1, 0, b"hi"), BadHello::Kind(1)),
        (frame(0xFFFF_FF01, 0, b"no greeting"), BadHello::Magic(*b"no g")),
        (frame(0xFFFF_FF01, 0, b"FNIN\x07\0"), BadHello::Layout { layout: 7 }),
        (frame(0xFFFF_FF01, 0, b"FNIN\x01\0\0\0\0\0\x03\0abc\0\0"), BadHello::Layout { layout: 1 }),
        (hello_of([3, 2], "peer", "", 0), BadHello::Versions { lowest: 3, highest: 2 }),
        (
            frame(0xFFFF_FF01, 0, b"FNIN\x02\0\0\0\0\0\x01\0\x01\0\x04\0abc"),
            BadHello::Size { actual: 19, needed: 20 },
        ),
    ];
    for (bytes, expected) in cases {
        // The first message must be a greeting, and no claimed size is trusted before it.
        let (reason, server) = reaction(&bytes, quick(), Limits::default());
        match reason {
            Closed::BadHello(error) => assert_eq!(error, expected),
            Closed::Oversize(Oversize { kind: 1, size: 2, limit: 0 }) => continue,
            other => panic!("{other:?} for {expected:?}"),
        }
        assert_eq!(server.totals().refused, 1);
    }
    let (reason, _) = reaction(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", quick(), Limits::default());
    assert!(matches!(reason, Closed::Oversize(_)), "{reason:?}");
    let (reason, server) = reaction(b"", quick(), Limits::default());
    assert_eq!(reason, Closed::GreetingLate(Duration::from_millis(300)));
    assert_eq!((server.totals().refused, server.totals().connected), (1, 0));
}

/// Every change of one byte of a greeting, and every beginning of one: a connection, or a reason, and no panic.
#[test]
fn changed_greetings_are_accepted_or_refused() {
    if !has_backend() {
        return;
    }
    let mut server = endpoint("server");
    let (_, address) = listen(&mut server, quick());
    let whole = hello_of([1, 2], "peer", "server", 20);
    let (mut accepted, mut refused) = (0, 0);
    let mut try_one = |bytes: &[u8]| {
        let mut peer = raw(address);
        peer.write_all(bytes).unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        wait_for(&mut server, |event| match event {
            EndpointEvent::Connected { version, .. } => {
                assert_eq!(version, 1);
                accepted += 1;
                None
            }
            other => end_of(other).map(|_| refused += 1),
        });
    };
    for place in 0..whole.len() {
        try_one(&whole[..place]);
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << bit;
            try_one(&bytes);
        }
    }
    assert_eq!(refused, 9 * whole.len());
    // Other heartbeats, names and versions that include 1 are sound.
    assert!(accepted > 60 && accepted < refused / 2, "{accepted} of {refused}");
    assert!(server.is_empty());
}

#[test]
fn sizes_that_lie_end_the_connection() {
    if !has_backend() {
        return;
    }
    let bare = ConnectionOptions { greeting: Greeting::Bare, ..quick() };
    let limits = || Limits { by_kind: vec![(7, 1000)], ..Limits::default() };
    let lie = |kind: u32, size: u32| {
        let mut bytes = frame(kind, 0, b"");
        bytes[8..12].copy_from_slice(&size.to_le_bytes());
        bytes
    };
    for (kind, size, limit) in [(7, 1001, 1000), (8, u32::MAX, 64 << 20), (0xFFFF_FF02, 1025, 1024)] {
        let (reason, server) = reaction(&lie(kind, size), bare.clone(), limits());
        assert_eq!(reason, Closed::Oversize(Oversize { kind, size, limit }));
        assert_eq!(server.totals().oversize, 1);
    }
    // An announced message that does not arrive takes no more memory than its first bytes justify.
    let mut server = with_limits("server", limits());
    let (_, address) = listen(&mut server, bare.clone());
    let mut peers: Vec<_> = (0..50).map(|_| raw(address)).collect();
    for peer in &mut peers {
        peer.write_all(&lie(1, 60 << 20)).unwrap();
    }
    let guard = HangGuard::new();
    while server.totals().bytes_in < 600 {
        step(&mut server);
        guard.check("the first bytes of all peers");
    }
    assert!(server.receive_bytes() < 50 * (80 << 10) + (256 << 10), "{}", server.receive_bytes());
    drop(peers);
    let mut truncated = 0;
    until(&mut [&mut server], |_, _, event| {
        if let Some(reason) = end_of(event) {
            assert_eq!(reason, Closed::Truncated { received: 12, needed: 12 + (60 << 20) });
            truncated += 1;
        }
        truncated == 50
    });
    assert!(server.receive_bytes() <= 256 << 10, "what unfinished messages held is free");
}

#[test]
fn unknown_reserved_types_end_the_connection() {
    if !has_backend() {
        return;
    }
    let mut bytes = hello("peer", "", 0);
    bytes.extend(frame(0xFFFF_FFFF, 0, b""));
    let (reason, _) = reaction(&bytes, quick(), Limits::default());
    assert_eq!(reason, Closed::Reserved(0xFFFF_FFFF));
}

#[test]
fn a_frame_may_come_byte_by_byte() {
    if !has_backend() {
        return;
    }
    let mut server = endpoint("server");
    let (_, address) = listen(&mut server, quick());
    let mut peer = raw(address);
    peer.set_nodelay(true).unwrap();
    let mut bytes = hello("slow", "server", 0);
    bytes.extend(frame(3, 4, b"five"));
    let mut events = Vec::new();
    for byte in bytes {
        peer.write_all(&[byte]).unwrap();
        events.extend(server.poll(Some(Instant::now())).unwrap());
    }
    while events.len() < 2 {
        events.extend(step(&mut server));
    }
    assert!(matches!(&events[0], EndpointEvent::Connected { name, .. } if &**name == "slow"), "{events:?}");
    let EndpointEvent::Message { kind: 3, stream: 4, payload, .. } = &events[1] else { panic!("{events:?}") };
    assert_eq!(**payload, *b"five");
}

#[test]
fn names_are_checked_on_both_sides() {
    if !has_backend() {
        return;
    }
    let mut server = endpoint("server");
    let only = ConnectionOptions { names: vec!["dcm-1".into()], ..quick() };
    let (_, address) = listen(&mut server, only);
    let once = ConnectionOptions { backoff: None, ..quick() };
    for (own, expected, words) in [
        ("dcm-1", "another server", "\"another server\" is not accepted here, only server"),
        ("dcm-2", "server", "\"dcm-2\" is not accepted here, only dcm-1"),
    ] {
        let mut client = endpoint(own);
        client.connect(expected, address, once.clone());
        let mut ends: [Option<Closed>; 2] = [None, None];
        until(&mut [&mut server, &mut client], |number, _, event| {
            assert!(!matches!(event, EndpointEvent::Connected { .. }), "{own} to {expected}");
            ends[number] = end_of(event).or(ends[number].take());
            ends.iter().all(Option::is_some)
        });
        assert!(matches!(&ends[0], Some(Closed::WrongName { .. })), "{ends:?}");
        assert_eq!(ends[1], Some(Closed::Refused(words.into())));
    }
    // The client refuses a server with a wrong name.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = endpoint("dcm-1");
    client.connect("server", listener.local_addr().unwrap(), once);
    step(&mut client);
    let (mut impostor, _) = listener.accept().unwrap();
    assert_eq!(step(&mut client).map(|_| ()), None);
    assert_eq!(read_frame(&mut impostor).0, 0xFFFF_FF01);
    impostor.write_all(&hello("impostor", "", 0)).unwrap();
    let reason = wait_for(&mut client, end_of);
    assert_eq!(reason, Closed::WrongName { expected: "server".into(), actual: "impostor".into() });
    assert_eq!(read_frame(&mut impostor).0, 0xFFFF_FF03, "the impostor receives the reason");
}

#[test]
fn a_younger_connection_takes_the_place_of_a_half_open_one() {
    if !has_backend() {
        return;
    }
    let mut server = endpoint("server");
    let (_, address) = listen(&mut server, quick());
    let mut first = raw(address);
    first.write_all(&hello("ros-1", "server", 0)).unwrap();
    let old = wait_for(&mut server, |event| match event {
        EndpointEvent::Connected { peer, .. } => Some(peer),
        _ => None,
    });
    let mut second = raw(address);
    second.write_all(&hello("ros-1", "server", 0)).unwrap();
    let mut seen = Vec::new();
    until(&mut [&mut server], |_, _, event| {
        match event {
            EndpointEvent::Closed { peer, reason, .. } => {
                assert_eq!((peer, reason), (old, Closed::Superseded("ros-1".into())));
                seen.push("closed");
            }
            EndpointEvent::Connected { peer, .. } => {
                assert_ne!(peer, old);
                seen.push("connected");
            }
            other => panic!("{other:?}"),
        }
        seen.len() == 2
    });
    assert_eq!(seen, ["closed", "connected"], "first the end, then the new one");

    let (_, strict) = listen(&mut server, ConnectionOptions { same_name: SameName::Refuse, ..quick() });
    let (mut third, mut fourth) = (raw(strict), raw(strict));
    third.write_all(&hello("ros-1", "", 0)).unwrap();
    wait_for(&mut server, |event| matches!(event, EndpointEvent::Connected { .. }).then_some(()));
    fourth.write_all(&hello("ros-1", "", 0)).unwrap();
    let reason = wait_for(&mut server, end_of);
    assert_eq!(reason, Closed::NameTaken("ros-1".into()));
    assert_eq!(reason.to_string(), "\"ros-1\" is connected already, by an older connection");
    assert_eq!(read_frame(&mut fourth), (0xFFFF_FF03, 0, b"\"ros-1\" is connected already".to_vec()));
}

#[test]
fn silence_is_noticed_and_heartbeats_prevent_it() {
    if !has_backend() {
        return;
    }
    let mut server = endpoint("server");
    let (_, address) = listen(&mut server, quick());
    // One peer announces heartbeats and falls silent; another announces none; a third is ours.
    let (mut silent, mut modest) = (raw(address), raw(address));
    silent.write_all(&hello("silent", "", 20)).unwrap();
    modest.write_all(&hello("modest", "", 0)).unwrap();
    let mut client = endpoint("client");
    client.connect("server", address, quick());
    let mut end = None;
    let mut names = Vec::new();
    until(&mut [&mut server, &mut client], |number, _, event| {
        match event {
            EndpointEvent::Connected { peer, name, .. } if number == 0 => names.push((peer, name)),
            EndpointEvent::Closed { peer, reason, .. } => end = Some((peer, reason)),
            _ => {}
        }
        end.is_some()
    });
    let (peer, reason) = end.unwrap();
    assert_eq!(reason, Closed::Silent(Duration::from_millis(200)));
    assert!(names.iter().any(|(known, name)| *known == peer && &**name == "silent"));
    assert_eq!((server.peers(), server.totals().silent), (2, 1));
    assert!(server.totals().heartbeats_in > 2 && client.totals().heartbeats_in > 2);
    // The server's heartbeats reach peers that do not send any.
    assert_eq!(read_frame(&mut modest).0, 0xFFFF_FF01);
    assert_eq!(read_frame(&mut modest), (0xFFFF_FF02, 0, Vec::new()));
}

#[test]
fn a_process_that_slept_does_not_take_its_peers_for_dead() {
    if !has_backend() {
        return;
    }
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    crate::common::connected(&mut server, &mut client, &quick());
    // The server sleeps longer than its silence limit, while the client's heartbeats pile up.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(150) {
        step(&mut client);
    }
    std::thread::sleep(Duration::from_millis(70));
    let mut ended = false;
    for _ in 0..30 {
        ended |= step(&mut server).is_some_and(|event| end_of(event).is_some());
    }
    assert!(!ended);
}

#[test]
fn peers_that_take_nothing_are_given_up() {
    if !has_backend() {
        return;
    }
    let limits = Limits { outbox_bytes_max: 1 << 20, ..Limits::default() };
    let mut server = with_limits("server", limits);
    let (_, address) = listen(&mut server, quick());
    let mut lazy = raw(address);
    lazy.write_all(&hello("lazy", "", 0)).unwrap();
    let peer = wait_for(&mut server, |event| match event {
        EndpointEvent::Connected { peer, .. } => Some(peer),
        _ => None,
    });
    while server.send(peer, 1, 0, &[&[0; 100_000]]).is_ok() {}
    let (reason, unsent) = wait_for(&mut server, |event| match event {
        EndpointEvent::Closed { reason, unsent, .. } => Some((reason, unsent)),
        _ => None,
    });
    assert_eq!(reason, Closed::Stalled(Duration::from_millis(200)));
    assert!(unsent.bytes > 900_000 && unsent.messages >= 9, "{unsent:?}");
    assert_eq!(server.totals().messages_unsent, unsent.messages);
    assert_eq!(server.totals().stalled, 1);
}

#[test]
fn a_peer_that_does_not_close_after_us_is_cut_off() {
    if !has_backend() {
        return;
    }
    let mut server = endpoint("server");
    let (_, address) = listen(&mut server, quick());
    let mut stubborn = raw(address);
    stubborn.write_all(&hello("stubborn", "", 0)).unwrap();
    let peer = wait_for(&mut server, |event| match event {
        EndpointEvent::Connected { peer, .. } => Some(peer),
        _ => None,
    });
    server.send(peer, 9, 9, &[b"the last word"]).unwrap();
    server.close(peer);
    assert_eq!(wait_for(&mut server, end_of), Closed::NotDrained(Duration::from_millis(300)));
    let mut rest = Vec::new();
    stubborn.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"the last word"));
}

#[test]
fn a_lost_server_is_found_again_by_all_its_clients() {
    if !has_backend() {
        return;
    }
    let options = ConnectionOptions { same_name: SameName::Replace, ..quick() };
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let (_, address) = listen(&mut server, options.clone());
    let peer = client.connect("server", address, options.clone());
    until(&mut [&mut server, &mut client], |number, _, event| {
        number == 1 && matches!(event, EndpointEvent::Connected { .. })
    });
    drop(server);
    let (mut closed, mut failed) = (0, 0);
    until(&mut [&mut client], |_, _, event| {
        match event {
            EndpointEvent::Closed { retry: Some(_), .. } => closed += 1,
            EndpointEvent::Failed { reason, retry: Some(pause), .. } => {
                assert!(matches!(reason, Closed::Broken(_) | Closed::Unreachable { .. }), "{reason:?}");
                assert!(pause <= Duration::from_millis(20));
                failed += 1;
            }
            other => panic!("{other:?}"),
        }
        failed == 3
    });
    assert_eq!(closed, 1);
    let mut server = endpoint("server");
    server.listen(address, options).unwrap();
    until(&mut [&mut server, &mut client], |number, client, event| {
        if let (1, EndpointEvent::Connected { peer: again, .. }) = (number, &event) {
            assert_eq!(*again, peer, "the number stands for the peer, not for the connection");
            assert_eq!(client.counters(peer).unwrap().connected, 2);
            return true;
        }
        false
    });
}

#[test]
fn attempts_may_be_limited_and_hosts_without_addresses_are_named() {
    if !has_backend() {
        return;
    }
    let mut client = endpoint("client");
    let few = ConnectionOptions {
        backoff: Some(fanin_message::Backoff { attempts_max: Some(2), ..quick().backoff.unwrap() }),
        ..quick()
    };
    client.connect("server", "no-such-host.invalid:1", few);
    let mut retries = Vec::new();
    until(&mut [&mut client], |_, _, event| {
        let EndpointEvent::Failed { reason: Closed::Unresolved { host, .. }, retry, .. } = event else {
            panic!("{event:?}")
        };
        assert_eq!(&*host, "no-such-host.invalid:1");
        retries.push(retry.is_some());
        retries.len() == 3
    });
    assert_eq!(retries, [true, true, false]);
    assert!(client.is_empty());
}

#[test]
fn an_attempt_that_the_system_refuses_at_once_is_repeated() {
    if !has_backend() {
        return;
    }
    let mut client = endpoint("client");
    // TCP has no broadcast: connect(2) fails.
    client.connect("server", SocketAddr::from(([255; 4], 7000)), quick());
    for _ in 0..2 {
        let (reason, retry) = wait_for(&mut client, |event| match event {
            EndpointEvent::Failed { reason, retry, .. } => Some((reason, retry)),
            other => panic!("{other:?}"),
        });
        assert!(matches!(reason, Closed::Unreachable { .. }) && retry.is_some(), "{reason:?}, {retry:?}");
    }
}

#[test]
fn at_the_limit_of_peers_accepting_stops_and_goes_on_by_itself() {
    if !has_backend() {
        return;
    }
    let mut server = with_limits("server", Limits { peers_max: 2, ..Limits::default() });
    let (listener, address) = listen(&mut server, ConnectionOptions { greeting: Greeting::Bare, ..quick() });
    let mut peers: Vec<_> = (0..4).map(|_| raw(address)).collect();
    let mut connected = 0;
    until(&mut [&mut server], |_, _, event| {
        match event {
            EndpointEvent::Connected { .. } => connected += 1,
            EndpointEvent::NotAccepting { listener: at, reason } => {
                assert_eq!((at, reason), (listener, NotAccepting::Peers { max: 2 }));
                return true;
            }
            other => panic!("{other:?}"),
        }
        false
    });
    assert_eq!(connected, 2);
    // It waits without work: no event is reported, and nothing wakes it.
    assert!(server.poll(Some(Instant::now() + Duration::from_millis(50))).unwrap().is_none());
    drop(peers.remove(0));
    let (mut closed, mut again) = (0, 0);
    until(&mut [&mut server], |_, _, event| {
        closed += usize::from(matches!(event, EndpointEvent::Closed { .. }));
        again += usize::from(matches!(event, EndpointEvent::Connected { .. }));
        again == 1
    });
    assert_eq!(closed, 1);
}

#[test]
fn silent_limits_do_not_hold_back_who_waits_for_ever() {
    if !has_backend() {
        return;
    }
    let forever = Timing { silence_max: Duration::ZERO, heartbeat: Duration::ZERO, ..quick().timing };
    let mut server = endpoint("server");
    let (_, address) = listen(&mut server, ConnectionOptions { timing: forever, ..quick() });
    let mut silent = raw(address);
    silent.write_all(&hello("silent", "", 1)).unwrap();
    wait_for(&mut server, |event| matches!(event, EndpointEvent::Connected { .. }).then_some(()));
    assert!(server.poll(Some(Instant::now() + Duration::from_millis(250))).unwrap().is_none());
    assert_eq!((server.peers(), server.totals().heartbeats_out), (1, 0));
}

#[test]
fn strangers_displace_each_other_and_no_peer() {
    if !has_backend() {
        return;
    }
    let mut server = with_limits("server", Limits { greetings_max: 4, ..Limits::default() });
    let patient = Timing { greeting_max: PATIENCE, ..quick().timing };
    let (_, address) = listen(&mut server, ConnectionOptions { timing: patient, ..quick() });
    let mut peer = raw(address);
    peer.write_all(&hello("peer", "", 0)).unwrap();
    wait_for(&mut server, |event| matches!(event, EndpointEvent::Connected { .. }).then_some(()));
    let mut strangers: Vec<_> = (0..10).map(|_| raw(address)).collect();
    for stranger in &strangers[..6] {
        let (reason, caller) = wait_for(&mut server, |event| match event {
            EndpointEvent::Failed { reason, caller, .. } => Some((reason, caller)),
            other => panic!("{other:?}"),
        });
        // The oldest one first.
        assert_eq!((reason, caller), (Closed::Displaced { max: 4 }, Some(stranger.local_addr().unwrap())));
    }
    assert_eq!((server.peers(), server.totals().refused), (5, 6));
    assert_eq!(strangers[0].read(&mut [0]).unwrap(), 0);
    // One of the youngest greets after all, and the peer is still connected.
    strangers[9].write_all(&hello("late", "", 0)).unwrap();
    wait_for(&mut server, |event| matches!(event, EndpointEvent::Connected { .. }).then_some(()));
    peer.write_all(&frame(1, 0, b"x")).unwrap();
    wait_for(&mut server, |event| matches!(event, EndpointEvent::Message { .. }).then_some(()));
}

#[test]
fn a_flood_from_one_address_displaces_no_peer_at_another() {
    if !has_backend() {
        return;
    }
    let mut server = with_limits("server", Limits { greetings_max: 4, ..Limits::default() });
    let patient = Timing { greeting_max: PATIENCE, ..quick().timing };
    let (_, address) = listen(&mut server, ConnectionOptions { timing: patient, ..quick() });
    // The peer has connected and not yet greeted when the flood comes: it is the oldest one.
    let mut peer = raw_from([127, 0, 0, 2], address);
    let flood: Vec<_> = (0..10).map(|_| raw(address)).collect();
    for stranger in &flood[..7] {
        let caller = wait_for(&mut server, |event| match event {
            EndpointEvent::Failed { reason: Closed::Displaced { max: 4 }, caller, .. } => caller,
            other => panic!("{other:?}"),
        });
        assert_eq!(caller, stranger.local_addr().unwrap());
    }
    peer.write_all(&hello("peer", "", 0)).unwrap();
    wait_for(&mut server, |event| matches!(event, EndpointEvent::Connected { .. }).then_some(()));
    assert_eq!(server.peers(), 4);
}

#[test]
fn an_address_that_connects_too_often_is_refused_alone() {
    if !has_backend() {
        return;
    }
    let limits = Limits { caller_connections_per_second_max: Some(1), ..Limits::default() };
    let mut server = with_limits("server", limits);
    let (_, address) = listen(&mut server, quick());
    let flood: Vec<_> = (0..100).map(|_| raw(address)).collect();
    // One connection a second is permitted. Those that are admitted send no greeting in time.
    let reasons: Vec<Closed> = flood.iter().map(|_| wait_for(&mut server, end_of)).collect();
    let too_frequent =
        reasons.iter().filter(|reason| **reason == Closed::TooFrequent { max: 1 }).count() as u64;
    assert!(too_frequent > 0 && too_frequent < 100, "{too_frequent} of 100");
    assert_eq!((server.totals().too_frequent, server.totals().refused), (too_frequent, 100));
    let mut peer = raw_from([127, 0, 0, 2], address);
    peer.write_all(&hello("peer", "", 0)).unwrap();
    wait_for(&mut server, |event| matches!(event, EndpointEvent::Connected { .. }).then_some(()));
}
