//! The fuzz targets of the switch, without a fuzzer: their corpora and mutations of them.

#[path = "common/hostile.rs"]
#[allow(unreachable_pub, reason = "the fuzz target uses it too")]
mod hostile;
#[path = "common/hostile_requests.rs"]
#[allow(unreachable_pub, reason = "the fuzz target uses it too")]
mod hostile_requests;
#[path = "../../../fuzz/mutate.rs"]
mod mutate;

/// Number of targets, which share the time.
const TARGETS: u32 = 2;

#[test]
fn any_bytes_are_frames_for_a_switch() {
    mutate::mutate("switch", &[], TARGETS, hostile::check);
}

#[test]
fn any_bytes_are_requests_to_a_switch() {
    mutate::mutate("switch-requests", hostile_requests::WORDS, TARGETS, hostile_requests::check);
}
