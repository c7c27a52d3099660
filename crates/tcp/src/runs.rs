//! A queue of runs with its first element in place. Most flights are one run, from one burst, and need no allocation.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::ops::{Index, IndexMut};

use crate::flight::SegmentRun;

/// Runs in order. None of them is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// The first run; empty without runs.
    first: SegmentRun,
    #[expect(clippy::box_collection, reason = "a queue takes three words more in each of many connections")]
    rest: Option<Box<VecDeque<SegmentRun>>>,
}

impl Runs {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.len == 0
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        if self.is_empty() { 0 } else { 1 + self.rest.as_ref().map_or(0, |rest| rest.len()) }
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&SegmentRun> {
        (!self.is_empty()).then_some(&self.first)
    }

    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut SegmentRun> {
        (!self.is_empty()).then_some(&mut self.first)
    }

    #[inline]
    pub(crate) fn back(&self) -> Option<&SegmentRun> {
        self.rest.as_ref().and_then(|rest| rest.back()).or_else(|| self.front())
    }

    #[inline]
    pub(crate) fn back_mut(&mut self) -> Option<&mut SegmentRun> {
        match self.rest.as_mut().and_then(|rest| rest.back_mut()) {
            Some(run) => Some(run),
            None => (self.first.len > 0).then_some(&mut self.first),
        }
    }

    #[inline]
    pub(crate) fn push_back(&mut self, run: SegmentRun) {
        debug_assert!(run.len > 0, "an empty run");
        if self.is_empty() {
            self.first = run;
        } else {
            self.rest.get_or_insert_default().push_back(run);
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) {
        debug_assert!(!self.is_empty(), "a run is taken from none");
        self.first = self.rest.as_mut().and_then(|rest| rest.pop_front()).unwrap_or_default();
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut SegmentRun> {
        match index {
            0 => self.front_mut(),
            _ => self.rest.as_mut()?.get_mut(index - 1),
        }
    }

    /// Inserts a run at `index`, which is at least 1.
    pub(crate) fn insert(&mut self, index: usize, run: SegmentRun) {
        assert!(
            (1..=self.len()).contains(&index),
            "a run is inserted at {index}, which is not behind another"
        );
        self.rest.get_or_insert_default().insert(index - 1, run);
    }

    /// Removes the run at `index`, which is at least 1.
    pub(crate) fn remove(&mut self, index: usize) {
        assert!((1..self.len()).contains(&index), "a run is removed at {index}, which is not behind another");
        if let Some(rest) = &mut self.rest {
            rest.remove(index - 1);
        }
    }

    /// Number of runs in the prefix that satisfies `holds`; no later run may satisfy it.
    pub(crate) fn partition_point(&self, mut holds: impl FnMut(&SegmentRun) -> bool) -> usize {
        match self.front() {
            Some(first) if holds(first) => {
                1 + self.rest.as_ref().map_or(0, |rest| rest.partition_point(holds))
            }
            _ => 0,
        }
    }

    /// Index of the first run that satisfies `holds`.
    pub(crate) fn position(&self, mut holds: impl FnMut(&SegmentRun) -> bool) -> Option<usize> {
        if holds(self.front()?) {
            return Some(0);
        }
        self.rest.as_ref()?.iter().position(holds).map(|index| index + 1)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &SegmentRun> {
        self.front().into_iter().chain(self.rest.iter().flat_map(|rest| rest.iter()))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SegmentRun> {
        let first = (self.first.len > 0).then_some(&mut self.first);
        first.into_iter().chain(self.rest.iter_mut().flat_map(|rest| rest.iter_mut()))
    }
}

impl Index<usize> for Runs {
    type Output = SegmentRun;

    fn index(&self, index: usize) -> &SegmentRun {
        match (index, &self.rest) {
            (0, _) => self.front().expect("the index is below the number of runs"),
            (_, Some(rest)) => &rest[index - 1],
            (_, None) => panic!("there is no run {index}"),
        }
    }
}

impl IndexMut<usize> for Runs {
    fn index_mut(&mut self, index: usize) -> &mut SegmentRun {
        self.get_mut(index).expect("the index is below the number of runs")
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn run(number: u64) -> SegmentRun {
        SegmentRun { start: number, len: 1, ..SegmentRun::default() }
    }

    #[test]
    fn is_a_queue() {
        let mut runs = Runs::default();
        let mut model: VecDeque<SegmentRun> = VecDeque::new();
        let mut state = 1_u64;
        for step in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let chance = (state >> 33) as usize;
            match chance % 5 {
                0 | 1 => {
                    runs.push_back(run(step));
                    model.push_back(run(step));
                }
                2 => {
                    runs.pop_front();
                    model.pop_front();
                }
                3 if !model.is_empty() => {
                    let index = 1 + chance / 8 % model.len();
                    runs.insert(index, run(step));
                    model.insert(index, run(step));
                }
                4 if model.len() > 1 => {
                    let index = 1 + chance / 8 % (model.len() - 1);
                    runs.remove(index);
                    model.remove(index);
                }
                _ => {}
            }
            assert_eq!((runs.len(), runs.is_empty()), (model.len(), model.is_empty()));
            assert_eq!((runs.front(), runs.back()), (model.front(), model.back()));
            assert_eq!(runs.back_mut(), model.back_mut());
            assert!(runs.iter().eq(&model) && runs.iter().rev().eq(model.iter().rev()));
            assert!(runs.iter_mut().eq(model.iter_mut()));
            if !model.is_empty() {
                let index = chance / 8 % model.len();
                assert_eq!((runs[index], runs.get_mut(index)), (model[index], model.get_mut(index)));
                let count = chance / 64 % (model.len() + 1);
                let before: Vec<u64> = model.iter().take(count).map(|run| run.start).collect();
                assert_eq!(runs.partition_point(|run| before.contains(&run.start)), count);
            }
        }
    }
}
