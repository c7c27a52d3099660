//! Many short queues in one place: first-in first-out lists that share their nodes.
//!
//! Thousands of queues of which few hold anything would, each with memory of its own, lie outside all caches. Here what was
//! freed last is used next.

use crate::index::NIL;

/// A queue in [`Lists`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { first: NIL, last: NIL }
    }
}

impl List {
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.first == NIL
    }
}

/// The nodes of many lists.
pub(crate) struct Lists<T> {
    nodes: Vec<(T, u32)>,
    free: u32,
}

impl<T: Copy> Lists<T> {
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), free: NIL }
    }

    /// A node that `next` follows.
    #[inline]
    fn node(&mut self, value: T, next: u32) -> u32 {
        if self.free == NIL {
            self.nodes.push((value, next));
            return (self.nodes.len() - 1) as u32;
        }
        let node = self.free;
        let place = &mut self.nodes[node as usize];
        self.free = place.1;
        *place = (value, next);
        node
    }

    #[inline]
    pub(crate) fn push(&mut self, list: &mut List, value: T) {
        let node = self.node(value, NIL);
        if list.first == NIL {
            list.first = node;
        } else {
            self.nodes[list.last as usize].1 = node;
        }
        list.last = node;
    }

    #[inline]
    pub(crate) fn pop(&mut self, list: &mut List) -> Option<T> {
        if list.first == NIL {
            return None;
        }
        let (value, next) = self.nodes[list.first as usize];
        self.nodes[list.first as usize].1 = self.free;
        self.free = list.first;
        list.first = next;
        Some(value)
    }

    #[inline]
    pub(crate) fn first(&self, list: List) -> Option<&T> {
        (list.first != NIL).then(|| &self.nodes[list.first as usize].0)
    }

    /// What a list holds, in order.
    #[cfg(test)]
    fn iter(&self, list: List) -> impl Iterator<Item = &T> {
        let at = |node: u32| (node != NIL).then(|| &self.nodes[node as usize]);
        core::iter::successors(at(list.first), move |node| at(node.1)).map(|node| &node.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_keeps_its_own_order() {
        let mut lists = Lists::new();
        let mut heads = [List::default(); 3];
        for round in 0..4_u32 {
            for value in 0..30 {
                lists.push(&mut heads[value as usize % 3], round * 100 + value);
            }
            for (place, head) in heads.iter_mut().enumerate() {
                let expected: Vec<u32> = (0..30)
                    .filter(|value| value % 3 == place as u32)
                    .map(|value| round * 100 + value)
                    .collect();
                assert_eq!(lists.iter(*head).copied().collect::<Vec<_>>(), expected);
                assert_eq!(lists.first(*head), expected.first());
                let popped: Vec<u32> = std::iter::from_fn(|| lists.pop(head)).collect();
                assert_eq!(popped, expected);
                assert!(head.is_empty() && lists.first(*head).is_none());
            }
        }
        assert_eq!(lists.nodes.len(), 30, "nodes are used again");
    }
}
