//! Ports that wait for one another in a circle.

use super::{BULK, Fabric, Held, HeldPorts, Port, PortIndex, SUSPECT, Schedule, SwitchTotals};
use crate::occurrence::Occurrence;

impl HeldPorts {
    /// Whether pausing has come to a circle in which each port waits for the next, so that none will ever go on. A port is
    /// stuck where what came in by it waits, as far as it must leave for the port to go on, at outputs that are stuck.
    fn find_deadlock(&mut self, ports: &[Port], switches: &[SwitchTotals], unstored_bytes: u32) {
        let mut stuck = vec![false; self.ports.len()];
        let mut goes_on_at = vec![0; self.ports.len()];
        for input in &self.inputs {
            let Some(thresholds) = input.thresholds else { continue };
            stuck[input.port as usize] = thresholds.is_paused();
            goes_on_at[input.port as usize] = thresholds.xon().get();
        }
        // What of each port waits where: pairs of input and output.
        let mut behind: std::collections::BTreeMap<(PortIndex, PortIndex), u64> =
            std::collections::BTreeMap::new();
        for (output, held) in self.ports.iter().enumerate() {
            let port = &ports[output];
            if !held.is_switch {
                continue;
            }
            for parcel in port.parked().chain(held.urgent.iter().copied()) {
                let from = self.inputs[switches[port.switch as usize].input(parcel)].port;
                let bytes = port.charge(parcel.wire_bytes(), unstored_bytes);
                *behind.entry((from, output as PortIndex)).or_default() += bytes;
            }
        }
        loop {
            let mut held_fast = vec![0; self.ports.len()];
            for (&(input, output), bytes) in &behind {
                if stuck[output as usize] {
                    held_fast[input as usize] += bytes;
                }
            }
            let before = stuck.iter().filter(|&&stuck| stuck).count();
            for (port, is_stuck) in stuck.iter_mut().enumerate() {
                *is_stuck &= held_fast[port] > goes_on_at[port];
            }
            if stuck.iter().filter(|&&stuck| stuck).count() == before {
                break;
            }
        }
        let Some(first) = stuck.iter().position(|&stuck| stuck) else { return };
        let mut path = vec![first as PortIndex];
        loop {
            let last = path[path.len() - 1];
            let next = behind
                .range((last, 0)..(last + 1, 0))
                .filter(|((_, output), _)| stuck[*output as usize])
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
    /// Looks for a deadlock where a port has been stopped for long. Returns whether there is one.
    pub(crate) fn handle_deadlock_check(&mut self, schedule: &mut Schedule, now: u64) -> bool {
        let Some(held) = &mut self.held else { return false };
        let suspect = |held: &Held| held.stopped[BULK] && now - held.stopped_since >= SUSPECT;
        if held.ports.iter().any(suspect) {
            held.find_deadlock(&self.ports, &self.totals, self.unstored_bytes);
        }
        held.checks = held.ports.iter().any(|held| held.stopped[BULK] || !held.signals.is_empty());
        if held.checks {
            schedule.insert(now + SUSPECT, Occurrence::DeadlockCheck);
        }
        !held.deadlock.is_empty()
    }
}
