//! Behaviour of a switch, one property a test, over ports in memory and in simulated time. LCN'15's prototype lacked the
//! first four.

use fanin_switch::config::{
    Depth, Ecn, EcnMode, Hugepages, ImpairSpec, NotCapable, PauseSpec, PortSpec, RingSpec, RuleSpec,
    StationSpec, StormSpec, WaySpec,
};
use fanin_switch::{Config, Mac, MemoryPorts, Pool, Switch, Vlan, checksum};
use fanin_units::{Bytes, Duration, Instant, Packets, Rate, Ratio};

/// A switch with its clock.
struct Bed {
    switch: Switch<MemoryPorts>,
    now: Instant,
}

fn config(ports: usize) -> Config {
    let mut config = Config {
        port: (0..ports).map(|port| PortSpec::new(&format!("p{port}"))).collect(),
        ..Config::default()
    };
    config.switch.memory = Bytes::new(16 << 20);
    config
}

/// Adds a ring and a rule for all frames to a station.
fn add_ring(config: &mut Config, name: &str, port: usize, station: u8, change: impl FnOnce(&mut RingSpec)) {
    let mut ring = RingSpec::new(name, &format!("p{port}"));
    ring.frames = Some(Packets::new(4096));
    change(&mut ring);
    config.ring.push(ring);
    config.rule.push(RuleSpec {
        name: name.to_owned(),
        ring: Some(name.to_owned()),
        destination_mac: Some(mac(station).to_string().parse().unwrap()),
        ..RuleSpec::default()
    });
    config.station.push(StationSpec { mac: mac(station), port: format!("p{port}"), vlan: None });
}

fn mac(station: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, station])
}

/// A frame with a number as its payload.
fn frame(from: u8, to: u8, number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = Vec::from(mac(to).0);
    frame.extend(mac(from).0);
    frame.extend([0x88, 0xb5]);
    frame.extend(number.to_be_bytes());
    frame.resize(bytes, 0);
    frame
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[14..18].try_into().unwrap())
}

impl Bed {
    fn new(config: Config) -> Self {
        let pool = Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Off, 1).unwrap().remove(0);
        let ports = MemoryPorts::new(pool, config.port.len());
        let switch = Switch::new(config, ports).unwrap_or_else(|errors| panic!("{errors}"));
        Self { switch, now: Instant::START + Duration::from_secs(1) }
    }

    fn put(&mut self, port: usize, frame: &[u8]) {
        assert!(self.switch.driver_mut().inject(port, frame), "no packet memory");
    }

    /// Makes rounds until no frame moves at this instant.
    fn settle(&mut self) {
        while self.switch.poll(self.now, true).frames > 0 {}
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        self.settle();
    }

    fn take(&mut self, port: usize) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.switch.driver_mut().take(port)).collect()
    }

    fn dropped(&self, port: usize, cause: &str) -> u64 {
        let snapshot = self.switch.snapshot(false);
        let port = &snapshot.ports[port];
        let all = port.dropped.iter().chain(&port.queue.dropped);
        all.filter(|dropped| dropped.cause == cause).map(|dropped| dropped.tally.frames).sum()
    }
}

#[test]
fn stations_are_learned_and_only_strangers_are_flooded() {
    let mut bed = Bed::new(config(3));
    bed.put(0, &frame(10, 11, 1, 60));
    bed.settle();
    assert_eq!(
        (bed.take(0).len(), bed.take(1).len(), bed.take(2).len()),
        (0, 1, 1),
        "a frame to an unknown station is flooded"
    );
    bed.put(1, &frame(11, 10, 2, 60));
    bed.settle();
    bed.put(0, &frame(10, 11, 3, 60));
    bed.settle();
    assert_eq!(
        (bed.take(0).len(), bed.take(1).len(), bed.take(2).len()),
        (1, 1, 0),
        "a frame to a known station is not"
    );
    // Forgotten after a silence.
    bed.now = bed.now + Duration::from_secs(301);
    (0..2_000).for_each(|_| bed.wait(Duration::from_millis(1)));
    bed.put(2, &frame(12, 11, 4, 60));
    bed.settle();
    assert_eq!((bed.take(0).len(), bed.take(1).len()), (1, 1));
}

#[test]
fn rates_are_of_bytes_and_not_of_frames() {
    // Precise to 1 % from 10 Mb/s to 10 Gb/s, for small, large and mixed frames alike.
    for rate in [10_000_000u64, 100_000_000, 780_000_000, 1_000_000_000, 10_000_000_000] {
        for sizes in [&[60usize][..], &[1514], &[60, 1514, 700]] {
            let mut config = config(2);
            add_ring(&mut config, "r", 1, 11, |ring| ring.rate = Some(Rate::new(rate)));
            let mut bed = Bed::new(config);
            let time = Duration::new(400 * 1538 * 8 * 1_000_000_000_000 / rate);
            let end = bed.now + time;
            let (mut bytes, mut sent) = (0u64, 0u32);
            while bed.now < end {
                while bed.switch.frames_held() < 512 {
                    bed.put(0, &frame(10, 11, sent, sizes[sent as usize % sizes.len()]));
                    sent += 1;
                    bed.settle();
                }
                bytes += bed.take(1).iter().map(|frame| frame.len() as u64 + 24).sum::<u64>();
                // A worker with irregular and late rounds.
                bed.wait(Duration::new(time.get() / 97));
            }
            let wanted = Rate::new(rate).bytes_in(time).get();
            let off = bytes.abs_diff(wanted) as f64 / wanted as f64;
            assert!(off < 0.01, "{rate} b/s with {sizes:?}: {bytes} of {wanted} bytes");
        }
    }
}

#[test]
fn bursts_are_had_once_and_the_rate_holds_behind_them() {
    // After a silence exactly the bucket's tokens leave at the port's rate; then the ring's rate holds within 1 % in every decade.
    for rate in [10_000_000u64, 100_000_000, 1_000_000_000, 10_000_000_000] {
        for burst in [3_000u64, 64_000, 1_000_000] {
            let mut config = config(2);
            add_ring(&mut config, "r", 1, 11, |ring| {
                ring.rate = Some(Rate::new(rate));
                ring.burst = Some(Bytes::new(burst));
            });
            let mut bed = Bed::new(config);
            let mut sent = 0u32;
            let mut on_wire = |bed: &mut Bed| {
                while bed.switch.frames_held() < 2048 {
                    bed.put(0, &frame(10, 11, sent, 1000));
                    sent += 1;
                    bed.settle();
                }
                bed.take(1).iter().map(|frame| frame.len() as u64 + 24).sum::<u64>()
            };
            let at_once = on_wire(&mut bed);
            assert!(
                (burst - 1023..=burst).contains(&at_once),
                "{rate} b/s: {at_once} of {burst} bytes at once"
            );
            let time = Rate::new(rate).time_to_send(Bytes::new(1_000_000));
            let (end, mut bytes) = (bed.now + time, 0);
            while bed.now < end {
                bed.wait(Duration::new(time.get() / 83));
                bytes += on_wire(&mut bed);
            }
            let wanted = Rate::new(rate).bytes_in(bed.now.saturating_since(end) + time).get();
            let off = bytes.abs_diff(wanted) as f64 / wanted as f64;
            assert!(off < 0.01, "{rate} b/s behind {burst} bytes: {bytes} of {wanted}");
        }
    }
}

#[test]
fn frames_that_a_full_device_refuses_stay_in_order() {
    let mut bed = Bed::new(config(2));
    bed.switch.driver_mut().set_room(1, 0);
    (0..100).for_each(|n| bed.put(0, &frame(10, 11, n, 60 + n as usize)));
    bed.settle();
    let mut taken = Vec::new();
    // The device has room for a few frames now and then.
    for room in [1, 0, 3, 40, 0, 2, 200] {
        bed.switch.driver_mut().set_room(1, room);
        for _ in 0..3 {
            bed.switch.poll(bed.now, true);
        }
        let more = bed.take(1);
        assert!(more.len() <= room);
        taken.extend(more);
    }
    assert_eq!(taken.iter().map(|frame| number(frame)).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    assert!(taken.iter().all(|frame| frame.len() == 60 + number(frame) as usize), "the wrong frames");
    assert_eq!(
        bed.switch.driver().pool().free_len(),
        bed.switch.driver().pool().share_len(),
        "memory leaked"
    );
    assert_eq!(bed.switch.snapshot(false).drops(), 0);
}

#[test]
fn one_full_output_never_stalls_the_others() {
    let mut config = config(4);
    add_ring(&mut config, "stuck", 1, 11, |ring| ring.frames = Some(Packets::new(500)));
    add_ring(&mut config, "slow", 2, 12, |ring| ring.rate = Some(Rate::new(10_000)));
    let mut bed = Bed::new(config);
    // Port 1 sends nothing, port 2 little, and port 3 all.
    bed.switch.driver_mut().set_room(1, 0);
    let mut through = 0;
    for n in 0..3_000 {
        for to in 11..=13 {
            bed.put(0, &frame(10, to, n, 200));
        }
        bed.wait(Duration::from_nanos(500));
        let taken = bed.take(3);
        through += taken.iter().filter(|frame| frame[5] == 13).count();
    }
    assert_eq!(through, 3_000, "blocked outputs slowed the free one");
    let snapshot = bed.switch.snapshot(false);
    assert_eq!(snapshot.rings[0].queue.frames_max, 500);
    assert!(snapshot.rings[0].queue.dropped.iter().any(|dropped| dropped.cause == "ring"));
}

#[test]
fn a_loop_costs_its_own_frames_and_no_storm_begins() {
    let mut bed = Bed::new(config(3));
    let mut broadcast = frame(10, 0, 1, 60);
    broadcast[..6].copy_from_slice(&[0xff; 6]);
    bed.put(0, &broadcast);
    // Ports 1 and 2 are the two ends of one cable.
    for _ in 0..100 {
        bed.wait(Duration::from_micros(10));
        for (from, to) in [(1, 2), (2, 1)] {
            for frame in bed.take(from) {
                bed.put(to, &frame);
            }
        }
    }
    assert_eq!(bed.dropped(1, "loop") + bed.dropped(2, "loop"), 2);
    assert_eq!(bed.take(0).len(), 0, "the station received its own frame");
    // The station's port is still known.
    bed.put(1, &frame(11, 10, 2, 60));
    bed.settle();
    assert_eq!((bed.take(0).len(), bed.take(2).len()), (1, 0));
}

#[test]
fn storms_are_held_to_their_rate() {
    let mut config = config(2);
    config.port[0].storm = StormSpec {
        broadcast: Some(Rate::new(1_000_000)),
        burst: Some(Bytes::new(10_000)),
        ..StormSpec::default()
    };
    let mut bed = Bed::new(config);
    let mut broadcast = frame(10, 0, 1, 1000);
    broadcast[..6].copy_from_slice(&[0xff; 6]);
    for _ in 0..1000 {
        bed.put(0, &broadcast);
        bed.wait(Duration::from_millis(1));
    }
    // A second of 1 Mb/s are 125 frames of 1000 bytes, and ten more at the start.
    let passed = bed.take(1).len();
    assert!((130..=138).contains(&passed), "{passed}");
    assert_eq!(bed.dropped(0, "storm"), 1000 - passed as u64);
}

#[test]
fn vlans_are_kept_apart_and_tags_come_and_go() {
    let mut config = config(4);
    let vlan = |number| Vlan::new(number).unwrap();
    config.port[0].untagged = Some(vlan(7));
    config.port[1].untagged = Some(vlan(8));
    config.port[2].tagged = vec![vlan(7), vlan(8)];
    config.port[3].untagged = Some(vlan(7));
    let mut bed = Bed::new(config);
    let plain = frame(10, 11, 5, 100);
    let tagged = |vlan: u16| {
        let mut frame = plain.clone();
        frame.splice(12..12, [0x81, 0, (vlan >> 8) as u8, vlan as u8]);
        frame
    };
    bed.put(0, &plain);
    bed.settle();
    assert!(bed.take(1).is_empty(), "a frame left its VLAN");
    assert_eq!(bed.take(2), [tagged(7)]);
    assert_eq!(bed.take(3), std::slice::from_ref(&plain));
    // In reverse: a tagged frame reaches the untagged ports of its VLAN.
    bed.now = bed.now + Duration::from_secs(1);
    bed.put(2, &tagged(8));
    bed.settle();
    assert_eq!((bed.take(0).len(), bed.take(1), bed.take(3).len()), (0, vec![plain.clone()], 0));
    bed.put(2, &tagged(9));
    bed.settle();
    assert_eq!(bed.dropped(2, "vlan"), 1);
}

#[test]
fn frames_that_cannot_be_are_dropped_and_counted() {
    let mut bed = Bed::new(config(2));
    let mut from_group = frame(10, 11, 0, 60);
    from_group[6] |= 1;
    let mut for_bridges = frame(10, 11, 0, 60);
    for_bridges[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0]);
    for frame in [&from_group[..], &for_bridges, &frame(10, 11, 0, 1519), &[2; 9], &frame(10, 11, 0, 1514)] {
        bed.put(0, frame);
    }
    bed.settle();
    assert_eq!(bed.take(1).len(), 1);
    let causes = ["malformed", "filtered", "too-long"].map(|cause| bed.dropped(0, cause));
    assert_eq!(causes, [2, 1, 1]);
}

#[test]
fn a_station_of_ones_own_is_refused_elsewhere() {
    let mut config = config(3);
    config.station.push(StationSpec { mac: mac(11), port: "p1".to_owned(), vlan: None });
    let mut bed = Bed::new(config);
    bed.put(0, &frame(10, 11, 1, 60));
    bed.put(2, &frame(11, 10, 2, 60));
    bed.settle();
    assert_eq!((bed.take(0).len(), bed.take(1).len(), bed.take(2).len()), (0, 1, 0));
    assert_eq!(bed.dropped(2, "loop"), 1);
}

#[test]
fn ways_are_those_of_the_port_that_a_frame_came_in_by() {
    let mut config = config(4);
    // Two ways to station 11: from p0 by p1, from p1, where it is redirected, by p2. Ports 2 and 3 learn.
    (config.port[0].table, config.port[1].table) = (1, 2);
    let way = |table, port: &str| WaySpec { table, mac: mac(11), port: port.to_owned() };
    config.way = vec![way(1, "p1"), way(2, "p2")];
    config.station.push(StationSpec { mac: mac(10), port: "p3".to_owned(), vlan: None });
    let mut bed = Bed::new(config);
    bed.put(0, &frame(10, 11, 1, 60));
    bed.put(1, &frame(10, 11, 2, 60));
    bed.settle();
    // Station 10 belongs to p3; its frames from p0 and p1 pass nevertheless.
    assert_eq!((bed.take(1).len(), bed.take(2).len(), bed.take(3).len()), (1, 1, 0));
    // A frame to a station without a way is not flooded, and ports with ways learn nothing.
    bed.put(0, &frame(10, 12, 3, 60));
    bed.put(0, &frame(13, 11, 4, 60));
    bed.put(2, &frame(14, 13, 5, 60));
    bed.settle();
    assert_eq!(bed.dropped(0, "no-port"), 1);
    assert_eq!((bed.take(0).len(), bed.take(1).len(), bed.take(3).len()), (1, 2, 1));
    // The configured station, and the one learned at p2.
    assert_eq!(bed.switch.snapshot(true).stations.len(), 2);
}

#[test]
fn pause_frames_stop_one_output_and_say_when_too_much_is_held() {
    let mut config = config(3);
    config.port[1].rate = Some(Rate::new(1_000_000_000));
    config.port[1].pause = PauseSpec { react: true, ..PauseSpec::default() };
    config.port[0].pause = PauseSpec { xoff: Some(Bytes::new(50_000)), ..PauseSpec::default() };
    let mut bed = Bed::new(config);
    bed.put(1, &frame(11, 10, 0, 60));
    bed.settle();
    bed.take(0);
    let mut pause = vec![1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 11, 0x88, 8, 0, 1, 0, 200];
    pause.resize(60, 0);
    bed.put(1, &pause);
    bed.settle();
    (0..60).for_each(|n| bed.put(0, &frame(10, 11, n, 1000)));
    bed.wait(Duration::from_micros(50));
    assert!(bed.take(1).is_empty(), "a paused port sent");
    assert_eq!(bed.dropped(0, "filtered") + bed.dropped(1, "filtered"), 1, "a PAUSE frame is not forwarded");
    let sent_pauses = bed.take(0);
    assert_eq!(sent_pauses.len(), 1, "50 kB are held");
    assert_eq!(
        (&sent_pauses[0][..6], &sent_pauses[0][12..18]),
        (&Mac::PAUSE.0[..], &[0x88, 8, 0, 1, 0xff, 0xff][..])
    );
    // 200 quanta of 512 bits at 1 Gb/s are 102.4 us; then 60 frames take 492 us.
    for _ in 0..600 {
        bed.wait(Duration::from_micros(1));
    }
    assert_eq!(bed.take(1).len(), 60);
    let sent_pauses = bed.take(0);
    assert_eq!(sent_pauses.iter().map(|frame| &frame[16..18]).collect::<Vec<_>>(), [[0, 0]], "go on");
    // The longest PAUSE lasts 34 ms, unless RESUME ends it.
    pause[16..18].copy_from_slice(&[0xff, 0xff]);
    bed.put(1, &pause);
    bed.settle();
    bed.put(0, &frame(10, 11, 60, 1000));
    bed.wait(Duration::from_micros(50));
    assert!(bed.take(1).is_empty(), "a paused port sent");
    pause[16..18].copy_from_slice(&[0, 0]);
    bed.put(1, &pause);
    (0..20).for_each(|_| bed.wait(Duration::from_micros(1)));
    assert_eq!(bed.take(1).len(), 1, "the port stayed paused after RESUME");
}

#[test]
fn a_port_with_tagged_vlans_only_obeys_pause() {
    let mut config = config(2);
    let vlan = Vlan::new(7).unwrap();
    config.port[0].untagged = Some(vlan);
    config.port[1].tagged = vec![vlan];
    config.port[1].pause = PauseSpec { react: true, ..PauseSpec::default() };
    let mut bed = Bed::new(config);
    // PAUSE is untagged on any port.
    let mut pause = vec![1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 11, 0x88, 8, 0, 1, 0xff, 0xff];
    pause.resize(60, 0);
    bed.put(1, &pause);
    bed.settle();
    assert_eq!(bed.switch.snapshot(false).ports[1].pauses_received, 1);
    bed.put(0, &frame(10, 11, 1, 100));
    bed.settle();
    assert!(bed.take(1).is_empty(), "a paused port sent");
    assert_eq!((bed.dropped(1, "vlan"), bed.dropped(1, "filtered")), (0, 1));
}

#[test]
fn a_port_that_floods_the_station_table_leaves_room_for_others() {
    let mut config = config(3);
    config.switch.mac_entries = 64;
    config.port[1].mac_entries = Some(4);
    let mut bed = Bed::new(config);
    for station in 0..100 {
        bed.put(0, &frame(station, 250, 0, 60));
        bed.settle();
    }
    for station in 100..110 {
        bed.put(1, &frame(station, 250, 0, 60));
        bed.settle();
    }
    bed.put(2, &frame(200, 250, 0, 60));
    bed.settle();
    let snapshot = bed.switch.snapshot(false);
    let of = |port: usize| (snapshot.ports[port].stations, snapshot.ports[port].unlearned);
    // A port without a limit may learn half of the table.
    assert_eq!((of(0), of(1), of(2)), ((32, 68), (4, 6), (1, 0)));
    assert_eq!(snapshot.drops(), 0, "frames of unknown sources pass");
}

#[test]
fn marks_are_set_with_the_checksum_mended() {
    // The first leaves at once. ECN-capable frames behind a queue of more than two are marked.
    let two = Depth::Packets(Packets::new(2));
    assert_eq!(marked(Ecn::marking_above(two, NotCapable::Pass)), [0, 2, 0, 3, 0, 3, 0, 3]);
}

#[test]
fn early_detection_marks_and_drops() {
    let red = Ecn {
        mode: EcnMode::RedMark,
        min: Packets::new(1),
        max: Packets::new(3),
        weight: Ratio::ONE,
        probability_max: Ratio::ONE,
        hard_drop: false,
        ..Ecn::default()
    };
    // The average is the instantaneous queue. Every second frame behind a queue of two is hit, and every one behind a queue
    // of three. Frames that are not ECN-capable are dropped.
    assert_eq!(marked(red), [0, 2, 3, 3, 3]);
    assert_eq!(marked(Ecn { mode: EcnMode::RedDrop, ..red }), [0, 2]);
}

/// The ECN bits of the frames that leave after a burst of eight, of which every other one is ECN-capable.
fn marked(ecn: Ecn) -> Vec<u8> {
    let mut config = config(2);
    add_ring(&mut config, "r", 1, 11, |ring| {
        ring.ecn = ecn;
        ring.rate = Some(Rate::new(1_000_000));
    });
    let mut bed = Bed::new(config);
    for n in 0..8u8 {
        let mut frame = frame(10, 11, 0, 60);
        frame[12..14].copy_from_slice(&[8, 0]);
        // Every other one is ECN-capable.
        frame[14..34].copy_from_slice(&[
            0x45,
            n % 2 * 2,
            0,
            46,
            0,
            n,
            0,
            0,
            64,
            17,
            0,
            0,
            10,
            0,
            0,
            1,
            10,
            0,
            0,
            2,
        ]);
        let sum = !(checksum(&frame[14..34], 0) as u16);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        bed.put(0, &frame);
    }
    bed.settle();
    (0..20).for_each(|_| bed.wait(Duration::from_millis(1)));
    let taken = bed.take(1);
    assert!(taken.iter().all(|frame| checksum(&frame[14..34], 0) == 0xffff));
    taken.iter().map(|frame| frame[15] & 3).collect()
}

#[test]
fn a_delay_begins_with_the_last_bit() {
    // 976 B and 24 B that frames lack here take 800 us at 10 Mb/s; then the delay of 2 ms begins.
    let mut config = config(2);
    config.port[1].rate = Some("10 Mb/s".parse().unwrap());
    config.port[1].impair = ImpairSpec { delay: Duration::from_millis(2), ..ImpairSpec::default() };
    let mut bed = Bed::new(config);
    (0..3).for_each(|n| bed.put(0, &frame(10, 11, n, 976)));
    bed.settle();
    let mut arrivals = Vec::new();
    for step in 1..=60_u64 {
        bed.wait(Duration::from_micros(100));
        arrivals.extend(bed.take(1).iter().map(|frame| (number(frame), step)));
    }
    assert_eq!(arrivals, [(0, 28), (1, 36), (2, 44)]);
}

#[test]
fn an_impaired_way_is_late_and_repeats_by_its_seed() {
    let run = |seed| {
        let mut config = config(2);
        config.switch.seed = seed;
        config.port[1].impair = ImpairSpec {
            delay: Duration::from_millis(2),
            jitter: Duration::from_micros(500),
            loss: "20 %".parse().unwrap(),
            duplicate: "10 %".parse().unwrap(),
            ..ImpairSpec::default()
        };
        let mut bed = Bed::new(config);
        let mut seen = Vec::new();
        for n in 0..300 {
            bed.put(0, &frame(10, 11, n, 60));
            bed.wait(Duration::from_micros(100));
            seen.extend(bed.take(1).iter().map(|frame| (n, number(frame))));
        }
        (0..40).for_each(|_| bed.wait(Duration::from_micros(100)));
        seen.extend(bed.take(1).iter().map(|frame| (340, number(frame))));
        assert!(seen.iter().all(|(at, number)| *at == 340 || at - number >= 20), "a frame came early");
        (seen, bed.dropped(1, "impairment"))
    };
    let (seen, lost) = run(1);
    assert_eq!((seen.clone(), lost), run(1));
    assert_ne!(seen, run(2).0);
    assert!((35..85).contains(&lost), "{lost}");
    assert!(seen.is_sorted_by_key(|(_, number)| *number), "jitter keeps the order");
}
