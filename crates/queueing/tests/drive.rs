//! Both drivers of a memory, and a model that recomputes all sums for each arrival, give the same verdicts, departures,
//! counters and high-water marks.

use fanin_queueing::{
    AdmissionLimit, Aqm, AqmDecision, BookedDedicated, BookedMemory, BufferingSettings, Departed, Depth,
    EcnCodepoint, Frame, InService, Layout, Memory, NaiveMemory, NotCapable, Occupancy, OutputBuffer,
    OutputLink, Passage, PoolBy, PortLimits, Red, RedSettings, SharedSettings, Threshold, Verdict,
};
use fanin_units::{Bytes, Duration, Instant, Packets, Rate, Ratio};
use proptest::prelude::*;

const PORTS: usize = 20;

/// A frame in the memory of the naive switch.
struct Live {
    release: Instant,
    input: usize,
    output: usize,
    bytes: u32,
}

/// A switch that keeps a list of all frames and recomputes all sums for each arrival.
struct Naive {
    layout: Layout,
    links: Vec<OutputLink>,
    in_service: InService,
    live: Vec<Live>,
    free_at: [Instant; PORTS],
    emptied_at: [Instant; PORTS],
    output_max: [(u64, u64); PORTS],
    input_max: [u64; PORTS],
    pool_max: Vec<u64>,
    aqms: Vec<Aqm>,
    enqueued: [u64; PORTS],
    dropped: [[u64; AdmissionLimit::ALL.len()]; PORTS],
}

impl Naive {
    fn new(layout: Layout, links: Vec<OutputLink>, in_service: InService, aqms: Vec<Aqm>) -> Self {
        let pools = layout.pool_sizes().len();
        Self {
            layout,
            links,
            in_service,
            live: Vec::new(),
            free_at: [Instant::START; PORTS],
            emptied_at: [Instant::START; PORTS],
            output_max: [(0, 0); PORTS],
            input_max: [0; PORTS],
            pool_max: vec![0; pools],
            aqms,
            enqueued: [0; PORTS],
            dropped: [[0; AdmissionLimit::ALL.len()]; PORTS],
        }
    }

    fn charge(&self, bytes: u32) -> u64 {
        let cell = self.layout.cell().get();
        (u64::from(bytes) + self.layout.frame_overhead().get()).div_ceil(cell) * cell
    }

    fn pool(&self, input: usize, output: usize) -> Option<usize> {
        match self.layout.buffering() {
            BufferingSettings::Dedicated => None,
            BufferingSettings::Shared(SharedSettings { by: PoolBy::Output(pools), .. }) => {
                Some(pools[output])
            }
            BufferingSettings::Shared(SharedSettings { by: PoolBy::Input(pools), .. }) => Some(pools[input]),
            BufferingSettings::DynamicThreshold(_) => Some(0),
            BufferingSettings::Voq(settings) => Some(input / settings.ports_per_module),
        }
    }

    fn held(&self, wanted: impl Fn(&Live) -> bool) -> u64 {
        self.live.iter().filter(|live| wanted(live)).map(|live| self.charge(live.bytes)).sum()
    }

    fn frames(&self, output: usize) -> u64 {
        self.live.iter().filter(|live| live.output == output).count() as u64
    }

    fn settle(&mut self, now: Instant) {
        for output in 0..PORTS {
            let before = self.frames(output);
            let last = self.live.iter().filter(|live| live.output == output).map(|live| live.release).max();
            if before > 0 && last.unwrap() <= now {
                self.emptied_at[output] = last.unwrap();
            }
        }
        self.live.retain(|live| live.release > now);
    }

    fn arrive(&mut self, now: Instant, input: usize, output: usize, frame: Frame, random: u32) -> Passage {
        self.settle(now);
        let charge = self.charge(frame.bytes);
        let of_output = self.held(|live| live.output == output);
        let of_input = self.held(|live| live.input == input);
        let pool = self.pool(input, output);
        let of_pool = pool.map(|pool| self.held(|live| self.pool(live.input, live.output) == Some(pool)));
        let of_voq = pool.map(|pool| {
            self.held(|live| live.output == output && self.pool(live.input, live.output) == Some(pool))
        });
        let queue = Occupancy { bytes: of_output, frames: self.frames(output), ..Default::default() };
        let emptied_at = self.emptied_at[output];
        let decision = self.aqms[output].decide(now, &queue, emptied_at, frame, || random);
        let layout = &self.layout;
        let over = |held: u64, limit: Bytes| held + charge > limit.get();
        let (mut input_limit, mut voq_limit, mut alpha, mut full) = (None, None, None, AdmissionLimit::Pool);
        match layout.buffering() {
            BufferingSettings::Dedicated => {}
            BufferingSettings::Shared(settings) => input_limit = Some(settings.input_limits[input]),
            BufferingSettings::DynamicThreshold(settings) => alpha = Some(settings.alpha),
            BufferingSettings::Voq(settings) => {
                (voq_limit, full) = (Some(settings.queue_limit), AdmissionLimit::Module);
            }
        }
        let refused = if decision == AqmDecision::Drop {
            Some(AdmissionLimit::Early)
        } else if over(of_output, layout.output_limits()[output]) {
            Some(AdmissionLimit::Output)
        } else if input_limit.is_some_and(|limit| over(of_input, limit)) {
            Some(AdmissionLimit::Input)
        } else if let Some(pool) = pool {
            let (of_pool, of_voq) = (of_pool.unwrap(), of_voq.unwrap());
            let size = layout.pool_sizes()[pool];
            let free = size.get() - of_pool;
            if voq_limit.is_some_and(|limit| over(of_voq, limit)) {
                Some(AdmissionLimit::Voq)
            } else if alpha.is_some_and(|alpha| of_output * 1_000_000 >= free * alpha.get()) {
                Some(AdmissionLimit::Dynamic)
            } else if over(of_pool, size) {
                Some(full)
            } else {
                None
            }
        } else {
            None
        };
        if let Some(limit) = refused {
            self.dropped[output][limit as usize] += 1;
            return Passage::Dropped(limit);
        }
        let start = now.max(self.free_at[output]);
        let wire = Bytes::new(u64::from(frame.bytes) + 20);
        let end = start + self.links[output].rate().time_to_send(wire);
        self.free_at[output] = end;
        let release = if self.in_service == InService::Counted { end } else { start };
        self.live.push(Live { release, input, output, bytes: frame.bytes });
        self.enqueued[output] += 1;
        self.output_max[output].0 = self.output_max[output].0.max(of_output + charge);
        self.output_max[output].1 = self.output_max[output].1.max(self.frames(output));
        self.input_max[input] = self.input_max[input].max(of_input + charge);
        if let Some(pool) = pool {
            self.pool_max[pool] = self.pool_max[pool].max(of_pool.unwrap() + charge);
        }
        Passage::Queued { start, end, marked: decision == AqmDecision::Mark }
    }
}

/// One of every scheme, small enough that each limit is met.
fn layouts() -> impl Strategy<Value = Layout> {
    let size = 2_000u64..60_000;
    let scheme = prop_oneof![
        Just(Layout::unlimited(PORTS)),
        proptest::collection::vec(size.clone(), PORTS)
            .prop_map(|limits| Layout::dedicated(limits.into_iter().map(Bytes::new).collect())),
        size.clone().prop_map(|pool| Layout::shared(PORTS, Bytes::new(pool))),
        (size.clone(), 1_600u64..20_000).prop_map(|(pool, port)| {
            let [input, output] = [port + 1_000, port].map(Bytes::new);
            Layout::shared_split(Bytes::new(pool), 0, false, PortLimits { ports: PORTS, input, output })
        }),
        (size.clone(), 1_600u64..20_000).prop_map(|(pool, port)| {
            let [input, output] = [port; 2].map(Bytes::new);
            let limits = PortLimits { ports: PORTS, input, output };
            Layout::shared_split(Bytes::new(pool), PORTS / 2, true, limits)
        }),
        (size.clone(), 100_000u64..8_000_000).prop_map(|(pool, alpha)| Layout::dynamic_threshold(
            PORTS,
            Bytes::new(pool),
            Ratio::new(alpha)
        )),
        (size, 1_600u64..20_000).prop_map(|(module, voq)| Layout::voq(
            PORTS,
            8,
            Bytes::new(module),
            Bytes::new(voq)
        )),
    ];
    (scheme, 0u64..64, prop_oneof![Just(1u64), Just(208)])
        .prop_map(|(scheme, overhead, cell)| scheme.with_cells(Bytes::new(overhead), Bytes::new(cell)))
}

fn links() -> impl Strategy<Value = Vec<OutputLink>> {
    let rate = prop_oneof![
        Just(1_000_000_000u64),
        Just(10_000_000_000),
        Just(780_000_000),
        100_000_000..400_000_000_000u64
    ];
    proptest::collection::vec(rate.prop_map(|rate| OutputLink::new(Rate::new(rate), Bytes::new(20))), PORTS)
}

fn aqms() -> impl Strategy<Value = Vec<Aqm>> {
    let red = |ecn| {
        let settings = RedSettings {
            depth_min: Depth::Bytes(Bytes::new(3_000)),
            depth_max: Depth::Bytes(Bytes::new(9_000)),
            weight: Ratio::new(250_000),
            probability_max: Ratio::new(500_000),
            gentle: true,
            ecn,
            hard_drop: ecn,
            packet_mean: Bytes::new(1_500),
            packet_time: Duration::from_micros(12),
        };
        Aqm::Red(Red::new(settings).unwrap())
    };
    let threshold =
        |not_capable| Aqm::Threshold(Threshold { depth: Depth::Packets(Packets::new(4)), not_capable });
    let one = prop_oneof![
        3 => Just(Aqm::None),
        1 => Just(threshold(NotCapable::Drop)),
        1 => Just(threshold(NotCapable::Pass)),
        1 => any::<bool>().prop_map(red),
    ];
    prop_oneof![Just(vec![Aqm::None; PORTS]), proptest::collection::vec(one, PORTS)]
}

#[derive(Debug, Clone)]
struct Arrival {
    gap: u64,
    input: usize,
    output: usize,
    frame: Frame,
    random: u32,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    // Gaps from zero to longer than any queue. There are few outputs at first, so that queues build up.
    let gap =
        prop_oneof![3 => Just(0u64), 6 => 0u64..3_000_000, 2 => 0u64..60_000_000, 1 => 0u64..2_000_000_000];
    let output = prop_oneof![3 => 0usize..3, 1 => 0usize..PORTS];
    let bytes = prop_oneof![Just(64u32), Just(1518), 64u32..9018];
    let one = (gap, 0usize..PORTS, output, bytes, any::<bool>(), any::<u32>());
    proptest::collection::vec(
        one.prop_map(|(gap, input, output, bytes, ecn, random)| Arrival {
            gap,
            input,
            output,
            frame: Frame { bytes, ecn: if ecn { EcnCodepoint::Capable } else { EcnCodepoint::NotCapable } },
            random,
        }),
        1..400,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn lazy_release_equals_an_eager_switch(
        layout in layouts(), links in links(), aqms in aqms(), arrivals in arrivals(), free in any::<bool>(),
    ) {
        let in_service = if free { InService::Free } else { InService::Counted };
        let mut lazy = BookedMemory::new(&layout, &links, in_service).unwrap();
        for (output, aqm) in aqms.iter().enumerate().filter(|(_, aqm)| !matches!(aqm, Aqm::None)) {
            lazy.set_aqm(output, aqm.clone());
        }
        let mut naive = Naive::new(layout, links, in_service, aqms);
        let mut now = Instant::START;
        let mut offered = [0u64; PORTS];
        for (step, arrival) in arrivals.iter().enumerate() {
            now = now + Duration::new(arrival.gap);
            let Arrival { input, output, frame, random, .. } = *arrival;
            offered[output] += 1;
            let expected = naive.arrive(now, input, output, frame, random);
            let passage = lazy.arrive(now, input, output, frame.bytes, || frame.ecn, || random);
            prop_assert_eq!(passage, expected, "step {}", step);
            // Only rarely, so that departures are also settled late.
            if step % 7 == 6 {
                let queue = *lazy.occupancy(now, output);
                prop_assert_eq!(queue.bytes, {
                    naive.settle(now);
                    naive.held(|live| live.output == output)
                });
            }
        }
        lazy.settle(now);
        naive.settle(now);
        let memory = lazy.memory();
        for (port, &offered) in offered.iter().enumerate() {
            let held = memory.occupancy(port);
            prop_assert_eq!(held.bytes, naive.held(|live| live.output == port));
            prop_assert_eq!(held.frames, naive.frames(port));
            prop_assert_eq!((held.bytes_max, held.frames_max), naive.output_max[port]);
            if let Some(held) = memory.input(port) {
                prop_assert_eq!(held.bytes, naive.held(|live| live.input == port));
                prop_assert_eq!(held.bytes_max, naive.input_max[port]);
            }
            let counters = memory.counters(port);
            prop_assert_eq!(counters.enqueued.frames, naive.enqueued[port]);
            for limit in AdmissionLimit::ALL {
                prop_assert_eq!(counters.dropped_by(limit).frames, naive.dropped[port][limit as usize]);
            }
            prop_assert_eq!(offered, counters.enqueued.frames + counters.dropped_total().frames);
            prop_assert_eq!(counters.enqueued.frames, counters.departed.frames + held.frames);
            let queued: u64 = naive.live.iter().filter(|live| live.output == port).map(|live| u64::from(live.bytes)).sum();
            prop_assert_eq!(counters.enqueued.bytes, counters.departed.bytes + queued);
        }
        for pool in 0..memory.pools_len() {
            let held = memory.pool(pool);
            prop_assert_eq!(held.bytes, naive.held(|live| naive.pool(live.input, live.output) == Some(pool)));
            prop_assert_eq!(held.bytes_max, naive.pool_max[pool]);
        }
    }
}

/// The result of each arrival: start and end of its departure and whether it is marked, or the limit that refused it.
type Fates = Vec<Result<(Instant, Instant, bool), AdmissionLimit>>;

/// Plays arrivals at a naively driven memory. Also returns the occupancy of the frame's output after each arrival.
fn by_naive(
    layout: &Layout,
    links: &[OutputLink],
    in_service: InService,
    aqms: &[Aqm],
    arrivals: &[Arrival],
) -> (Fates, Vec<Occupancy>, NaiveMemory<usize>) {
    let mut naive = NaiveMemory::new(layout, links, in_service).unwrap();
    aqms.iter().enumerate().for_each(|(output, aqm)| naive.set_aqm(output, aqm.clone()));
    let mut fates: Fates = vec![Err(AdmissionLimit::Ring); arrivals.len()];
    let (mut now, mut queues, mut departed) = (Instant::START, Vec::new(), Vec::new());
    for (step, arrival) in arrivals.iter().enumerate() {
        now = now + Duration::new(arrival.gap);
        while let Some(at) = naive.next_departure().filter(|&at| at <= now) {
            departed.extend(naive.depart(at));
        }
        let Arrival { input, output, frame, random, .. } = *arrival;
        let (verdict, begun) = naive.arrive(now, input, output, frame, step, || random);
        departed.extend(begun);
        fates[step] = match verdict {
            // Its times are filled in when it departs.
            Verdict::Accepted { marked } => Ok((Instant::START, Instant::START, marked)),
            Verdict::Dropped(limit) => Err(limit),
        };
        queues.push(*naive.memory().occupancy(output));
    }
    while let Some(at) = naive.next_departure() {
        departed.extend(naive.depart(at));
    }
    for Departed { output, start, end, handle } in departed {
        assert_eq!(output, arrivals[handle].output);
        let (from, until, _) = fates[handle].as_mut().expect("only accepted frames depart");
        (*from, *until) = (start, end);
    }
    (fates, queues, naive)
}

fn fate(passage: Passage) -> Result<(Instant, Instant, bool), AdmissionLimit> {
    match passage {
        Passage::Queued { start, end, marked } => Ok((start, end, marked)),
        Passage::Dropped(limit) => Err(limit),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn booked_departures_equal_those_that_are_asked_for(
        layout in layouts(), links in links(), aqms in aqms(), arrivals in arrivals(), free in any::<bool>(),
    ) {
        let in_service = if free { InService::Free } else { InService::Counted };
        let (fates, queues, naive) = by_naive(&layout, &links, in_service, &aqms, &arrivals);
        let mut booked = BookedMemory::new(&layout, &links, in_service).unwrap();
        aqms.iter().enumerate().for_each(|(output, aqm)| booked.set_aqm(output, aqm.clone()));
        let mut now = Instant::START;
        for (step, arrival) in arrivals.iter().enumerate() {
            now = now + Duration::new(arrival.gap);
            let Arrival { input, output, frame, random, .. } = *arrival;
            prop_assert_eq!(fate(booked.arrive(now, input, output, frame.bytes, || frame.ecn, || random)), fates[step]);
            if step % 7 == 6 {
                booked.settle(now);
                prop_assert_eq!(*booked.memory().occupancy(output), queues[step]);
            }
            booked.assert_conserved();
        }
        booked.settle(Instant::new(u64::MAX - 1));
        booked.assert_conserved();
        naive.assert_conserved();
        for port in 0..PORTS {
            prop_assert_eq!((booked.memory().occupancy(port).bytes, naive.memory().occupancy(port).bytes), (0, 0));
            prop_assert_eq!(booked.memory().counters(port), naive.memory().counters(port));
        }
    }

    #[test]
    fn a_dedicated_buffer_alone_equals_one_in_a_memory(
        limit in 2_000_u64..60_000, links in links(), aqms in aqms(), arrivals in arrivals(), free in any::<bool>(),
    ) {
        let in_service = if free { InService::Free } else { InService::Counted };
        let layout = Layout::dedicated(vec![Bytes::new(limit); PORTS]);
        let (fates, queues, _) = by_naive(&layout, &links, in_service, &aqms, &arrivals);
        let mut outputs: Vec<BookedDedicated> = (0..PORTS)
            .map(|output| {
                let mut buffer = OutputBuffer::of(&layout, output);
                buffer.set_aqm(aqms[output].clone());
                BookedDedicated::new(buffer, links[output], in_service)
            })
            .collect();
        let mut now = Instant::START;
        for (step, arrival) in arrivals.iter().enumerate() {
            now = now + Duration::new(arrival.gap);
            let out = &mut outputs[arrival.output];
            prop_assert_eq!(fate(out.arrive(now, arrival.frame.bytes, || arrival.frame.ecn, || arrival.random)), fates[step]);
            if step % 7 == 6 {
                out.settle(now);
                prop_assert_eq!(*out.buffer().occupancy(), queues[step]);
            }
            out.assert_conserved();
        }
    }
}

fn gigabit() -> OutputLink {
    OutputLink::new(Rate::new(1_000_000_000), Bytes::new(20))
}

/// The ECN bits of a frame that must not be marked.
fn not_capable() -> EcnCodepoint {
    EcnCodepoint::NotCapable
}

#[test]
fn the_frame_in_service_counts_only_where_asked() {
    for (in_service, held) in [(InService::Counted, 3), (InService::Free, 4)] {
        let layout = Layout::dedicated(vec![Bytes::new(3 * 1_500)]);
        let mut port = BookedMemory::new(&layout, &[gigabit()], in_service).unwrap();
        let mut accepted = 0;
        for _ in 0..10 {
            let passage = port.arrive(Instant::START, 0, 0, 1_500, not_capable, || 0);
            accepted += u32::from(matches!(passage, Passage::Queued { .. }));
        }
        assert_eq!(accepted, held);
        assert_eq!(port.memory().occupancy(0).bytes_max, 4_500);
    }
}

#[test]
fn a_departure_at_the_instant_of_an_arrival_comes_first() {
    let layout = Layout::shared(2, Bytes::new(1_500));
    let mut switch = BookedMemory::new(&layout, &[gigabit(), gigabit()], InService::Counted).unwrap();
    let Passage::Queued { start, end, .. } = switch.arrive(Instant::START, 0, 0, 1_500, not_capable, || 0)
    else {
        panic!("an empty pool takes a frame");
    };
    assert_eq!((start, end), (Instant::START, Instant::new(12_160_000)));
    let early = Instant::new(end.get() - 1);
    assert_eq!(switch.arrive(early, 0, 1, 1_500, not_capable, || 0), Passage::Dropped(AdmissionLimit::Pool));
    assert!(matches!(switch.arrive(end, 0, 1, 1_500, not_capable, || 0), Passage::Queued { .. }));
    switch.reset_high_water_marks(end + Duration::from_millis(1));
    assert_eq!(switch.memory().pool(0).bytes_max, 0);
}

#[test]
fn switches_of_the_thesis() {
    // Switch A (§4.2.1): a full port does not delay a frame for another port.
    let limits = [vec![Bytes::new(786_000); 48], vec![Bytes::new(4_800_000); 4]].concat();
    let mut switch = Memory::new(&Layout::dedicated(limits)).unwrap();
    let fill = |switch: &mut Memory, input, output| {
        let mut frames = 0;
        loop {
            match switch.arrive(Instant::START, input, output, Frame::new(1_518), || 0) {
                Verdict::Accepted { .. } => frames += 1,
                Verdict::Dropped(limit) => return (frames, limit),
            }
        }
    };
    assert_eq!(fill(&mut switch, 48, 0), (786_000 / 1_518, AdmissionLimit::Output));
    assert_eq!(fill(&mut switch, 0, 48), (4_800_000 / 1_518, AdmissionLimit::Output));

    // Switch B: the first 32 ports share one pool, the others and the two uplinks another; 8 MB a port.
    let [input, output] = [8_000_000; 2].map(Bytes::new);
    let layout =
        Layout::shared_split(Bytes::new(12_600_000), 32, true, PortLimits { ports: 50, input, output });
    let mut switch = Memory::new(&layout).unwrap();
    assert_eq!(fill(&mut switch, 48, 0), (8_000_000 / 1_518, AdmissionLimit::Output));
    // The first uplink has met its own limit; the other one finds the rest of the pool.
    assert_eq!(fill(&mut switch, 48, 1), (0, AdmissionLimit::Input));
    assert_eq!(fill(&mut switch, 49, 1), (12_600_000 / 1_518 - 8_000_000 / 1_518, AdmissionLimit::Pool));
    assert_eq!(fill(&mut switch, 0, 2), (8_000_000 / 1_518, AdmissionLimit::Output));

    // Core router: modules of 8 ports; a full module does not affect another one.
    let layout = Layout::voq(16, 8, Bytes::new(100_000), Bytes::new(60_000));
    let mut router = Memory::new(&layout).unwrap();
    assert_eq!(fill(&mut router, 0, 9), (39, AdmissionLimit::Voq));
    assert_eq!(fill(&mut router, 1, 10), (26, AdmissionLimit::Module));
    assert_eq!(fill(&mut router, 8, 9), (39, AdmissionLimit::Voq));
}

#[test]
fn dynamic_thresholds_leave_memory_free() {
    // With one overloaded queue and alpha = 1, half of the pool stays free (Choudhury and Hahne, §II).
    let layout = Layout::dynamic_threshold(4, Bytes::new(100_000), Ratio::ONE);
    let mut memory = Memory::new(&layout).unwrap();
    let mut fill = |output| {
        let mut bytes = 0;
        while memory.arrive(Instant::START, 0, output, Frame::new(100), || 0).is_accepted() {
            bytes += 100;
        }
        bytes
    };
    assert_eq!(fill(0), 50_000);
    assert_eq!(fill(1), 25_000);
}

#[test]
fn withdrawing_an_admission_counts_a_drop() {
    let mut memory = Memory::new(&Layout::shared(2, Bytes::new(10_000))).unwrap();
    assert!(memory.arrive(Instant::START, 0, 1, Frame::new(1_000), || 0).is_accepted());
    memory.withdraw(0, 1, 1_000, AdmissionLimit::Ring);
    let counters = memory.counters(1);
    assert_eq!((counters.enqueued.frames, counters.dropped_by(AdmissionLimit::Ring).frames), (0, 1));
    assert_eq!(memory.pool(0).bytes, 0);
}

#[test]
fn impossible_layouts_are_refused() {
    use fanin_queueing::LayoutError;
    let refuse = |layout: Layout| layout.check().unwrap_err();
    assert_eq!(refuse(Layout::unlimited(0)), LayoutError::NoPorts);
    assert!(matches!(refuse(Layout::unlimited(100_000)), LayoutError::Ports { actual: 100_000, .. }));
    let shared = || Layout::shared(4, Bytes::new(1));
    let by = |by| {
        let input_limits = vec![Bytes::MAX; 4];
        let pools = SharedSettings { sizes: vec![Bytes::new(1)], by, input_limits };
        Layout::new(vec![Bytes::MAX; 4], BufferingSettings::Shared(pools))
    };
    assert_eq!(refuse(by(PoolBy::Output(vec![0; 3]))), LayoutError::Assignment { actual: 3, needed: 4 });
    let wrong = by(PoolBy::Output(vec![0, 0, 1, 0]));
    assert_eq!(refuse(wrong), LayoutError::Pool { port: 2, pool: 1, pools: 1 });
    assert_eq!(refuse(Layout::voq(4, 0, Bytes::new(1), Bytes::new(1))), LayoutError::Module);
    assert_eq!(refuse(shared().with_cells(Bytes::ZERO, Bytes::ZERO)), LayoutError::Cell);
    assert!(matches!(refuse(shared().with_cells(Bytes::MAX, Bytes::new(1))), LayoutError::Overhead { .. }));
}
