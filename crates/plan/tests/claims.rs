//! Every claim of the papers that arithmetic can settle, by its id in the table of claims. Where a paper is wrong the
//! correct value is asserted; docs/papers.md says what the paper prints and why it cannot be.

use fanin_plan::bounds::*;
use fanin_plan::cost::*;
use fanin_plan::wire::*;
use fanin_plan::*;
use fanin_units::tcp::RTO_MIN_LINUX;
use fanin_units::wire::FrameOverhead;
use fanin_units::{Bytes, Duration, Frequency, Packets, Rate, Ratio};

const GIGABIT: Rate = Rate::new(1_000_000_000);
const TEN_GIGABIT: Rate = Rate::new(10_000_000_000);
const UPLINKS: Rate = Rate::new(20_000_000_000);
const PLAIN: SegmentFraming = SegmentFraming::ETHERNET;
const STAMPED: SegmentFraming = SegmentFraming { options: 12, ..SegmentFraming::ETHERNET };
/// Twelve fragments of 1.1 kB.
const ANSWER: Bytes = Bytes::new(13_200);

fn kilobytes(kilobytes: u64) -> Bytes {
    Bytes::new(kilobytes * 1_000)
}

fn hertz(hertz: u64) -> Frequency {
    Frequency::new(hertz * 1_000)
}

/// `value` in units of `step`, rounded, as a paper prints it.
fn printed(value: u64, step: u64) -> u64 {
    (value + step / 2) / step
}

fn factor(value: Factor) -> f64 {
    value.0.as_f64()
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() <= tolerance, "{value} is not {expected} ± {tolerance}");
}

#[test]
fn t001_a_frame_costs_38_bytes() {
    // Preamble, delimiter, header, check sequence, gap.
    let parts = [7, 1, 14, 4, 12];
    assert_eq!(parts.iter().sum::<u64>(), PLAIN.frame_overhead());
    assert_eq!(PLAIN.frame_overhead(), 38);
}

#[test]
fn t002_a_segment_costs_78_bytes_or_90_with_timestamps() {
    assert_eq!((PLAIN.segment_overhead(), PLAIN.mss()), (78, 1460));
    assert_eq!((STAMPED.segment_overhead(), STAMPED.mss()), (90, 1448));
    // Of a full segment, then of a 13.2 kB answer, whose last segment is short: tenths of a per cent.
    let rows = [
        (PLAIN, Bytes::new(1460), 53),
        (STAMPED, Bytes::new(1448), 62),
        (PLAIN, ANSWER, 59),
        (STAMPED, ANSWER, 68),
    ];
    for (framing, payload, tenths) in rows {
        assert_eq!(
            printed(overhead_share(&framing.message(payload)).value.get(), 1_000),
            tenths,
            "{payload}"
        );
    }
}

#[test]
fn t003_the_timeout_is_never_below_the_minimum() {
    assert_eq!(
        [RTO_MIN_LINUX, RTO_MIN_FREEBSD, RTO_MIN_RFC],
        [Duration::from_millis(200), Duration::from_millis(30), Duration::from_secs(1)]
    );
    let (srtt, rttvar) = (Duration::from_micros(400), Duration::from_micros(100));
    for minimum in [RTO_MIN_LINUX, RTO_MIN_FREEBSD, RTO_MIN_RFC] {
        assert_eq!(retransmission_timeout(srtt, rttvar, minimum).value, minimum);
    }
    assert_eq!(retransmission_timeout(srtt, rttvar, Duration::ZERO).value, Duration::from_micros(800));
}

#[test]
fn t004_a_window_bounds_the_throughput() {
    assert_eq!(throughput_bound(Bytes::new(25_000), Duration::from_micros(200)).value, GIGABIT);
    assert_eq!(throughput_bound(Bytes::new(3_000), Duration::from_micros(200)).value, Rate::new(120_000_000));
}

#[test]
fn t005_error_100_kb_at_10_gigabit_last_80_us() {
    assert_eq!(queueing_delay(kilobytes(100), TEN_GIGABIT).value, Duration::from_micros(80));
    // The 8 us of the paper are a tenth of that queue.
    assert_eq!(queueing_delay(kilobytes(10), TEN_GIGABIT).value, Duration::from_micros(8));
}

#[test]
fn t007_ticks_of_1_ms_make_a_floor_of_5_ms() {
    let tick = Duration::from_millis(1);
    assert_eq!(retransmission_timeout(tick, tick, tick).value, Duration::from_millis(5));
}

#[test]
fn t013_throughput_and_load() {
    // Event rate; GB/s and Gb/s in hundredths; load of the uplinks without and with timestamps, of the last hop in %.
    for (rate, gigabytes, gigabits, plain, stamped, last_hop) in
        [(500, 106, 845, 447, 451, 23), (1000, 211, 1690, 895, 902, 46)]
    {
        let events = hertz(rate);
        let payload = throughput(events, ANSWER * 160).value;
        assert_eq!(printed(payload.get(), 80_000_000), gigabytes);
        assert_eq!(printed(payload.get(), 10_000_000), gigabits);
        for (framing, uplink) in [(PLAIN, plain), (STAMPED, stamped)] {
            let offered = rate_of(events, wire_bytes(&framing, ANSWER, 160).value);
            assert_eq!(printed(load(offered, TEN_GIGABIT, 2).value.get(), 1_000), uplink);
        }
        let offered = rate_of(events, wire_bytes(&STAMPED, ANSWER, 160).value);
        assert_eq!(printed(load(offered, GIGABIT, 39).value.get(), 10_000), last_hop);
        // The paper's own 45 % and 90 % take an overhead of 5.3 %.
        near(plain as f64, if rate == 500 { 450.0 } else { 900.0 }, 0.01);
    }
}

#[test]
fn t014_ideal_collection_times() {
    let rtt = Duration::from_micros(400);
    // Readout hosts asked; hundredths of a millisecond.
    for (framing, hosts, expected) in
        [(PLAIN, 10, 152), (PLAIN, 160, 1829), (STAMPED, 10, 153), (STAMPED, 160, 1845)]
    {
        let ideal = collection_time_ideal(rtt, wire_bytes(&framing, ANSWER, hosts).value, GIGABIT).value;
        assert_eq!(printed(ideal.as_nanos(), 10_000), expected);
    }
    // The paper's 18.2 ms follow from an overhead of 5.3 % on every byte.
    let paper = rtt + GIGABIT.time_to_send(Bytes::new(2_112_000 * 1_053 / 1_000));
    assert_eq!(printed(paper.as_nanos(), 10_000), 1819);
}

#[test]
fn t015_one_timeout_triples_the_time_of_an_event() {
    let slowdown = timeout_slowdown(Duration::from_millis(100), RTO_MIN_LINUX, 1);
    assert_eq!(slowdown.value, Factor::of(3, 1));
}

#[test]
fn t016_input_of_the_data_acquisition() {
    let level_1 = hertz(100_000);
    assert_eq!(throughput(level_1, kilobytes(1_000)).value, "100 GB/s".parse().unwrap());
    assert_eq!(throughput(level_1, kilobytes(2_000)).value, "1.6 Tb/s".parse().unwrap());
}

#[test]
fn t017_readout_hosts_have_links_enough() {
    let (hosts, links, link) = (100, 2 * 12, "160 MB/s".parse::<Rate>().unwrap());
    assert!(hosts * links > 1_800);
    assert!(link * links <= TEN_GIGABIT * 4);
}

#[test]
fn t035_error_the_credit_window_is_63_kb() {
    let window = |rtt| credit_window(GIGABIT, Duration::from_micros(rtt), ANSWER).value;
    assert_eq!(window(400), Bytes::new(63_200));
    // The 88.2 kB of the paper need a round trip of 600 us.
    assert_eq!(window(600), Bytes::new(88_200));
}

#[test]
fn t046_error_the_law_gives_8_to_17_hours() {
    let hours = |speed: &str| {
        let time =
            simulation_time(Duration::from_secs(30), "2 GB/s".parse().unwrap(), speed.parse().unwrap());
        time.value.as_secs_f64() / 3_600.0
    };
    near(hours("2 MB/s"), 8.33, 0.001);
    near(hours("1 MB/s"), 16.67, 0.001);
}

#[test]
fn t082_slots_a_second() {
    for (rate, slots) in [(GIGABIT, 81_000), (TEN_GIGABIT, 810_000)] {
        near(fastpass_slots(rate, PLAIN.wire_max(), 1).value.as_hertz_f64(), f64::from(slots), 0.01);
    }
    // §6.4.2: clocks that differ by 1 ms.
    let queue = |rate| fastpass_queue_max(Duration::from_millis(1), rate, PLAIN.wire_max()).value;
    assert_eq!((queue(GIGABIT), queue(TEN_GIGABIT)), (Packets::new(82), Packets::new(813)));
}

#[test]
fn t083_the_scheduler_is_fast_enough() {
    let margin = scheduler_margin("2 Tb/s".parse().unwrap(), "200 GB/s".parse().unwrap());
    assert_eq!(margin.value, Ratio::new(1_250_000));
}

#[test]
fn t101_error_messaging_rates() {
    // Peers, messages a second and peer in mHz, their size; messages a second, bandwidth.
    let rows: [(&str, u64, u64, u64, u64, &str); 8] = [
        ("supervisor sends", 2_000, 50_000, 1_000, 100_000, "100 MB/s"),
        ("supervisor receives", 2_000, 50_000, 10, 100_000, "1 MB/s"),
        ("readout sends", 2_000, 25_000, 20_000, 50_000, "1 GB/s"),
        // Table 3.2 has 50 MB/s.
        ("readout receives", 2_000, 25_000, 100, 50_000, "5 MB/s"),
        ("collector receives", 100, 25_000, 20_000, 2_500, "50 MB/s"),
        ("collector sends", 100, 25_000, 100, 2_500, "250 kB/s"),
        // Table 3.2 has 500 Hz, 250 MB/s and 500 B/s.
        ("logger receives", 2_000, 200, 1_000_000, 400, "400 MB/s"),
        ("logger sends", 2_000, 200, 10, 400, "4 kB/s"),
    ];
    for (case, peers, per_peer, size, messages, bandwidth) in rows {
        let computed = messaging(peers, Frequency::new(per_peer), Bytes::new(size));
        assert_eq!(computed.0.value, hertz(messages), "{case}");
        assert_eq!(computed.1.value, bandwidth.parse().unwrap(), "{case}");
    }
}

#[test]
fn i002_i003_bandwidth_delay_product() {
    let bdp = bandwidth_delay_product(GIGABIT, Duration::from_micros(200)).value;
    assert_eq!(bdp, kilobytes(25));
    assert_eq!(packets_of(bdp, Bytes::new(1_500)).value, Packets::new(17));
    assert_eq!(overload(100, Bytes::new(1_500), bdp).value, Factor::of(6, 1));
}

#[test]
fn i013_i014_buffer_for_a_static_window() {
    let bdp = kilobytes(25);
    let in_flight = |collectors| in_flight_max(147, collectors, Packets::new(2), Bytes::new(1_500)).value;
    assert_eq!(in_flight(1), kilobytes(441));
    assert_eq!(buffer_needed(in_flight(1), bdp).value, kilobytes(416));
    near(buffer_needed(in_flight(39), bdp).value.get() as f64, 17e6, 0.02);
    // Equation (6): with 416 kB two packets a flow just do not satisfy the strict bound; one byte more and they do.
    let packets = |buffer: u64| window_packets_max(bdp, Bytes::new(buffer), 147, Bytes::new(1_500)).value;
    assert_eq!((packets(416_000), packets(416_001)), (Packets::new(1), Packets::new(2)));
}

#[test]
fn i023_diatcp_condition() {
    let (bdp, buffer) = (kilobytes(25), kilobytes(500));
    for collectors in [1, 39] {
        let range = gwnd_range(bdp, buffer, collectors);
        let holds = |gwnd: Bytes| bdp <= gwnd * collectors && gwnd * collectors < bdp + buffer;
        assert!(holds(range.min.value) && holds(range.max.value));
        assert!(!holds(range.min.value - Bytes::new(1)) && !holds(range.max.value + Bytes::new(1)));
    }
    // §IV.D: 160 packets at one collector.
    assert!(gwnd_range(bdp, buffer, 1).contains(Bytes::new(160 * 1_500)));
}

#[test]
fn l002_sum_of_limits_on_a_port() {
    let (sum, share) = ring_rate_sum(144 / 12, "0.78 Gb/s".parse().unwrap(), TEN_GIGABIT);
    assert_eq!(sum.value, "9.36 Gb/s".parse().unwrap());
    assert_eq!(share.value, "93.6 %".parse().unwrap());
}

#[test]
fn l003_memory_of_the_rings() {
    let memory = ring_memory(144, Packets::new(4_096), Bytes::new(2_048)).value;
    // Printed as 1.12 GiB: cut off, not rounded.
    assert_eq!(memory, "1.125 GiB".parse().unwrap());
}

#[test]
fn l005_buffer_and_ideal_latency() {
    let memory = ring_memory(1, Packets::new(14_000), Bytes::new(2_048)).value;
    assert_eq!(printed(memory.get() * 10, 1 << 20), 273);
    let drain = |size| {
        let time = ring_drain_time(Packets::new(9_790), Bytes::new(size), "0.78 Gb/s".parse().unwrap());
        printed(time.value.as_nanos(), 100_000)
    };
    assert_eq!((drain(1_538), drain(1_500)), (1_544, 1_506));
}

#[test]
fn l010_memory_and_bus_bandwidth() {
    let memory = memory_bandwidth(Frequency::new(1_333_333_333_333), 4).value;
    near(memory.get() as f64, 340e9, 0.01);
    let lane = |gigatransfers: u64| GIGABIT * gigatransfers;
    assert_eq!(pcie_bandwidth(lane(5), 8, 8, 10).value, "32 Gb/s".parse().unwrap());
    near(pcie_bandwidth(lane(8), 8, 128, 130).value.get() as f64, 63e9, 0.01);
}

#[test]
fn h002_h011_density_is_1_35_times_that_of_servers() {
    let catalogue = Catalogue::shipped();
    assert_eq!((catalogue.server.ports, catalogue.server.rack_units), (40, 3));
    assert_eq!((catalogue.multi_host.ports, catalogue.multi_host.rack_units), (72, 4));
    assert_eq!(density_gain(&catalogue).value, Factor::of(27, 20));
    // A factor of two appears only where rounding up to whole cabinets favours the denser device.
    let ratio = |ports, spines| {
        let comparison = compare(ports, spines, &catalogue).unwrap();
        comparison.fabric_area.value.0 as f64 / comparison.multi_host_area.unwrap().value.0 as f64
    };
    assert_eq!((ratio(456, 2), ratio(457, 2), ratio(560, 2), ratio(800, 2)), (1.0, 2.0, 2.0, 1.0));
}

#[test]
fn h003_planes_and_leaves() {
    // Ports, spines; full planes, ports left over, leaves for these. 40 ports a switch.
    let rows = [
        (100, 6, 0, 100, 3),
        (800, 6, 0, 800, 24),
        (1_360, 6, 1, 0, 0),
        (1_361, 6, 1, 1, 1),
        (3_000, 6, 2, 280, 9),
        (800, 20, 1, 0, 0),
    ];
    for (ports, spines, planes, rest, leaves) in rows {
        let fabric = LeafSpineFabric::new(ports, 40, spines).unwrap();
        assert_eq!(
            (fabric.planes_full, fabric.ports_rest, fabric.leaves_rest),
            (planes, rest, leaves),
            "{ports}"
        );
    }
}

#[test]
fn h004_error_the_last_line_of_the_count() {
    let fabric = |ports, spines| LeafSpineFabric::new(ports, 40, spines).unwrap();
    // The last line of eq. (5) as the paper prints it.
    let as_printed = |ports, spines| {
        let fabric: LeafSpineFabric = fabric(ports, spines);
        fabric.leaves_rest + fabric.spines * (fabric.planes_full + 1) + fabric.switch_ports
    };
    assert_eq!(fabric(800, 6).switches().value, Count(30));
    assert_eq!(as_printed(800, 6), 70);
    // No ports are left over: the plane that the paper buys spines for does not exist.
    assert_eq!(fabric(1_360, 6).switches().value, Count(46));
    assert_eq!(as_printed(1_360, 6), 52);
    // Two full planes: the factor on their leaves is lost.
    assert_eq!(fabric(3_000, 6).switches().value, Count(9 + 6 + 2 * 46));
    assert_eq!(as_printed(3_000, 6), 9 + 3 * 6 + 40);
}

#[test]
fn h005_unit_prices() {
    let catalogue = Catalogue::shipped();
    let router = catalogue.router;
    assert_eq!(
        [catalogue.server.price, router.chassis_price, router.module_price, router.fabric_price]
            .map(|price| price.0),
        [1_200_000, 6_280_800, 3_305_800, 470_900]
    );
    assert_eq!((catalogue.currency.as_str(), router.module_ports, router.module_slots), ("GBP", 24, 32));
}

#[test]
fn h006_chips_for_400_gigabit() {
    let chips = Catalogue::shipped().chips;
    let price = |price: Price, each: Rate| 400_000_000_000_u64.div_ceil(each.get()) * price.0;
    let adapters = price(chips.adapter_price, chips.adapter_bandwidth);
    let multi_host = price(chips.multi_host_price, chips.multi_host_bandwidth);
    assert_eq!((adapters, multi_host), (159_990, 115_560));
    assert_eq!(chips.currency, "USD");
}

#[test]
fn h007_oversubscription() {
    // Seven racks and 25 readout hosts a pod: 32 ports of a leaf over six spines.
    assert_eq!(
        printed(LeafSpineFabric::new(800, 38, 6).unwrap().oversubscription().value.0.get(), 100_000),
        53
    );
}

#[test]
fn h008_routers_cost_2_5_to_3_7_times_as_much() {
    let catalogue = Catalogue::shipped();
    let ratio = |ports, spines| factor(compare(ports, spines, &catalogue).unwrap().price_ratio.value);
    near(ratio(100, 6), 2.46, 0.002);
    near(ratio(800, 6), 3.68, 0.001);
    for hundreds in 1..=8 {
        assert!(
            (2.46..=3.69).contains(&ratio(hundreds * 100, 6)),
            "{hundreds}00 ports: {}",
            ratio(hundreds * 100, 6)
        );
    }
    near(ratio(100, 20), 0.89, 0.005);
    near(ratio(800, 20), 1.84, 0.001);
    // The advantage grows with oversubscription, that is with fewer spines.
    for ports in [100, 400, 800] {
        assert!(ratio(ports, 2) > ratio(ports, 6) && ratio(ports, 6) > ratio(ports, 20));
    }
}

#[test]
fn h009_routers_are_cheaper_for_few_ports_without_oversubscription() {
    let catalogue = Catalogue::shipped();
    let ratio = |ports| factor(compare(ports, 20, &catalogue).unwrap().price_ratio.value);
    for ports in 1..=100 {
        assert!(ratio(ports) < 1.0, "{ports}");
    }
    // In steps of ten ports from 0.53 to 0.89; the least is that of a second leaf with one module.
    let tens = (1..=10).map(|tens| ratio(tens * 10));
    let (low, high) = tens.fold((f64::MAX, 0.0_f64), |(low, high), ratio| (low.min(ratio), high.max(ratio)));
    near(low, 0.53, 0.005);
    near(high, 0.89, 0.005);
    near(ratio(21), 0.506, 0.001);
}

#[test]
fn h010_software_switches_take_more_floor() {
    let catalogue = Catalogue::shipped();
    let ratio = |ports, spines| factor(compare(ports, spines, &catalogue).unwrap().area_ratio.value);
    // Two spines, the highest oversubscription that still has a second path: two to five times, in steps of cabinets.
    for hundreds in 1..=8 {
        assert!((2.3..5.0).contains(&ratio(hundreds * 100, 2)), "{}", ratio(hundreds * 100, 2));
    }
    assert!(ratio(800, 20) > ratio(800, 6) && ratio(800, 6) > ratio(800, 2));
}

#[test]
fn h020_ideal_collection_time_of_the_scaled_down_system() {
    let answer = Bytes::new(24 * 1_000);
    let wire = wire_bytes(&STAMPED, answer, 12).value;
    let hundredths = |rtt, rate| printed(collection_time_ideal(rtt, wire, rate).value.as_nanos(), 10_000);
    assert_eq!(hundredths(Duration::from_micros(200), GIGABIT), 265);
    // Thirty collectors share the 10 Gb/s uplink; here the round trip is left out.
    assert_eq!(hundredths(Duration::ZERO, Rate::new(TEN_GIGABIT.get() / 30)), 735);
}

#[test]
fn m006_window_of_the_many_to_one_switch() {
    let (buffer, header, mss) = (Bytes::new(64 << 10), Bytes::new(42), Bytes::new(576));
    for flows in [1, 16, 64, 106] {
        let window = m21tcp_window(buffer, flows, header).value;
        assert_eq!(window.get(), ((64 << 10) - 42 * flows) / flows);
        // With every packet's header charged the same buffer grants less, and that never overflows.
        let packets = m21tcp_packets(buffer, flows, mss, header).value;
        assert!((mss + header) * packets.get() * flows <= buffer);
    }
    // Headers are charged once a flow, not once a packet. A sender that fills its window to the last byte overflows
    // the buffer by 4 to 7 per cent.
    for (flows, per_mille) in [(8, 1_072), (16, 1_072), (32, 1_062), (64, 1_041)] {
        let occupancy = m21tcp_occupancy(buffer, flows, mss, header).value;
        assert_eq!(printed(occupancy.get() * 1_000, buffer.get()), per_mille, "{flows}");
    }
}

#[test]
fn m019_most_senders() {
    let buffer = Bytes::new(64 << 10);
    for (mss, senders) in [(576, 106), (1_460, 43)] {
        let header = Bytes::new(42);
        assert_eq!(m21tcp_senders_max(buffer, Bytes::new(mss), header).value, Count(senders));
        assert!(m21tcp_window(buffer, senders, header).value >= Bytes::new(mss));
        assert!(m21tcp_window(buffer, senders + 1, header).value < Bytes::new(mss));
    }
}

/// Claims that need a simulation, as far as arithmetic carries their notes.
mod bounds_of_simulated_claims {
    use super::*;

    #[test]
    fn m008_error_940_megabit_cannot_be_goodput_on_ethernet() {
        let share = |framing: SegmentFraming| {
            let framing = SegmentFraming { mss_max: 576, ..framing };
            printed(payload_share_max(&framing).value.get(), 1_000)
        };
        assert_eq!(share(PLAIN), 881);
        // ns-3's point-to-point links add a header of two bytes.
        let framing = FrameOverhead::POINT_TO_POINT;
        assert_eq!(share(SegmentFraming { framing, ..PLAIN }), 932);
    }

    #[test]
    fn t038_48_credits_keep_87_per_cent_of_the_link_busy() {
        let requests = Requests::new(&PLAIN, 160, 12, Bytes::new(1_100));
        let share = credit_utilisation(48, &requests, GIGABIT, Duration::from_micros(400)).value;
        assert_eq!(printed(share.get(), 10_000), 87);
    }

    #[test]
    fn t089_t095_buffers_for_log_normal_events() {
        // §6.5. Buffers of 3 and 3.5 MB a port overflow for about 6 % and 1.6 % of log-normal events.
        let size = EventSize { mean: STAMPED.message(ANSWER).buffered * 160, sigma: 0.25 };
        for (buffer, share) in [(3_000, 0.062), (3_500, 0.016)] {
            let computed =
                overflow_share(kilobytes(buffer), size, UPLINKS, GIGABIT, Bytes::ZERO).value.as_f64();
            assert!((computed - share).abs() < 0.003, "{buffer} kB: {computed}");
        }
    }

    #[test]
    fn t092_t094_shared_memory_for_log_normal_events() {
        // §6.5: 20 and 24 MB. 99.9 % of the peaks of the fluid model stay within a fifth of that.
        let size = EventSize { mean: STAMPED.message(ANSWER).buffered * 160, sigma: 0.25 };
        for (rate, megabytes) in [(500, 20.0), (1_000, 24.0)] {
            let shared = SharedLoad {
                size,
                rate: hertz(rate),
                inflow: UPLINKS,
                outflow: GIGABIT,
                ports: 39,
                assignment: PortChoice::InTurn,
            };
            near(shared.memory(0.999).value.get() as f64, megabytes * 1e6, 0.2);
        }
    }

    #[test]
    fn i022_two_khz_of_full_events_exceed_the_uplink() {
        let offered = throughput(hertz(2_000), Bytes::new(1_940_400)).value;
        assert_eq!(printed(offered.get(), GIGABIT.get()), 31);
    }
}
