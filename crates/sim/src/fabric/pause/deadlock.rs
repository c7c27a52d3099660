//! Searches for paused ports that wait for one another in a circle.

use std::collections::BTreeMap;

use super::PausingPorts;
use super::flow_control::{FlowControl, SUSPECT};
use crate::fabric::output::Port;
use crate::schedule::Schedule;
use fanin_network::PortIndex;

/// Finds a circle of ports in which each waits for the next, so that none ever resumes. A port is stuck while more than XON
/// of its ingress occupancy waits at stuck outputs.
fn circle(flow_control: &FlowControl, ports: &[Port]) -> Option<Vec<PortIndex>> {
    let mut is_stuck = vec![false; ports.len()];
    let mut xon = vec![0; ports.len()];
    for (input, is_paused, resumes_at) in flow_control.inputs() {
        (is_stuck[input as usize], xon[input as usize]) = (is_paused, resumes_at);
    }
    // Bytes of each input that wait at each output.
    let mut waiting: BTreeMap<(PortIndex, PortIndex), u64> = BTreeMap::new();
    for (output, port) in (0..).zip(ports) {
        let (Some(out), Some((switch, _))) = (port.pausable(), port.at_switch()) else { continue };
        for frame in out.waiting() {
            let bytes = flow_control.stored_bytes(switch, frame.parcel);
            *waiting.entry((frame.input, output)).or_default() += bytes;
        }
    }
    loop {
        let mut blocked = vec![0; ports.len()];
        for (&(input, output), bytes) in &waiting {
            if is_stuck[output as usize] {
                blocked[input as usize] += bytes;
            }
        }
        let before = is_stuck.iter().filter(|&&stuck| stuck).count();
        for (port, stuck) in is_stuck.iter_mut().enumerate() {
            *stuck &= blocked[port] > xon[port];
        }
        if is_stuck.iter().filter(|&&stuck| stuck).count() == before {
            break;
        }
    }
    let first = is_stuck.iter().position(|&stuck| stuck)?;
    let mut path = vec![first as PortIndex];
    loop {
        let last = path[path.len() - 1];
        let next = waiting
            .range((last, 0)..(last + 1, 0))
            .filter(|((_, output), _)| is_stuck[*output as usize])
            .max_by_key(|(_, bytes)| **bytes)
            .map(|((_, output), _)| *output)
            .expect("a stuck port has frames behind one that is stuck");
        if let Some(start) = path.iter().position(|&port| port == next) {
            return Some(path.split_off(start));
        }
        path.push(next);
    }
}

impl PausingPorts<'_> {
    /// Searches for a deadlock if a port has been paused for at least [`SUSPECT`]. Returns true if a deadlock is found.
    pub(crate) fn check_deadlock(&mut self, schedule: &mut Schedule, now: u64) -> bool {
        let Self { ports, flow_control } = self;
        let pauses = || ports.iter().filter_map(|port| port.pausable()?.paused_for(now));
        let is_suspect = pauses().any(|time| time >= SUSPECT);
        flow_control.end_check(is_suspect.then(|| circle(flow_control, ports)).flatten());
        if pauses().next().is_some() || ports.iter().any(|port| port.link().has_signals()) {
            flow_control.schedule_check(schedule, now);
        }
        !flow_control.deadlock.is_empty()
    }
}
