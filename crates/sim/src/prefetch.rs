//! Telling the processor what will be needed soon.

pub(crate) use prefetch_index::prefetch_index;

/// Has the first cache line of `value` fetched, without waiting for it.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    prefetch_index(std::slice::from_ref(value), 0);
}
