use fanin_queueing::M21Charge;
use fanin_units::Bytes;

use super::*;

fn switches() -> M21Switches {
    let settings = M21tcpSettings::default();
    let mut switches = M21Switches::new(&settings, 1000);
    let rule = M21WindowRule { charge: M21Charge::Packet, mss: Bytes::new(1000), header: Bytes::ZERO };
    switches.add(Some((&Layout::dedicated(vec![Bytes::new(6000); 3]), rule)), &settings);
    switches
}

const CROSSING: Crossing = Crossing { switch: 0, input: 1, output: 2 };

#[test]
fn a_passing_window_is_only_ever_lowered() {
    let mut switches = switches();
    (0..3).for_each(|flow| switches.open(CROSSING, flow));
    let frame = |window| Segment {
        payload: 1000,
        path_window: window,
        flags: Flags::ACK | Flags::PATH_WINDOW,
        ..Segment::default()
    };
    for (offered, passed) in [(u32::MAX, 2000), (1500, 1500)] {
        let mut segment = frame(offered);
        switches.handle_frame(5, CROSSING, 0, &mut segment);
        assert_eq!(segment.path_window, passed);
    }
    assert_eq!((switches.counters.written, switches.counters.window_min), (1, 2000));
    switches.assert_conserved();
}

#[test]
#[should_panic(expected = "lost count of its flows")]
fn a_flow_by_an_unknown_output_is_found() {
    let mut switches = switches();
    switches.open(CROSSING, 7);
    switches.switches[0].as_mut().unwrap().outputs = 2;
    switches.assert_conserved();
}
