//! Many short first-in first-out queues that share their nodes; the node freed last is used next.

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

struct ListNode<T> {
    value: Option<T>,
    next: u32,
}

/// The nodes of many lists.
pub(crate) struct Lists<T> {
    nodes: Vec<ListNode<T>>,
    free: u32,
}

impl<T> Lists<T> {
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), free: NIL }
    }

    fn node(&mut self, value: T) -> u32 {
        let new = ListNode { value: Some(value), next: NIL };
        if self.free == NIL {
            self.nodes.push(new);
            return (self.nodes.len() - 1) as u32;
        }
        let node = self.free;
        let place = &mut self.nodes[node as usize];
        assert!(place.value.is_none(), "a free node holds a value");
        self.free = place.next;
        *place = new;
        node
    }

    /// Appends a value to a list.
    #[inline]
    pub(crate) fn push(&mut self, list: &mut List, value: T) {
        let node = self.node(value);
        if list.first == NIL {
            list.first = node;
        } else {
            self.nodes[list.last as usize].next = node;
        }
        list.last = node;
    }

    /// Takes the first value of a list; returns `None` if the list is empty.
    #[inline]
    pub(crate) fn pop(&mut self, list: &mut List) -> Option<T> {
        if list.first == NIL {
            return None;
        }
        let node = &mut self.nodes[list.first as usize];
        let value = node.value.take();
        assert!(value.is_some(), "a node of a list holds nothing");
        let next = std::mem::replace(&mut node.next, self.free);
        self.free = list.first;
        list.first = next;
        value
    }

    /// Returns the first value of a list; `None` if the list is empty.
    #[inline]
    pub(crate) fn first(&self, list: List) -> Option<&T> {
        self.iter(list).next()
    }

    /// Returns the values of a list, in order.
    pub(crate) fn iter(&self, list: List) -> impl Iterator<Item = &T> {
        let at = |node: u32| (node != NIL).then(|| &self.nodes[node as usize]);
        core::iter::successors(at(list.first), move |node| at(node.next))
            .filter_map(|node| node.value.as_ref())
    }
}

#[cfg(test)]
#[path = "../tests/unit/lists.rs"]
mod tests;
