//! Messages on their way: each waits at the end that it goes to until its last byte has been delivered.

use crate::index::EndIndex;
use crate::lists::{List, Lists};

/// The messages on their way to one end.
#[derive(Clone, Copy)]
struct Inbox {
    /// Stream offset behind the first message's first byte, or behind its last one where that has been noted; `u64::MAX`
    /// without a message.
    due: u64,
    messages: List,
}

/// A message on its way.
struct Transit<M> {
    /// Stream offset behind its last byte.
    due: u64,
    /// Stream offset before its first byte.
    begin: u64,
    message: M,
}

/// The messages on their way to all ends of a partition.
pub(crate) struct Inboxes<M> {
    inboxes: Vec<Inbox>,
    transits: Lists<Transit<M>>,
    /// Messages written, and those handed over.
    written: u64,
    received: u64,
}

impl<M> Inboxes<M> {
    pub(crate) fn new(ends: usize) -> Self {
        let empty = Inbox { due: u64::MAX, messages: List::default() };
        Self { inboxes: vec![empty; ends], transits: Lists::new(), written: 0, received: 0 }
    }

    /// Adds a message of so many bytes to an end; its last byte lies before the stream offset `due`.
    pub(crate) fn push(&mut self, end: EndIndex, due: u64, bytes: u64, message: M) {
        let inbox = &mut self.inboxes[end as usize];
        let begin = due - bytes;
        if inbox.messages.is_empty() {
            inbox.due = begin + 1;
        }
        debug_assert!(inbox.due <= due, "messages of a stream end in order");
        self.transits.push(&mut inbox.messages, Transit { due, begin, message });
        self.written += 1;
    }

    /// True if so many delivered bytes begin the first message of an end, or complete it after it was [begun](Self::begin).
    #[inline]
    pub(crate) fn has_news(&self, end: EndIndex, delivered: u64) -> bool {
        delivered >= self.inboxes[end as usize].due
    }

    /// Takes the first message of an end, if it is complete.
    pub(crate) fn take(&mut self, end: EndIndex, delivered: u64) -> Option<M> {
        let inbox = &mut self.inboxes[end as usize];
        if delivered < self.transits.first(inbox.messages)?.due {
            return None;
        }
        let transit = self.transits.pop(&mut inbox.messages)?;
        inbox.due = self.transits.first(inbox.messages).map_or(u64::MAX, |next| next.begin + 1);
        self.received += 1;
        Some(transit.message)
    }

    /// Gives the first message of an end if so many delivered bytes have begun it, once.
    pub(crate) fn begin(&mut self, end: EndIndex, delivered: u64) -> Option<&M> {
        let inbox = &mut self.inboxes[end as usize];
        let first = self.transits.first(inbox.messages)?;
        if delivered < inbox.due || inbox.due == first.due {
            return None;
        }
        inbox.due = first.due;
        Some(&first.message)
    }

    /// The messages that an end has not received as a whole.
    pub(crate) fn waiting(&self, end: EndIndex) -> impl Iterator<Item = &M> {
        self.transits.iter(self.inboxes[end as usize].messages).map(|transit| &transit.message)
    }

    /// Asserts that every message was handed over or waits, in the order of its stream.
    ///
    /// # Panics
    /// If one was lost.
    pub(crate) fn assert_conserved(&self) {
        let mut waiting = 0;
        for inbox in &self.inboxes {
            assert!(self.transits.iter(inbox.messages).is_sorted_by_key(|transit| transit.due));
            let first = self.transits.first(inbox.messages);
            let is_first = first.map_or(inbox.due == u64::MAX, |transit| {
                [transit.begin + 1, transit.due].contains(&inbox.due)
            });
            assert!(is_first, "an inbox waits for another message than its first");
            waiting += self.transits.iter(inbox.messages).count() as u64;
        }
        assert_eq!(self.written, self.received + waiting, "messages are unaccounted for");
    }
}
