//! Files for the tests. Not every test program needs all of them.

#![allow(dead_code)]

use std::path::Path;

#[path = "../../../../tests/skip.rs"]
mod skip;

/// The content of a file under `../shared/data`, seen from the checkout; skips the test if it is absent.
pub(crate) fn shared(name: &str) -> Option<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            skip::skip(format!("{}: {error}", path.display()));
            None
        }
    }
}

/// A file of each format, small enough to be damaged at every byte.
pub(crate) fn small() -> Vec<(&'static str, Vec<u8>)> {
    let bes3 = fanin_events::sample::bes3();
    // The first two events, and the end record. The event record gives the end of the first event.
    let two = 108 + 0xa1d * 4 + 16 + 0xb91 * 4;
    let mut atlas_v3 = bes3[..two].to_vec();
    atlas_v3.extend(&bes3[bes3.len() - 40..]);
    let at = atlas_v3.len() - 24;
    atlas_v3[at] = 2;

    let events = [(7, vec![(1, &b"one"[..]), (2, b"two!"), (0xffff_ffff, b"")]), (9, vec![(1, b"three")])];
    let mut frag = fanin_events::frag::FragWriter::new(Vec::new()).unwrap();
    for (id, fragments) in &events {
        frag.write_event(*id, fragments.iter().copied()).unwrap();
    }
    let frag = frag.finish().unwrap();
    let mut atlas_v4 = Vec::new();
    fanin_events::convert::to_atlas(&frag, &fanin_events::atlas::FileHeader::default(), &mut atlas_v4)
        .unwrap();
    vec![("atlas v3", atlas_v3), ("atlas v4", atlas_v4), ("frag", frag), ("mdf", mdf()), ("rdh", rdh())]
}

/// Two events of three banks each, with the layout of the format's definition.
pub(crate) fn mdf() -> Vec<u8> {
    let mut file = Vec::new();
    for number in [40_u32, 41] {
        let mut body = Vec::new();
        let mut odin = [0_u32; 10];
        (odin[0], odin[3], odin[4]) = (77, 1, number);
        let odin: Vec<u8> = odin.iter().flat_map(|word| word.to_le_bytes()).collect();
        for (kind, version, source, data) in
            [(16_u8, 6_u8, 1_u16, &odin[..]), (9, 3, 1000, b"velo"), (13, 1, 2, b"muons")]
        {
            body.extend([0xcb, 0xcb]);
            body.extend((data.len() as u16 + 8).to_le_bytes());
            body.extend([kind, version]);
            body.extend(source.to_le_bytes());
            body.extend(data);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let size = (48 + body.len() as u32).to_le_bytes();
        file.extend([size, size, size].concat());
        let mut covered = vec![0, 0x37, 1, 0];
        for word in [u32::MAX, u32::MAX, u32::MAX, u32::MAX, 77, 5, 300] {
            covered.extend(word.to_le_bytes());
        }
        covered.extend(body);
        file.extend(fanin_events::checksum::one_at_a_time(&covered).to_le_bytes());
        file.extend(covered);
    }
    file
}

/// Two heartbeat frames of two links with alternating pages in the file.
pub(crate) fn rdh() -> Vec<u8> {
    let mut file = Vec::new();
    for (orbit, fee, counter, stop) in [
        (10_u32, 1_u16, 0_u16, 0_u8),
        (10, 2, 0, 0),
        (10, 1, 1, 1),
        (10, 2, 1, 1),
        (11, 1, 0, 1),
        (11, 2, 0, 1),
    ] {
        let mut page = [0_u8; 80];
        (page[0], page[1], page[5]) = (7, 64, 32);
        page[2..4].copy_from_slice(&fee.to_le_bytes());
        page[8..10].copy_from_slice(&80_u16.to_le_bytes());
        page[10..12].copy_from_slice(&72_u16.to_le_bytes());
        page[16..18].copy_from_slice(&99_u16.to_le_bytes());
        page[20..24].copy_from_slice(&orbit.to_le_bytes());
        page[36..38].copy_from_slice(&counter.to_le_bytes());
        page[38] = stop;
        file.extend(page);
    }
    file
}
