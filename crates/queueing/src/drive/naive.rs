//! Asks for the next departure when a link is free: one step for each departure.
//!
//! It is the oracle in the tests of [`BookedMemory`](super::BookedMemory). Ports that PAUSE can stop, and ports with rings,
//! are driven in the same way by their owners: a later arrival or a RESUME changes which frame departs next.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use fanin_units::Instant;

use crate::aqm::Aqm;
use crate::frame::{Frame, Verdict};
use crate::layout::{Layout, LayoutError};
use crate::link::{InService, OutputLink};
use crate::memory::Memory;

/// A frame that departed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departed<H> {
    /// The output port.
    pub output: usize,
    /// When its first bit left.
    pub start: Instant,
    /// When its last bit has left.
    pub end: Instant,
    /// The caller's handle.
    pub handle: H,
}

#[derive(Debug, Clone, Copy)]
struct WaitingFrame<H> {
    input: usize,
    bytes: u32,
    handle: H,
}

/// An output: the frames that wait, and the one that is being sent.
#[derive(Debug, Clone)]
struct NaiveOutput<H> {
    waiting: VecDeque<WaitingFrame<H>>,
    /// While its memory is still taken.
    in_service: Option<WaitingFrame<H>>,
    /// When the frame that was sent last will have left.
    free_at: Instant,
    link: OutputLink,
}

/// As [`BookedMemory`](super::BookedMemory), with a step for each departure and no departure known in advance.
///
/// Time must not run backwards from call to call.
#[derive(Debug, Clone)]
pub struct NaiveMemory<H> {
    memory: Memory,
    outputs: Vec<NaiveOutput<H>>,
    in_service: InService,
}

impl<H: Copy> NaiveMemory<H> {
    /// An empty memory; `links` has the link of each output port.
    ///
    /// # Panics
    /// If the number of links differs from the number of output ports.
    pub fn new(layout: &Layout, links: &[OutputLink], in_service: InService) -> Result<Self, LayoutError> {
        let memory = Memory::new(layout)?;
        assert_eq!(links.len(), memory.outputs_len(), "one link for each output port");
        let output = |&link: &OutputLink| NaiveOutput {
            waiting: VecDeque::new(),
            in_service: None,
            free_at: Instant::START,
            link,
        };
        Ok(Self { memory, outputs: links.iter().map(output).collect(), in_service })
    }

    /// Marks, or drops early, by `aqm` at one output from now on.
    pub fn set_aqm(&mut self, output: usize, aqm: Aqm) {
        self.memory.set_aqm(output, aqm);
    }

    /// A frame arrives for `output`, and begins to leave at once where the link is idle.
    ///
    /// # Panics
    /// If a departure is due and [`Self::depart`] was not called for it.
    pub fn arrive(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Frame,
        handle: H,
        draw: impl FnOnce() -> u32,
    ) -> (Verdict, Option<Departed<H>>) {
        assert!(self.next_departure().is_none_or(|at| at > now), "a departure is due");
        let verdict = self.memory.arrive(now, input, output, frame, draw);
        if !verdict.is_accepted() {
            return (verdict, None);
        }
        let out = &mut self.outputs[output];
        out.waiting.push_back(WaitingFrame { input, bytes: frame.bytes, handle });
        let is_idle = out.free_at <= now;
        (verdict, if is_idle { self.begin(now, output) } else { None })
    }

    /// The earliest time at which a link becomes free that is sending a frame or has one to send.
    pub fn next_departure(&self) -> Option<Instant> {
        let is_busy = |out: &&NaiveOutput<H>| out.in_service.is_some() || !out.waiting.is_empty();
        self.outputs.iter().filter(is_busy).map(|out| out.free_at).min()
    }

    /// Ends the frames in service on all links that are free at `now`, gives back their memory, and starts the next frames.
    /// `now` must be [`Self::next_departure`]. Returns the frames that begin to leave.
    pub fn depart(&mut self, now: Instant) -> Vec<Departed<H>> {
        for (output, out) in self.outputs.iter_mut().enumerate().filter(|(_, out)| out.free_at <= now) {
            if let Some(sent) = out.in_service.take() {
                self.memory.depart(out.free_at, sent.input, output, sent.bytes);
            }
        }
        (0..self.outputs.len()).filter_map(|output| self.begin(now, output)).collect()
    }

    /// The first frame of an output begins to leave, if its link is free.
    fn begin(&mut self, now: Instant, output: usize) -> Option<Departed<H>> {
        let out = &mut self.outputs[output];
        if out.free_at > now {
            return None;
        }
        let waiting = out.waiting.pop_front()?;
        out.free_at = now + out.link.time_to_send(waiting.bytes);
        match self.in_service {
            InService::Counted => out.in_service = Some(waiting),
            InService::Free => self.memory.depart(now, waiting.input, output, waiting.bytes),
        }
        Some(Departed { output, start: now, end: out.free_at, handle: waiting.handle })
    }

    /// The accounts.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }
}
