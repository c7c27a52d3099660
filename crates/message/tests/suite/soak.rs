//! Many peers that send, pause, leave and return at random: nothing is lost, mixed up or left behind.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, has_backend, listen, quick, step, with_limits};
use crate::hang_guard::HangGuard;
use fanin_message::{Closed, ConnectionOptions, EndpointEvent, Limits, Payload, PeerId, SameName, SendError};

const CLIENTS: usize = 12;
const MESSAGES: u32 = 150;
const ECHO: u32 = 1;

/// A payload made from its number and its size.
fn body(number: u32, random: u64) -> Vec<u8> {
    let size = match random % 10 {
        0 => 0,
        1..=5 => random / 16 % 200,
        6 | 7 => random / 16 % 9000,
        8 => random / 16 % 140_000,
        _ => random / 16 % 700_000,
    };
    (0..size as u32).map(|i| (i.wrapping_mul(number | 1) >> 3) as u8).collect()
}

fn check(number: u32, payload: &[u8]) {
    let wrong =
        payload.iter().zip(0u32..).position(|(byte, i)| *byte != (i.wrapping_mul(number | 1) >> 3) as u8);
    assert_eq!(wrong, None, "message {number} of {} bytes", payload.len());
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 20
    }
}

fn soak(seed: u64) {
    let limits = Limits {
        message_bytes_max: 1 << 20,
        outbox_bytes_max: 2 << 20,
        receive_bytes_max: 8 << 20,
        receive_block_bytes: 32 << 10,
        ..Limits::default()
    };
    let mut options = ConnectionOptions { same_name: SameName::Allow, ..quick() };
    options.timing.silence_max = PATIENCE;
    options.timing.stall_max = PATIENCE;
    options.timing.greeting_max = PATIENCE;
    options.timing.drain_max = PATIENCE;
    let (mut server, mut client) = (with_limits("server", limits.clone()), with_limits("client", limits));
    let (_, address) = listen(&mut server, options.clone());
    let mut random = Random(seed);
    // Messages sent and echoed on each client's present connection; all must come back, in order.
    let mut state: HashMap<PeerId, (u32, u32)> = HashMap::new();
    let mut finished = 0;
    for _ in 0..CLIENTS {
        client.connect("server", address, options.clone());
    }
    let mut held: Vec<Payload> = Vec::new();
    let mut waiting: Vec<(PeerId, u32, Payload)> = Vec::new();
    let mut paused: Vec<PeerId> = Vec::new();
    let guard = HangGuard::new();
    while finished < CLIENTS {
        guard.check(format_args!("seed {seed}: {finished} of {CLIENTS}: {state:?}"));
        while let Some(event) = step_at_once(&mut server) {
            match event {
                EndpointEvent::Message { peer, stream, payload, .. } => {
                    check(stream, &payload);
                    waiting.push((peer, stream, payload.clone()));
                    // Some payloads are kept for a while, so that their buffers cannot be reused at once.
                    if random.next().is_multiple_of(7) && held.len() < 5 {
                        held.push(payload);
                    }
                    if random.next().is_multiple_of(40) {
                        server.pause(peer);
                        paused.push(peer);
                    }
                }
                EndpointEvent::Closed { peer, reason, .. } => {
                    assert!(
                        matches!(reason, Closed::Remote | Closed::Truncated { .. } | Closed::Broken(_)),
                        "{reason}"
                    );
                    waiting.retain(|(to, ..)| *to != peer);
                    paused.retain(|other| *other != peer);
                }
                _ => {}
            }
        }
        let mut blocked: Vec<PeerId> = Vec::new();
        waiting.retain(|(peer, stream, payload)| {
            if blocked.contains(peer) {
                return true;
            }
            let sent = match random.next() % 2 {
                0 => server.send(*peer, ECHO, *stream, &[payload]),
                _ => server.send_shared(*peer, ECHO, *stream, &[], std::slice::from_ref(payload)),
            };
            if matches!(sent, Err(SendError::Full { .. })) {
                blocked.push(*peer);
            }
            sent.is_err() && blocked.contains(peer)
        });
        if random.next().is_multiple_of(4) {
            held.clear();
            paused.drain(..).for_each(|peer| server.resume(peer));
        }
        while let Some(event) = step_at_once(&mut client) {
            match event {
                EndpointEvent::Connected { peer, .. } => drop(state.insert(peer, (0, 0))),
                EndpointEvent::Message { peer, kind: ECHO, stream, payload } => {
                    let (_, received) = state.get_mut(&peer).unwrap();
                    assert_eq!(stream, *received, "seed {seed}");
                    check(stream, &payload);
                    *received += 1;
                    if *received == MESSAGES {
                        client.close(peer);
                    } else if random.next().is_multiple_of(2000) {
                        client.set_options(peer, options.socket.clone()).unwrap();
                    }
                }
                EndpointEvent::Closed { peer, reason: Closed::Local, retry: None, .. } => {
                    assert_eq!(state.remove(&peer), Some((MESSAGES, MESSAGES)));
                    finished += 1;
                }
                EndpointEvent::Writable { .. } => {}
                other => panic!("seed {seed}: {other:?}"),
            }
        }
        for (peer, (sent, received)) in &mut state {
            while *sent < MESSAGES && *sent < *received + 12 {
                let payload = body(*sent, random.next());
                match client.send(
                    *peer,
                    ECHO,
                    *sent,
                    &[&payload[..payload.len() / 2], &payload[payload.len() / 2..]],
                ) {
                    Ok(()) => *sent += 1,
                    Err(SendError::Full { .. } | SendError::NotConnected) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    drop((held, waiting));
    // Nothing is left behind: no peer, no memory but the blocks to read into.
    while !server.is_empty() {
        step(&mut server);
        guard.check("the end of all connections");
    }
    for endpoint in [&server, &client] {
        assert!(endpoint.receive_bytes() <= 40 << 10, "{}", endpoint.receive_bytes());
        assert_eq!(endpoint.totals().messages_in, CLIENTS as u64 * u64::from(MESSAGES));
        assert_eq!(endpoint.totals().messages_unsent, 0);
    }
    assert_eq!(server.totals().bytes_in, client.totals().bytes_out);
    assert_eq!(client.totals().bytes_in, server.totals().bytes_out);
}

fn step_at_once(endpoint: &mut fanin_message::MessageEndpoint) -> Option<EndpointEvent> {
    endpoint.poll(Some(Instant::now() + Duration::from_micros(50))).unwrap()
}

#[test]
fn random_traffic_is_neither_lost_nor_swapped() {
    if !has_backend() {
        return;
    }
    for seed in [1, 2] {
        soak(seed);
    }
}
