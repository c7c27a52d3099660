//! Messages under way: each is a part of its stream until the message's last byte is delivered.
//!
//! A stream has the number of its sending end. If the receiver is in another partition, a message leaves with the first frame
//! that carries one of the message's bytes or a later byte.

use crate::index::EndIndex;
use crate::lists::{List, Lists};

/// The messages of one stream.
#[derive(Clone, Copy)]
struct Stream {
    /// Next offset to notify: after the first message's first byte, then after its last; `u64::MAX` without a message.
    due: u64,
    messages: List,
}

/// A message in a stream.
pub(crate) struct StreamMessage<M> {
    /// Stream offset behind the message's last byte.
    due: u64,
    /// Stream offset of the message's first byte.
    begin: u64,
    message: M,
}

/// The streams of a partition.
pub(crate) struct Streams<M> {
    streams: Vec<Stream>,
    messages: Lists<StreamMessage<M>>,
    /// Messages written or accepted from another partition, and those received or handed over to another one.
    entered: u64,
    left: u64,
}

impl<M> Streams<M> {
    pub(crate) fn new(ends: usize) -> Self {
        let empty = Stream { due: u64::MAX, messages: List::default() };
        Self { streams: vec![empty; ends], messages: Lists::new(), entered: 0, left: 0 }
    }

    /// Appends a message of `bytes` bytes to the stream of an end; its last byte lies before the offset `due`.
    pub(crate) fn write(&mut self, sender: EndIndex, due: u64, bytes: u64, message: M) {
        self.accept(sender, StreamMessage { due, begin: due - bytes, message });
    }

    /// Appends a message that another partition has [handed over](Self::hand_over).
    pub(crate) fn accept(&mut self, sender: EndIndex, message: StreamMessage<M>) {
        let stream = &mut self.streams[sender as usize];
        if stream.messages.is_empty() {
            stream.due = message.begin + 1;
        }
        assert!(message.begin < message.due, "a message without bytes never arrives");
        assert!(stream.due <= message.due, "a message of a stream ends before an earlier one");
        self.messages.push(&mut stream.messages, message);
        self.entered += 1;
    }

    /// Takes the next message that begins before the offset `sent`, for the stream's destination partition.
    pub(crate) fn hand_over(&mut self, sender: EndIndex, sent: u64) -> Option<StreamMessage<M>> {
        let first = self.messages.first(self.streams[sender as usize].messages)?;
        if first.begin < sent { self.pop(sender) } else { None }
    }

    /// Returns true if `delivered` bytes reach the first message of a stream, or complete a message that was
    /// [begun](Self::begin).
    #[inline]
    pub(crate) fn is_due(&self, sender: EndIndex, delivered: u64) -> bool {
        delivered >= self.streams[sender as usize].due
    }

    /// Takes the first message of a stream, if `delivered` bytes complete it; otherwise returns `None`.
    pub(crate) fn take(&mut self, sender: EndIndex, delivered: u64) -> Option<M> {
        let first = self.messages.first(self.streams[sender as usize].messages)?;
        if delivered < first.due { None } else { self.pop(sender).map(|first| first.message) }
    }

    fn pop(&mut self, sender: EndIndex) -> Option<StreamMessage<M>> {
        let stream = &mut self.streams[sender as usize];
        let first = self.messages.pop(&mut stream.messages)?;
        stream.due = self.messages.first(stream.messages).map_or(u64::MAX, |next| next.begin + 1);
        self.left += 1;
        Some(first)
    }

    /// Returns the first message of a stream, once, when `delivered` bytes have reached it.
    pub(crate) fn begin(&mut self, sender: EndIndex, delivered: u64) -> Option<&M> {
        let stream = &mut self.streams[sender as usize];
        let first = self.messages.first(stream.messages)?;
        if delivered < stream.due || stream.due == first.due {
            return None;
        }
        stream.due = first.due;
        Some(&first.message)
    }

    /// Returns the messages of a stream that are not yet received as a whole.
    pub(crate) fn waiting(&self, sender: EndIndex) -> impl Iterator<Item = &M> {
        self.messages.iter(self.streams[sender as usize].messages).map(|message| &message.message)
    }

    /// Asserts that every message has left or waits, in the order of its stream.
    ///
    /// # Panics
    /// If a message was lost.
    pub(crate) fn assert_conserved(&self) {
        let mut waiting = 0;
        for stream in &self.streams {
            assert!(self.messages.iter(stream.messages).is_sorted_by_key(|message| message.due));
            let first = self.messages.first(stream.messages);
            let is_first = first.map_or(stream.due == u64::MAX, |message| {
                [message.begin + 1, message.due].contains(&stream.due)
            });
            assert!(is_first, "a stream waits for another message than its first");
            waiting += self.messages.iter(stream.messages).count() as u64;
        }
        assert_eq!(self.entered, self.left + waiting, "messages are unaccounted for");
    }
}
