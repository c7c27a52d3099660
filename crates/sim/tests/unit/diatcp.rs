//! Windows of DIATCP.

use super::*;
use fanin_units::Packets;

fn twelve_segments() -> DiatcpTechnique {
    let mut transport = Transport::default();
    transport.diatcp.global_window = Packets::new(12);
    DiatcpTechnique::new(&transport, 1000, Duration::ZERO)
}

#[test]
#[should_panic(expected = "holds another share")]
fn a_window_that_is_not_the_share_is_found() {
    let mut diatcp = twelve_segments();
    (0..3).for_each(|end| diatcp.open(Instant::START, 7, end));
    diatcp.share_out(Instant::START, |_, _, _| {});
    diatcp.assert_granted(|_| 4000);
    diatcp.assert_granted(|end| if end == 1 { 5000 } else { 4000 });
}

#[test]
fn hosts_share_out_windows_of_their_own() {
    let at = |ms| Instant::START + Duration::from_millis(ms);
    let mut diatcp = twelve_segments();
    (0..3).for_each(|end| diatcp.open(at(0), 7, end));
    diatcp.open(at(0), 8, 9);
    let mut changed = Vec::new();
    diatcp.share_out(at(0), |end, bytes, grew| changed.push((end, bytes, grew)));
    changed.sort_unstable();
    assert_eq!(changed, [(0, 4000, true), (1, 4000, true), (2, 4000, true), (9, 12_000, true)]);
    assert!(diatcp.close(at(1), 7, 1) && !diatcp.close(at(1), 6, 1));
    assert!(diatcp.is_debtor(7, 2) && !diatcp.is_debtor(7, 1) && !diatcp.is_debtor(8, 2));
}
