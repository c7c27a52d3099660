//! The events that a collector works on.

use alloc::vec::Vec;

use fanin_units::{Bytes, Instant};

use crate::{FragmentSet, L1Id, RelativeSize, Selection};

/// The phase of an event in a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The slot is free.
    Vacant,
    /// The event is with a unit, in this step, from zero.
    Step(u16),
    /// Decided, or without a unit; the rest of its fragments is being collected.
    Building,
    /// Complete; waits for a connected logger.
    Unshipped,
    /// Offered to a logger.
    Offered(u16),
    /// Sent to a logger.
    Sent(u16),
}

impl Phase {
    /// Returns true if an event in this phase may enter another one. From each phase it may also leave the collector.
    fn leads_to(self, next: Self) -> bool {
        match (self, next) {
            (Self::Vacant, Self::Step(step)) => step == 0,
            (Self::Step(step), Self::Step(next)) => next == step.saturating_add(1),
            (Self::Step(_), Self::Building) => true,
            (Self::Building | Self::Unshipped, Self::Unshipped | Self::Offered(_)) => true,
            (Self::Offered(_) | Self::Sent(_), Self::Unshipped | Self::Offered(_)) => true,
            (Self::Offered(logger), Self::Sent(to)) => to == logger,
            _ => false,
        }
    }
}

/// The state of one event. The memory of a vacant slot is reused.
#[derive(Debug)]
pub(crate) struct EventSlot<P> {
    pub(crate) phase: Phase,
    /// Incremented with each event, so that a late answer or timer has an older generation.
    pub(crate) generation: u32,
    pub(crate) event: L1Id,
    pub(crate) unit: Option<u16>,
    /// True if it goes to the debug stream undecided.
    pub(crate) is_debug: bool,
    pub(crate) region: Selection,
    pub(crate) result: P,
    pub(crate) payload: P,
    /// The fragments requested so far, by readout.
    pub(crate) requested: Vec<FragmentSet>,
    /// Requests of the step that are neither answered nor given up.
    pub(crate) outstanding: u32,
    pub(crate) began: Instant,
    pub(crate) first_request: Option<Instant>,
    pub(crate) requests: u32,
    /// Size of the event relative to usual events, for the prediction of paced credits.
    pub(crate) size: RelativeSize,
    pub(crate) bytes: Bytes,
    pub(crate) missing: u32,
    /// Number of offers to loggers.
    pub(crate) offers: u16,
    /// Number of times it was sent to a logger.
    pub(crate) sends: u16,
    /// True if it was added to a clear for the readouts.
    pub(crate) is_cleared: bool,
}

impl<P> EventSlot<P> {
    /// Moves the event to its next phase.
    ///
    /// # Panics
    /// If the present phase does not lead there, or if an event that has left its unit still names it.
    pub(crate) fn enter(&mut self, next: Phase) {
        assert!(self.phase.leads_to(next), "an event goes from {:?} to {next:?}", self.phase);
        assert!(self.unit.is_none() || matches!(next, Phase::Step(_)), "a unit has an event that left it");
        self.phase = next;
    }
}

/// An event in a slot; the slot may have another event later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotKey {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// All slots of a collector.
#[derive(Debug)]
pub(crate) struct EventSlots<P> {
    slots: Vec<EventSlot<P>>,
    vacant: Vec<u32>,
    readouts: usize,
}

impl<P: Default> EventSlots<P> {
    pub(crate) fn new(readouts: usize) -> Self {
        Self { slots: Vec::new(), vacant: Vec::new(), readouts }
    }

    pub(crate) fn insert(&mut self, event: L1Id, unit: u16, region: Selection, result: P) -> u32 {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(EventSlot {
                phase: Phase::Vacant,
                generation: 0,
                event,
                unit: None,
                is_debug: false,
                region: Selection::Rest,
                result: P::default(),
                payload: P::default(),
                requested: Vec::new(),
                outstanding: 0,
                began: Instant::START,
                first_request: None,
                requests: 0,
                bytes: Bytes::ZERO,
                size: RelativeSize::default(),
                missing: 0,
                offers: 0,
                sends: 0,
                is_cleared: false,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        assert_eq!(slot.phase, Phase::Vacant, "a slot gets a second event");
        slot.enter(Phase::Step(0));
        slot.generation = slot.generation.wrapping_add(1);
        slot.event = event;
        slot.unit = Some(unit);
        slot.is_debug = false;
        slot.region = region;
        slot.result = result;
        slot.requested.clear();
        slot.requested.resize(self.readouts, FragmentSet::EMPTY);
        slot.outstanding = 0;
        slot.first_request = None;
        slot.requests = 0;
        slot.bytes = Bytes::ZERO;
        slot.size = RelativeSize::of_event(u64::from(slot.generation) << 32 | u64::from(index));
        slot.missing = 0;
        slot.offers = 0;
        slot.sends = 0;
        slot.is_cleared = false;
        index
    }

    pub(crate) fn remove(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        assert!(slot.phase != Phase::Vacant, "an event was removed twice");
        slot.phase = Phase::Vacant;
        slot.payload = P::default();
        slot.result = P::default();
        slot.region = Selection::Rest;
        self.vacant.push(index);
    }

    pub(crate) fn key(&self, index: u32) -> SlotKey {
        SlotKey { index, generation: self.slots[index as usize].generation }
    }

    /// Returns the slot of a key; `None` if its event has left.
    #[inline]
    pub(crate) fn find(&self, key: SlotKey) -> Option<&EventSlot<P>> {
        let slot = &self.slots[key.index as usize];
        (slot.generation == key.generation && slot.phase != Phase::Vacant).then_some(slot)
    }

    /// Returns the slot of an event; `None` if no slot has it. The search is cheap, as there are a few dozen slots.
    pub(crate) fn index_of(&self, event: L1Id) -> Option<u32> {
        self.iter().find(|(_, slot)| slot.event == event).map(|(index, _)| index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &EventSlot<P>)> {
        let occupied = |(_, slot): &(usize, &EventSlot<P>)| slot.phase != Phase::Vacant;
        self.slots.iter().enumerate().filter(occupied).map(|(index, slot)| (index as u32, slot))
    }
}

impl<P> core::ops::Index<u32> for EventSlots<P> {
    type Output = EventSlot<P>;
    #[inline]
    fn index(&self, index: u32) -> &EventSlot<P> {
        &self.slots[index as usize]
    }
}

impl<P> core::ops::IndexMut<u32> for EventSlots<P> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut EventSlot<P> {
        &mut self.slots[index as usize]
    }
}
