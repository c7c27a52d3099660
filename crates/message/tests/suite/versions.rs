//! Both sides use the highest version that both speak, and a refusal says why there is none.

use std::io::Write as _;

use crate::common::{
    endpoint_of, has_backend, hello_of, listen, quick, raw, read_frame, step, until, wait_for,
};
use fanin_message::{Closed, ConnectionOptions, EndpointEvent, SharedKey, Versions};

const fn range(lowest: u16, highest: u16) -> Versions {
    Versions { lowest, highest }
}

#[test]
fn both_sides_report_the_same_version() {
    if !has_backend() {
        return;
    }
    for key in [None, Some(SharedKey::random().unwrap())] {
        for (ours, theirs, common) in
            [(range(1, 2), range(1, 1), 1), (range(1, 1), range(1, 2), 1), (range(2, 5), range(1, 4), 4)]
        {
            let options = ConnectionOptions { key: key.clone(), ..quick() };
            let (mut server, mut client) = (endpoint_of("server", ours), endpoint_of("client", theirs));
            let (_, address) = listen(&mut server, options.clone());
            client.connect("server", address, options);
            let mut seen = [0; 2];
            until(&mut [&mut server, &mut client], |number, _, event| {
                if let EndpointEvent::Connected { version, .. } = event {
                    seen[number] = version;
                }
                seen.iter().all(|&version| version > 0)
            });
            assert_eq!(seen, [common; 2], "{ours} and {theirs}");
        }
    }
}

#[test]
fn without_a_common_version_both_sides_say_why() {
    if !has_backend() {
        return;
    }
    for key in [None, Some(SharedKey::random().unwrap())] {
        let options = ConnectionOptions { key, ..quick() };
        let (mut server, mut client) =
            (endpoint_of("server", range(1, 2)), endpoint_of("client", range(3, 4)));
        let (_, address) = listen(&mut server, options.clone());
        client.connect("server", address, options);
        let mut reasons = [const { Vec::new() }; 2];
        until(&mut [&mut server, &mut client], |number, _, event| {
            match event {
                EndpointEvent::Failed { reason: Closed::NoCommonVersion(reason), retry, .. } => {
                    // The caller tries again: its peer may be upgraded meanwhile.
                    assert_eq!(retry.is_some(), number == 1);
                    reasons[number].push(reason.to_string());
                }
                other => panic!("{number}: {other:?}"),
            }
            reasons.iter().all(|all| all.len() == 3)
        });
        let words = [
            "\"server\" speaks versions 1 to 2 of the messages, \"client\" versions 3 to 4",
            "\"client\" speaks versions 3 to 4 of the messages, \"server\" versions 1 to 2",
        ];
        for (reasons, words) in reasons.iter().zip(words) {
            let words = format!("{words}; upgrade \"server\" to a release that speaks version 3");
            assert!(reasons.iter().all(|reason| *reason == words), "{reasons:?}");
        }
        for side in [&server, &client] {
            assert!(side.totals().no_common_version >= 3, "{:?}", side.totals());
            assert_eq!((side.totals().refused, side.totals().connected), (0, 0));
        }
    }
}

#[test]
fn a_refusal_of_versions_is_checked_itself() {
    if !has_backend() {
        return;
    }
    let mut server = endpoint_of("server", range(1, 2));
    let (_, address) = listen(&mut server, quick());
    let mut peer = raw(address);
    // The answer names the versions of the server.
    peer.write_all(&hello_of([7, 9], "peer", "server", 0)).unwrap();
    let reason = wait_for(&mut server, |event| match event {
        EndpointEvent::Failed { reason, .. } => Some(reason),
        _ => None,
    });
    assert!(matches!(reason, Closed::NoCommonVersion(_)), "{reason:?}");
    assert_eq!(read_frame(&mut peer), (0xFFFF_FF06, 0, vec![1, 0, 2, 0]));
    // Only a caller is answered so.
    for payload in [&[3, 0, 4, 0][..], &[3, 0], &[]] {
        let mut peer = raw(address);
        peer.write_all(&crate::common::frame(0xFFFF_FF06, 0, payload)).unwrap();
        let reason = loop {
            if let Some(EndpointEvent::Failed { reason, .. }) = step(&mut server) {
                break reason;
            }
        };
        assert!(matches!(reason, Closed::BadHello(_)), "{payload:?}: {reason:?}");
    }
}
