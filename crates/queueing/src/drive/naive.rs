//! Polls for the next departure when a link is free: one step for each departure.
//!
//! Ports that PAUSE can stop are driven like this: a RESUME or an urgent frame changes the next departure.
//! [`NaiveMemory`] drives every output of a switch; it is the oracle in the tests of
//! [`BookedMemory`](super::BookedMemory).

use alloc::vec::Vec;

use fanin_units::Instant;

use crate::aqm::Aqm;
use crate::frame::{Frame, Verdict};
use crate::layout::{Layout, LayoutError};
use crate::link::{InService, OutputLink};
use crate::memory::{Memory, StoredFrame};
use crate::pausable::{Class, PausableQueue};

/// An output that is polled for its next frame when its link is free, generic over an opaque handle. The caller
/// accounts for the memory of its frames.
#[derive(Debug, Clone)]
pub struct NaiveOutput<H> {
    queue: PausableQueue<H>,
    /// The frame in service that still takes memory, and the end of its transmission.
    sending: Option<(Instant, H)>,
    in_service: InService,
}

impl<H: Copy + Default> NaiveOutput<H> {
    /// An output without a frame.
    pub fn new(in_service: InService) -> Self {
        Self { queue: PausableQueue::default(), sending: None, in_service }
    }

    /// Queues a frame behind all others of its class.
    #[inline]
    pub fn arrive(&mut self, class: Class, handle: H) {
        self.queue.arrive(class, handle);
    }

    /// Starts the departure of the next permitted frame; the link must be free. `send` takes the frame and returns the
    /// departure time of its last bit. Returns the frame if its memory is free at once.
    ///
    /// # Panics
    /// If the previous frame still takes memory ([`Self::settle`]).
    #[inline]
    pub fn depart(&mut self, send: impl FnOnce(H) -> Instant) -> Option<H> {
        assert!(self.sending.is_none(), "a link sends two frames at a time");
        let handle = self.queue.depart()?;
        let until = send(handle);
        match self.in_service {
            InService::Counted => {
                self.sending = Some((until, handle));
                None
            }
            InService::Free => Some(handle),
        }
    }

    /// Removes the frame that has left by `now`, and frees its memory; `None` if it was free before.
    #[inline]
    pub fn settle(&mut self, now: Instant) -> Option<H> {
        let (_, handle) = self.sending.take_if(|&mut (until, _)| until <= now)?;
        Some(handle)
    }

    /// The next time to call [`Self::settle`] and [`Self::depart`], if the link is free at `free_at`.
    #[inline]
    pub fn next_departure(&self, free_at: Instant) -> Option<Instant> {
        match self.sending {
            Some((until, _)) => Some(until),
            None => self.queue.has_ready().then_some(free_at),
        }
    }

    /// Keeps a class from departing. Its frames stay, in order.
    ///
    /// # Panics
    /// If it is paused.
    pub fn pause(&mut self, class: Class) {
        self.queue.pause(class);
    }

    /// Lets a class depart again.
    ///
    /// # Panics
    /// If it is not paused.
    pub fn resume(&mut self, class: Class) {
        self.queue.resume(class);
    }

    /// Returns true if a class is paused.
    #[inline]
    pub const fn is_paused(&self, class: Class) -> bool {
        self.queue.is_paused(class)
    }

    /// The frames that wait.
    pub fn waiting(&self) -> impl Iterator<Item = H> {
        self.queue.waiting()
    }

    /// The frames in memory: waiting ones, and the one in transmission if it counts.
    pub fn stored(&self) -> impl Iterator<Item = H> {
        self.queue.waiting().chain(self.sending.map(|(_, handle)| handle))
    }
}

/// A frame that departed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departed<H> {
    /// The output port.
    pub output: usize,
    /// Departure of its first bit.
    pub start: Instant,
    /// Departure of its last bit.
    pub end: Instant,
    /// The caller's handle.
    pub handle: H,
}

#[derive(Debug, Clone, Copy, Default)]
struct WaitingFrame<H> {
    input: usize,
    bytes: u32,
    handle: H,
}

/// An output of a [`NaiveMemory`], with its link.
#[derive(Debug, Clone)]
struct LinkedOutput<H> {
    output: NaiveOutput<WaitingFrame<H>>,
    /// Departure of the last frame's last bit.
    free_at: Instant,
    link: OutputLink,
}

/// The naive form of [`BookedMemory`](super::BookedMemory), with a step for each departure.
///
/// Time must not run backwards from call to call.
#[derive(Debug, Clone)]
pub struct NaiveMemory<H> {
    memory: Memory,
    outputs: Vec<LinkedOutput<H>>,
}

impl<H: Copy + Default> NaiveMemory<H> {
    /// An empty memory; `links` has the link of each output port.
    ///
    /// # Errors
    /// If the layout contradicts itself ([`Layout::check`]).
    ///
    /// # Panics
    /// If the number of links differs from the number of output ports.
    pub fn new(layout: &Layout, links: &[OutputLink], in_service: InService) -> Result<Self, LayoutError> {
        let memory = Memory::new(layout)?;
        assert_eq!(links.len(), memory.ports(), "the number of links is not that of the output ports");
        let output = |&link: &OutputLink| LinkedOutput {
            output: NaiveOutput::new(in_service),
            free_at: Instant::START,
            link,
        };
        Ok(Self { memory, outputs: links.iter().map(output).collect() })
    }

    /// Sets the active queue management of one output, which marks or drops early from now on.
    pub fn set_aqm(&mut self, output: usize, aqm: Aqm) {
        self.memory.set_aqm(output, aqm);
    }

    /// Handles the arrival of a frame for `output`. If the link is idle, the frame begins to leave at once.
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
        assert!(self.next_departure().is_none_or(|at| at > now), "a frame arrives while a departure is due");
        let verdict = self.memory.arrive(now, input, output, frame, draw);
        if !verdict.is_accepted() {
            return (verdict, None);
        }
        let out = &mut self.outputs[output];
        out.output.arrive(Class::Bulk, WaitingFrame { input, bytes: frame.bytes, handle });
        (verdict, self.begin(now, output))
    }

    /// Earliest time at which a busy link, or a link with frames to send, becomes free.
    pub fn next_departure(&self) -> Option<Instant> {
        self.outputs.iter().filter_map(|out| out.output.next_departure(out.free_at)).min()
    }

    /// Ends the frames in service on all links that are free at `now`, frees their memory, and starts the next frames.
    /// `now` must be [`Self::next_departure`]. Returns the frames that begin to leave.
    pub fn depart(&mut self, now: Instant) -> Vec<Departed<H>> {
        for (output, out) in self.outputs.iter_mut().enumerate() {
            if let Some(sent) = out.output.settle(now) {
                assert!(out.free_at <= now, "a frame leaves before its last bit");
                self.memory.depart(out.free_at, sent.input, output, sent.bytes);
            }
        }
        (0..self.outputs.len()).filter_map(|output| self.begin(now, output)).collect()
    }

    /// Starts the departure of an output's first frame, if its link is free.
    fn begin(&mut self, now: Instant, output: usize) -> Option<Departed<H>> {
        let LinkedOutput { output: out, free_at, link } = &mut self.outputs[output];
        if *free_at > now {
            return None;
        }
        let mut departed = None;
        let released = out.depart(|frame| {
            *free_at = now + link.time_to_send(frame.bytes);
            departed = Some(Departed { output, start: now, end: *free_at, handle: frame.handle });
            *free_at
        });
        if let Some(frame) = released {
            self.memory.depart(now, frame.input, output, frame.bytes);
        }
        departed
    }

    /// The accounts of the memory.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Asserts that every accepted frame has departed or is stored. All accounts must have the bytes of the stored frames.
    ///
    /// # Panics
    /// If an account holds more or fewer bytes.
    pub fn assert_conserved(&self) {
        let stored = self.outputs.iter().enumerate().flat_map(|(output, out)| {
            let stored = move |WaitingFrame { input, bytes, .. }| StoredFrame { input, output, bytes };
            out.output.stored().map(stored)
        });
        self.memory.assert_conserved(stored);
    }
}
