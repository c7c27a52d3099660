//! A queue of two classes that can be paused separately: urgent frames go before bulk data.
//!
//! PAUSE (IEEE 802.3 annex 31B) stops both classes, priority flow control (IEEE 802.1Qbb) only bulk data.

use crate::fifo::Fifo;

/// A class of frames; urgent frames depart first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Sent only while no urgent frame may depart.
    Bulk,
    /// Sent before all bulk data.
    Urgent,
}

/// The frames of one class, by their handles.
#[derive(Debug, Clone)]
struct ClassQueue<H> {
    frames: Fifo<H>,
    is_paused: bool,
}

/// An output queue with two classes, generic over an opaque handle.
#[derive(Debug, Clone)]
pub struct PausableQueue<H> {
    /// The queues, by [`Class`].
    classes: [ClassQueue<H>; 2],
}

impl<H: Copy + Default> Default for PausableQueue<H> {
    fn default() -> Self {
        let class = || ClassQueue { frames: Fifo::new(), is_paused: false };
        Self { classes: [class(), class()] }
    }
}

impl<H: Copy + Default> PausableQueue<H> {
    /// Queues a frame behind all others of its class.
    #[inline]
    pub fn arrive(&mut self, class: Class, handle: H) {
        self.classes[class as usize].frames.push(handle);
    }

    /// Removes the next permitted frame: urgent before bulk, and none of a paused class.
    #[inline]
    pub fn depart(&mut self) -> Option<H> {
        let next =
            self.classes.iter_mut().rev().find(|class| !class.is_paused && !class.frames.is_empty())?;
        next.frames.pop()
    }

    /// Returns true if [`Self::depart`] would return a frame.
    #[inline]
    pub fn has_ready(&self) -> bool {
        self.classes.iter().any(|class| !class.is_paused && !class.frames.is_empty())
    }

    /// Keeps a class from departing. Its frames stay, in order.
    ///
    /// # Panics
    /// If it is paused.
    pub fn pause(&mut self, class: Class) {
        let was_paused = core::mem::replace(&mut self.classes[class as usize].is_paused, true);
        assert!(!was_paused, "a class is paused twice");
    }

    /// Lets a class depart again.
    ///
    /// # Panics
    /// If it is not paused.
    pub fn resume(&mut self, class: Class) {
        let was_paused = core::mem::replace(&mut self.classes[class as usize].is_paused, false);
        assert!(was_paused, "a class resumes that is not paused");
    }

    /// Returns true if a class is paused.
    #[inline]
    pub const fn is_paused(&self, class: Class) -> bool {
        self.classes[class as usize].is_paused
    }

    /// Frames of both classes.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.classes[0].frames.len() + self.classes[1].frames.len()
    }

    /// Returns true if no frame waits.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The handles of all frames that wait: bulk data, then urgent frames, each in order.
    pub fn waiting(&self) -> impl Iterator<Item = H> {
        self.classes.iter().flat_map(|class| class.frames.iter())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn urgent_frames_go_first_and_a_paused_class_waits() {
        let mut queue = PausableQueue::default();
        for (class, handle) in [(Class::Bulk, 1), (Class::Urgent, 2), (Class::Bulk, 3), (Class::Urgent, 4)] {
            queue.arrive(class, handle);
        }
        assert_eq!(queue.waiting().collect::<Vec<_>>(), [1, 3, 2, 4]);
        assert_eq!(queue.depart(), Some(2));
        queue.pause(Class::Urgent);
        assert_eq!(queue.depart(), Some(1));
        queue.pause(Class::Bulk);
        assert_eq!((queue.depart(), queue.has_ready(), queue.len()), (None, false, 2));
        queue.resume(Class::Bulk);
        queue.resume(Class::Urgent);
        assert_eq!([queue.depart(), queue.depart(), queue.depart()], [Some(4), Some(3), None]);
        assert!(queue.is_empty());
    }
}
