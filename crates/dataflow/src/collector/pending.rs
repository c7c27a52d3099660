//! Outstanding requests.

use alloc::vec::Vec;

use fanin_units::Instant;

use super::slot::SlotKey;
use crate::{ByteCredit, FragmentSet};

/// Number of bits in a tag for the place in the table; the other bits distinguish the requests of a place.
const PLACE_BITS: u32 = 20;
/// The tag of a reminder, whose answer is ignored. No request has it: the last place stays empty.
pub const REMINDER_TAG: u32 = u32::MAX;

/// A request that was sent, and neither answered nor given up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingRequest {
    pub(crate) slot: SlotKey,
    pub(crate) readout: u16,
    /// Credits that it holds.
    pub(crate) cost: u16,
    /// Paced credit that it holds, if requests are paced.
    pub(crate) paced: Option<ByteCredit>,
    pub(crate) retries: u8,
    pub(crate) fragments: FragmentSet,
    pub(crate) sent: Instant,
}

/// Requests by tag.
#[derive(Debug, Default)]
pub(crate) struct PendingTable {
    entries: Vec<(u32, Option<PendingRequest>)>,
    free: Vec<u32>,
}

impl PendingTable {
    /// Adds a request and returns its tag.
    #[inline]
    pub(crate) fn insert(&mut self, pending: PendingRequest) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            assert!(
                self.entries.len() + 1 < 1 << PLACE_BITS,
                "more than a million requests are on their way"
            );
            self.entries.push((0, None));
            self.entries.len() as u32 - 1
        });
        let entry = &mut self.entries[place as usize];
        assert!(entry.1.is_none(), "a free place holds a request");
        entry.0 = entry.0.wrapping_add(1);
        entry.1 = Some(pending);
        entry.0 << PLACE_BITS | place
    }

    #[inline]
    pub(crate) fn find(&self, tag: u32) -> Option<&PendingRequest> {
        let (turn, pending) = self.entries.get((tag & ((1 << PLACE_BITS) - 1)) as usize)?;
        if turn << PLACE_BITS >> PLACE_BITS != tag >> PLACE_BITS {
            return None;
        }
        pending.as_ref()
    }

    #[inline]
    pub(crate) fn remove(&mut self, tag: u32) -> Option<PendingRequest> {
        self.find(tag)?;
        let place = tag & ((1 << PLACE_BITS) - 1);
        self.free.push(place);
        assert!(self.free.len() <= self.entries.len(), "a place is free twice");
        self.entries[place as usize].1.take()
    }

    /// Returns the tags of all requests to one readout.
    pub(crate) fn tags_to(&self, readout: u16) -> Vec<u32> {
        let to = |pending: &Option<PendingRequest>| pending.is_some_and(|pending| pending.readout == readout);
        self.entries
            .iter()
            .enumerate()
            .filter(|(_, (_, pending))| to(pending))
            .map(|(place, (turn, _))| turn << PLACE_BITS | place as u32)
            .collect()
    }

    /// Returns the credits that all requests hold.
    pub(crate) fn credits(&self) -> u32 {
        self.credits_if(|_| true)
    }

    /// Returns the credits that some of the requests hold.
    pub(crate) fn credits_if(&self, is_meant: impl Fn(&PendingRequest) -> bool) -> u32 {
        let pending = self.entries.iter().filter_map(|(_, pending)| pending.as_ref());
        pending.filter(|request| is_meant(request)).map(|request| u32::from(request.cost)).sum()
    }

    /// Returns the paced credits that all requests hold.
    pub(crate) fn paced_credits(&self) -> impl Iterator<Item = ByteCredit> {
        self.entries.iter().filter_map(|(_, pending)| pending.as_ref()?.paced)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_serves_once() {
        let slot = SlotKey { index: 0, generation: 0 };
        let request = PendingRequest {
            slot,
            readout: 7,
            cost: 1,
            paced: None,
            retries: 0,
            fragments: FragmentSet::first(1),
            sent: Instant::START,
        };
        let mut table = PendingTable::default();
        let mut tags = std::collections::BTreeSet::new();
        for _ in 0..4_000 {
            let tag = table.insert(request);
            assert!(tags.insert(tag), "tag {tag} came twice");
            assert!(table.find(tag).is_some());
            assert_eq!(table.tags_to(7), [tag]);
            assert!(table.remove(tag).is_some());
            assert!(table.remove(tag).is_none() && table.find(tag).is_none());
        }
        assert_eq!(table.len(), 0);
    }
}
