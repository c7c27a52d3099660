//! A collector's processors, good and bad, on real sockets and real shared memory.

#[path = "../../../tests/hang_guard.rs"]
mod hang_guard;
#[path = "../../../tests/skip.rs"]
mod skip;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fanin_dataflow::{Decision, L1Id, Selection};
use fanin_node::data::{Chunk, Data, append};
use fanin_node::unit::client::{ProcessorEvent, serve};
use fanin_node::unit::server::{Happening, UnitServer};
use fanin_units::Ratio;
use hang_guard::HangGuard;
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;

fn start(name: &str, units: u16) -> (UnitServer, PathBuf) {
    let path = std::env::temp_dir().join(format!("fanin-units-{name}-{}.socket", std::process::id()));
    let server =
        UnitServer::start(&path, units, None, &(Arc::new(|| {}) as Arc<dyn Fn() + Send + Sync>)).unwrap();
    (server, path)
}

fn next(server: &UnitServer) -> Happening {
    let guard = HangGuard::new();
    loop {
        if let Some(happening) = server.poll() {
            return happening;
        }
        guard.check("a happening of the server");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn event(sizes: &[usize]) -> Data {
    let mut bytes = Vec::new();
    for (source, &size) in sizes.iter().enumerate() {
        append(&mut bytes, source as u32, 0, &vec![source as u8; size]);
    }
    Data::new(Chunk::from(bytes))
}

fn decide(event: &ProcessorEvent<'_>) -> Decision {
    assert!(event.fragments().all(|fragment| fragment.is_sound()));
    assert!(event.fragment(event.len()).is_none());
    match event.len() {
        0 => Decision::Reject,
        1 => Decision::Collect(Selection::Readouts(Ratio::new(250_000))),
        2 => Decision::Collect(Selection::Rest),
        count => {
            let sizes: Vec<usize> = event.fragments().map(|fragment| fragment.bytes.len()).collect();
            assert_eq!(sizes.len(), count);
            if sizes[2] > 1000 { Decision::Accept } else { Decision::Reject }
        }
    }
}

#[test]
fn a_processor_of_another_user_is_rejected_even_if_the_socket_lets_it_connect() {
    let stranger = Uid::from_raw(65_534);
    if !geteuid().is_root() {
        return skip::skip("only root has processes of other users");
    }
    let (server, path) = start("user", 1);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let there = path.clone();
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // This thread alone becomes another user.
        set_thread_res_uid(stranger, stranger, stranger).unwrap();
        sender.send(serve(&there, Some(0), decide)).unwrap();
    });
    let result = ended.recv_timeout(Duration::from_secs(20)).expect("it is served");
    assert!(result.is_err());
    let ours = std::thread::spawn(move || serve(&path, Some(0), decide));
    assert!(matches!(next(&server), Happening::Up { unit: 0, .. }));
    drop(server);
    ours.join().unwrap().unwrap();
}

#[test]
fn events_are_seen_and_decided_whatever_their_size() {
    let (server, path) = start("good", 1);
    let client = std::thread::spawn(move || serve(&path, Some(0), decide));
    assert!(matches!(next(&server), Happening::Up { unit: 0, .. }));
    let cases = [
        (event(&[]), Decision::Reject),
        (event(&[5]), Decision::Collect(Selection::Readouts(Ratio::new(250_000)))),
        (event(&[0, 9]), Decision::Collect(Selection::Rest)),
        (event(&[1, 2, 3]), Decision::Reject),
        // More than the memory so far, twice.
        (event(&[1, 3_000_001, 3_000_000]), Decision::Accept),
        (event(&[40_000_000, 7, 1001, 0]), Decision::Accept),
        (event(&[1, 2, 1000]), Decision::Reject),
    ];
    for (number, (data, expected)) in cases.into_iter().enumerate() {
        let id = L1Id(u64::MAX - number as u64);
        server.process(0, id, number as u16, data);
        match next(&server) {
            Happening::Decided { unit: 0, event, decision } => assert_eq!((event, decision), (id, expected)),
            other => panic!("{other:?}"),
        }
    }
    drop(server);
    client.join().unwrap().unwrap();
}

#[test]
fn an_invalid_unit_is_lost_and_does_no_harm() {
    let (server, path) = start("bad", 2);
    let good_path = path.clone();
    let good = std::thread::spawn(move || serve(&good_path, Some(1), decide));
    assert!(matches!(next(&server), Happening::Up { unit: 1, .. }));
    // Not a hello, a hello of another version, a unit that does not exist: none is reported.
    for (kind, version, unit) in [(9_u32, 1_u64, 0_u64), (1, 7, 0), (1, 1, 5)] {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(&message(kind, 2, versions(version, version), unit)).unwrap();
    }
    // It decides about an event that it does not have.
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&message(1, 2, versions(1, 1), 65_535)).unwrap();
    assert!(matches!(next(&server), Happening::Up { unit: 0, .. }));
    stream.write_all(&message(4, 1, 12, 0)).unwrap();
    match next(&server) {
        Happening::Lost { unit: 0, why } => assert!(why.contains("does not have"), "{why}"),
        other => panic!("{other:?}"),
    }
    // It goes away in the middle of a message.
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&message(1, 2, versions(1, 1), 0)).unwrap();
    assert!(matches!(next(&server), Happening::Up { unit: 0, .. }));
    stream.write_all(&[4, 0, 0]).unwrap();
    drop(stream);
    assert!(matches!(next(&server), Happening::Lost { unit: 0, .. }));

    server.process(1, L1Id(3), 0, event(&[]));
    assert!(matches!(next(&server), Happening::Decided { unit: 1, decision: Decision::Reject, .. }));
    drop(server);
    good.join().unwrap().unwrap();
}

/// Versions in a greeting, from the lowest to the highest.
fn versions(lowest: u64, highest: u64) -> u64 {
    lowest | highest << 16
}

fn receive(stream: &mut UnixStream) -> Vec<u8> {
    let mut bytes = vec![0; 32];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Units of other releases, each with the versions that it speaks. The collector speaks version 1.
#[test]
fn units_and_their_collector_agree_on_a_version() {
    let (server, path) = start("versions", 1);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for range in [versions(1, 1), versions(1, 5), versions(0, 9)] {
        let mut unit = UnixStream::connect(&path).unwrap();
        unit.write_all(&message(1, 2, range, 65_535)).unwrap();
        assert!(matches!(next(&server), Happening::Up { unit: 0, version: 1, .. }), "{range:#x}");
        assert_eq!(receive(&mut unit), message(1, 2, versions(1, 1), 0));
        server.process(0, L1Id(7), 0, event(&[3]));
        assert_eq!(receive(&mut unit)[..4], [2, 0, 0, 0], "the memory for the event");
        assert_eq!(receive(&mut unit)[..4], [3, 0, 0, 0], "the event");
        unit.write_all(&message(4, 1, 7, 0)).unwrap();
        assert!(matches!(next(&server), Happening::Decided { decision: Decision::Accept, .. }));
        drop(unit);
        assert!(matches!(next(&server), Happening::Lost { unit: 0, .. }));
    }
    // Refused: a later release that speaks no version 1, invalid ranges, and other layouts.
    let wrong = [(2, versions(2, 3)), (2, versions(3, 1)), (2, 1 << 32 | versions(1, 1)), (1, 0), (3, 0)];
    for (layout, range) in wrong {
        let mut unit = UnixStream::connect(&path).unwrap();
        unit.write_all(&message(1, layout, range, 65_535)).unwrap();
        assert_eq!(receive(&mut unit), message(5, 2, versions(1, 1), 0));
        assert_eq!(unit.read(&mut [0]).unwrap(), 0, "the collector ends the connection");
    }
}

/// Collectors of other releases. This side's unit speaks version 1.
#[test]
fn a_unit_says_in_one_sentence_why_it_is_refused() {
    let folder = std::env::temp_dir().join(format!("fanin-units-other-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("collector-4.socket");
    let listener = UnixListener::bind(&path).unwrap();
    let later = "\"processor\" speaks version 1 of the messages, \"collector-4\" versions 2 to 3; upgrade \"processor\" to a \
                 release that speaks version 2";
    let former = "it expects no unit with this number, or is stopping";
    let answers = [
        (message(5, 2, versions(2, 3), 0), later),
        (message(1, 2, versions(2, 3), 0), later),
        (Vec::new(), former),
        (message(5, 2, versions(1, 1), 0), "a refusal of a version that it speaks"),
        (message(3, 0, 1, 0), "no valid greeting"),
    ];
    for (answer, words) in answers {
        let socket = path.clone();
        let unit = std::thread::spawn(move || serve(&socket, Some(2), decide));
        let (mut stream, _) = listener.accept().unwrap();
        let greeting = receive(&mut stream);
        let expected = message(1, 2, versions(1, 1), 2);
        assert_eq!(greeting[..24], expected[..24]);
        stream.write_all(&answer).unwrap();
        drop(stream);
        let error = unit.join().unwrap().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    // A later release that still speaks version 1 serves it.
    let socket = path.clone();
    let unit = std::thread::spawn(move || serve(&socket, Some(2), decide));
    let (mut stream, _) = listener.accept().unwrap();
    receive(&mut stream);
    stream.write_all(&message(1, 2, versions(1, 4), 2)).unwrap();
    drop(stream);
    unit.join().unwrap().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

fn message(kind: u32, small: u32, event: u64, first: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&kind.to_le_bytes());
    bytes.extend_from_slice(&small.to_le_bytes());
    for number in [event, first, 0] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}
