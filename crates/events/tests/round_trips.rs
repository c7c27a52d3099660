//! Reading returns exactly the written bytes.

mod common;

use common::shared;
use fanin_events::atlas::{
    AtlasWriter, ChecksumType, EventHeader, FileEnd, FileHeader, WriteError, encode_event, header, status,
};
use fanin_events::convert::{Pairing, compare, to_atlas, to_frag};
use fanin_events::{Events, Fault, Fragment, ReadError, frag, sample, verify};
use proptest::prelude::*;

fn atlas_from(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    to_atlas(bytes, &FileHeader::default(), &mut out).unwrap();
    out
}

fn frag_from(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    to_frag(bytes, &mut out).unwrap();
    out
}

#[test]
fn km3net_through_the_atlas_format_and_back() {
    let original = sample::km3net();
    let atlas = atlas_from(&original);
    let report = verify(&atlas).unwrap();
    assert_eq!((report.fault_count, report.events, report.fragments), (0, 2, 906));
    // Each event has a checksum, and each of its fragments.
    assert_eq!((report.checksums_checked, report.checksums_unchecked), (2 + 906, 0));
    assert_eq!(frag_from(&atlas), original);
    let found = compare(&atlas, &original, Pairing::SameL1Id).unwrap();
    assert!(found.is_same());
    assert_eq!((found.same, found.same_bytes), (906, 2_066_214));
}

#[test]
fn bes3_robs_keep_their_own_headers() {
    let original = sample::bes3();
    let container = frag_from(&original);
    if let Some(made_by_others) = shared("frag/bes3_run91668_rob.frag") {
        assert!(container == made_by_others);
    }
    // The second conversion: the ROBs of version 3 are unchanged in events of version 4.
    let again = atlas_from(&original);
    let report = verify(&again).unwrap();
    assert_eq!((report.fault_count, report.events, report.checksums_checked), (0, 10, 10));
    assert_eq!(frag_from(&again), container);
    assert!(compare(&again, &original, Pairing::SameL1Id).unwrap().is_same());
    assert_eq!(atlas_from(&again), again);
}

#[test]
fn lhcb_and_alice_files_through_the_atlas_format() {
    for name in ["lhcb/MiniBrunel_2018_MinBias_FTv4_DIGI.mdf", "alice/12_links_2hbf.raw"] {
        let Some(original) = shared(name) else { continue };
        let atlas = atlas_from(&original);
        assert_eq!(verify(&atlas).unwrap().fault_count, 0, "{name}");
        assert!(compare(&atlas, &original, Pairing::SameL1Id).unwrap().is_same(), "{name}");
        assert_eq!(frag_from(&atlas), frag_from(&original), "{name}");
    }
}

#[test]
fn real_files_have_no_faults() {
    let report = verify(&sample::bes3()).unwrap();
    assert_eq!((report.fault_count, report.events, report.fragments), (0, 10, 420));
    // Events are stored when they are complete, not in the order of their L1 IDs.
    assert_eq!((report.out_of_order, report.l1_ids_absent), (2, 4));
    // One detector counts from one, and the event filter's own fragment has no L1 ID.
    let offsets: Vec<_> = report.l1_id_offsets.iter().map(|o| (o.source, o.offset, o.fragments)).collect();
    assert_eq!((offsets, report.fragments_without_l1_id), (vec![(0xa8_0010, 1, 10)], 10));
    for name in [
        "frag/km3net_run25291_L1.frag",
        "frag/km3net_run25291_SN.frag",
        "frag/bes3_run91668_rob.frag",
        "frag/lhcb_minbias_banks.frag",
        "lhcb/MiniBrunel_2018_MinBias_FTv4_DIGI.mdf",
        "alice/12_links_2hbf.raw",
    ] {
        let Some(bytes) = shared(name) else { continue };
        assert_eq!(verify(&bytes).unwrap().faults, [], "{name}");
    }
}

#[test]
fn a_replayed_file_is_compared_by_turns() {
    let input = sample::bes3();
    let events: Vec<_> = Events::open(&input).unwrap().map(Result::unwrap).collect();
    let mut writer = AtlasWriter::new(Vec::new(), &FileHeader::default()).unwrap();
    for l1_id in [0_u32, 13, 25] {
        let fragments = &events[l1_id as usize % events.len()].fragments;
        writer
            .write_event(&EventHeader { l1_id, ..EventHeader::default() }, fragments.iter().copied())
            .unwrap();
    }
    let output = writer.finish(&FileEnd::default()).unwrap();
    let found = compare(&output, &input, Pairing::Cycle).unwrap();
    assert!(found.is_same() && found.events == 3 && found.same == 3 * 42);
    assert_eq!(compare(&output, &input, Pairing::SameL1Id).unwrap().unknown_events, 3);
}

#[test]
fn differences_are_counted_by_kind() {
    type Fragments<'a> = &'a [(u32, &'a [u8])];
    let container = |events: &[(u64, Fragments<'_>)]| {
        let mut writer = frag::FragWriter::new(Vec::new()).unwrap();
        for (id, fragments) in events {
            writer.write_event(*id, fragments.iter().copied()).unwrap();
        }
        writer.finish().unwrap()
    };
    let input = container(&[(1, &[(1, b"a"), (2, b"b"), (3, b"c")])]);
    let output = container(&[(1, &[(1, b"a"), (2, b"x"), (4, b"d")]), (5, &[])]);
    let found = compare(&output, &input, Pairing::SameL1Id).unwrap();
    assert_eq!((found.same, found.different, found.added, found.absent), (1, 1, 1, 1));
    assert_eq!((found.unknown_events, found.first), (1, Some(8 + 16 + 24 + 1)));
    assert!(!found.is_same());
}

#[test]
fn a_fragment_that_never_came_is_marked() {
    let mut bytes = Vec::new();
    let gone = Fragment { source: 5, status: status::MISSING, offset: 0, bytes: &[] };
    encode_event(&EventHeader { l1_id: 3, ..EventHeader::default() }, [gone], &mut bytes).unwrap();
    let event = Events::open(&bytes).unwrap().next().unwrap().unwrap();
    assert_eq!((event.fragments[0].status, event.fragments[0].bytes.len()), (status::MISSING, 0));
    assert_eq!(verify(&bytes).unwrap().fault_count, 0);
}

#[test]
fn headers_are_laid_out_as_the_definition_says() {
    let event = EventHeader {
        l1_id: 0x0100_0002,
        bc_id: 3,
        run: 4,
        global_id: 5,
        time_seconds: 6,
        time_nanoseconds: 7,
        run_type: 8,
        lumi_block: 9,
        trigger_type: 10,
        source: 11,
        status: 12,
        l1_info: &[13, 14],
        filter_info: &[15],
        stream_tag: "debug",
        ..EventHeader::default()
    };
    let mut bytes = Vec::new();
    let data = Fragment { source: 16, status: 17, offset: 0, bytes: b"hello" };
    encode_event(&event, [data], &mut bytes).unwrap();
    let words: Vec<u32> = bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(
        words[..26],
        [
            0xaa12_34aa,
            words.len() as u32,
            26,
            0x0400_0000,
            11,
            1,
            12, // header and status
            2,
            6,
            7,
            5,
            8,
            4,
            9,
            0x0100_0002,
            3,
            10, // checksum type and the event
            2,
            13,
            14,
            0,
            1,
            15,
            2,
            u32::from_le_bytes(*b"debu"),
            u32::from(b'g'),
        ]
    );
    assert_eq!(
        words[26..48],
        [
            0xdd12_34dd,
            25,
            8,
            0x0400_0000,
            16,
            1,
            17,
            2, // ROB
            0xee12_34ee,
            9,
            0x0301_fa11,
            16,
            4,
            0x0100_0002,
            3,
            10,
            0, // ROD
            17,
            5,
            u32::from_le_bytes(*b"hell"),
            u32::from(b'o'),
            2, // status words, data, trailer …
        ]
    );
    assert_eq!(words[48..50], [2, 0]);
    assert_eq!(header(&bytes, 0, bytes.len()).unwrap().checksum(&bytes), words.last().copied());
}

#[test]
fn crc16_is_not_made_up() {
    let event = EventHeader { checksum: ChecksumType::Crc16Ccitt, ..EventHeader::default() };
    let mut bytes = vec![1, 2, 3];
    assert!(matches!(encode_event(&event, [], &mut bytes), Err(WriteError::ChecksumType)));
    assert_eq!(bytes, [1, 2, 3]);
}

#[test]
fn a_file_without_its_end_can_be_read_as_far_as_it_goes() {
    let atlas = atlas_from(&sample::bes3());
    let unfinished = &atlas[..atlas.len() - 40];
    assert_eq!(Events::open(unfinished).unwrap().filter(Result::is_ok).count(), 10);
    let report = verify(unfinished).unwrap();
    assert_eq!((report.events, report.fault_count, report.faults[0].fault), (10, 1, Fault::NoEndRecord));
}

#[test]
fn a_wrong_l1_id_in_one_fragment_is_found() {
    let mut bytes = sample::bes3();
    // The L1 ID in the ROD header of the first fragment of the third event.
    let event = Events::open(&bytes).unwrap().nth(2).unwrap().unwrap();
    let at = usize::try_from(event.fragments[0].offset).unwrap() + 32 + 20;
    bytes[at] ^= 1;
    let report = verify(&bytes).unwrap();
    assert_eq!((report.fault_count, report.faults[0].offset), (1, at as u64));
    assert!(matches!(report.faults[0].fault, Fault::L1Id { item: "a ROD fragment", needed: 199_785, .. }));
}

#[test]
fn an_event_stored_twice_is_noted_and_another_event_of_its_name_is_a_fault() {
    let twice = |id, bytes_of_last: &'static [u8], status_of_last| {
        let mut bytes = Vec::new();
        let mut writer = AtlasWriter::new(&mut bytes, &FileHeader::default()).unwrap();
        for (l1_id, status, bytes) in
            [(1, 0, &b"1234"[..]), (2, 0, b"5678"), (id, status_of_last, bytes_of_last)]
        {
            let fragment = Fragment { source: 7, status, offset: 0, bytes };
            writer.write_event(&EventHeader { l1_id, ..EventHeader::default() }, [fragment]).unwrap();
        }
        writer.finish(&FileEnd::default()).unwrap();
        verify(&bytes).unwrap()
    };
    let duplicates = |report: &fanin_events::Report| {
        report.faults.iter().filter(|error| matches!(error.fault, Fault::DuplicateEvent { .. })).count()
    };
    let report = twice(3, b"1234", 0);
    assert_eq!((duplicates(&report), report.duplicates), (0, 0));
    // The same fragments again, or one of them marked missing, as a logger stores them after a fault.
    for (bytes, status) in [(&b"1234"[..], 0), (b"", status::MISSING)] {
        let report = twice(1, bytes, status);
        assert_eq!((duplicates(&report), report.duplicates), (0, 1), "{report:?}");
    }
    let report = twice(1, b"9999", 0);
    assert_eq!((duplicates(&report), report.duplicates), (1, 0));
    assert!(report.faults.iter().any(|error| matches!(error.fault, Fault::DuplicateEvent { l1_id: 1, .. })));
}

#[test]
fn an_event_stored_twice_may_have_its_fragments_in_another_order() {
    let stored = |second: [(u32, u32, &[u8]); 3]| {
        let mut bytes = Vec::new();
        let mut writer = AtlasWriter::new(&mut bytes, &FileHeader::default()).unwrap();
        let first = [(1, 0, &b"1111"[..]), (2, 0, b"2222"), (3, 0, b"3333")];
        for fragments in [first, second] {
            let fragments =
                fragments.map(|(source, status, bytes)| Fragment { source, status, offset: 0, bytes });
            writer.write_event(&EventHeader { l1_id: 1, ..EventHeader::default() }, fragments).unwrap();
        }
        writer.finish(&FileEnd::default()).unwrap();
        let report = verify(&bytes).unwrap();
        let is_other = |error: &&ReadError| matches!(error.fault, Fault::DuplicateEvent { .. });
        (report.duplicates, report.faults.iter().filter(is_other).count())
    };
    // As their readouts answered, and the missing one at the end.
    let missing = (2, status::MISSING, &b""[..]);
    assert_eq!(stored([(3, 0, b"3333"), (2, 0, b"2222"), (1, 0, b"1111")]), (1, 0));
    assert_eq!(stored([(3, 0, b"3333"), (1, 0, b"1111"), missing]), (1, 0));
    assert_eq!(stored([(3, 0, b"1111"), (1, 0, b"3333"), missing]), (0, 1));
    assert_eq!(stored([(3, 0, b"3333"), (4, 0, b"1111"), missing]), (0, 1));
}

fn fragments() -> impl Strategy<Value = Vec<(u32, Vec<u8>)>> {
    // Also fragments that look like ROB fragments, whole and wrapped ones.
    let rob = (any::<u32>(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(source, data)| {
        let mut bytes = Vec::new();
        let data = Fragment { source, status: 0, offset: 0, bytes: &data };
        encode_event(&EventHeader::default(), [data], &mut bytes).unwrap();
        let at = header(&bytes, 0, bytes.len()).unwrap().payload;
        (source, bytes[at..bytes.len() - 4].to_vec())
    });
    let plain = (any::<u32>(), prop::collection::vec(any::<u8>(), 0..100));
    prop::collection::vec(prop_oneof![3 => plain, 1 => rob], 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn anything_written_is_read_again(events in prop::collection::vec((any::<u32>(), any::<u16>(), fragments()), 0..6)) {
        let mut container = frag::FragWriter::new(Vec::new()).unwrap();
        let mut file = AtlasWriter::new(Vec::new(), &FileHeader { application: "tests".into(), ..FileHeader::default() }).unwrap();
        for (l1_id, bc_id, fragments) in &events {
            container.write_event(u64::from(*l1_id), fragments.iter().map(|(source, bytes)| (*source, &bytes[..]))).unwrap();
            let header = EventHeader { l1_id: *l1_id, bc_id: *bc_id, ..EventHeader::default() };
            let fragments = fragments.iter().map(|(source, bytes)| Fragment { source: *source, status: 0, offset: 0, bytes });
            file.write_event(&header, fragments).unwrap();
        }
        let container = container.finish().unwrap();
        let file = file.finish(&FileEnd::default()).unwrap();
        prop_assert_eq!(frag_from(&file), container.clone());
        for bytes in [&container, &file] {
            let read: Vec<_> = Events::open(bytes).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(read.len(), events.len());
            for (event, (l1_id, _, fragments)) in read.iter().zip(&events) {
                prop_assert_eq!(event.id.l1_id, u64::from(*l1_id));
                let read: Vec<_> = event.fragments.iter().map(|f| (f.source, f.bytes.to_vec())).collect();
                prop_assert_eq!(&read, fragments);
            }
        }
    }

    #[test]
    fn verify_finds_every_flipped_bit_of_stored_fragments(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let mut bytes = Vec::new();
        let data: Vec<u8> = (0..200).collect();
        let fragments = [1, 2, 3].map(|source| Fragment { source, status: 0, offset: 0, bytes: &data[..60 + source as usize] });
        let mut writer = AtlasWriter::new(&mut bytes, &FileHeader::default()).unwrap();
        writer.write_event(&EventHeader { l1_id: 8, ..EventHeader::default() }, fragments).unwrap();
        writer.finish(&FileEnd::default()).unwrap();
        let event = Events::open(&bytes).unwrap().next().unwrap().unwrap();
        let (start, end) = (event.offset as usize, (event.offset + event.size) as usize);
        let payload = header(&bytes, start, end).unwrap().payload;
        let at = payload + at.index(end - payload);
        bytes[at] ^= 1 << bit;
        prop_assert!(verify(&bytes).unwrap().fault_count > 0);
    }
}
