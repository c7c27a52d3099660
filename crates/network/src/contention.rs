//! Bounds under contention: the least mean and p99 of any schedule of a run's answers.
//!
//! A collection's own ideal assumes that its links are free. Two collections on one link cannot both reach it. Here
//! each shared link is a link machine, and each collection is a job. A job is released when the assignment can have reached its
//! collector over idle links. Its length is the time of its bytes on the link. Every schedule of the network is a preemptive
//! schedule of that link machine. So a bound for all preemptive schedules is a bound for the network.
//!
//! There are two kinds of link machines. One is the last links of a collector. The other is the sum of the links by which its
//! answers enter its switches. If several collectors are on one host, it is the last links of that host. Acknowledgements,
//! requests, retransmissions and other traffic are left out. They take time from the link machine, so that the bounds stay valid.
//!
//! **Why no run is below.** (1) A frame with bytes of several answers (TCP joins answers that wait) counts for each of
//! them by its share of a full payload. These shares are at most the frame. So a job's length is its bytes in full frames.
//! (2) The last byte leaves the link machine after the job's length. In addition there is the round trip, as no answer passes
//! before its request. The bytes come after their own collection's round trip, and all have the same way behind the link machine.
//! So each job is played from the end of its round trip on. On the inputs the round trip is counted without a frame's time
//! there, since the job has it. (3) In any schedule, the jobs of a busy period alone are a schedule of these jobs. So the
//! least sum of each period is a bound of its part. So is the least sum of some of its jobs, with the least times of the
//! others; the largest of these counts. (4) The least time of one collection holds in every schedule in which the readouts
//! draw the same delays. It assumes that parts of one readout's answer share no frame. (5) The inputs run ahead of the last
//! links only as far as the switch between them has memory (`memory`). (6) A ring in front of a collector is another link machine
//! (`ring`).

mod figures;
mod link_machine;
mod memory;
mod ring;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use fanin_units::wire::FrameOverhead;
use fanin_units::{Bytes, Duration, Instant, Rate};

use self::figures::rank_p99;
pub use self::figures::{MeanAndTail, ScheduleFigures};
use self::link_machine::{LinkJob, LinkMachine, least_level, mean_busy_times};
use self::memory::{SwitchMemory, bytes_per_picosecond, excess};
use self::ring::RingLimit;
use crate::{Network, NodeIndex, Paths, PortIndex, Roles, Spread};

/// A measured collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredCollection {
    /// The collector's index in [`Roles::collectors`].
    pub collector: u32,
    /// The time from which its collector could ask for answers: the assignment has passed idle links.
    pub released: Instant,
    /// Bytes and least time.
    pub work: CollectionWork,
    /// The collection's time with all links free.
    pub ideal: Duration,
}

/// Bytes and least time of a collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectionWork {
    /// Bytes of all answers on the wire.
    pub wire_bytes: u64,
    /// The same in full frames, each of which may carry bytes of several answers; at most `wire_bytes`.
    pub joined_bytes: u64,
    /// The least time with all links free and the delays that the readouts drew; at least the ideal.
    pub least: Duration,
}

/// The bounds of a run's collections.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ContentionBound {
    /// Figures that no schedule undercuts.
    pub least: ScheduleFigures,
    /// The figures of a schedule that knows all collections in advance. Every link serves the collection with the shortest
    /// remaining time first, and no queues are elsewhere.
    pub clairvoyant: ScheduleFigures,
}

/// Collectors with answers over the same links: those by which they enter their switches, or those of their common host.
#[derive(Clone, PartialEq, Eq, Debug)]
struct SharedInputs {
    collectors: Vec<u32>,
    /// The links; `None` if they cannot be the bottleneck.
    links: Option<ParallelLinks>,
    /// The frame on the wire whose time on these links is a part of a collection's ideal outside its last link. Zero if
    /// these are the last links.
    frame: Bytes,
    /// The memory behind these links; `None` without a limit.
    memory: Option<SwitchMemory>,
}

/// Links that share a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ParallelLinks {
    /// The sum of their rates.
    rate: Rate,
    slowest: Rate,
}

impl ParallelLinks {
    fn new(network: &Network, ports: impl Iterator<Item = PortIndex>) -> Self {
        let none = Self { rate: Rate::new(0), slowest: Rate::MAX };
        ports.map(|port| network.link(port).rate).fold(none, |all, rate| Self {
            rate: Rate::new(all.rate.get() + rate.get()),
            slowest: all.slowest.min(rate),
        })
    }
}

/// The links that collections share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedLinks {
    /// Each collector's own links.
    own: Vec<ParallelLinks>,
    /// The ring in front of each collector, if it is slower.
    rings: Vec<Option<RingLimit>>,
    inputs: Vec<SharedInputs>,
    /// The least time from an assignment until each collector receives it.
    notices: Vec<Duration>,
}

/// The least time from an assignment until each collector receives it: a frame without payload on idle links. Zero
/// without a supervisor.
fn notices(network: &Network, roles: &Roles) -> Vec<Duration> {
    let frame = Bytes::new(u64::from(network.framing.wire_bytes(FrameOverhead::HEADER_BYTES)));
    let pass = |port: PortIndex| {
        let link = network.link(port);
        link.delay + network.latency(port) + link.rate.time_to_send(frame)
    };
    let Some(supervisor) = roles.supervisor else { return vec![Duration::ZERO; roles.collectors.len()] };
    let mut paths = Paths::new(network).expect("a network that was checked");
    let mut notice = |&collector: &NodeIndex| {
        let path = paths.find(supervisor, collector, Spread::Ecmp(0)).expect("a collector within reach");
        path.map(pass).sum()
    };
    roles.collectors.iter().map(&mut notice).collect()
}

impl SharedLinks {
    /// Finds the links that the answers to a network's collectors share.
    pub fn new(network: &Network, roles: &Roles) -> Self {
        let mut by_node: BTreeMap<NodeIndex, Vec<PortIndex>> = BTreeMap::new();
        for port in network.ports() {
            by_node.entry(network.destination(port)).or_default().push(port);
        }
        let links_of = |node| ParallelLinks::new(network, by_node[node].iter().copied());
        let own: Vec<ParallelLinks> = roles.collectors.iter().map(links_of).collect();
        let ring_of = |(place, node)| RingLimit::of(network, roles, place, &by_node[node]);
        let rings = roles.collectors.iter().enumerate().map(ring_of).collect();
        // By the switches of a host, then by the host: with all-to-all traffic, collectors share one.
        let mut groups: BTreeMap<Vec<NodeIndex>, BTreeMap<NodeIndex, Vec<u32>>> = BTreeMap::new();
        for (place, node) in roles.collectors.iter().enumerate() {
            let mut switches: Vec<NodeIndex> =
                by_node[node].iter().map(|&port| network.source(port)).collect();
            switches.sort_unstable();
            switches.dedup();
            groups.entry(switches).or_default().entry(*node).or_default().push(place as u32);
        }
        let readouts: HashSet<NodeIndex> = roles.readouts.iter().copied().collect();
        let framing = network.framing;
        let frame = Bytes::new(u64::from(network.frame_bytes - framing.stored_bytes + framing.link_bytes));
        let mut inputs = Vec::new();
        for (switches, hosts) in groups {
            let ports = || switches.iter().filter_map(|switch| by_node.get(switch)).flatten().copied();
            // Answers of a readout at the same switch do not pass the inputs.
            let has_readout = ports().any(|port| readouts.contains(&network.source(port)));
            let links =
                ParallelLinks::new(network, ports().filter(|&port| !network.is_host(network.source(port))));
            let needed: u64 = hosts.values().map(|places| own[places[0] as usize].rate.get()).sum();
            if has_readout || links.rate.get() >= needed {
                // Each host is a group of its own.
                inputs.extend(hosts.into_values().map(|collectors| {
                    let links = (collectors.len() > 1).then(|| own[collectors[0] as usize]);
                    SharedInputs { collectors, links, frame: Bytes::ZERO, memory: None }
                }));
            } else {
                // With several switches, an answer may take any of them.
                let memory = if let [switch] = switches[..] {
                    let is_input = |port: &PortIndex| !network.is_host(network.source(*port));
                    let (ports, count) = (hosts.len() as u64, ports().filter(is_input).count() as u64);
                    SwitchMemory::of(network, switch, ports, count)
                } else {
                    None
                };
                let collectors = hosts.into_values().flatten().collect();
                inputs.push(SharedInputs { collectors, links: Some(links), frame, memory });
            }
        }
        Self { own, rings, inputs, notices: notices(network, roles) }
    }

    /// The least time from an assignment until a collector receives it.
    pub fn notice(&self, collector: u32) -> Duration {
        self.notices[collector as usize]
    }

    /// The bounds of the collections, in any order; `None` without any.
    pub fn bound(&self, collections: &[MeasuredCollection]) -> Option<ContentionBound> {
        if collections.is_empty() {
            return None;
        }
        let mut by_collector: Vec<Vec<&MeasuredCollection>> = vec![Vec::new(); self.own.len()];
        for collection in collections {
            by_collector[collection.collector as usize].push(collection);
        }
        for list in &mut by_collector {
            list.sort_unstable_by_key(|collection| collection.released);
        }
        let groups: Vec<InputGroup> =
            self.inputs.iter().map(|inputs| self.link_machines(inputs, &by_collector)).collect();
        let clairvoyant = {
            let mut times = Vec::with_capacity(collections.len());
            for inputs in &self.inputs {
                self.serve_shortest(inputs, &by_collector, &mut times);
            }
            ScheduleFigures::of(&mut times)
        };

        let count = collections.len();
        // `unit` is the unit of a job's time.
        let sum = |of: &dyn Fn(&LinkMachine) -> f64, unit: &dyn Fn(&LinkJob) -> f64| -> f64 {
            let least = |group: &InputGroup| {
                let own = |links: &Vec<LinkMachine>| links.iter().map(of).fold(0.0, f64::max);
                let alone = group.own.iter().map(own).sum::<f64>().max(group.shared.as_ref().map_or(0.0, of));
                alone.max(group.delayed_sum_min(unit))
            };
            groups.iter().map(least).sum::<f64>() / count as f64
        };
        let tail = |allowed: &dyn Fn(&LinkJob, f64) -> f64, from: f64, to: f64| {
            let late = |level: f64| -> usize {
                let least = |group: &InputGroup| {
                    let of = |link: &LinkMachine| link.late_min(|job| allowed(job, level));
                    let own = |links: &Vec<LinkMachine>| links.iter().map(of).max().unwrap_or(0);
                    group.own.iter().map(own).sum::<usize>().max(group.shared.as_ref().map_or(0, of))
                };
                groups.iter().map(least).sum()
            };
            least_level(from, to, count - rank_p99(count), late)
        };
        let least = ScheduleFigures {
            time_ps: MeanAndTail {
                mean: sum(&LinkMachine::time_sum_min, &|_| 1.0),
                p99: tail(&|_, level| level, 0.0, 2.0 * clairvoyant.time_ps.p99),
            },
            slowdown: MeanAndTail {
                mean: sum(&LinkMachine::slowdown_sum_min, &LinkJob::ideal),
                p99: tail(&|job, level| level * job.ideal as f64, 1.0, 2.0 * clairvoyant.slowdown.p99),
            },
        };
        Some(ContentionBound { least, clairvoyant })
    }

    /// The link machines of a group: the collectors' own links, and the links that they share.
    fn link_machines(&self, inputs: &SharedInputs, by_collector: &[Vec<&MeasuredCollection>]) -> InputGroup {
        // `frame` is a part of the ideal outside the last link that is also a part of the job, in picoseconds.
        let jobs = |place: u32, rate: Rate, frame: u64| {
            by_collector[place as usize].iter().map(move |collection| {
                let fixed = self.outside(place, collection).saturating_sub(frame);
                LinkJob {
                    release: collection.released.get() + fixed,
                    fixed,
                    work: rate.time_to_send(Bytes::new(collection.work.joined_bytes)).get(),
                    ideal: collection.ideal.get(),
                    least: collection.work.least.get(),
                }
            })
        };
        let behind_ring = |place: u32, ring: RingLimit| {
            let ahead =
                |job: LinkJob| Some(LinkJob { fixed: job.fixed.checked_sub(ring.ahead.get())?, ..job });
            Some(LinkMachine::new(jobs(place, ring.rate, 0).map(ahead).collect::<Option<_>>()?))
        };
        let of_collector = |&place: &u32| {
            let link = LinkMachine::new(jobs(place, self.own[place as usize].rate, 0).collect());
            let ring = self.rings[place as usize].and_then(|ring| behind_ring(place, ring));
            [Some(link), ring].into_iter().flatten().collect()
        };
        let own: Vec<Vec<LinkMachine>> = inputs.collectors.iter().map(of_collector).collect();
        let shared = inputs.links.map(|links| {
            // A frame's time on an input is part of the ideal, and of the job.
            let frame = links.slowest.time_to_send(inputs.frame).get();
            let all = inputs.collectors.iter().flat_map(|&place| jobs(place, links.rate, frame));
            LinkMachine::new(all.collect())
        });
        let rate = |&place: &u32| bytes_per_picosecond(self.own[place as usize].rate);
        let rates: Vec<f64> = inputs.collectors.iter().map(rate).collect();
        let excess = match (inputs.links, inputs.memory) {
            (Some(links), Some(memory)) => {
                let jobs = |link: &LinkMachine| link.jobs.iter().map(|job| (job.release, job.work)).collect();
                let jobs: Vec<Vec<(u64, u64)>> = own.iter().map(|links| jobs(&links[0])).collect();
                excess(&jobs, &rates, links.rate, memory)
            }
            _ => 0.0,
        };
        InputGroup { own, rates, shared, excess }
    }

    /// The part of a collection's ideal outside its last link, in picoseconds: propagation, the request, the response delay.
    fn outside(&self, place: u32, collection: &MeasuredCollection) -> u64 {
        let wire = Bytes::new(collection.work.wire_bytes);
        collection.ideal.saturating_sub(self.own[place as usize].slowest.time_to_send(wire)).get()
    }

    /// The rate of a collector's links, or of its ring if that is slower.
    fn own_rate(&self, place: u32) -> Rate {
        self.rings[place as usize].map_or(self.own[place as usize].rate, |ring| ring.rate)
    }

    /// Plays the clairvoyant schedule of a group; appends the time and ideal of each collection.
    fn serve_shortest(
        &self,
        inputs: &SharedInputs,
        by_collector: &[Vec<&MeasuredCollection>],
        times: &mut Vec<(u64, u64)>,
    ) {
        /// Picoseconds a second: remaining work is in bits times this.
        const UNIT: u128 = 1_000_000_000_000;
        let places = &inputs.collectors;
        let mut pending: Vec<(u64, usize, &MeasuredCollection)> = Vec::new();
        for (index, &place) in places.iter().enumerate() {
            pending.extend(by_collector[place as usize].iter().map(|&one| {
                let from = one.released.get() + self.outside(place, one);
                (from, index, one)
            }));
        }
        pending.sort_by_key(|&(from, index, _)| (from, index));
        let mut active: Vec<BinaryHeap<Reverse<(u128, usize)>>> = vec![BinaryHeap::new(); places.len()];
        let (mut next, mut now) = (0, 0);
        loop {
            while let Some(&(_, index, collection)) = pending.get(next).filter(|one| one.0 <= now) {
                active[index].push(Reverse((u128::from(collection.work.wire_bytes) * 8 * UNIT, next)));
                next += 1;
            }
            let mut first: Vec<(u128, usize)> = active
                .iter()
                .enumerate()
                .filter_map(|(index, heap)| Some((heap.peek()?.0.0, index)))
                .collect();
            let release = pending.get(next).map(|one| one.0);
            if first.is_empty() {
                match release {
                    Some(at) => now = at,
                    None => return,
                }
                continue;
            }
            first.sort_unstable();
            let mut left = inputs.links.map_or(u64::MAX, |links| links.rate.get());
            let mut served = Vec::with_capacity(first.len());
            for (remaining, index) in first {
                let rate = self.own_rate(places[index]).get().min(left);
                if rate == 0 {
                    break;
                }
                left -= rate;
                served.push((remaining, index, u128::from(rate)));
            }
            let soonest = served.iter().map(|&(remaining, _, rate)| remaining.div_ceil(rate)).min();
            let soonest = soonest.and_then(|step| u64::try_from(step).ok()).unwrap_or(u64::MAX);
            let step = release.map_or(soonest, |at| soonest.min(at - now));
            now += step;
            for (remaining, index, rate) in served {
                let Some(Reverse((_, job))) = active[index].pop() else { continue };
                let remaining = remaining.saturating_sub(rate * u128::from(step));
                if remaining > 0 {
                    active[index].push(Reverse((remaining, job)));
                    continue;
                }
                let collection = pending[job].2;
                let time = (now - collection.released.get()).max(collection.work.least.get());
                times.push((time, collection.ideal.get().max(1)));
            }
        }
    }
}

/// The link machines of collectors with common links.
#[derive(Debug)]
struct InputGroup {
    /// The link machines of each collector, its own links before its ring, and the rate of these links in bytes a picosecond.
    own: Vec<Vec<LinkMachine>>,
    rates: Vec<f64>,
    /// The common links.
    shared: Option<LinkMachine>,
    /// The area by which the common links delay the bytes of the own ones, in bytes times picoseconds.
    excess: f64,
}

impl InputGroup {
    /// A lower bound of the sum of collection times, each in its own `unit` of picoseconds, with the delay of the common links. Zero
    /// if they delay nothing.
    ///
    /// A job counts as done at its mean busy time plus half its work, as in [`LinkMachine::slowdown_sum_min`]. Its bytes have the
    /// weight `1 / (unit × bytes)` each. The least of these weights counts for the bytes of all jobs together, which come later
    /// by the excess. The rest of each weight counts on the own links, where the order of service is the same.
    fn delayed_sum_min(&self, unit: &dyn Fn(&LinkJob) -> f64) -> f64 {
        if self.excess <= 0.0 {
            return 0.0;
        }
        let weights = self.own.iter().zip(&self.rates).flat_map(|(links, rate)| {
            links[0].jobs.iter().map(move |job| 1.0 / (unit(job) * job.work.max(1) as f64 * rate))
        });
        let weight = weights.min_by(f64::total_cmp).unwrap_or(0.0);
        let alone = self.own.iter().flat_map(|links| mean_busy_times(&links[0].jobs, unit));
        alone.sum::<f64>() + weight * self.excess
    }
}

#[cfg(test)]
mod tests;
