//! The line of a port: what of it has been foreseen, and what waits behind.

use super::accounts::front;
use super::{BULK, HeldPorts, Moment, NEVER, URGENT};
use crate::fabric::{Hold, Parcel, Port, PortIndex, SwitchTotals};
use crate::occurrence::Occurrence;

impl HeldPorts {
    /// Whether a frame parks behind those that are, and nothing else is to be done.
    #[inline(always)]
    pub(super) fn parks(&self, index: PortIndex, now: u64, parcel: Parcel) -> bool {
        self.ports[index as usize].look_at > now && self.classes.of(parcel) == BULK
    }

    /// Whether nothing is amiss at a watched port, so that a frame may be booked behind those that are without a closer look: it
    /// need not pass any, and those are few enough.
    #[inline(never)]
    pub(super) fn calms_down(&self, port: &mut Port, index: PortIndex, now: u64, parcel: Parcel) -> bool {
        let state = &self.ports[index as usize];
        if !state.is_calm || state.blocked_until > now {
            return false;
        }
        if self.line_free == u32::MAX {
            port.hold = Hold::Calm;
        }
        port.queued() < self.line_free && !self.passes(port, parcel)
    }

    /// Whether a frame goes before others that are booked.
    #[inline(always)]
    pub(in crate::fabric) fn passes(&self, port: &Port, parcel: Parcel) -> bool {
        self.classes.of(parcel) == URGENT && self.is_bulk_last(port)
    }

    /// Whether the last frame of a line is bulk data.
    #[inline(always)]
    pub(super) fn is_bulk_last(&self, port: &Port) -> bool {
        let last = port.get_queued(port.queued().wrapping_sub(1));
        last.is_some_and(|frame| self.classes.of(frame.parcel) == BULK)
    }

    /// What is due at a port comes before anything else that happens to it now.
    #[inline(always)]
    pub(super) fn catch_up(&mut self, moment: &mut Moment<'_>, index: PortIndex) {
        self.settle(&mut moment.links, index);
        if self.ports[index as usize].look_at <= moment.links.now {
            self.book_waiting(moment, index);
        }
    }

    /// When a frame will have left that goes onto the link behind all others; nothing [blocks](Held::blocked_until) it.
    #[inline(always)]
    pub(super) fn plan(&mut self, port: &Port, switch: &SwitchTotals, now: u64, parcel: Parcel) -> u64 {
        let start = port.departure.max(now);
        let departure = start + port.time_to_send(parcel.wire_bytes());
        if port.queued() == 0 {
            self.set_front(switch.slot(port), if port.counts_in_service { departure } else { start });
        }
        departure
    }

    /// Books a frame; it goes before those that are parked.
    pub(super) fn book(&mut self, moment: &mut Moment<'_>, index: PortIndex, parcel: Parcel) {
        let port = &mut moment.links.ports[index as usize];
        let departure =
            self.plan(port, &moment.links.switches[port.switch as usize], moment.links.now, parcel);
        port.accept_before_parked(moment.schedule, departure, index, parcel);
    }

    /// Books what waits at a port and may go, and sees to it that somebody looks again where more waits.
    #[inline(never)]
    pub(super) fn book_waiting(&mut self, moment: &mut Moment<'_>, index: PortIndex) {
        let now = moment.links.now;
        self.settle(&mut moment.links, index);
        let state = &mut self.ports[index as usize];
        if state.look_at <= now {
            state.look_at = NEVER;
        }
        let was_empty = moment.links.ports[index as usize].queued() == 0;
        loop {
            let state = &mut self.ports[index as usize];
            let port = &mut moment.links.ports[index as usize];
            let Some(class) = state.next_class(port) else { break };
            let is_blocked = state.blocked_until > now;
            if is_blocked || port.queued() >= self.line_max {
                // The line is filled up when few are left of it.
                let at = if is_blocked {
                    port.departure
                } else {
                    port.get_queued(port.queued() - 1 - self.line_low)
                        .map_or(NEVER, |frame| port.leaves_at(frame))
                };
                if at < state.look_at {
                    state.look_at = at;
                    moment.schedule.insert(at, Occurrence::Booking(index));
                }
                break;
            }
            if class == URGENT {
                let Some(parcel) = state.urgent.pop_front() else { break };
                self.book(moment, index, parcel);
            } else {
                let Some(parcel) = port.first_parked() else { break };
                let departure = self.plan(port, &moment.links.switches[port.switch as usize], now, parcel);
                port.unpark(moment.schedule, departure, index);
            }
        }
        let state = &mut self.ports[index as usize];
        let is_stopped = state.stopped[BULK] || state.stopped[URGENT];
        let port = &mut moment.links.ports[index as usize];
        let has_memory = self.nodes.get(port.switch as usize).is_some_and(|node| node.memory.is_some());
        state.is_calm = !has_memory && !is_stopped && port.parked_len() == 0 && state.urgent.is_empty();
        port.hold = watched(port, has_memory);
        if was_empty && port.queued() > 0 {
            self.handle_begin(moment, index);
        }
    }

    /// Takes the frames back that are booked and have not begun to leave: they wait again, before all others. Who calls this
    /// lets [`Self::book_waiting`] follow.
    pub(super) fn take_back(&mut self, moment: &mut Moment<'_>, index: PortIndex, bulk_only: bool) {
        let state = &mut self.ports[index as usize];
        (state.look_at, state.is_calm) = (NEVER, false);
        let port = &mut moment.links.ports[index as usize];
        port.hold = Hold::Watched;
        let (until, mut time_back) = (port.departure, 0);
        while !bulk_only || self.is_bulk_last(port) {
            if self.is_bulk_last(port) {
                let Some(time) = port.park_last(moment.links.now) else { break };
                time_back += time;
            } else {
                let Some((parcel, time)) = port.take_back(moment.links.now) else { break };
                time_back += time;
                self.ports[index as usize].urgent.push_front(parcel);
            }
        }
        let state = &mut self.ports[index as usize];
        if state.blocked_until == until {
            // What is no frame comes forward.
            state.blocked_until -= time_back;
        }
        self.set_front(moment.links.switches[port.switch as usize].slot(port), front(port));
    }
}

/// How a port is held at which not all is calm.
pub(super) fn watched(port: &Port, has_memory: bool) -> Hold {
    if !has_memory && port.parked_len() > 0 { Hold::Parks } else { Hold::Watched }
}
