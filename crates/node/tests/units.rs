//! A collector's processors, good and bad, on real sockets and real shared memory.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanin_dataflow::{Decision, L1Id, Selection};
use fanin_node::data::{Chunk, Data, append};
use fanin_node::unit::client::{ProcessorEvent, serve};
use fanin_node::unit::server::{Happening, UnitServer};
use fanin_units::Ratio;

fn start(name: &str, units: u16) -> (UnitServer, PathBuf) {
    let path = std::env::temp_dir().join(format!("fanin-units-{name}-{}.socket", std::process::id()));
    let server =
        UnitServer::start(&path, units, None, &(Arc::new(|| {}) as Arc<dyn Fn() + Send + Sync>)).unwrap();
    (server, path)
}

fn next(server: &UnitServer) -> Happening {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        if let Some(happening) = server.poll() {
            return happening;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("nothing happened");
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
    for (kind, version, unit) in [(9_u32, 1_u32, 0_u64), (1, 7, 0), (1, 1, 5)] {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(&message(kind, version, 0, unit)).unwrap();
    }
    // It decides about an event that it does not have.
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&message(1, 1, 0, 65_535)).unwrap();
    assert!(matches!(next(&server), Happening::Up { unit: 0, .. }));
    stream.write_all(&message(4, 1, 12, 0)).unwrap();
    match next(&server) {
        Happening::Lost { unit: 0, why } => assert!(why.contains("does not have"), "{why}"),
        other => panic!("{other:?}"),
    }
    // It goes away in the middle of a message.
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&message(1, 1, 0, 0)).unwrap();
    assert!(matches!(next(&server), Happening::Up { unit: 0, .. }));
    stream.write_all(&[4, 0, 0]).unwrap();
    drop(stream);
    assert!(matches!(next(&server), Happening::Lost { unit: 0, .. }));

    server.process(1, L1Id(3), 0, event(&[]));
    assert!(matches!(next(&server), Happening::Decided { unit: 1, decision: Decision::Reject, .. }));
    drop(server);
    good.join().unwrap().unwrap();
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
