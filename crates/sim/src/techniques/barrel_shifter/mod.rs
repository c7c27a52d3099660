//! The barrel shifter: readouts hold their answers back until their turn to send to the answer's collector.
//!
//! `fanin_dataflow::shift` decides the turns and the phases. The messages that end a phase travel over the network. The barrier
//! is on the supervisor's host, and sends [`ShiftMessage::Go`] to the readouts. Readouts and collectors answer with
//! [`ShiftMessage::Sent`] and [`ShiftMessage::Received`]. [`ShiftMessage::End`] follows the answers of a phase.

use std::collections::{BTreeSet, VecDeque};

use fanin_dataflow::{
    BarrierCounters, ControlMessage, LinearShift, Message, Peer, PhaseBarrier, ShiftHost, ShiftMessage,
};
use fanin_scenario::{Barrier, Scenario, ShapingMethod};
use fanin_units::{Bytes, Duration, Instant};
use serde_json::{Value, json};

use crate::techniques::hooks::{AnswerAction, AnswerHooks, AnswerSetup, TechniqueFunctions};

/// An answer that waits for its turn.
struct HeldAnswer {
    since: Instant,
    bytes: u64,
    message: Message<Bytes>,
}

/// The condition that ends a phase: all hosts are done, or a time has passed.
enum Pace {
    Barrier(Box<PhaseBarrier>),
    Clock { slot: Duration, phase: u64 },
}

pub(super) const TECHNIQUE: TechniqueFunctions = TechniqueFunctions {
    schedule_answers: build,
    holding_cause: |s| is_used(s.scenario).then_some(("phase-wait", "its phases of the barrel shifter")),
    ..TechniqueFunctions::NONE
};

fn is_used(scenario: &Scenario) -> bool {
    scenario.shaping.method == ShapingMethod::BarrelShifter
}

fn build(setup: &AnswerSetup<'_>) -> Option<Box<dyn AnswerHooks>> {
    if is_used(setup.scenario) { Some(Box::new(Shifter::new(setup))) } else { None }
}

/// The state of the shift.
struct Shifter {
    shift: LinearShift,
    pace: Pace,
    events: u32,
    readouts: usize,
    collectors: usize,
    /// Excluded hosts, by readout and by collector.
    failed_readouts: Vec<bool>,
    failed_collectors: Vec<bool>,
    /// Held answers by readout, then by collector.
    held: Vec<VecDeque<HeldAnswer>>,
    waited: Duration,
    /// Answers held back, answers released, and answers to excluded hosts.
    queued: u64,
    released: u64,
    discarded: u64,
    /// Slots of the clock in which a pair had an answer to send, and slots without one. The barrier has its own counters.
    transfers: u64,
    empty: u64,
    faults: Faults,
    /// Events that lack fragments of a failed readout.
    incomplete: u64,
    actions: VecDeque<AnswerAction>,
}

/// The hosts that fail, and the time of their failure.
struct Faults {
    at: Instant,
    excluded_at: Instant,
    hosts: Vec<ShiftHost>,
    have_failed: bool,
    is_known: bool,
}

impl Shifter {
    fn new(setup: &AnswerSetup<'_>) -> Self {
        let AnswerSetup { scenario, ideal, readouts, collectors, answer_bytes } = *setup;
        let settings = &scenario.shaping.barrel_shifter;
        let shift = LinearShift::new(readouts, collectors);
        let slowest = scenario.readout.link.rate.min(scenario.link.rate);
        let wire = Bytes::new(ideal.segments().wire_bytes(answer_bytes) * u64::from(settings.events));
        let slot = if settings.slot.is_zero() {
            scenario.shaping.stretched(slowest.time_to_send(wire))
        } else {
            settings.slot
        };
        let pace = match settings.barrier {
            Barrier::Complete => {
                Pace::Barrier(Box::new(PhaseBarrier::new(Instant::START, shift, settings.timeout)))
            }
            Barrier::Clock => Pace::Clock { slot, phase: 0 },
        };
        let unique = |list: &[u32]| list.iter().copied().collect::<BTreeSet<u32>>().into_iter();
        let hosts: Vec<ShiftHost> = unique(&settings.failed_readouts)
            .map(ShiftHost::Source)
            .chain(unique(&settings.failed_collectors).map(ShiftHost::Destination))
            .collect();
        let at = Instant::START + settings.fail_at;
        let is_known = hosts.is_empty();
        Self {
            shift,
            pace,
            events: settings.events,
            readouts: readouts as usize,
            collectors: collectors as usize,
            failed_readouts: vec![false; readouts as usize],
            failed_collectors: vec![false; collectors as usize],
            held: (0..readouts as usize * collectors as usize).map(|_| VecDeque::new()).collect(),
            waited: Duration::ZERO,
            queued: 0,
            released: 0,
            discarded: 0,
            transfers: 0,
            empty: 0,
            faults: Faults { at, excluded_at: at + settings.timeout, hosts, have_failed: is_known, is_known },
            incomplete: 0,
            actions: VecDeque::new(),
        }
    }

    fn place(&self, readout: u16, collector: u16) -> usize {
        usize::from(readout) * self.collectors + usize::from(collector)
    }

    /// Lets the readouts of a new phase send.
    fn begin_phase(&mut self) {
        let Pace::Barrier(barrier) = &mut self.pace else { return };
        if barrier.poll_begun() {
            let go = ShiftMessage::Go { phase: barrier.phase() }.written();
            let readouts = barrier.pairs().map(|(source, _)| Peer::Readout(source as u16));
            self.actions.extend(readouts.map(|to| AnswerAction::Send {
                from: Peer::Supervisor,
                to,
                message: go,
            }));
        }
    }

    fn send(&mut self, from: Peer, to: Peer, message: ShiftMessage) {
        self.actions.push_back(AnswerAction::Send { from, to, message: message.written() });
    }

    /// Releases a readout's answers for the collector of its turn. Returns that collector if the readout had answers for it.
    fn release(&mut self, now: Instant, readout: u16, phase: u64) -> Option<u16> {
        let collector = self.shift.destination(phase, u32::from(readout))? as u16;
        let place = self.place(readout, collector);
        let count = self.held[place].len().min(self.events as usize);
        for HeldAnswer { since, bytes, message } in self.held[place].drain(..count) {
            self.waited = self.waited.saturating_add(now.saturating_since(since));
            self.released += 1;
            self.actions.push_back(AnswerAction::Release { readout, collector, bytes, message });
        }
        (count > 0).then_some(collector)
    }

    fn handle_clock(&mut self, now: Instant) {
        let Pace::Clock { slot, phase } = &mut self.pace else { return };
        if Instant::START + *slot * *phase <= now {
            let present = *phase;
            *phase += 1;
            let mut transfers = 0;
            for readout in 0..self.readouts as u16 {
                if !self.failed_readouts[usize::from(readout)] {
                    transfers += u64::from(self.release(now, readout, present).is_some());
                }
            }
            self.transfers += transfers;
            self.empty += u64::from(self.shift.phases()) - transfers;
        }
        if !self.faults.is_known && self.faults.excluded_at <= now {
            self.faults.is_known = true;
            let excluded = self.faults.hosts.iter().map(|&host| AnswerAction::Exclude(peer(host)));
            self.actions.extend(excluded);
        }
    }

    fn mark_failed(&mut self, host: Peer) {
        match host {
            Peer::Readout(readout) => self.failed_readouts[usize::from(readout)] = true,
            Peer::Collector(collector) => self.failed_collectors[usize::from(collector)] = true,
            _ => unreachable!("only readouts and collectors fail"),
        }
    }
}

impl AnswerHooks for Shifter {
    fn key(&self) -> &'static str {
        "barrel_shifter"
    }

    /// Returns the figures up to the phase that began last.
    fn figures(&self) -> Value {
        let (phases, transfers, empty, excluded, last) = match &self.pace {
            Pace::Barrier(barrier) => {
                let counters = barrier.counters();
                let BarrierCounters { phases, transfers, empty, excluded } = *counters;
                (phases, transfers, empty, excluded, barrier.began())
            }
            Pace::Clock { slot, phase } => {
                let excluded = if self.faults.is_known { self.faults.hosts.len() as u64 } else { 0 };
                (*phase, self.transfers, self.empty, excluded, Instant::START + *slot * *phase)
            }
        };
        let mut figures = json!({
            "phases": phases,
            "transfers": transfers,
            "empty_slots": empty,
            "excluded": excluded,
            "incomplete": self.incomplete,
        });
        if phases > 0 {
            let time = last.saturating_since(Instant::START).as_millis_f64();
            figures["phase_ms_mean"] = json!(time / phases as f64);
        }
        if self.released > 0 {
            figures["wait_ms_mean"] = json!(self.waited.as_millis_f64() / self.released as f64);
        }
        figures
    }

    fn on_start(&mut self) {
        self.begin_phase();
    }

    fn on_answer(&mut self, now: Instant, readout: u16, collector: u16, bytes: u64, message: Message<Bytes>) {
        let place = self.place(readout, collector);
        self.queued += 1;
        self.held[place].push_back(HeldAnswer { since: now, bytes, message });
    }

    fn on_collected(&mut self, missing: u32) {
        self.incomplete += u64::from(missing > 0);
    }

    fn on_message(&mut self, now: Instant, from: Peer, to: Peer, message: ControlMessage) {
        match (from, to, ShiftMessage::read(message)) {
            (_, Peer::Readout(readout), ShiftMessage::Go { phase }) => {
                let collector = self.release(now, readout, phase);
                if let Some(collector) = collector {
                    self.send(to, Peer::Collector(collector), ShiftMessage::End { phase });
                }
                let anything = collector.is_some();
                self.send(to, Peer::Supervisor, ShiftMessage::Sent { phase, anything });
            }
            (_, Peer::Collector(_), ShiftMessage::End { phase }) => {
                self.send(to, Peer::Supervisor, ShiftMessage::Received { phase });
            }
            (Peer::Readout(readout), Peer::Supervisor, ShiftMessage::Sent { phase, anything }) => {
                if let Pace::Barrier(barrier) = &mut self.pace {
                    barrier.handle_sent(now, phase, u32::from(readout), anything);
                }
                self.begin_phase();
            }
            (Peer::Collector(collector), Peer::Supervisor, ShiftMessage::Received { phase }) => {
                if let Pace::Barrier(barrier) = &mut self.pace {
                    barrier.handle_received(now, phase, u32::from(collector));
                }
                self.begin_phase();
            }
            _ => unreachable!("a host received a message of the shifter for another one"),
        }
    }

    fn on_deadline(&mut self, now: Instant) {
        if !self.faults.have_failed && self.faults.at <= now {
            self.faults.have_failed = true;
            for host in self.faults.hosts.clone() {
                self.mark_failed(peer(host));
            }
        }
        match &mut self.pace {
            Pace::Barrier(barrier) => {
                barrier.handle_deadline(now);
                while let Some(host) = barrier.poll_excluded() {
                    self.actions.push_back(AnswerAction::Exclude(peer(host)));
                }
            }
            Pace::Clock { .. } => self.handle_clock(now),
        }
        self.begin_phase();
    }

    fn poll_deadline(&self) -> Option<Instant> {
        let pace = match &self.pace {
            Pace::Barrier(barrier) => barrier.poll_deadline(),
            Pace::Clock { slot, phase } => Some(Instant::START + *slot * *phase),
        };
        let failure = (!self.faults.have_failed).then_some(self.faults.at);
        let notice = (!self.faults.is_known && matches!(self.pace, Pace::Clock { .. }))
            .then_some(self.faults.excluded_at);
        [pace, failure, notice].into_iter().flatten().min()
    }

    fn poll_action(&mut self) -> Option<AnswerAction> {
        self.actions.pop_front()
    }

    fn on_excluded(&mut self, host: Peer) {
        self.mark_failed(host);
        if let Peer::Collector(collector) = host {
            for readout in 0..self.readouts as u16 {
                let place = self.place(readout, collector);
                self.discarded += self.held[place].len() as u64;
                self.held[place].clear();
            }
        }
    }

    fn has_failed(&self, host: Peer) -> bool {
        match host {
            Peer::Readout(readout) => self.failed_readouts[usize::from(readout)],
            Peer::Collector(collector) => self.failed_collectors[usize::from(collector)],
            Peer::Supervisor | Peer::Standby | Peer::Logger(_) => false,
        }
    }

    fn assert_conserved(&self) {
        let held: u64 = self.held.iter().map(|held| held.len() as u64).sum();
        assert_eq!(self.queued, self.released + self.discarded + held, "answers are unaccounted for");
        match &self.pace {
            Pace::Barrier(barrier) => barrier.assert_conserved(),
            Pace::Clock { phase, .. } => {
                let places = phase * u64::from(self.shift.phases());
                assert_eq!(self.transfers + self.empty, places, "places of phases are unaccounted for");
            }
        }
    }
}

/// Returns a host as the workload names it.
fn peer(host: ShiftHost) -> Peer {
    match host {
        ShiftHost::Source(readout) => Peer::Readout(readout as u16),
        ShiftHost::Destination(collector) => Peer::Collector(collector as u16),
    }
}
