//! Flow control: the memories of its switches, the ingress occupancy of each input, and the inputs whose neighbours are paused.

use fanin_network::{FrameOverhead, PortIndex};
use fanin_queueing::{
    Class, EcnCodepoint, Frame as Descriptor, Ingress, Memory, PauseSignal, PauseThresholds, StoredFrame,
    Verdict,
};
use fanin_units::{Duration, Instant};

use crate::fabric::output::Port;
use crate::fabric::paths::Crossing;
use crate::fabric::pausable::{PausableFrame, PauseFigures};
use crate::occurrence::Occurrence;
use crate::parcel::Parcel;
use crate::schedule::{NEVER, Schedule};

/// Time in picoseconds after which a paused port is searched for a deadlock.
pub(super) const SUSPECT: u64 = Duration::from_millis(10).get();

/// A switch of a network with PAUSE.
pub(crate) struct PausingSwitch {
    /// The memory for the frames of all outputs of the switch, under its buffering scheme.
    memory: Memory,
    /// True if only bulk data count as ingress occupancy (priority flow control).
    counts_bulk_only: bool,
    /// Inputs whose neighbours are paused, in the order of the PAUSEs.
    paused_inputs: Vec<PortIndex>,
    /// Time of the next check of these inputs, in picoseconds.
    check_at: u64,
}

impl PausingSwitch {
    /// Makes a switch with empty memory.
    pub(crate) const fn new(memory: Memory, counts_bulk_only: bool) -> Self {
        Self { memory, counts_bulk_only, paused_inputs: Vec::new(), check_at: NEVER }
    }
}

/// Flow control in a network in which some switch uses PAUSE.
#[derive(Default)]
pub(crate) struct FlowControl {
    /// Ingress occupancy, by the port that sent the frames over its link.
    ingress: Vec<Ingress>,
    switches: Vec<PausingSwitch>,
    /// With priorities, the class of the frames to each end of a connection; empty otherwise.
    classes: Vec<Class>,
    has_priorities: bool,
    /// Bytes of a frame on the wire that no buffer stores.
    unstored_bytes: u32,
    /// Bytes of a signal on the wire.
    pub(super) signal_bytes: u32,
    /// High-water mark of the ingress occupancy, over all inputs whose neighbours can be paused.
    input_bytes_max: u64,
    pauses: u64,
    resumes: u64,
    is_check_scheduled: bool,
    /// The ports of a deadlock, if one was found: each waits for the next, the last for the first.
    pub(crate) deadlock: Vec<PortIndex>,
}

impl FlowControl {
    /// Makes flow control from the switches and, for each port, the thresholds at the far end of its link.
    pub(crate) fn new(
        switches: Vec<PausingSwitch>,
        thresholds: Vec<Option<PauseThresholds>>,
        has_priorities: bool,
        framing: FrameOverhead,
    ) -> Self {
        Self {
            ingress: thresholds.into_iter().map(Ingress::new).collect(),
            switches,
            has_priorities,
            unstored_bytes: framing.unstored_bytes(),
            signal_bytes: framing.pause_bytes(),
            ..Self::default()
        }
    }

    /// Adds the next connection. Its second end answers with bulk data if `carries_bulk` is true.
    pub(super) fn add_connection(&mut self, carries_bulk: bool) {
        if self.has_priorities {
            let answers = if carries_bulk { Class::Bulk } else { Class::Urgent };
            self.classes.extend([answers, Class::Urgent]);
        }
    }

    /// Returns the class of a frame.
    pub(super) fn class_of(&self, parcel: Parcel) -> Class {
        if self.has_priorities { self.classes[parcel.end() as usize] } else { Class::Bulk }
    }

    /// Returns the memories of all switches.
    pub(crate) fn memories(&self) -> impl Iterator<Item = &Memory> {
        self.switches.iter().map(|switch| &switch.memory)
    }

    pub(crate) fn reset_high_water_marks(&mut self) {
        self.switches.iter_mut().for_each(|switch| switch.memory.reset_high_water_marks());
    }

    /// Returns the memory that a frame takes in a switch.
    pub(super) fn stored_bytes(&self, switch: usize, parcel: Parcel) -> u64 {
        self.switches[switch].memory.charge(parcel.wire_bytes() - self.unstored_bytes)
    }

    /// Returns the bytes that a frame adds to the ingress occupancy in a switch.
    fn counted(&self, switch: usize, parcel: Parcel) -> u64 {
        let counts = !self.switches[switch].counts_bulk_only || self.class_of(parcel) == Class::Bulk;
        if counts { self.stored_bytes(switch, parcel) } else { 0 }
    }

    /// Admits a frame that arrives at a switch by the link of `from`. Returns the verdict, and true if a PAUSE is due.
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        (crossing, from): (Crossing, PortIndex),
        parcel: Parcel,
        ecn: EcnCodepoint,
        draw: impl FnOnce() -> u32,
    ) -> (Verdict, bool) {
        let switch = crossing.switch as usize;
        let frame = Descriptor { bytes: parcel.wire_bytes() - self.unstored_bytes, ecn };
        let (input, output) = (usize::from(crossing.input), usize::from(crossing.output));
        let verdict = self.switches[switch].memory.arrive(now, input, output, frame, draw);
        if !verdict.is_accepted() {
            return (verdict, false);
        }
        let counted = self.counted(switch, parcel);
        let ingress = &mut self.ingress[from as usize];
        ingress.arrive(counted);
        if ingress.thresholds().is_some() {
            self.input_bytes_max = self.input_bytes_max.max(ingress.occupancy(0));
        }
        // A RESUME that is due at this instant is sent when the instant's departures are over.
        if ingress.signal_due(0) != Some(PauseSignal::Pause) {
            return (verdict, false);
        }
        ingress.poll_signal(0);
        let paused = &mut self.switches[switch].paused_inputs;
        assert!(!paused.contains(&from), "a neighbour is paused twice");
        paused.push(from);
        (verdict, true)
    }

    /// Frees the memory of a frame that leaves a switch. Returns true if a RESUME is due and the caller has to schedule a
    /// check of the switch's inputs for now.
    pub(super) fn depart(
        &mut self,
        now: u64,
        (crossing, from): (Crossing, PortIndex),
        parcel: Parcel,
    ) -> bool {
        let counted = self.counted(crossing.switch as usize, parcel);
        let switch = &mut self.switches[crossing.switch as usize];
        let (input, output) = (usize::from(crossing.input), usize::from(crossing.output));
        let bytes = parcel.wire_bytes() - self.unstored_bytes;
        switch.memory.depart(Instant::new(now), input, output, bytes);
        let ingress = &mut self.ingress[from as usize];
        ingress.depart(counted);
        let is_due = ingress.signal_due(0) == Some(PauseSignal::Resume) && switch.check_at != now;
        if is_due {
            switch.check_at = now;
        }
        is_due
    }

    /// Takes the paused inputs of a switch whose ingress occupancy fell to XON, in the check scheduled for `now`.
    pub(super) fn take_resumed(&mut self, now: u64, switch: u32) -> Vec<PortIndex> {
        let switch = &mut self.switches[switch as usize];
        assert_eq!(switch.check_at, now, "a check happens that was not scheduled");
        switch.check_at = NEVER;
        let ingress = &mut self.ingress;
        switch
            .paused_inputs
            .extract_if(.., |input| ingress[*input as usize].poll_signal(0) == Some(PauseSignal::Resume))
            .collect()
    }

    /// Counts a sent signal. After a PAUSE, schedules a search for a deadlock.
    pub(super) fn note_sent(&mut self, schedule: &mut Schedule, now: u64, signal: PauseSignal) {
        match signal {
            PauseSignal::Pause => {
                self.pauses += 1;
                self.schedule_check(schedule, now);
            }
            PauseSignal::Resume => self.resumes += 1,
        }
        assert!(self.resumes <= self.pauses, "a RESUME without its PAUSE");
    }

    /// Schedules the next search for a deadlock, unless one is scheduled.
    pub(super) fn schedule_check(&mut self, schedule: &mut Schedule, now: u64) {
        if !std::mem::replace(&mut self.is_check_scheduled, true) {
            schedule.insert(now + SUSPECT, Occurrence::DeadlockCheck);
        }
    }

    /// Ends a search for a deadlock, and stores the ports that it found.
    pub(super) fn end_check(&mut self, found: Option<Vec<PortIndex>>) {
        assert!(self.is_check_scheduled, "a search for a deadlock ends that was not scheduled");
        self.is_check_scheduled = false;
        self.deadlock = found.unwrap_or_default();
    }

    /// Returns the inputs whose neighbours can be paused: port, true if the neighbour is paused, and XON in bytes.
    pub(super) fn inputs(&self) -> impl Iterator<Item = (PortIndex, bool, u64)> {
        (0..).zip(&self.ingress).filter_map(|(input, ingress)| {
            Some((input, ingress.is_paused(), ingress.thresholds()?.xon().get()))
        })
    }

    /// Returns the figures of flow control up to `now`.
    pub(crate) fn figures(&self, ports: &[Port], now: u64) -> PauseFigures {
        let Self { pauses, resumes, input_bytes_max, .. } = *self;
        let mut figures = PauseFigures { pauses, resumes, input_bytes_max, ..PauseFigures::default() };
        for (port, out) in ports.iter().filter_map(|port| Some((port, port.pausable()?))) {
            out.add_to(&mut figures, port.at_switch().is_none(), now);
        }
        figures
    }

    /// Asserts that memories add up to the frames in each switch, and ingress occupancies to the counted bytes of each input.
    pub(crate) fn assert_conserved(&self, ports: &[Port]) {
        let mut counted = vec![0; ports.len()];
        let mut stored = vec![Vec::new(); self.switches.len()];
        for (port, out) in ports.iter().filter_map(|port| Some((port, port.pausable()?))) {
            let Some((switch, output)) = port.at_switch() else { continue };
            for PausableFrame { parcel, input } in out.stored() {
                let bytes = parcel.wire_bytes() - self.unstored_bytes;
                let from = usize::from(ports[input as usize].input());
                stored[switch].push(StoredFrame { input: from, output, bytes });
                counted[input as usize] += self.counted(switch, parcel);
            }
        }
        for (memory, stored) in self.memories().zip(stored) {
            memory.assert_conserved(stored.into_iter());
        }
        for (input, (account, &expected)) in self.ingress.iter().zip(&counted).enumerate() {
            assert_eq!(account.occupancy(0), expected, "port {input} miscounts its ingress occupancy");
        }
        let listed: usize = self.switches.iter().map(|switch| switch.paused_inputs.len()).sum();
        let paused = self.ingress.iter().filter(|ingress| ingress.is_paused()).count();
        assert_eq!(paused, listed, "a paused input is not listed, or twice");
        assert_eq!(self.pauses, self.resumes + listed as u64, "PAUSEs are unaccounted for");
    }
}
