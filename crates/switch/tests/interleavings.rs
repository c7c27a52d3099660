//! The shared state of workers in every interleaving of two or three threads, from the same source files with loom's atomics.

#[allow(dead_code, reason = "the switch uses what these tests do not")]
#[path = "../src/workers/shared.rs"]
mod shared;
#[allow(dead_code, reason = "the switch uses what these tests do not")]
#[path = "../src/workers/sleep.rs"]
mod sleep;
#[allow(dead_code, reason = "the switch uses what these tests do not")]
#[path = "../src/workers/spsc.rs"]
mod spsc;

/// The types of `src/sync.rs`.
mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

use fanin_queueing::Ingress;
use loom::thread;
use shared::{CommonAccount, NO_WINDOW, SharedCounts};
use sleep::SleepFlag;
use spsc::spsc;
use sync::Arc;

#[test]
fn a_ring_loses_doubles_and_reorders_nothing() {
    loom::model(|| {
        let (mut sender, mut receiver) = spsc(2);
        let producer = thread::spawn(move || {
            let mut put = 0;
            for value in 1..=4 {
                // The producer gives up on a full ring, so that every run ends.
                if sender.put(value).is_err() {
                    break;
                }
                put = value;
            }
            put
        });
        let mut taken = 0;
        for _ in 0..3 {
            if let Some(value) = receiver.take() {
                assert_eq!(value, taken + 1);
                taken = value;
            }
        }
        let put = producer.join().unwrap();
        while let Some(value) = receiver.take() {
            assert_eq!(value, taken + 1);
            taken = value;
        }
        assert_eq!(taken, put);
        assert!(receiver.is_empty());
    });
}

/// A ring in each direction, as between any two workers: a frame crosses, and its buffer returns.
#[test]
fn a_buffer_that_crossed_a_link_comes_back() {
    loom::model(|| {
        let (mut there, mut from_here) = spsc(1);
        let (mut back, mut from_there) = spsc(1);
        let other = thread::spawn(move || {
            // As in a worker, a value without room waits, and the thread does not block.
            let mut waiting = None;
            for _ in 0..2 {
                waiting = waiting.or_else(|| from_here.take());
                waiting = waiting.and_then(|chunk| back.put(chunk).err());
            }
            waiting.into_iter().chain(std::iter::from_fn(|| from_here.take())).collect::<Vec<u32>>()
        });
        let mut mine: Vec<u32> = Vec::new();
        for chunk in 0..2 {
            mine.extend(there.put(chunk).err());
            mine.extend(from_there.take());
        }
        let theirs = other.join().unwrap();
        mine.extend(theirs);
        mine.extend(from_there.take());
        mine.sort_unstable();
        // Values after the last take of the other side are still in the ring.
        assert!(mine.windows(2).all(|pair| pair[0] != pair[1]), "a chunk is there twice: {mine:?}");
    });
}

/// A worker goes to sleep while another sends it a message: it sees the message, or the other wakes it.
#[test]
fn no_worker_sleeps_through_a_message() {
    loom::model(|| {
        let (mut sender, mut receiver) = spsc(2);
        let flag = Arc::new(SleepFlag::new());
        let other = Arc::clone(&flag);
        let producer = thread::spawn(move || {
            sender.put(7).unwrap();
            other.must_wake()
        });
        flag.begin();
        let seen = receiver.take();
        let woken = producer.join().unwrap();
        assert!(seen.is_some() || woken, "the worker sleeps, and no other wakes it");
        flag.end();
    });
}

/// Two workers reserve the last bytes of the pool: at most one succeeds, and returned bytes are available again.
#[test]
fn the_last_of_the_pool_goes_to_one() {
    const SIZE: u64 = 10;
    const POOL: CommonAccount = CommonAccount::Pool(0);
    loom::model(|| {
        let shared = Arc::new(SharedCounts::new(2, 1));
        shared.take(POOL, 4);
        let take = |shared: &SharedCounts, bytes| {
            let fits = shared.take(POOL, bytes) + bytes <= SIZE;
            if !fits {
                shared.give(POOL, bytes);
            }
            fits
        };
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || take(&other, 5));
        let mine = take(&shared, 6);
        let theirs = thread.join().unwrap();
        assert!(!(mine && theirs), "the pool is overdrawn");
        let taken = 4 + if mine { 6 } else { 0 } + if theirs { 5 } else { 0 };
        assert_eq!(shared.taken(POOL), taken);
        shared.give(POOL, taken);
        assert_eq!(shared.taken(POOL), 0);
    });
}

/// A port's worker hands frames to another, which releases them. The computed occupancy is never below the true one, and never
/// underflows.
#[test]
fn occupancy_is_never_underestimated() {
    const FRAME: u64 = 100;
    loom::model(|| {
        let shared = Arc::new(SharedCounts::new(2, 1));
        let (mut sender, mut receiver) = spsc(2);
        let other = Arc::clone(&shared);
        let consumer = thread::spawn(move || {
            let mut own = Ingress::default();
            let mut gone = 0;
            for _ in 0..2 {
                if receiver.take().is_some() {
                    own.depart(FRAME);
                    gone += 1;
                    other.publish(1, &[own]);
                }
            }
            gone
        });
        let mut own = Ingress::default();
        for sent in 1..=2 {
            sender.put(()).unwrap();
            own.arrive(FRAME);
            assert!(own.occupancy(shared.held_by_others(0, 0)) <= sent * FRAME, "more bytes held than sent");
        }
        let gone = consumer.join().unwrap();
        assert_eq!(own.occupancy(shared.held_by_others(0, 0)), (2 - gone) * FRAME);
    });
}

/// The reverse path reads a published window, and finally the last one.
#[test]
fn windows_are_whole() {
    loom::model(|| {
        let shared = Arc::new(SharedCounts::new(2, 2));
        let other = Arc::clone(&shared);
        let owner = thread::spawn(move || [57_920, 28_960].map(|window| other.set_window(1, window)));
        let seen = shared.window(1);
        assert!([NO_WINDOW, 57_920, 28_960].contains(&seen), "{seen}");
        owner.join().unwrap();
        assert_eq!((shared.window(0), shared.window(1)), (NO_WINDOW, 28_960));
    });
}
