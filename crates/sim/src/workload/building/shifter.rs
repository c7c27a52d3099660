//! The barrel shifter: readouts hold their answers back until it is their turn to send to that collector.
//!
//! Whose turn it is, and when the next phase begins, is decided by `fanin_dataflow::shift`. Its words travel over the
//! network like everything else: from the supervisor's host, where the barrier is, to the readouts ("go"), from them
//! and the collectors back ("sent", "received"), and behind the answers of a phase ("that was all").

use std::collections::{BTreeSet, VecDeque};

use fanin_dataflow::{BarrierCounters, LinearShift, Message, Peer, PhaseBarrier, ShiftHost};
use fanin_scenario::{Barrier, Scenario, ShapingMethod};
use fanin_units::{Bytes, Duration, Instant};
use serde_json::{Value, json};

use super::{Building, Travel, Word};
use crate::world::Outbox;
use fanin_network::Ideal;

/// Bytes of a barrier's word: a header, the phase and a flag.
const WORD_BYTES: u64 = 12 + 8 + 2;

/// An answer that waits for its turn.
struct Held {
    since: Instant,
    bytes: u64,
    message: Message<Bytes>,
}

/// What ends a phase.
enum Pace {
    Barrier(Box<PhaseBarrier>),
    Clock { slot: Duration, phase: u64 },
}

/// The state of the shift.
pub(super) struct Shifter {
    shift: LinearShift,
    pace: Pace,
    events: u32,
    collectors: usize,
    /// By readout, then by collector.
    held: Vec<VecDeque<Held>>,
    waited: Duration,
    released: u64,
    /// Slots in which a pair had something to send; the clock's, the barrier counts for itself.
    transfers: u64,
    empty: u64,
    faults: Faults,
    /// Events that lack fragments of a dead readout.
    pub(super) incomplete: u64,
}

/// Who dies when.
struct Faults {
    at: Instant,
    excluded_at: Instant,
    hosts: Vec<ShiftHost>,
    has_died: bool,
    is_known: bool,
}

impl Shifter {
    /// The shifter of a scenario, if it has one; `answer_bytes` is the wire's size of a mean answer.
    pub(super) fn new(
        scenario: &Scenario,
        ideal: &Ideal,
        readouts: u32,
        collectors: u32,
        answer_bytes: u64,
    ) -> Option<Self> {
        if scenario.shaping.method != ShapingMethod::BarrelShifter {
            return None;
        }
        let settings = &scenario.shaping.barrel_shifter;
        let shift = LinearShift::new(readouts, collectors);
        let slowest = scenario.readout.link.rate.min(scenario.link.rate);
        let wire = Bytes::new(ideal.wire_bytes(answer_bytes) * u64::from(settings.events));
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
        let has_died = hosts.is_empty();
        Some(Self {
            shift,
            pace,
            events: settings.events,
            collectors: collectors as usize,
            held: (0..readouts as usize * collectors as usize).map(|_| VecDeque::new()).collect(),
            waited: Duration::ZERO,
            released: 0,
            transfers: 0,
            empty: 0,
            faults: Faults { at, excluded_at: at + settings.timeout, hosts, has_died, is_known: has_died },
            incomplete: 0,
        })
    }

    fn place(&self, readout: u16, collector: u16) -> usize {
        usize::from(readout) * self.collectors + usize::from(collector)
    }

    pub(super) fn poll_deadline(&self) -> Option<Instant> {
        let pace = match &self.pace {
            Pace::Barrier(barrier) => barrier.poll_deadline(),
            Pace::Clock { slot, phase } => Some(Instant::START + *slot * *phase),
        };
        let death = (!self.faults.has_died).then_some(self.faults.at);
        let notice = (!self.faults.is_known && matches!(self.pace, Pace::Clock { .. }))
            .then_some(self.faults.excluded_at);
        [pace, death, notice].into_iter().flatten().min()
    }

    /// Its figures for the summary, up to the phase that began last.
    pub(super) fn figures(&self) -> Value {
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
}

impl Building {
    /// A readout has an answer: it waits for its turn.
    pub(super) fn hold(
        &mut self,
        now: Instant,
        readout: u16,
        collector: u16,
        bytes: u64,
        message: Message<Bytes>,
    ) {
        let Some(shifter) = &mut self.shifter else { return };
        let place = shifter.place(readout, collector);
        shifter.held[place].push_back(Held { since: now, bytes, message });
    }

    /// Lets the readouts of a new phase go on.
    pub(super) fn shift_on(&mut self, outbox: &mut Outbox<Travel>) {
        let Some(Shifter { pace: Pace::Barrier(barrier), .. }) = self.shifter.as_deref_mut() else { return };
        if !barrier.poll_begun() {
            return;
        }
        let phase = barrier.phase();
        let pairs: Vec<u32> = barrier.pairs().map(|(source, _)| source).collect();
        for source in pairs {
            let end = self.end(&Peer::Supervisor, Peer::Readout(source as u16));
            outbox.send(end, WORD_BYTES, Travel::Word(Word::Go { phase }));
        }
    }

    /// A word of the barrier has arrived at a host.
    pub(super) fn handle_word(&mut self, now: Instant, role: &Peer, word: Word, outbox: &mut Outbox<Travel>) {
        match (role, word) {
            (&Peer::Readout(readout), Word::Go { phase }) => {
                let sent = self.release(now, readout, phase, outbox);
                if let Some(collector) = sent {
                    let end = self.end(role, Peer::Collector(collector));
                    outbox.send(end, WORD_BYTES, Travel::Word(Word::End { phase }));
                }
                let anything = sent.is_some();
                let end = self.end(role, Peer::Supervisor);
                outbox.send(end, WORD_BYTES, Travel::Word(Word::Sent { phase, anything }));
            }
            (Peer::Collector(_), Word::End { phase }) => {
                let end = self.end(role, Peer::Supervisor);
                outbox.send(end, WORD_BYTES, Travel::Word(Word::Received { phase }));
            }
            _ => unreachable!("a word that a host does not expect"),
        }
    }

    /// A word of the barrier has arrived at the supervisor's host.
    pub(super) fn handle_report(
        &mut self,
        now: Instant,
        from: Peer,
        word: Word,
        outbox: &mut Outbox<Travel>,
    ) {
        let Some(Shifter { pace: Pace::Barrier(barrier), .. }) = self.shifter.as_deref_mut() else { return };
        match (from, word) {
            (Peer::Readout(readout), Word::Sent { phase, anything }) => {
                barrier.handle_sent(now, phase, u32::from(readout), anything);
            }
            (Peer::Collector(collector), Word::Received { phase }) => {
                barrier.handle_received(now, phase, u32::from(collector));
            }
            _ => unreachable!("a word that the barrier does not expect"),
        }
        self.shift_on(outbox);
    }

    /// Sends what a readout holds for the collector whose turn it is; returns that collector if there was anything.
    fn release(
        &mut self,
        now: Instant,
        readout: u16,
        phase: u64,
        outbox: &mut Outbox<Travel>,
    ) -> Option<u16> {
        let shifter = self.shifter.as_mut()?;
        let collector = shifter.shift.destination(phase, u32::from(readout))? as u16;
        let place = shifter.place(readout, collector);
        let count = shifter.held[place].len().min(shifter.events as usize);
        let going: Vec<Held> = shifter.held[place].drain(..count).collect();
        for held in &going {
            shifter.waited = shifter.waited.saturating_add(now.saturating_since(held.since));
        }
        shifter.released += going.len() as u64;
        let end = self.end(&Peer::Readout(readout), Peer::Collector(collector));
        for held in going {
            outbox.send(end, held.bytes, Travel::Role(held.message));
        }
        (count > 0).then_some(collector)
    }

    /// A time of the shifter's has come, on the supervisor's host.
    pub(super) fn handle_shift_deadline(&mut self, now: Instant, outbox: &mut Outbox<Travel>) {
        let Some(shifter) = &mut self.shifter else { return };
        if !shifter.faults.has_died && shifter.faults.at <= now {
            shifter.faults.has_died = true;
            let hosts = shifter.faults.hosts.clone();
            for host in hosts {
                let host = self.host_of(host);
                self.dead[host as usize] = true;
            }
        }
        let Some(shifter) = &mut self.shifter else { return };
        let mut excluded = Vec::new();
        match &mut shifter.pace {
            Pace::Barrier(barrier) => {
                barrier.handle_deadline(now);
                excluded.extend(std::iter::from_fn(|| barrier.poll_excluded()));
            }
            Pace::Clock { slot, phase } => {
                if Instant::START + *slot * *phase <= now {
                    let present = *phase;
                    *phase += 1;
                    let (mut transfers, places) = (0, u64::from(shifter.shift.phases()));
                    for readout in 0..self.readouts.len() as u16 {
                        if !self.dead[1 + usize::from(readout)] {
                            transfers += u64::from(self.release(now, readout, present, outbox).is_some());
                        }
                    }
                    let Some(shifter) = &mut self.shifter else { return };
                    shifter.transfers += transfers;
                    shifter.empty += places - transfers;
                }
                let Some(shifter) = &mut self.shifter else { return };
                if !shifter.faults.is_known && shifter.faults.excluded_at <= now {
                    shifter.faults.is_known = true;
                    excluded.extend(shifter.faults.hosts.iter().copied());
                }
            }
        }
        for host in excluded {
            self.exclude(now, host, outbox);
        }
        self.shift_on(outbox);
    }

    fn host_of(&self, host: ShiftHost) -> u32 {
        match host {
            ShiftHost::Source(readout) => 1 + readout,
            ShiftHost::Destination(collector) => 1 + self.readouts.len() as u32 + collector,
        }
    }

    /// All hosts are told that one is dead: its connections are closed.
    fn exclude(&mut self, now: Instant, host: ShiftHost, outbox: &mut Outbox<Travel>) {
        let number = self.host_of(host) as usize;
        self.dead[number] = true;
        match host {
            ShiftHost::Source(readout) => {
                let peer = Peer::Readout(readout as u16);
                self.supervisor.handle_closed(now, peer);
                for collector in 0..self.collectors.len() as u16 {
                    self.collectors[usize::from(collector)].handle_closed(now, peer);
                    self.drain(now, &Peer::Collector(collector), outbox);
                }
            }
            ShiftHost::Destination(collector) => {
                let peer = Peer::Collector(collector as u16);
                for readout in 0..self.readouts.len() as u16 {
                    self.readouts[usize::from(readout)].handle_closed(now, peer);
                    let Some(shifter) = &mut self.shifter else { return };
                    let place = shifter.place(readout, collector as u16);
                    shifter.held[place].clear();
                }
                for logger in &mut self.loggers {
                    logger.handle_closed(now, peer);
                }
                self.supervisor.handle_closed(now, peer);
            }
        }
        self.drain(now, &Peer::Supervisor, outbox);
    }
}
