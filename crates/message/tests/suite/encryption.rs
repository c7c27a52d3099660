//! TLS: certificates on both sides, the names in them, and the reaction to other or missing certificates.

use std::io::Write;
use std::time::Duration;

use crate::common::{endpoint, frame, has_backend, hello, listen, quick, raw, until, wait_for};
use fanin_message::{Closed, ConnectionOptions, EndpointEvent, Payload, Tls, TlsError};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        Self::called("one authority")
    }

    fn called(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Options of a peer with a certificate for `name` from this authority, which trusts `other`.
    fn options(&self, name: &str, other: &Self) -> ConnectionOptions {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        let tls = Tls::from_pem(certificate.as_bytes(), key.serialize_pem().as_bytes(), other.pem.as_bytes())
            .unwrap();
        let mut options = ConnectionOptions { tls: Some(tls), backoff: None, ..quick() };
        // Handshakes take long on a shared processor.
        options.timing.greeting_max = Duration::from_secs(5);
        options
    }
}

#[test]
fn messages_of_all_sizes_pass_encrypted_and_the_end_is_orderly() {
    if !has_backend() {
        return;
    }
    let authority = Authority::new();
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let (_, address) = listen(&mut server, authority.options("server", &authority));
    let to_server = client.connect("server", address, authority.options("client", &authority));
    let body: Vec<u8> = (0..3_000_000u32).map(|i| (i * 13 + i / 241) as u8).collect();
    let sizes = [0, 5, 4096, 16_384, 100_000, 131_072, 2_999_999];
    let (mut received, mut ends) = (0, Vec::new());
    until(&mut [&mut server, &mut client], |number, endpoint, event| {
        match event {
            EndpointEvent::Connected { peer, .. } if number == 1 => {
                for size in sizes {
                    endpoint.send(peer, 1, 0, &[&body[..size]]).unwrap();
                    endpoint.send_shared(peer, 2, 0, b"x", &[Payload::from(body[..size].to_vec())]).unwrap();
                }
            }
            EndpointEvent::Message { peer, kind, payload, .. } if number == 0 => {
                let size = sizes[received / 2];
                assert_eq!(kind as usize, received % 2 + 1);
                assert!(payload[received % 2..] == body[..size], "{size}");
                received += 1;
                if received == 2 * sizes.len() {
                    endpoint.send_shared(peer, 3, 0, &[], &[payload]).unwrap();
                }
            }
            EndpointEvent::Message { peer, kind: 3, payload, .. } => {
                assert_eq!(payload.len(), 3_000_000);
                endpoint.close(peer);
            }
            EndpointEvent::Closed { reason, .. } => ends.push((number, reason)),
            EndpointEvent::Failed { reason, .. } => panic!("{reason}"),
            _ => {}
        }
        ends.len() == 2
    });
    ends.sort_by_key(|(number, _)| *number);
    assert_eq!(ends, [(0, Closed::Remote), (1, Closed::Local)]);
    assert_eq!(client.counters(to_server), None);
    assert_eq!(server.totals().bytes_in, client.totals().bytes_out);
}

#[test]
fn certificates_are_checked_on_both_sides() {
    if !has_backend() {
        return;
    }
    let (ours, theirs) = (Authority::new(), Authority::called("another authority"));
    // The server's certificate and the client's, the authority that each trusts, and the refusing side.
    let cases = [
        (ours.options("server", &ours), theirs.options("client", &ours), [Some("UnknownIssuer"), None]),
        (theirs.options("server", &ours), ours.options("client", &ours), [None, Some("UnknownIssuer")]),
        (ours.options("stranger", &ours), ours.options("client", &ours), [None, Some("not valid for name")]),
        (
            ours.options("server", &ours),
            ours.options("stranger", &ours),
            [Some("\"client\" of its greeting"), None],
        ),
    ];
    for (i, (servers, clients, complaints)) in cases.into_iter().enumerate() {
        let (mut server, mut client) = (endpoint("server"), endpoint("client"));
        let (_, address) = listen(&mut server, servers);
        client.connect("server", address, clients);
        let mut ends: [Option<Closed>; 2] = [None, None];
        until(&mut [&mut server, &mut client], |number, _, event| {
            match event {
                EndpointEvent::Failed { reason, retry: None, .. } => ends[number] = Some(reason),
                other => panic!("case {i}: {other:?}"),
            }
            ends.iter().all(Option::is_some)
        });
        for (end, complaint) in ends.iter().zip(complaints) {
            if let Some(complaint) = complaint {
                let Some(Closed::Tls(words)) = end else { panic!("case {i}: {ends:?}") };
                assert!(words.contains(complaint), "case {i}: {words}");
            }
        }
        assert!(server.totals().connected + client.totals().connected == 0);
    }
}

#[test]
fn unencrypted_peers_are_refused() {
    if !has_backend() {
        return;
    }
    let authority = Authority::new();
    let mut server = endpoint("server");
    let (_, address) = listen(&mut server, authority.options("server", &authority));
    for bytes in [hello("client", "server", 0), frame(1, 2, b"plain"), b"GET / HTTP/1.1\r\n\r\n".to_vec()] {
        let mut peer = raw(address);
        peer.write_all(&bytes).unwrap();
        let reason = wait_for(&mut server, |event| match event {
            EndpointEvent::Failed { reason, .. } => Some(reason),
            _ => None,
        });
        assert!(matches!(reason, Closed::Tls(_)), "{reason:?}");
    }
    assert_eq!(server.totals().refused, 3);
}

#[test]
fn an_end_without_farewell_is_named() {
    if !has_backend() {
        return;
    }
    let authority = Authority::new();
    let (mut server, mut client) = (endpoint("server"), endpoint("client"));
    let (_, address) = listen(&mut server, authority.options("server", &authority));
    // A proxy between the two cuts the connection.
    let between = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let front = between.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (client, _) = between.accept().unwrap();
        let server = std::net::TcpStream::connect(address).unwrap();
        let (mut up, mut down) =
            ((client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client));
        let pump = std::thread::spawn(move || std::io::copy(&mut up.0, &mut up.1));
        // Forwards enough for the handshake and the message, and then nothing more.
        let mut buffer = [0; 65_536];
        let mut seen = 0;
        while seen < 50_000 {
            let bytes = std::io::Read::read(&mut down.0, &mut buffer).unwrap();
            seen += bytes;
            down.1.write_all(&buffer[..bytes]).unwrap();
        }
        down.1.shutdown(std::net::Shutdown::Both).unwrap();
        down.0.shutdown(std::net::Shutdown::Both).unwrap();
        drop(pump.join());
    });
    client.connect("server", front, authority.options("client", &authority));
    let mut end = None;
    until(&mut [&mut server, &mut client], |number, endpoint, event| {
        match event {
            EndpointEvent::Connected { peer, .. } if number == 0 => {
                for _ in 0..5 {
                    endpoint.send(peer, 1, 0, &[&[7; 12_000]]).unwrap();
                }
            }
            EndpointEvent::Closed { reason, .. } if number == 1 => end = Some(reason),
            _ => {}
        }
        end.is_some()
    });
    let end = end.unwrap();
    assert!(
        matches!(&end, Closed::Tls(words) if words.contains("close_notify"))
            || matches!(end, Closed::Truncated { .. })
    );
    thread.join().unwrap();
}

#[test]
fn texts_that_are_no_certificates_are_named() {
    if !has_backend() {
        return;
    }
    let authority = Authority::new();
    let key = KeyPair::generate().unwrap();
    let pem = authority.pem.as_bytes();
    let error =
        |certificates, key: &[u8], authorities| Tls::from_pem(certificates, key, authorities).unwrap_err();
    assert_eq!(error(b"", key.serialize_pem().as_bytes(), pem), TlsError::Empty("certificates"));
    assert!(matches!(error(pem, b"nothing", pem), TlsError::Pem { item: "key", .. }));
    let broken = b"-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
    assert!(matches!(
        error(pem, key.serialize_pem().as_bytes(), broken),
        TlsError::Pem { item: "authorities", .. }
    ));
    assert!(matches!(error(pem, key.serialize_pem().as_bytes(), pem), TlsError::Unusable(_)), "another key");
}
