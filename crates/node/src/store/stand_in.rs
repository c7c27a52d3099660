//! Events that no logger can write as they are: fragments with wrong checksums or sizes.

use std::collections::{BTreeMap, BTreeSet};

use fanin_dataflow::{L1Id, WriteJob};
use fanin_events::Fragment;

use crate::data::{Data, STAND_IN, fragments};

/// Number of times that an event is refused before it is stored with stand-ins. A collector sends its copy again, which may be
/// right.
const REFUSALS: u32 = 2;
/// Maximum number of invalid events that are remembered.
const EVENTS_MAX: usize = 10_000;
/// Source of a stand-in for fragments behind a damaged header, which names no source.
const UNKNOWN_SOURCE: u32 = u32::MAX;

/// Counts how often events were invalid.
#[derive(Debug, Default)]
pub(super) struct InvalidEvents {
    refusals: BTreeMap<L1Id, u32>,
}

impl InvalidEvents {
    /// Counts another time that an event is invalid. Returns true if it was refused often enough.
    pub(super) fn is_hopeless(&mut self, event: L1Id) -> bool {
        if self.refusals.len() >= EVENTS_MAX && !self.refusals.contains_key(&event) {
            self.refusals.pop_first();
        }
        let refusals = self.refusals.entry(event).or_default();
        *refusals += 1;
        *refusals > REFUSALS
    }

    pub(super) fn len(&self) -> usize {
        self.refusals.len()
    }

    pub(super) fn forget(&mut self, event: L1Id) {
        self.refusals.remove(&event);
    }
}

/// Returns the fragments of an event with an empty stand-in for each damaged one, and the number of stand-ins.
pub(super) fn with_stand_ins(job: &WriteJob<Data>) -> (Vec<Fragment<'_>>, u32) {
    let (mut parts, mut sources, mut count) = (Vec::new(), BTreeSet::new(), 0);
    for fragment in job.payload.parts().iter().flat_map(|part| fragments(part)) {
        let (source, status, bytes) = match fragment {
            Ok(fragment) if fragment.is_sound() => (fragment.source, fragment.status, fragment.bytes),
            Ok(fragment) => (fragment.source, STAND_IN, &[][..]),
            Err(_) => (UNKNOWN_SOURCE, STAND_IN, &[][..]),
        };
        // A damaged header may name the source of another fragment. An event has each source once.
        if sources.insert(source) {
            count += u32::from(status == STAND_IN && bytes.is_empty());
            parts.push(Fragment { source, status, offset: 0, bytes });
        }
    }
    (parts, count)
}
