//! Endpoints that are polled in turn, and their events.

#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType};

use crate::hang_guard::HangGuard;

use fanin_message::{
    Backoff, ConnectionOptions, EndpointEvent, EndpointSettings, Listener, MessageEndpoint, PeerId,
    SetupError, Timing, Versions,
};

/// Longer than any step here takes; a test that waits for it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn endpoint(name: &str) -> MessageEndpoint {
    with_limits(name, fanin_message::Limits::default())
}

pub(crate) fn with_limits(name: &str, limits: fanin_message::Limits) -> MessageEndpoint {
    with_settings(&EndpointSettings { name: name.into(), limits, ..EndpointSettings::default() })
}

/// Returns true if the kernel has the interface of this suite. Otherwise the test counts as skipped.
pub(crate) fn has_backend() -> bool {
    match MessageEndpoint::new(EndpointSettings { backend: crate::BACKEND, ..EndpointSettings::default() }) {
        Err(SetupError::Uring(error)) => {
            crate::skip::skip(format!("no io_uring: {error}"));
            false
        }
        _ => true,
    }
}

/// An endpoint that speaks these versions.
pub(crate) fn endpoint_of(name: &str, versions: Versions) -> MessageEndpoint {
    with_settings(&EndpointSettings { name: name.into(), versions, ..EndpointSettings::default() })
}

pub(crate) fn with_settings(settings: &EndpointSettings) -> MessageEndpoint {
    MessageEndpoint::new(EndpointSettings { backend: crate::BACKEND, ..settings.clone() }).unwrap()
}

/// Options with short times, to keep the tests short.
pub(crate) fn quick() -> ConnectionOptions {
    let ms = Duration::from_millis;
    ConnectionOptions {
        timing: Timing {
            greeting_max: ms(300),
            heartbeat: ms(20),
            silence_max: ms(200),
            stall_max: ms(200),
            drain_max: ms(300),
        },
        backoff: Some(Backoff { first: ms(4), longest: ms(20), attempts_max: None }),
        ..ConnectionOptions::default()
    }
}

pub(crate) fn listen(endpoint: &mut MessageEndpoint, options: ConnectionOptions) -> (Listener, SocketAddr) {
    let listener = endpoint.listen("127.0.0.1:0".parse().unwrap(), options).unwrap();
    (listener, endpoint.local_address(listener).unwrap())
}

/// The next event of one endpoint, with a short wait.
pub(crate) fn step(endpoint: &mut MessageEndpoint) -> Option<EndpointEvent> {
    endpoint.poll(Some(Instant::now() + Duration::from_millis(1))).unwrap()
}

/// Polls some endpoints in turn until `done` returns true; it receives each event with its endpoint's number.
pub(crate) fn until(
    endpoints: &mut [&mut MessageEndpoint],
    mut done: impl FnMut(usize, &mut MessageEndpoint, EndpointEvent) -> bool,
) {
    let guard = HangGuard::new();
    loop {
        for (number, endpoint) in endpoints.iter_mut().enumerate() {
            while let Some(event) = step(endpoint) {
                if done(number, endpoint, event) {
                    return;
                }
            }
        }
        guard.check("an event");
    }
}

/// Connects a client to a server; returns each one's number for the other.
pub(crate) fn connected(
    server: &mut MessageEndpoint,
    client: &mut MessageEndpoint,
    options: &ConnectionOptions,
) -> (PeerId, PeerId) {
    let (_, address) = listen(server, options.clone());
    let there = client.connect("", address, options.clone());
    let (mut here, mut done) = (None, false);
    until(&mut [server, client], |number, _, event| {
        if let EndpointEvent::Connected { peer, .. } = event {
            if number == 0 {
                here = Some(peer);
            } else {
                done = true;
            }
        }
        done && here.is_some()
    });
    (here.unwrap(), there)
}

/// A plain socket, for peers that misbehave.
pub(crate) fn raw(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A plain socket with another address of this machine, such as 127.0.0.2.
pub(crate) fn raw_from(caller: [u8; 4], address: SocketAddr) -> TcpStream {
    let fd = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&fd, &SocketAddr::from((caller, 0))).unwrap();
    rustix::net::connect(&fd, &address).unwrap();
    let stream = TcpStream::from(fd);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A frame as bytes.
pub(crate) fn frame(kind: u32, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [kind, stream, payload.len() as u32] {
        bytes.write_all(&word.to_le_bytes()).unwrap();
    }
    bytes.write_all(payload).unwrap();
    bytes
}

/// The next frame from a plain socket.
pub(crate) fn read_frame(stream: &mut TcpStream) -> (u32, u32, Vec<u8>) {
    let mut words = [0u8; 12];
    stream.read_exact(&mut words).unwrap();
    let word = |at: usize| u32::from_le_bytes(words[at..at + 4].try_into().unwrap());
    let mut payload = vec![0; word(8) as usize];
    stream.read_exact(&mut payload).unwrap();
    (word(0), word(4), payload)
}

/// A greeting in the form of a foreign peer.
pub(crate) fn hello(name: &str, expects: &str, heartbeat_ms: u32) -> Vec<u8> {
    hello_of([1, 1], name, expects, heartbeat_ms)
}

pub(crate) fn hello_of(versions: [u16; 2], name: &str, expects: &str, heartbeat_ms: u32) -> Vec<u8> {
    let mut payload = b"FNIN\x02\0".to_vec();
    payload.extend_from_slice(&heartbeat_ms.to_le_bytes());
    versions.iter().for_each(|version| payload.extend_from_slice(&version.to_le_bytes()));
    for name in [name, expects] {
        payload.extend_from_slice(&(name.len() as u16).to_le_bytes());
        payload.extend_from_slice(name.as_bytes());
    }
    frame(0xFFFF_FF01, 0, &payload)
}

/// Polls until `pick` accepts an event; other events are ignored.
pub(crate) fn wait_for<T>(
    endpoint: &mut MessageEndpoint,
    mut pick: impl FnMut(EndpointEvent) -> Option<T>,
) -> T {
    let mut found = None;
    until(&mut [endpoint], |_, _, event| {
        found = pick(event);
        found.is_some()
    });
    found.unwrap()
}
