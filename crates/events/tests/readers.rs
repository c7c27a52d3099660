//! Reads real files: identities, sources and sizes.

mod common;

use std::collections::BTreeSet;

use common::shared;
use fanin_events::{Event, Events, Fault, Format, atlas, frag, rdh, sample};

fn events(bytes: &[u8]) -> Vec<Event<'_>> {
    Events::open(bytes).unwrap().map(|event| event.unwrap()).collect()
}

fn ids(events: &[Event<'_>]) -> Vec<u64> {
    events.iter().map(|event| event.id.l1_id).collect()
}

fn sources(events: &[Event<'_>]) -> BTreeSet<u32> {
    events.iter().flat_map(|event| &event.fragments).map(|fragment| fragment.source).collect()
}

/// Smallest and largest fragment, and the bytes of all.
fn sizes(events: &[Event<'_>]) -> (usize, usize, usize) {
    let all: Vec<usize> = events.iter().flat_map(|e| &e.fragments).map(|f| f.bytes.len()).collect();
    (*all.iter().min().unwrap(), *all.iter().max().unwrap(), all.iter().sum())
}

/// Each fragment lies at its offset in the file, and the events follow one another.
fn check_places(bytes: &[u8], events: &[Event<'_>]) {
    for event in events {
        assert!(event.offset + event.size <= bytes.len() as u64);
        for fragment in &event.fragments {
            let at = usize::try_from(fragment.offset).unwrap();
            assert_eq!(&bytes[at..at + fragment.bytes.len()], fragment.bytes);
        }
    }
}

#[test]
fn km3net_sample_has_the_shape_of_an_atlas_event() {
    let bytes = sample::km3net();
    assert_eq!(Format::detect(&bytes), Some(Format::Frag));
    let events = events(&bytes);
    check_places(&bytes, &events);
    assert_eq!(ids(&events), [0, 1]);
    assert_eq!(sources(&events).len(), 453);
    assert!(events.iter().all(|event| event.fragments.len() == 453));
    assert_eq!(
        events.iter().map(|event| event.fragment_bytes().get()).collect::<Vec<_>>(),
        [1_030_362, 1_035_852]
    );
    // A frame is 56 bytes of header and hits of six bytes each.
    assert!(events.iter().flat_map(|e| &e.fragments).all(|f| (f.bytes.len() - 56) % 6 == 0));
}

#[test]
fn bes3_sample_is_an_atlas_bytestream() {
    let bytes = sample::bes3();
    assert_eq!(Format::detect(&bytes), Some(Format::Atlas));
    let events = events(&bytes);
    check_places(&bytes, &events);
    assert_eq!(
        ids(&events),
        [199_781, 199_784, 199_785, 199_787, 199_788, 199_786, 199_790, 199_789, 199_793, 199_794]
    );
    assert!(events.iter().all(|event| event.id.run == Some(91_668) && event.fragments.len() == 42));
    let (min, max, _) = sizes(&events);
    assert_eq!((min, max), (84, 1932));
    // The values of the file's own record and header for the first event.
    assert_eq!((events[0].offset, events[0].size), (108, 0xa1d * 4));
    assert_eq!((events[0].fragments[0].source, events[0].fragments[0].bytes.len()), (0xa1_0000, 0x3e * 4));
}

#[test]
fn bes3_robs_are_the_same_in_both_forms() {
    let Some(container) = shared("frag/bes3_run91668_rob.frag") else { return };
    let raw = sample::bes3();
    let (raw, container) = (events(&raw), events(&container));
    assert_eq!(ids(&raw), ids(&container));
    for (a, b) in raw.iter().zip(&container) {
        let a: Vec<_> = a.fragments.iter().map(|f| (f.source, f.bytes)).collect();
        let b: Vec<_> = b.fragments.iter().map(|f| (f.source, f.bytes)).collect();
        assert_eq!(a, b);
    }
}

#[test]
fn every_bes3_rob_holds_a_whole_rod() {
    let bytes = sample::bes3();
    for event in events(&bytes) {
        for fragment in event.fragments {
            let rob = atlas::header(fragment.bytes, 0, fragment.bytes.len()).unwrap();
            let rod = atlas::rod(fragment.bytes, rob.payload, rob.payload_end).unwrap();
            assert_eq!(rod.source, fragment.source);
            assert_eq!(rod.data.len() + rod.status.len() + 12 * 4 + 8 * 4, fragment.bytes.len());
            // The event filter's own fragment has no L1 ID, and the newest detector counts from one.
            let extra = match fragment.source >> 16 {
                0x7c => continue,
                0xa8 => 1,
                _ => 0,
            };
            assert_eq!(u64::from(rod.l1_id), event.id.l1_id + extra);
        }
    }
}

#[test]
fn the_whole_km3net_files_are_read() {
    for (name, count, fragments, bytes_min, bytes_max) in [
        ("frag/km3net_run25291_L1.frag", 3, 3 * 453, 326, 8318),
        ("frag/km3net_run25291_SN.frag", 99, 44_778, 56, usize::MAX),
    ] {
        let Some(bytes) = shared(name) else { continue };
        let events = events(&bytes);
        check_places(&bytes, &events);
        assert_eq!(events.len(), count, "{name}");
        if name.contains("L1") {
            assert_eq!(events.iter().map(|e| e.fragments.len()).sum::<usize>(), fragments);
        }
        let (min, max, _) = sizes(&events);
        assert_eq!(min, bytes_min, "{name}");
        assert!(max <= bytes_max, "{name}: {max}");
    }
}

#[test]
fn lhcb_banks_are_the_same_in_both_forms() {
    let names = ("lhcb/MiniBrunel_2018_MinBias_FTv4_DIGI.mdf", "frag/lhcb_minbias_banks.frag");
    let (Some(raw), Some(container)) = (shared(names.0), shared(names.1)) else { return };
    assert_eq!(Format::detect(&raw), Some(Format::Mdf));
    let raw_events = events(&raw);
    check_places(&raw, &raw_events);
    assert_eq!(raw_events.len(), 10);
    assert_eq!(ids(&raw_events)[..4], [0x1771, 0x1772, 0x1773, 0x1774]);
    assert!(raw_events.iter().all(|event| event.id.run == Some(0x66_858d)));
    assert_eq!(sizes(&raw_events).0, 8);
    let report = fanin_events::verify(&raw).unwrap();
    assert_eq!((report.checksums_checked, report.fault_count), (10, 0), "{report:?}");
    // The container has all banks except those with the simulation's truth.
    let container = events(&container);
    assert_eq!(container.len(), 10);
    for (raw, event) in raw_events.iter().zip(&container) {
        let detector = raw.fragments.iter().filter(|f| !matches!(f.source >> 16, 0x20 | 0x21));
        let detector: Vec<_> = detector.map(|f| (f.source, f.bytes)).collect();
        assert_eq!(detector, event.fragments.iter().map(|f| (f.source, f.bytes)).collect::<Vec<_>>());
    }
}

#[test]
fn a_compressed_mdf_file_is_refused_with_the_place() {
    let Some(bytes) = shared("lhcb/upgrade_mc_minbias_scifi_v5.mdf") else { return };
    let error = Events::open(&bytes).unwrap().next().unwrap().unwrap_err();
    assert_eq!((error.offset, error.fault), (16, Fault::Compressed { method: 1 }));
    assert_eq!(
        error.to_string(),
        "at byte 16: the events are compressed inside the file (method 1), which is not supported"
    );
}

#[test]
fn alice_pages_become_heartbeat_frames() {
    let Some(bytes) = shared("alice/12_links_2hbf.raw") else { return };
    assert_eq!(Format::detect(&bytes), Some(Format::Rdh));
    let events = events(&bytes);
    check_places(&bytes, &events);
    assert_eq!(ids(&events), [0x3e39_0f80, 0x3e39_0f81]);
    assert!(events.iter().all(|event| event.fragments.len() == 12));
    // ITS is system 32.
    assert!(sources(&events).iter().all(|source| source >> 16 == 32));
    assert_eq!(events.iter().map(|event| event.size).sum::<u64>(), bytes.len() as u64);
    let first = rdh::page(&bytes, 0).unwrap();
    assert_eq!((first.size, first.counter, first.stop), (0x12f0, 0, false));
}

#[test]
fn files_of_other_formats_are_refused() {
    let refused = |bytes| Events::open(bytes).unwrap_err().to_string();
    assert!(refused(b"\x89HDF\r\n\x1a\n").contains("an HDF5 file, which is only written here; ATLAS"));
    assert!(refused(b"root\0\0").contains("it looks like a ROOT file; ATLAS bytestream, LHCb MDF"));
    assert!(refused(b"none").contains("at byte 0: no known format begins with 0x656e6f6e; ATLAS"));
    assert_eq!(Events::open(b"").unwrap_err().to_string(), "at byte 0: the file is empty");
    let mut empty = Events::open(b"DAQFRAG1").unwrap();
    assert!(empty.next().is_none());
}

#[test]
fn a_lying_count_takes_no_memory() {
    let mut bytes = b"DAQFRAG1".to_vec();
    bytes.extend(frag::EVENT.to_le_bytes());
    bytes.extend(u32::MAX.to_le_bytes());
    bytes.extend(7_u64.to_le_bytes());
    let error = Events::open(&bytes).unwrap().next().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "at byte 24: the table of an event's fragments needs 34359738360 bytes, 0 are left"
    );
}

#[test]
fn event_format_version_five_is_refused() {
    let mut bytes = sample::bes3();
    bytes[108 + 15] = 5;
    let error = Events::open(&bytes).unwrap().next().unwrap().unwrap_err();
    assert_eq!(error.offset, 108 + 12);
    assert_eq!(error.fault, Fault::Version { item: "a full event", actual: 0x0500_0000 });
}
