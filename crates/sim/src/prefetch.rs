//! Telling the processor what will be needed soon.

/// Has the first cache line of `value` fetched, without waiting for it.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    prefetch_index::prefetch_index(std::slice::from_ref(value), 0);
}
