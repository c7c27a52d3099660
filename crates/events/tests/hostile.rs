//! Damaged and invented files: an error with its place, never a panic.

mod common;

use common::small;
use fanin_events::convert::{Pairing, compare, to_atlas, to_frag};
use fanin_events::{Events, FileSummary, Format, atlas, frag, models, verify};
use proptest::prelude::*;

/// Calls every function of this crate on a file; returns the number of events read before the first fault.
fn use_all(bytes: &[u8]) -> Option<usize> {
    let mut events = Events::open(bytes).ok()?;
    let mut before_fault = 0;
    let mut fault_seen = false;
    // Each event and each fault takes at least a byte: more rounds than bytes would be an endless loop.
    for _ in 0..=bytes.len() {
        match events.next() {
            Some(Ok(event)) => {
                assert!(event.offset <= bytes.len() as u64);
                for fragment in &event.fragments {
                    let at = usize::try_from(fragment.offset).unwrap();
                    assert_eq!(&bytes[at..at + fragment.bytes.len()], fragment.bytes);
                }
                before_fault += usize::from(!fault_seen);
            }
            Some(Err(error)) => {
                assert!(error.offset <= bytes.len() as u64, "{error}");
                fault_seen = true;
                if !events.resync() {
                    break;
                }
            }
            None => break,
        }
    }
    assert!(events.next().is_none(), "the reader does not end");
    let report = verify(bytes).unwrap();
    assert!(report.faults.iter().all(|fault| fault.offset <= bytes.len() as u64));
    assert_eq!(report.faults.is_empty(), report.fault_count == 0);
    assert!(!fault_seen || report.fault_count > 0);
    let summary = FileSummary::read(bytes);
    assert_eq!(summary.is_err(), fault_seen);
    let _ = models::fit(bytes);
    let _ = to_frag(bytes, std::io::sink());
    let _ = to_atlas(bytes, &atlas::FileHeader::default(), std::io::sink());
    let _ = compare(bytes, bytes, Pairing::SameL1Id);
    Some(before_fault)
}

#[test]
fn whole_samples_have_no_fault() {
    for (name, bytes) in small() {
        let report = verify(&bytes).unwrap();
        assert_eq!(report.faults, [], "{name}");
        assert_eq!((report.events, report.out_of_order), (2, 0), "{name}");
        assert_eq!(use_all(&bytes), Some(2), "{name}");
    }
}

#[test]
fn samples_cut_off_anywhere() {
    for (name, bytes) in small() {
        let step = if bytes.len() > 4096 { 7 } else { 1 };
        for len in (0..bytes.len()).step_by(step) {
            let whole = use_all(&bytes[..len]);
            assert!(whole.is_none_or(|events| events <= 2), "{name} cut to {len}");
            // A container without an end record may end after any event; a part of any other file is not valid.
            if name.starts_with("atlas") && len >= 8 {
                assert!(verify(&bytes[..len]).unwrap().fault_count > 0, "{name} cut to {len}");
            }
        }
    }
}

#[test]
fn every_word_replaced_by_the_worst_numbers() {
    for (_, bytes) in small() {
        let step = if bytes.len() > 4096 { 20 } else { 4 };
        for at in (0..bytes.len() - 4).step_by(step) {
            for word in [0, 1, 7, 0x7fff_ffff, 0x8000_0000, 0xffff_fffc, u32::MAX] {
                let mut damaged = bytes.clone();
                damaged[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
                use_all(&damaged);
            }
        }
    }
}

#[test]
fn verify_goes_on_behind_a_fault() {
    for (name, mut bytes) in small() {
        if name == "rdh" {
            continue; // Its heartbeat frames are mixed, so that a lost page damages one of them only.
        }
        let second = Events::open(&bytes).unwrap().nth(1).unwrap().unwrap().offset;
        let first = Events::open(&bytes).unwrap().next().unwrap().unwrap().offset;
        let at = match name {
            "frag" => first + 20, // a size in the table
            "mdf" => first + 48,  // the marker of a bank
            _ => first + 14,      // the version of the full event
        };
        bytes[usize::try_from(at).unwrap() + 1] ^= 0x40;
        let report = verify(&bytes).unwrap();
        assert_eq!(report.events, 1, "{name}: {:?}", report.faults);
        assert!(report.fault_count >= 1, "{name}");
        assert!(report.faults[0].offset >= first && report.faults[0].offset < second, "{name}");
    }
}

#[test]
fn a_file_read_as_another_format_comes_to_an_end() {
    let headless = [frag::EVENT, 0, 0, 0, frag::EVENT].into_iter().flat_map(u32::to_le_bytes).collect();
    for (name, bytes) in small().into_iter().chain([("events without their file", headless)]) {
        for format in Format::ALL {
            let mut events = Events::with_format(&bytes, format);
            let mut faults = 0;
            while let Some(event) = events.next() {
                if event.is_err() {
                    faults += 1;
                    assert!(faults <= bytes.len(), "{name} as {format} does not end");
                    if !events.resync() {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn bytes_that_are_all_markers() {
    let mut bytes = b"DAQFRAG1".to_vec();
    for _ in 0..20_000 {
        bytes.extend(frag::EVENT.to_le_bytes());
    }
    use_all(&bytes);
    for marker in [atlas::FILE_START, atlas::FULL_EVENT, atlas::EVENT_RECORD, atlas::FREE_STRINGS] {
        let bytes: Vec<u8> =
            [atlas::FULL_EVENT].iter().chain([marker; 20_000].iter()).flat_map(|m| m.to_le_bytes()).collect();
        use_all(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_damage_to_samples(
        sample in 0_usize..5,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
        doubled in any::<bool>(),
    ) {
        let (_, mut bytes) = small().swap_remove(sample);
        if doubled {
            bytes.extend(bytes.clone());
        }
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        use_all(&bytes);
    }

    #[test]
    fn any_bytes_behind_a_true_beginning(sample in 0_usize..5, keep in 0_usize..120, tail in prop::collection::vec(any::<u8>(), 0..600)) {
        let (_, mut bytes) = small().swap_remove(sample);
        bytes.truncate(keep);
        bytes.extend(tail);
        use_all(&bytes);
    }
}
