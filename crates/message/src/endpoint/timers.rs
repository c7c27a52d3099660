//! Waiting, and timers.

use std::io;
use std::time::Instant;

use super::MessageEndpoint;
use super::parts::SlotDeadline;
use super::slot::{Closing, Slot, State};
use crate::event::{Closed, Listener};
use crate::frame::Header;
use crate::hello::HEARTBEAT;
use crate::pool::ReceiveMemory;

/// Number of a peer's heartbeat intervals without a byte after which it counts as silent.
const HEARTBEATS_MISSED_MAX: u32 = 3;

/// Next action of a connection, or its next deadline.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Nothing(Option<Instant>),
    Attempt,
    Heartbeat,
    End(Closed),
}

impl MessageEndpoint {
    pub(super) fn heartbeat(&mut self, index: u32) {
        self.push(index, Header { kind: HEARTBEAT, stream: 0, size: 0 }, &[]);
        self.slots.at(index).counters.heartbeats_out += 1;
        self.totals.heartbeats_out += 1;
    }

    /// Waits for an event or a timer; returns true if `deadline` has passed.
    pub(super) fn wait(&mut self, deadline: Option<Instant>) -> io::Result<bool> {
        let timers = self.timers.peek().map(|timer| timer.at);
        let listeners = self.listeners.iter().filter_map(|listening| listening.resume).min();
        let next = [deadline, timers, listeners].into_iter().flatten().min();
        let timeout = next.map(|next| next.saturating_duration_since(self.net.now()));
        self.wait_for_kernel(timeout)?;
        self.now = self.net.now();
        // A timer that is set again for this time is handled by the next wait, so that no mistake makes this one endless.
        for _ in 0..self.timers.len() {
            if self.timers.peek().is_none_or(|timer| timer.at > self.now) {
                break;
            }
            let Some(SlotDeadline { at, index }) = self.timers.pop() else { break };
            if self.slots.at(index).timer == Some(at) {
                self.slots.at(index).timer = None;
                self.handle_deadline(index);
            }
        }
        if listeners.is_some_and(|at| at <= self.now) {
            self.resume_listeners();
        }
        self.feed_starved();
        let idle = !self.net.has_ready() && self.uring.as_ref().is_none_or(|uring| !uring.has_done());
        // A simulated network never waits: the caller polls again at the time of `poll_deadline`.
        let is_simulated = self.net.is_simulated() && self.dirty.is_empty();
        let is_due = is_simulated || deadline.is_some_and(|at| at <= self.now);
        Ok(idle && self.events.is_empty() && is_due)
    }

    /// Returns the time of the next [`poll`](Self::poll) even if nothing arrives: for a heartbeat, the next attempt to
    /// connect or the end of a connection. `None`: no timer is set. In a simulated network the caller polls at this
    /// time.
    pub fn poll_deadline(&self) -> Option<Instant> {
        let is_busy = !self.events.is_empty() || self.reading.is_some() || self.fed.is_some();
        if is_busy || !self.dirty.is_empty() || self.net.is_pending() {
            return Some(self.now);
        }
        let timers = self.timers.peek().map(|timer| timer.at);
        let listeners = self.listeners.iter().filter_map(|listening| listening.resume).min();
        [timers, listeners].into_iter().flatten().min()
    }

    /// Schedules a check of a slot at this time, unless an earlier one is scheduled.
    pub(super) fn arm(&mut self, index: u32, at: Instant) {
        let slot = self.slots.at(index);
        if slot.timer.is_none_or(|timer| at < timer) {
            slot.timer = Some(at);
            self.timers.push(SlotDeadline { at, index });
        }
    }

    /// Schedules the next check of a slot.
    pub(super) fn arm_next(&mut self, index: u32) {
        match due(self.slots.at(index), self.now) {
            Due::Nothing(None) => {}
            Due::Nothing(Some(at)) => self.arm(index, at),
            // Several deadlines were due at once, as after a suspension: the others follow now.
            Due::Attempt | Due::Heartbeat | Due::End(_) => self.arm(index, self.now),
        }
    }

    fn handle_deadline(&mut self, index: u32) {
        match due(self.slots.at(index), self.now) {
            Due::Nothing(None) => {}
            Due::Nothing(Some(at)) => self.arm(index, at),
            Due::Attempt => self.attempt(index),
            Due::Heartbeat => {
                self.heartbeat(index);
                self.slots.at(index).last_out = self.now;
                self.arm_next(index);
            }
            // This process may have been suspended; the peer's bytes since then wait in the kernel.
            Due::End(Closed::Silent(_)) if self.has_unread(index) => {
                self.slots.at(index).last_in = self.now;
                self.arm_next(index);
            }
            Due::End(reason) => self.end(index, reason),
        }
    }

    /// Continues accepting on listeners after their pause.
    pub(super) fn resume_listeners(&mut self) {
        for listener in 0..self.listeners.len() {
            if self.listeners[listener].resume.is_some() {
                self.accept(Listener(listener as u32));
            }
        }
    }

    /// Returns the memory in which bytes are received, for checks of simulated worlds.
    pub fn receive_memory(&self) -> ReceiveMemory {
        let stopped = || self.slots.iter().filter(|slot| slot.is_starved);
        let is_full = |slot: &Slot| slot.partial.is_peer_full(&self.pool);
        let has_room = self.pool.has_room(self.feed_bytes());
        let may_read = |slot: &Slot| !is_full(slot) && (has_room || slot.partial.is_urgent());
        ReceiveMemory {
            lent_bytes: self.pool.lent_bytes(),
            peer_bytes: self.slots.iter().map(|slot| slot.partial.peer_bytes()).max().unwrap_or(0),
            is_peer_stopped: stopped().any(is_full),
            is_stopped_with_room: stopped().any(may_read),
        }
    }

    /// Returns the free memory in bytes with which stopped connections are read again.
    fn feed_bytes(&self) -> u64 {
        2 * self.settings.limits.receive_block_bytes as u64
    }

    /// Continues reading from connections that waited for memory, once some is free. Urgent ones waited only for that of
    /// their peer.
    pub(super) fn feed_starved(&mut self) {
        if self.starved.is_empty() {
            return;
        }
        let has_room = self.pool.admits(self.feed_bytes());
        for index in std::mem::take(&mut self.starved) {
            let Some(slot) = self.slots.find(index).filter(|slot| slot.is_starved) else { continue };
            if !has_room && !slot.partial.is_urgent() || !slot.partial.ends_wait(&self.pool) {
                self.starved.push(index);
                continue;
            }
            let now = self.now;
            let slot = self.slots.at(index);
            slot.is_starved = false;
            slot.last_in = now;
            self.watch(index);
        }
        if has_room {
            return;
        }
        // If only incomplete messages hold memory, and each of them waits for more, none of them can complete.
        let stuck = self.starved.iter().filter(|index| self.slots.at(**index).partial.needed() > 12).count();
        if self.pool.lent_bytes() <= self.assembler.held_bytes() && stuck >= self.assembler.unfinished() {
            let missing = |slot: &Slot| slot.partial.needed() - slot.partial.received();
            let Some(worst) =
                self.starved.iter().copied().max_by_key(|index| missing(self.slots.at_ref(*index)))
            else {
                return;
            };
            let needed = self.slots.at(worst).partial.needed();
            self.end(worst, Closed::NoMemory { needed });
        }
    }
}

/// Returns the next action of a connection, without side effects.
fn due(slot: &Slot, now: Instant) -> Due {
    let timing = &slot.options.timing;
    let later = |at: Instant, end: Closed| if at <= now { Due::End(end) } else { Due::Nothing(Some(at)) };
    match slot.state {
        State::Free | State::Ended | State::Resolving => Due::Nothing(None),
        State::Waiting(at) if at <= now => Due::Attempt,
        State::Waiting(at) => Due::Nothing(Some(at)),
        State::Connecting(until) | State::Greeting(until) => {
            later(until, Closed::GreetingLate(timing.greeting_max))
        }
        State::Closing(how, until) => later(
            until,
            match how {
                Closing::HalfClosed => Closed::Stalled(timing.drain_max),
                Closing::Draining | Closing::Finishing => Closed::NotDrained(timing.drain_max),
            },
        ),
        State::Open => due_open(slot, now),
    }
}

fn due_open(slot: &Slot, now: Instant) -> Due {
    let timing = &slot.options.timing;
    let mut next: Option<Instant> = None;
    let mut sooner = |at: Instant| next = Some(next.map_or(at, |next| next.min(at)));
    if let Some(since) = slot.blocked
        && !timing.stall_max.is_zero()
    {
        if since + timing.stall_max <= now {
            return Due::End(Closed::Stalled(timing.stall_max));
        }
        sooner(since + timing.stall_max);
    }
    // Silence is not measured while this side does not read.
    if !slot.promised.is_zero() && !timing.silence_max.is_zero() && !slot.is_paused && !slot.is_starved {
        let silence = timing.silence_max.max(slot.promised * HEARTBEATS_MISSED_MAX);
        if slot.last_in + silence <= now {
            return Due::End(Closed::Silent(silence));
        }
        sooner(slot.last_in + silence);
    }
    if !timing.heartbeat.is_zero() && slot.options.greeting == crate::Greeting::Names {
        if slot.last_out + timing.heartbeat > now {
            sooner(slot.last_out + timing.heartbeat);
        } else if slot.outbox.is_empty() {
            return Due::Heartbeat;
        } else {
            // Waiting bytes serve the peer as well as a heartbeat.
            sooner(now + timing.heartbeat);
        }
    }
    Due::Nothing(next)
}
