//! Captures: each sent frame is copied once, when it is sent.

use fanin_switch::capture::{CapturePoint, CaptureSpec, Captures};
use fanin_switch::config::{Hugepages, PortSpec};
use fanin_switch::{Mac, MemoryPorts, Pool, Switch};
use fanin_units::{Duration, Instant};

fn station(number: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, number])
}

#[test]
fn a_capture_holds_what_left_and_nothing_else() {
    let mut config = fanin_switch::Config::default();
    config.port.extend([PortSpec::new("in"), PortSpec::new("out")]);
    let mut pools = Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Off, 1).unwrap();
    let mut switch = Switch::new(config, MemoryPorts::new(pools.remove(0), 2)).unwrap();
    let captures = Captures::new(1, 0);
    switch.attach(&captures);
    let spec =
        CaptureSpec { point: CapturePoint::Port("out".to_owned()), seconds: 60, bytes: 1 << 20, snap: 100 };
    let mut stream = captures.start(spec).unwrap();
    for number in 0..10 {
        let frame = [&station(2).0[..], &station(1).0[..], &[0x88, 0xb5], &[number; 50]].concat();
        assert!(switch.driver_mut().inject(0, &frame));
    }
    // The driver takes four frames, then none, then the rest.
    switch.driver_mut().set_room(1, 4);
    let mut held = Vec::new();
    for millis in 0..10 {
        if millis == 5 {
            held = stream.poll_bytes().unwrap();
            assert_eq!(captures.copied(), 4);
            switch.driver_mut().set_room(1, usize::MAX);
        }
        switch.poll(Instant::START + Duration::from_millis(millis), true);
    }
    held.extend(stream.poll_bytes().unwrap());
    assert_eq!((captures.copied(), captures.dropped()), (10, 0));
    let numbers: Vec<u8> = held.windows(3).filter(|bytes| bytes[..2] == [0x88, 0xb5]).map(|b| b[2]).collect();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
}
