//! Shared keys that change while peers are connected.

use std::io::Write;
use std::net::TcpListener;
use std::time::Instant;

use crate::common::{
    connected, endpoint, frame, has_backend, listen, quick, raw, read_frame, step, until, wait_for,
};
use fanin_message::{Closed, ConnectionOptions, EndpointEvent, MessageEndpoint, RESERVED_KINDS, SharedKey};

/// ConnectionOptions with these keys, the newest first.
fn having(keys: &[&SharedKey]) -> ConnectionOptions {
    ConnectionOptions {
        key: keys.first().copied().cloned(),
        key_previous: keys.get(1).copied().cloned(),
        ..quick()
    }
}

/// Returns true if a client with the keys `theirs` is connected to a server with the keys `ours`.
fn agree(ours: &[&SharedKey], theirs: &[&SharedKey]) -> bool {
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let (_, address) = listen(&mut server, having(ours));
    client.connect("server", address, ConnectionOptions { backoff: None, ..having(theirs) });
    let (mut connected, mut refused) = (0, false);
    until(&mut [&mut server, &mut client], |number, _, event| {
        match event {
            EndpointEvent::Connected { .. } => connected += 1,
            EndpointEvent::Failed { reason, .. } => refused |= number == 1 && is_other_key(&reason),
            event => panic!("{event:?}"),
        }
        connected == 2 || refused
    });
    connected == 2
}

fn is_other_key(reason: &Closed) -> bool {
    matches!(reason, Closed::Unauthenticated("the peer has another key"))
}

#[test]
fn peers_with_a_common_key_connect() {
    if !has_backend() {
        return;
    }
    let [old, new, other] = [(); 3].map(|()| SharedKey::random().unwrap());
    let states: [&[&SharedKey]; 4] = [&[&old], &[&new, &old], &[&new], &[&other]];
    for ours in states {
        for theirs in states {
            let has_common = ours.iter().any(|key| theirs.contains(key));
            assert_eq!(agree(ours, theirs), has_common, "{} keys and {}", ours.len(), theirs.len());
        }
    }
    // A previous key alone is none.
    let alone = ConnectionOptions { key: None, ..having(&[&new, &old]) };
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    connected(&mut server, &mut client, &alone);
}

#[test]
fn keys_change_on_a_running_endpoint_and_connections_stay() {
    if !has_backend() {
        return;
    }
    let [old, new] = [(); 2].map(|()| SharedKey::random().unwrap());
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let (_, to_server) = connected(&mut server, &mut client, &having(&[&old]));
    let (_, address) = listen(&mut server, having(&[&old]));
    server.set_keys(Some(&new), Some(&old));
    client.send(to_server, 1, 0, &[b"still here"]).unwrap();
    wait_for_message(&mut [&mut server, &mut client]);
    // A caller that has the old key alone, and one that has the new key alone.
    for key in [&old, &new] {
        let mut late = endpoint("late");
        late.connect("server", address, having(&[key]));
        wait_for_connection(&mut [&mut server, &mut late]);
    }
    server.set_keys(Some(&new), None);
    let mut late = endpoint("late");
    late.connect("server", address, having(&[&old]));
    until(&mut [&mut server, &mut late], |number, _, event| match event {
        EndpointEvent::Failed { reason, .. } if number == 1 => {
            assert!(is_other_key(&reason), "{reason}");
            true
        }
        _ => false,
    });
    // Its next attempt has the key that it gets meanwhile.
    late.set_keys(Some(&new), Some(&old));
    wait_for_connection(&mut [&mut server, &mut late]);
    client.send(to_server, 1, 0, &[b"and here"]).unwrap();
    wait_for_message(&mut [&mut server, &mut client]);
}

fn wait_for_connection(endpoints: &mut [&mut MessageEndpoint]) {
    until(endpoints, |number, _, event| number == 1 && matches!(event, EndpointEvent::Connected { .. }));
}

fn wait_for_message(endpoints: &mut [&mut MessageEndpoint]) {
    until(endpoints, |_, _, event| matches!(event, EndpointEvent::Message { .. }));
}

#[test]
fn an_answer_has_a_proof_for_each_key_and_a_caller_checks_few() {
    if !has_backend() {
        return;
    }
    let [old, new] = [(); 2].map(|()| SharedKey::random().unwrap());
    let mut server = endpoint("server");
    let (_, address) = listen(&mut server, having(&[&new, &old]));
    // The greeting of a caller with a key, as it is on the wire.
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = endpoint("client");
    client.connect(
        "server",
        proxy.local_addr().unwrap(),
        ConnectionOptions { backoff: None, ..having(&[&old]) },
    );
    let (mut near, _) = proxy.accept().unwrap();
    let greeting = loop {
        assert!(client.poll(Some(Instant::now())).unwrap().is_none());
        let mut byte = [0];
        if near.peek(&mut byte).unwrap() > 0 {
            break read_frame(&mut near);
        }
    };
    let mut far = raw(address);
    far.write_all(&frame(greeting.0, 0, &greeting.2)).unwrap();
    far.set_nonblocking(true).unwrap();
    while far.peek(&mut [0]).is_err() {
        assert!(step(&mut server).is_none());
    }
    far.set_nonblocking(false).unwrap();
    let (kind, _, payload) = read_frame(&mut far);
    assert_eq!((kind, payload.len()), (RESERVED_KINDS + 4, 32 + 2 * 32));
    // The proof of the old key at the third place is not looked for.
    let mut many = payload[..32].to_vec();
    many.extend([0; 64]);
    many.extend(&payload[64..]);
    near.write_all(&frame(kind, 0, &many)).unwrap();
    let reason = wait_for(&mut client, |event| match event {
        EndpointEvent::Failed { reason, .. } => Some(reason),
        event => panic!("{event:?}"),
    });
    assert!(is_other_key(&reason), "{reason}");
}
