//! The paths that frames take, as steps from port to port.

use std::collections::HashMap;

use crate::index::NIL;
use fanin_network::PortIndex;

/// A port on a path, and the number of the step after it, or [`NIL`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PathStep {
    pub(crate) port: PortIndex,
    pub(super) next: u32,
}

/// The way of a frame through a switch: the switch's number in the fabric, and the numbers of its ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Crossing {
    pub(crate) switch: u32,
    pub(crate) input: u16,
    pub(crate) output: u16,
}

/// A stored step, and the ring for its frames; 0 where the port has no rings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct StoredStep {
    pub(super) step: PathStep,
    pub(super) ring: u16,
}

/// The steps of all paths. Paths with equal ends share steps, so that the steps of many connections fit into the cache.
pub(super) struct StoredPaths {
    steps: Vec<StoredStep>,
    /// The number of each stored step.
    known: HashMap<StoredStep, u32>,
    /// The step last used at each port. Most paths equal the previous one, and are found here.
    last: Vec<(StoredStep, u32)>,
}

impl StoredPaths {
    pub(super) fn new(ports: usize) -> Self {
        let none = StoredStep { step: PathStep { port: NIL, next: NIL }, ring: 0 };
        Self { steps: Vec::new(), known: HashMap::new(), last: vec![(none, NIL); ports] }
    }

    /// Stores a step after all later steps of its path; returns its number.
    pub(super) fn add(&mut self, stored: StoredStep) -> u32 {
        let last = &mut self.last[stored.step.port as usize];
        if last.0 != stored {
            let number = *self.known.entry(stored).or_insert_with(|| {
                self.steps.push(stored);
                (self.steps.len() - 1) as u32
            });
            *last = (stored, number);
        }
        last.1
    }

    /// Returns the step with this number; `None` for [`NIL`].
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&StoredStep> {
        self.steps.get(number as usize)
    }

    /// Returns the steps of a path.
    pub(super) fn steps(&self, route: PathStep) -> impl Iterator<Item = PathStep> + Clone {
        let first = (route.port != NIL).then_some(route);
        std::iter::successors(first, |step| self.get(step.next).map(|stored| stored.step))
    }
}
