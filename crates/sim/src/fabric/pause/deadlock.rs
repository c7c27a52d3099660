//! Searches for paused ports that wait for one another in a circle.

use std::collections::BTreeMap;

use fanin_queueing::Class;

use super::SUSPECT;
use crate::fabric::Fabric;
use crate::fabric::flow_control::FlowControl;
use crate::fabric::output::{OutputQueue, Port};
use crate::fabric::pausable::PausableOutput;
use crate::index::NIL;
use crate::occurrence::Occurrence;
use crate::schedule::Schedule;
use fanin_network::PortIndex;

impl FlowControl {
    /// Searches for a circle of ports in which each waits for the next, so that none will ever resume. A port is stuck while
    /// more than XON of its ingress occupancy waits at outputs that are stuck.
    fn find_deadlock(&mut self, ports: &[Port], unstored_bytes: u32) {
        let mut is_stuck = vec![false; ports.len()];
        let mut xon = vec![0; ports.len()];
        for (input, ingress) in self.ingress.iter().enumerate() {
            let Some(thresholds) = ingress.thresholds() else { continue };
            is_stuck[input] = ingress.is_paused();
            xon[input] = thresholds.xon().get();
        }
        // Bytes of each input that wait at each output.
        let mut waiting: BTreeMap<(PortIndex, PortIndex), u64> = BTreeMap::new();
        for (output, port) in (0..).zip(ports) {
            let OutputQueue::Pausable(out) = &port.queue else { continue };
            if port.switch == NIL {
                continue;
            }
            let overhead = self.switches[port.switch as usize].overhead;
            for frame in out.output.waiting() {
                let bytes = u64::from(frame.parcel.wire_bytes() - unstored_bytes + overhead);
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
        let Some(first) = is_stuck.iter().position(|&stuck| stuck) else { return };
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
                self.deadlock = path.split_off(start);
                return;
            }
            path.push(next);
        }
    }
}

impl Fabric {
    /// Searches for a deadlock where a port has been paused for long. Returns true if one is found.
    pub(crate) fn check_deadlock(&mut self, schedule: &mut Schedule, now: u64) -> bool {
        let Some(flow_control) = &mut self.flow_control else { return false };
        let outputs = || {
            self.ports.iter().filter_map(|port| match &port.queue {
                OutputQueue::Pausable(out) => Some(out),
                _ => None,
            })
        };
        let is_paused = |out: &PausableOutput| out.output.is_paused(Class::Bulk);
        if outputs().any(|out| is_paused(out) && now - out.sender.paused_since >= SUSPECT) {
            flow_control.find_deadlock(&self.ports, self.unstored_bytes);
        }
        flow_control.is_check_scheduled =
            outputs().any(|out| is_paused(out)) || self.ports.iter().any(|port| port.link.has_signals());
        if flow_control.is_check_scheduled {
            schedule.insert(now + SUSPECT, Occurrence::DeadlockCheck);
        }
        !flow_control.deadlock.is_empty()
    }
}
