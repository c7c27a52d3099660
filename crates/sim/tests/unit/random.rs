//! Streams of random numbers.

use super::*;

#[test]
fn streams_differ_in_everything_that_names_them() {
    let first = |run, place, purpose| Random::new(seed(run, host(HostKind::Readout, place), purpose)).bits();
    assert_eq!(first(1, 2, Purpose::Role), first(1, 2, Purpose::Role));
    assert_ne!(first(1, 2, Purpose::Role), first(1, 2, Purpose::Fragment));
    assert_ne!(first(1, 2, Purpose::Role), first(1, 3, Purpose::Role));
    assert_ne!(first(1, 2, Purpose::Role), first(2, 2, Purpose::Role));
    assert_ne!(host(HostKind::Readout, 1), host(HostKind::Collector, 1));
}
