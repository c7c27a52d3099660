//! A stage that was ended while the switch runs delays frames no longer: they pass empty queues again.

use fanin_units::{Bytes, Duration, Instant, Packets};

use super::Switch;
use crate::address::Mac;
use crate::command::{Command, PortChange};
use crate::config::{Config, Depth, Ecn, Hugepages, ImpairSpec, NotCapable, PortSpec, RingSpec, StationSpec};
use crate::memory::MemoryPorts;
use crate::pool::Pool;

fn marking() -> Ecn {
    Ecn::marking_above(Depth::Bytes(Bytes::new(3000)), NotCapable::Pass)
}

/// Two ports; behind the second one is station 1.
fn switch() -> Switch<MemoryPorts> {
    let station = StationSpec { mac: Mac([2, 0, 0, 0, 0, 1]), port: "p1".to_owned(), vlan: None };
    let mut config = Config {
        port: ["p0", "p1"].map(PortSpec::new).to_vec(),
        station: vec![station],
        ..Config::default()
    };
    config.switch.memory = Bytes::new(4 << 20);
    let pool = Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Off, 1).unwrap().remove(0);
    Switch::new(config, MemoryPorts::new(pool, 2)).unwrap()
}

fn change(switch: &mut Switch<MemoryPorts>, change: PortChange) {
    switch.handle_command(Command::SetPort(change)).unwrap();
}

/// A change of the second port that changes nothing yet.
fn of_port() -> PortChange {
    PortChange { name: "p1".to_owned(), ..PortChange::default() }
}

fn is_clear(switch: &Switch<MemoryPorts>) -> bool {
    switch.outputs.output(1).is_clear(Instant::START + Duration::from_millis(1))
}

#[test]
fn frames_pass_empty_queues_again_once_no_queue_marks() {
    let mut switch = switch();
    let spec =
        |name: &str, ecn| RingSpec { ecn, frames: Some(Packets::new(100)), ..RingSpec::new(name, "p1") };
    let ring = |name: &str, ecn| Command::AddRing(spec(name, ecn));
    assert!(is_clear(&switch));
    change(&mut switch, PortChange { ecn: Some(marking()), ..of_port() });
    for name in ["a", "b"] {
        switch.handle_command(ring(name, marking())).unwrap();
    }
    // Each of the three queues marks, until the last one stops.
    change(&mut switch, PortChange { ecn: Some(Ecn::default()), ..of_port() });
    assert!(!is_clear(&switch), "two rings mark");
    switch.handle_command(Command::SetRing(spec("a", Ecn::default()))).unwrap();
    assert!(!is_clear(&switch), "a ring marks");
    switch.handle_command(Command::RemoveRing { name: "b".to_owned() }).unwrap();
    assert!(is_clear(&switch), "no queue marks");
    // A ring without marks in the place of the removed one changes nothing, one with marks does.
    switch.handle_command(ring("c", Ecn::default())).unwrap();
    assert!(is_clear(&switch));
    switch.handle_command(Command::SetRing(spec("c", marking()))).unwrap();
    assert!(!is_clear(&switch));
}

#[test]
fn frames_pass_empty_queues_again_once_an_ended_impairment_delays_none() {
    let mut switch = switch();
    let mut now = Instant::START + Duration::from_millis(1);
    let impair = |delay| {
        let spec = ImpairSpec { delay: Duration::from_millis(delay), ..ImpairSpec::default() };
        PortChange { impair: Some(spec), ..of_port() }
    };
    change(&mut switch, impair(2));
    change(&mut switch, impair(0));
    assert!(is_clear(&switch), "an impairment that delayed no frame ends at once");
    change(&mut switch, impair(2));
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0xb5];
    frame.resize(60, 0);
    switch.driver_mut().inject(0, &frame);
    switch.poll(now, true);
    change(&mut switch, impair(0));
    assert!(!is_clear(&switch), "a delayed frame would be overtaken");
    assert_eq!(switch.driver_mut().take(1), None);
    now = now + Duration::from_millis(2) + Duration::from_micros(50);
    switch.poll(now, true);
    assert_eq!(switch.driver_mut().take(1), Some(frame));
    assert!(is_clear(&switch), "the last delayed frame has left");
}
