//! Real detector data included in the crate.
//!
//! `sample/README.md` describes them and names their sources; `sample/LICENSE-*` are the notices that the licences
//! require.

use fanin_units::Bytes;

use crate::file::uncompress;

const LIMIT: Bytes = Bytes::new(16_000_000);

/// Returns two time slices of the neutrino telescope KM3NeT, run 25291, as a fragment container. They have 453 optical modules,
/// fragments of 2.3 kB on average, and 1.03 MB a slice.
pub fn km3net() -> Vec<u8> {
    uncompress(include_bytes!("../sample/km3net_run25291_L1.frag.gz"), LIMIT).expect("the sample is whole")
}

/// Returns ten events of BESIII run 91668 in the ATLAS event format, version 3, with file records: 42 ROBs on 26 ROSes.
pub fn bes3() -> Vec<u8> {
    uncompress(include_bytes!("../sample/bes3_run91668.raw.gz"), LIMIT).expect("the sample is whole")
}
