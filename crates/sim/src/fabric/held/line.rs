//! The frames of a port whose departures are known.

use std::collections::VecDeque;

use super::{NIL, PortIndex};

/// The most frames of one port that are booked while others wait: few enough to be taken back often, enough to be looked
/// after seldom.
pub(super) const LINE_MAX: u32 = 16;

/// The class of a frame, above the port that it came in by.
const URGENT_BIT: u32 = 1 << 31;

/// A frame that was put onto the link with its time.
#[derive(Clone, Copy)]
pub(super) struct Booked {
    /// Until when it takes memory.
    pub(super) release: u64,
    tag: u32,
    /// Bytes that a switch stores of it.
    pub(super) bytes: u32,
}

impl Booked {
    #[inline(always)]
    pub(super) const fn new(release: u64, from: PortIndex, class: usize, bytes: u32) -> Self {
        Self { release, tag: from & !URGENT_BIT | (class as u32) << 31, bytes }
    }

    /// The port that it came in by, [`NIL`] at its own host.
    #[inline(always)]
    pub(super) const fn from(self) -> PortIndex {
        let from = self.tag & !URGENT_BIT;
        if from == NIL & !URGENT_BIT { NIL } else { from }
    }

    #[inline(always)]
    pub(super) const fn class(self) -> usize {
        (self.tag >> 31) as usize
    }
}

/// Those of them that still took memory when somebody looked, in order.
#[derive(Default)]
pub(super) struct Line(VecDeque<Booked>);

impl Line {
    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// The first release; never where there is none.
    #[inline(always)]
    pub(super) fn front(&self) -> u64 {
        self.0.front().map_or(u64::MAX, |booked| booked.release)
    }

    #[inline(always)]
    pub(super) fn push(&mut self, booked: Booked) {
        self.0.push_back(booked);
    }

    /// Takes out what has left by `now`.
    #[inline(always)]
    pub(super) fn pop_released(&mut self, now: u64) -> Option<Booked> {
        if self.front() <= now { self.0.pop_front() } else { None }
    }

    /// The last of them, if there is any.
    #[inline(always)]
    pub(super) fn last(&self) -> Option<Booked> {
        self.0.back().copied()
    }

    /// Takes the last one out.
    #[inline(always)]
    pub(super) fn pop_last(&mut self) {
        self.0.pop_back();
    }

    /// When so many will be left.
    pub(super) fn release_before_last(&self, left: u32) -> u64 {
        self.0[self.0.len() - 1 - left as usize].release
    }
}
