//! The limit of open files. A separate test file, since the limit applies to the whole process.

mod common;
#[path = "../../../tests/hang_guard.rs"]
mod hang_guard;
#[path = "../../../tests/skip.rs"]
mod skip;

use std::time::{Duration, Instant};

use common::{endpoint, listen, quick, raw, until};
use fanin_message::{ConnectionOptions, EndpointEvent, Greeting, NotAccepting};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub(crate) const BACKEND: fanin_message::Backend = fanin_message::Backend::Epoll;

#[test]
fn at_the_limit_of_open_files_accepting_stops_with_an_error_and_goes_on_by_itself() {
    let mut server = endpoint("server");
    let (listener, address) = listen(&mut server, ConnectionOptions { greeting: Greeting::Bare, ..quick() });
    let mut peers: Vec<_> = (0..40).map(|_| raw(address)).collect();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(open + 10), maximum: before.maximum }).unwrap();
    let mut connected = 0;
    let reason = loop {
        match server.poll(Some(Instant::now() + common::PATIENCE)).unwrap() {
            Some(EndpointEvent::Connected { .. }) => connected += 1,
            Some(EndpointEvent::NotAccepting { listener: at, reason }) => {
                assert_eq!(at, listener);
                break reason;
            }
            other => panic!("{other:?}"),
        }
    };
    let NotAccepting::System { error, open } = reason else { panic!("{reason:?}") };
    assert_eq!((error.0, open), (libc::EMFILE, connected), "{error}");
    assert!((5..15).contains(&connected), "{connected}");
    // One attempt a second and no second report: three calls return at their deadlines, without an event.
    for _ in 0..3 {
        assert!(server.poll(Some(Instant::now() + Duration::from_millis(100))).unwrap().is_none());
    }
    assert_eq!(server.totals().connected, connected as u64);
    // Each peer that leaves makes room for one, and the limit is reached again: this is not reported again.
    let mut held = Vec::new();
    for _ in 0..10 {
        peers.remove(0);
        // This side's descriptor stays in use, as at a remote peer.
        held.push(std::fs::File::open("/dev/null").unwrap());
        let (mut ended, mut more) = (false, false);
        until(&mut [&mut server], |_, _, event| {
            match event {
                EndpointEvent::Connected { .. } => more = true,
                EndpointEvent::Closed { .. } => ended = true,
                other => panic!("{other:?}"),
            }
            ended && more
        });
        connected += 1;
        let further = server.poll(Some(Instant::now() + Duration::from_millis(5))).unwrap();
        assert!(further.is_none(), "{further:?}");
    }
    // Peers that leave make room for waiting ones.
    peers.drain(..10);
    let mut more = 0;
    until(&mut [&mut server], |_, _, event| {
        more += usize::from(matches!(event, EndpointEvent::Connected { .. }));
        connected + more == 40
    });
    setrlimit(Resource::Nofile, before).unwrap();
}
