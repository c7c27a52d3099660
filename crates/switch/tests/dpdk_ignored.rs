//! Tests over DPDK count as skipped in a build without it.

#![cfg(not(feature = "dpdk"))]

/// Declares the tests of the files `dpdk*.rs`, to be counted as skipped.
macro_rules! without_dpdk {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            #[ignore = "needs DPDK 22.11 or newer: cargo test -p fanin-switch --features dpdk"]
            fn $name() {}
        )*
    };
}

without_dpdk! {
    hosts_talk_over_devices_of_dpdk
    frames_pass_from_one_shared_memory_to_another
    frames_pass_a_ring_between_devices_and_all_memory_comes_home
}

#[test]
fn every_test_over_dpdk_is_counted() {
    let files = [include_str!("dpdk.rs"), include_str!("dpdk_memif.rs"), include_str!("dpdk_rings.rs")];
    let names = files.iter().flat_map(|file| {
        file.split("#[test]\nfn ").skip(1).filter_map(|test| test.split_once('(').map(|(name, _)| name))
    });
    assert!(names.eq(NAMES.iter().copied()), "the tests of dpdk*.rs are others");
}
