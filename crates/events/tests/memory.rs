//! False sizes in a file never make a reader take more memory than the file's size justifies.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::small;
use fanin_events::{Events, FileSummary, models, verify};

/// The system's allocator, with the largest single request and the most memory in use at once.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; the counters do not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of memory for each byte of a file. An empty fragment takes 8 bytes in a file, and its description 40; twice
/// that while a vector grows.
const TIMES_MAX: usize = 24;
/// Memory independent of the file.
const FIXED_MAX: usize = 64 << 10;

// One test only: others would allocate at the same time.
#[test]
fn no_lie_costs_memory() {
    for (name, bytes) in small() {
        let step = if bytes.len() > 4096 { 60 } else { 4 };
        for at in (0..bytes.len() - 4).step_by(step) {
            for word in [u32::MAX, 0x7fff_ffff, 0x0fff_ffff, 0x00ff_ffff, 0x0000_ffff, 0] {
                let mut damaged = bytes.clone();
                damaged[at..at + 4].copy_from_slice(&word.to_le_bytes());
                let before = HELD.load(Ordering::Relaxed);
                PEAK.store(before, Ordering::Relaxed);
                if let Ok(mut events) = Events::open(&damaged) {
                    while events.next().is_some_and(|event| event.is_ok())
                        || events.resync() && events.next().is_some()
                    {}
                }
                let _ = (verify(&damaged), FileSummary::read(&damaged), models::fit(&damaged));
                let peak = PEAK.load(Ordering::Relaxed) - before;
                let max = bytes.len() * TIMES_MAX + FIXED_MAX;
                assert!(peak <= max, "{name}: {word:#x} at {at} costs {peak} bytes of memory");
            }
        }
    }
}
