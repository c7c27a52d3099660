//! Messages between two well-behaved endpoints.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::common::{
    connected, endpoint, has_backend, listen, quick, step, until, wait_for, with_limits, with_settings,
};
use crate::hang_guard::HangGuard;
use fanin_message::{
    Closed, ConnectionOptions, EndpointEvent, EndpointSettings, Greeting, Limits, MessageEndpoint, Payload,
    SameName, SendError, SocketOptions,
};

/// Limits that a few large messages reach.
fn scarce_memory() -> Limits {
    Limits {
        message_bytes_max: 1 << 20,
        receive_bytes_max: 4 << 20,
        receive_block_bytes: 64 << 10,
        ..Limits::default()
    }
}

#[test]
fn messages_of_all_sizes_arrive_complete_and_in_order() {
    if !has_backend() {
        return;
    }
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let (_, to_server) = connected(&mut server, &mut client, &ConnectionOptions::default());
    let sizes = [0, 1, 11, 12, 13, 4096, 4097, 65_536, 131_072 - 12, 131_072, 131_073, 1_000_000, 7_000_000];
    let body: Vec<u8> = (0..7_000_003u32).map(|i| (i * 7 + i / 251) as u8).collect();
    let shared = Payload::from(body.clone());
    for (i, size) in sizes.into_iter().enumerate() {
        client.send(to_server, 1, i as u32, &[&body[..size / 3], &body[size / 3..size]]).unwrap();
        client
            .send_shared(to_server, 2, i as u32, &body[..3], &[shared.slice(3..3 + size), shared.slice(0..5)])
            .unwrap();
    }
    let mut next = 0;
    until(&mut [&mut server, &mut client], |number, _, event| {
        let EndpointEvent::Message { kind, stream, payload, .. } = event else { return false };
        assert_eq!((number, kind as usize, stream as usize), (0, next % 2 + 1, next / 2));
        let size = sizes[next / 2];
        if kind == 1 {
            assert_eq!(payload[..], body[..size]);
        } else {
            assert!(payload[..3 + size] == body[..3 + size] && payload[3 + size..] == body[..5]);
        }
        next += 1;
        next == 2 * sizes.len()
    });
    assert_eq!(server.totals().messages_in, 26);
    // The last bytes may reach the kernel before the test reads their count, never after.
    assert_eq!(client.counters(to_server).unwrap().messages_out, 27, "26 and the greeting");
    assert_eq!(client.totals().bytes_out, server.totals().bytes_in);
}

#[test]
fn payloads_may_be_kept_and_sent_on() {
    if !has_backend() {
        return;
    }
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let (_, to_server) = connected(&mut server, &mut client, &ConnectionOptions::default());
    for i in 0..1000u32 {
        client.send(to_server, 1, i, &[&i.to_le_bytes().repeat(500)]).unwrap();
    }
    let mut kept: Vec<Payload> = Vec::new();
    until(&mut [&mut server, &mut client], |_, endpoint, event| {
        if let EndpointEvent::Message { peer, kind: 1, stream, payload } = event {
            endpoint.send_shared(peer, 2, stream, &[], std::slice::from_ref(&payload)).unwrap();
            kept.push(payload);
        } else if let EndpointEvent::Message { kind: 2, stream, payload, .. } = event {
            assert_eq!(payload[..4], stream.to_le_bytes());
            return stream == 999;
        }
        false
    });
    for (i, payload) in kept.iter().enumerate() {
        assert!(payload.chunks(4).all(|word| word == (i as u32).to_le_bytes()));
    }
    assert!(server.receive_bytes() >= 2_000_000);
    kept.clear();
    assert!(server.receive_bytes() < 1_000_000);
}

#[test]
fn bare_peers_exchange_frames_without_greetings() {
    if !has_backend() {
        return;
    }
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let options = ConnectionOptions { greeting: Greeting::Bare, ..ConnectionOptions::default() };
    let (to_client, _) = connected(&mut server, &mut client, &options);
    server.send(to_client, 5, 6, &[b"seven"]).unwrap();
    let message = until_message(&mut server, &mut client);
    assert_eq!(message, (5, 6, b"seven".to_vec()));
    assert_eq!(server.totals().bytes_out, 17, "nothing but the frame");
}

fn until_message(server: &mut MessageEndpoint, client: &mut MessageEndpoint) -> (u32, u32, Vec<u8>) {
    let mut message = None;
    until(&mut [server, client], |_, _, event| {
        if let EndpointEvent::Message { kind, stream, payload, .. } = event {
            message = Some((kind, stream, payload.to_vec()));
        }
        message.is_some()
    });
    message.unwrap()
}

#[test]
fn a_full_outbox_refuses_and_reports_room() {
    if !has_backend() {
        return;
    }
    let limits = Limits { outbox_bytes_max: 1 << 20, ..Limits::default() };
    let (mut server, mut client) = (endpoint("server"), with_limits("client", limits));
    let (to_client, to_server) = connected(&mut server, &mut client, &ConnectionOptions::default());
    server.pause(to_client);
    let body = vec![7; 10_000];
    let mut sent = 0;
    let refused = loop {
        match client.send(to_server, 1, sent, &[&body]) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(sent < 10_000, "no end to what is taken");
    };
    assert!(matches!(refused, SendError::Full { waiting, max: 1_048_576 } if waiting + 10_012 > 1 << 20));
    assert_eq!(client.counters(to_server).unwrap().full, 1);
    assert!(matches!(client.send(to_server, 1, 0, &[&vec![0; 65 << 20]]), Err(SendError::Oversize { .. })));
    server.resume(to_client);
    let (mut received, mut writable) = (0, 0);
    until(&mut [&mut server, &mut client], |_, _, event| {
        match event {
            EndpointEvent::Message { stream, .. } => {
                assert_eq!(stream, received);
                received += 1;
            }
            EndpointEvent::Writable { .. } => writable += 1,
            _ => {}
        }
        received == sent
    });
    while step(&mut client).is_some_and(|event| matches!(event, EndpointEvent::Writable { .. })) {
        writable += 1;
    }
    assert_eq!(writable, 1);
}

#[test]
fn receiving_stops_at_its_memory_limit_and_goes_on_when_memory_comes_back() {
    if !has_backend() {
        return;
    }
    let (mut server, mut client) = (with_limits("server", scarce_memory()), endpoint("client"));
    let (_, to_server) = connected(&mut server, &mut client, &ConnectionOptions::default());
    let body = vec![3; 1 << 20];
    for i in 0..32 {
        client.send(to_server, 1, i, &[&body]).unwrap();
    }
    let mut kept = Vec::new();
    let (guard, mut quiet) = (HangGuard::new(), Instant::now());
    while server.totals().starved == 0 || quiet.elapsed() < Duration::from_millis(150) {
        guard.check(format_args!("{} messages do not fill the memory", kept.len()));
        for event in [step(&mut server), step(&mut client)].into_iter().flatten() {
            if let EndpointEvent::Message { payload, .. } = event {
                kept.push(payload);
                quiet = Instant::now();
            }
        }
    }
    assert!((2..=4).contains(&kept.len()), "{} messages", kept.len());
    assert!(server.receive_bytes() <= 5 << 20);
    assert!(server.totals().starved >= 1);
    let mut received = kept.len();
    kept.clear();
    until(&mut [&mut server, &mut client], |_, _, event| {
        if let EndpointEvent::Message { stream, .. } = event {
            assert_eq!(stream as usize, received);
            received += 1;
        }
        received == 32
    });
}

#[test]
fn a_peer_at_its_memory_limit_stops_no_other_peer() {
    if !has_backend() {
        return;
    }
    let limits = Limits {
        message_bytes_max: 1 << 20,
        // The share binds above half of it.
        receive_bytes_max: 10 << 20,
        peer_receive_bytes_max: 4 << 20,
        receive_block_bytes: 64 << 10,
        ..Limits::default()
    };
    let mut server = with_limits("server", limits);
    let (mut greedy, mut other) = (endpoint("greedy"), endpoint("other"));
    let (_, address) = listen(&mut server, ConnectionOptions::default());
    let from_greedy = greedy.connect("server", address, ConnectionOptions::default());
    let from_other = other.connect("server", address, ConnectionOptions::default());
    let mut names = HashMap::new();
    let mut connected = 0;
    until(&mut [&mut server, &mut greedy, &mut other], |number, _, event| {
        let EndpointEvent::Connected { peer, name, .. } = event else { panic!("{event:?}") };
        if number == 0 {
            names.insert(peer, name.to_string());
        }
        connected += 1;
        connected == 4
    });
    // Small and large messages alternate, so that payloads lie in shared blocks and in buffers of their own.
    let bodies = [vec![3; 500], vec![5; 1 << 20]];
    let body = |stream: u32| bodies[stream as usize % 2].as_slice();
    for stream in 0..60 {
        greedy.send(from_greedy, 1, stream, &[body(stream)]).unwrap();
    }
    let (mut kept, mut kept_bytes) = (VecDeque::new(), 0);
    let (mut greedy_received, mut other_received, mut round) = (0, 0, 0);
    let guard = HangGuard::new();
    let mut turn = |server: &mut MessageEndpoint, kept: &mut VecDeque<Payload>, kept_bytes: &mut u64| {
        guard.check(format_args!("{} messages are kept", kept.len()));
        for event in [step(server), step(&mut greedy), step(&mut other)].into_iter().flatten() {
            match event {
                EndpointEvent::Message { peer, stream, payload, .. } if names[&peer] == "greedy" => {
                    assert_eq!((stream, &payload[..]), (greedy_received, body(stream)));
                    greedy_received += 1;
                    *kept_bytes += payload.len() as u64;
                    kept.push_back(payload);
                }
                EndpointEvent::Message { payload, .. } => {
                    assert_eq!(&payload[..], body(1));
                    other_received += 1;
                }
                event => panic!("{event:?}"),
            }
        }
        // The other peer sends one message after the other.
        if round == other_received && round < 200 {
            round += 1;
            other.send(from_other, 1, 0, &[body(1)]).unwrap();
        }
        (greedy_received, other_received)
    };
    while turn(&mut server, &mut kept, &mut kept_bytes).1 < 200 {}
    // 200 MB of the other peer went through meanwhile, and the first one holds its share alone.
    assert!((2 << 20..=6 << 20).contains(&kept_bytes), "{kept_bytes} bytes are kept");
    assert!(server.receive_bytes() < 8 << 20, "{} bytes", server.receive_bytes());
    assert!(server.totals().starved >= 1);
    // Each payload that is dropped lets in what follows, until all have come in order.
    while turn(&mut server, &mut kept, &mut kept_bytes).0 < 60 {
        kept.pop_front();
    }
    assert_eq!(server.totals().closed, 0);
}

#[test]
fn an_urgent_peer_is_read_although_the_memory_is_full() {
    if !has_backend() {
        return;
    }
    let urgent = vec!["urgent".to_owned()];
    let mut server = with_settings(&EndpointSettings {
        name: "server".into(),
        limits: scarce_memory(),
        urgent,
        ..EndpointSettings::default()
    });
    let mut greedy = endpoint("greedy");
    let (_, address) = listen(&mut server, ConnectionOptions::default());
    let from_greedy = greedy.connect("server", address, ConnectionOptions::default());
    let (mut kept, guard, mut quiet) = (Vec::new(), HangGuard::new(), Instant::now());
    while server.totals().starved == 0 || quiet.elapsed() < Duration::from_millis(150) {
        guard.check(format_args!("{} messages do not fill the memory", kept.len()));
        match step(&mut greedy) {
            // Small messages, which share read blocks.
            Some(EndpointEvent::Connected { .. }) => {
                (0..8000).for_each(|stream| greedy.send(from_greedy, 1, stream, &[&[3; 1000]]).unwrap());
            }
            event => assert!(event.is_none(), "{event:?}"),
        }
        if let Some(EndpointEvent::Message { payload, .. }) = step(&mut server) {
            kept.push(payload);
            quiet = Instant::now();
        }
    }
    assert!(kept.len() < 5000, "{} messages fill the memory", kept.len());
    // The other peer connects and sends 200 messages, one after the other. The greedy one stays stopped.
    let mut other = endpoint("urgent");
    let from_other = other.connect("server", address, ConnectionOptions::default());
    let (stopped_at, mut received) = (kept.len(), 0);
    until(&mut [&mut server, &mut other, &mut greedy], |number, endpoint, event| {
        match event {
            EndpointEvent::Message { payload, .. } if payload.len() == 1000 => kept.push(payload),
            EndpointEvent::Message { peer, .. } if number == 0 => {
                received += 1;
                endpoint.send(peer, 1, 0, &[b"go on"]).unwrap();
            }
            EndpointEvent::Connected { .. } | EndpointEvent::Message { .. } if number == 1 => {
                endpoint.send(from_other, 1, 0, &[b"stored"]).unwrap();
            }
            EndpointEvent::Connected { .. } => {}
            event => panic!("{event:?}"),
        }
        received == 200
    });
    assert!(
        kept.len() <= stopped_at + 70,
        "{} messages of the greedy peer came meanwhile",
        kept.len() - stopped_at
    );
    assert!(server.receive_bytes() <= (4 << 20) + 4 * (80 << 10), "{} bytes", server.receive_bytes());
    let mut all = kept.len();
    kept.clear();
    until(&mut [&mut server, &mut greedy], |_, _, event| {
        all += usize::from(matches!(event, EndpointEvent::Message { .. }));
        all == 8000
    });
}

#[test]
fn a_peer_that_connects_again_has_no_further_memory() {
    if !has_backend() {
        return;
    }
    let limits = Limits {
        message_bytes_max: 1 << 20,
        receive_bytes_max: 6 << 20,
        peer_receive_bytes_max: 3 << 20,
        receive_block_bytes: 64 << 10,
        ..Limits::default()
    };
    let mut server = with_limits("server", limits);
    let (_, address) = listen(&mut server, ConnectionOptions::default());
    let mut kept = Vec::new();
    for _ in 0..4 {
        let mut client = endpoint("client");
        let to_server = client.connect("server", address, ConnectionOptions::default());
        let body = vec![3; 1 << 20];
        let (guard, mut quiet) = (HangGuard::new(), Instant::now());
        while kept.len() < 2 || quiet.elapsed() < Duration::from_millis(150) {
            guard.check(format_args!("{} messages do not fill a peer's part", kept.len()));
            if let Some(EndpointEvent::Message { payload, .. }) = step(&mut server) {
                kept.push(payload);
                quiet = Instant::now();
            }
            if let Some(EndpointEvent::Connected { .. }) = step(&mut client) {
                (0..8).for_each(|stream| client.send(to_server, 1, stream, &[&body]).unwrap());
            }
        }
    }
    assert!((2..=3).contains(&kept.len()), "{} messages", kept.len());
}

#[test]
fn closing_sends_what_waits_and_hears_what_comes() {
    if !has_backend() {
        return;
    }
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let (to_client, to_server) = connected(&mut server, &mut client, &quick());
    let body = vec![1; 3_000_000];
    client.send(to_server, 1, 0, &[&body]).unwrap();
    server.send(to_client, 2, 0, &[b"still under way"]).unwrap();
    client.close(to_server);
    assert_eq!(client.send(to_server, 1, 0, &[]), Err(SendError::NotConnected));
    let (mut large, mut small, mut ends) = (false, false, Vec::new());
    until(&mut [&mut server, &mut client], |number, _, event| {
        match event {
            EndpointEvent::Message { kind: 1, payload, .. } => large = payload.len() == 3_000_000,
            EndpointEvent::Message { kind: 2, .. } => small = true,
            EndpointEvent::Closed { reason, unsent, retry, .. } => {
                assert_eq!((unsent.bytes, retry), (0, None));
                ends.push((number, reason));
            }
            _ => {}
        }
        ends.len() == 2
    });
    assert!(large && small);
    ends.sort_by_key(|(number, _)| *number);
    assert_eq!(ends, [(0, Closed::Remote), (1, Closed::Local)]);
    assert!(server.is_empty() && client.is_empty());
}

#[test]
fn shutdown_ends_everything_in_order() {
    if !has_backend() {
        return;
    }
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let (_, address) = listen(&mut server, ConnectionOptions { same_name: SameName::Allow, ..quick() });
    let peers: Vec<_> = (0..20).map(|_| client.connect("server", address, quick())).collect();
    assert_eq!(peers.len(), 20);
    let mut up = 0;
    until(&mut [&mut server, &mut client], |number, _, event| {
        up += usize::from(number == 1 && matches!(event, EndpointEvent::Connected { .. }));
        up >= 20
    });
    server.shutdown();
    client.shutdown();
    let guard = HangGuard::new();
    while !(server.is_empty() && client.is_empty()) {
        step(&mut server);
        step(&mut client);
        guard.check("the end of all connections");
    }
    assert_eq!(server.peers() + client.peers(), 0);
}

#[test]
fn another_thread_interrupts_the_wait() {
    if !has_backend() {
        return;
    }
    let mut endpoint = endpoint("alone");
    let waker = endpoint.waker();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        waker.wake();
    });
    wait_for(&mut endpoint, |event| matches!(event, EndpointEvent::Woken).then_some(()));
    thread.join().unwrap();
    assert!(
        endpoint.poll(Some(Instant::now())).unwrap().is_none(),
        "a deadline that has passed does not wait"
    );
}

#[test]
fn socket_options_change_at_run_time_and_refusals_are_named() {
    if !has_backend() {
        return;
    }
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let (to_client, to_server) = connected(&mut server, &mut client, &ConnectionOptions::default());
    let options = SocketOptions {
        congestion_control: Some("reno".into()),
        window_clamp: Some(8192),
        quickack: Some(true),
        ..SocketOptions::default()
    };
    server.set_options(to_client, options.clone()).unwrap();
    client.set_options(to_server, options.clone()).unwrap();
    let wrong = SocketOptions { congestion_control: Some("nonesuch".into()), ..options };
    let error = client.set_options(to_server, wrong).unwrap_err();
    assert_eq!((error.option, error.value.as_str()), ("congestion_control", "\"nonesuch\""));
    // A small window delays nothing; it is set again after each read.
    client.send(to_server, 1, 0, &[&[5; 300_000]]).unwrap();
    assert_eq!(until_message(&mut server, &mut client).2.len(), 300_000);
}

#[test]
fn hosts_are_found_by_name() {
    if !has_backend() {
        return;
    }
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let (_, address) = listen(&mut server, ConnectionOptions::default());
    let host = format!("localhost:{}", address.port());
    // If the name has an IPv6 address as well, no server listens there, and the next attempt takes the other.
    client.connect("server", host.as_str(), quick());
    until(&mut [&mut server, &mut client], |number, _, event| {
        number == 1 && matches!(event, EndpointEvent::Connected { .. })
    });
}
