//! The memory between shared inputs and last links, and the least delay that this leaves to the inputs.
//!
//! The inputs can run ahead of the last links only by the bytes that the switch holds. So no last link makes up later for
//! the time in which the inputs were too slow. Until any time `s`, at most `ahead(s)` bytes have passed the inputs. They are
//! those that the own links can have sent by then, and each collector's backlog, up to the memory of its port. After `s`
//! they pass at most their rate. So by any `t ≥ s` the own links have sent at most `ahead(s) + rate × (t - s)`. The least of
//! these over all `s` is below the bytes that they could send alone. The area between both, over the jobs' bytes, is the
//! least delay that the inputs add.

use std::collections::BTreeMap;

use fanin_scenario::PauseMode;
use fanin_units::{Bytes, Rate};

use crate::{Network, NodeIndex};

/// The memory of a switch for frames to collectors, in bytes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SwitchMemory {
    /// The most for one port.
    pub(super) port: u64,
    /// The most for all ports to collectors together.
    pub(super) total: u64,
    /// Bytes that may pass the inputs at once: a frame on each of them.
    pub(super) at_once: u64,
}

impl SwitchMemory {
    /// Returns the memory of the only switch in front of collectors with `ports` ports to them and `inputs` inputs. `None` if it
    /// has no limit that all frames keep.
    pub(super) fn of(network: &Network, switch: NodeIndex, ports: u64, inputs: u64) -> Option<Self> {
        let settings = &network.switch(switch)?.settings;
        let framing = network.framing;
        let stored = u64::from(network.frame_bytes);
        let frame = stored - u64::from(framing.stored_bytes) + u64::from(framing.link_bytes);
        // A full frame has the most bytes on the wire for the bytes that it takes in the memory.
        let wire = |stored_bytes: Bytes| {
            (u128::from(stored_bytes.get()) * u128::from(frame)).div_ceil(u128::from(stored))
        };
        if settings.pause.mode != PauseMode::Off {
            return None;
        }
        let all = (ports + inputs).max(u64::from(settings.ports)) as usize;
        let layout = settings.layout(&vec![false; all])?;
        let pools = layout.pool_sizes();
        let shared = pools.iter().fold(Bytes::ZERO, |all, &pool| all.saturating_add(pool));
        let shared = if pools.is_empty() { Bytes::MAX } else { shared };
        let output = layout.output_limits()[0].min(shared);
        // A frame in service may take no memory any more.
        let port = u64::try_from(wire(output)).ok()?.checked_add(frame)?;
        let shared = u64::try_from(wire(shared)).unwrap_or(u64::MAX);
        let total = port.checked_mul(ports)?.min(shared.saturating_add(frame.checked_mul(ports)?));
        Some(Self { port, total, at_once: inputs * frame })
    }
}

/// Returns a rate in bytes a picosecond.
pub(super) fn bytes_per_picosecond(rate: Rate) -> f64 {
    rate.get() as f64 / 8e12
}

/// A change of one collector's work at a time.
#[derive(Clone, Copy, Debug, Default)]
struct WorkChange {
    /// Bytes of the job that is released.
    released: f64,
    /// Change of the rate at which the own link sends, in bytes a picosecond.
    rate: f64,
}

/// Returns the area between the bytes that own links can have sent alone, and those behind shared inputs, in bytes times
/// picoseconds.
///
/// `own` has each collector's jobs in the order of their release, with release and length in picoseconds. `rates` has the rates of their
/// links in bytes a picosecond.
pub(super) fn excess(own: &[Vec<(u64, u64)>], rates: &[f64], links: Rate, memory: SwitchMemory) -> f64 {
    let mut changes: BTreeMap<u64, Vec<(usize, WorkChange)>> = BTreeMap::new();
    for (index, (jobs, &rate)) in own.iter().zip(rates).enumerate() {
        let mut add = |at: u64, change: WorkChange| changes.entry(at).or_default().push((index, change));
        let mut end = 0;
        for &(release, work) in jobs {
            add(release, WorkChange { released: work as f64 * rate, rate: 0.0 });
            let begin = release.max(end);
            end = begin + work;
            add(begin, WorkChange { released: 0.0, rate });
            add(end, WorkChange { released: 0.0, rate: -rate });
        }
    }
    let inputs = bytes_per_picosecond(links);
    // Of each collector: its backlog, and the rate of its link now. The backlogs and rates of all others are zero.
    let mut busy: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    // Bytes sent by own links alone; the most that passes the inputs.
    let (mut alone, mut most, mut now) = (0.0, f64::INFINITY, 0);
    let mut area = 0.0;
    for (at, list) in changes {
        let time = (at - now) as f64;
        now = at;
        let rate: f64 = busy.values().map(|&(_, rate)| rate).sum();
        area += area_above(alone - most, rate - inputs, time);
        alone += rate * time;
        most += inputs * time;
        let mut held = 0.0;
        for (backlog, rate) in busy.values_mut() {
            *backlog -= *rate * time;
            held += backlog.clamp(0.0, memory.port as f64);
        }
        most = f64::min(most, alone + held.min(memory.total as f64) + memory.at_once as f64);
        for (index, change) in list {
            let (backlog, rate) = busy.entry(index).or_default();
            *backlog += change.released;
            *rate += change.rate;
        }
        busy.retain(|_, &mut (backlog, rate)| backlog > 0.5 || rate > 0.0);
    }
    area + area_above(alone - most, -inputs, f64::INFINITY)
}

/// Returns the integral of the positive part of `value + slope × time` over a time.
fn area_above(value: f64, slope: f64, time: f64) -> f64 {
    let end = value + slope * time;
    match (value > 0.0, end > 0.0) {
        (true, true) => 0.5 * (value + end) * time,
        (true, false) => 0.5 * value * value / -slope,
        (false, true) => 0.5 * end * end / slope,
        (false, false) => 0.0,
    }
}
