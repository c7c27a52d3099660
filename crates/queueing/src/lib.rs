//! Queueing disciplines, buffering schemes and markers of switches, without I/O.
//!
//! The packet simulator and the live switch both call this crate, so that prediction and measurement obey one set of rules.
//! Time and randomness are arguments; nothing here reads a clock, a socket, a file or the environment.
//!
//! # Where to find a discipline
//!
//! | discipline | file | type, and how it is made |
//! |---|---|---|
//! | dedicated buffers, first in first out (switch A) | `dedicated.rs` | [`OutputBuffer`]; [`Layout::dedicated`] |
//! | no limit | `dedicated.rs` | the same; [`Layout::unlimited`] |
//! | shared memory: one pool or several (switch B) | `shared.rs` | [`Memory`]; [`Layout::shared`], [`Layout::shared_split`] |
//! | dynamic threshold | `dynamic_threshold.rs` | [`Memory`]; [`Layout::dynamic_threshold`] |
//! | virtual output queues (core router) | `voq.rs` | [`Memory`]; [`Layout::voq`] |
//! | rings with capacity, token bucket and marker ("daqrings") | `rings.rs` | [`Rings`] |
//! | two priorities that PAUSE can stop | `pausable.rs` | [`PausableQueue`] |
//! | marking and early dropping: threshold, RED | `aqm.rs` | [`Aqm`] of a buffer or ring |
//! | PAUSE: ingress occupancy, thresholds (XOFF, XON), signals | `pause.rs` | [`Ingress`] |
//! | token bucket | `bucket.rs` | [`TokenBucket`] |
//!
//! A buffer ([`OutputBuffer`], [`Memory`]) decides which frames are admitted, in byte counts only. A queue ([`Rings`],
//! [`PausableQueue`]) holds frames by opaque handles and decides the next departure. A port that is not first in, first
//! out has both.
//!
//! # Verbs
//!
//! *arrive*: a frame comes, and is admitted, marked or dropped. *depart*: a frame leaves. *settle*: free the memory of
//! all frames that have departed by now. *pause*, *resume*: stop and restart the departures of a class or a ring.
//! *occupancy*: the bytes and frames queued now, with their high-water marks.
//!
//! | type | arrive | depart | settle | pause, resume | occupancy | for one driver |
//! |---|---|---|---|---|---|---|
//! | [`OutputBuffer`] | yes | yes | | | yes | withdraw, count cut-through |
//! | [`Memory`] | yes | yes | | | of an output, input or pool | withdraw, count cut-through |
//! | [`Rings`] | yes | yes, depart many | | a ring | of a ring | cut through, depart at once, note paused until |
//! | [`PausableQueue`] | yes | yes | | a class | `len` | |
//! | [`Ingress`] | yes | yes | | signals that are due | yes | |
//! | [`BookedDedicated`], [`BookedMemory`] | yes | booked | yes | | of the buffer | |
//! | [`NaiveOutput`] | yes | yes | yes | a class | | |
//! | [`NaiveMemory`] | yes | yes | in depart | | of the memory | |
//!
//! Verbs for one driver:
//!
//! * *withdraw* takes an admission back when a later stage of the live switch refuses the frame, as a drop.
//! * *cut through* sends and counts a frame that meets an empty queue, without queueing it.
//! * *depart at once* empties a ring before its removal, regardless of rate, pause or turn.
//! * *note paused until* gives rings the time for which PAUSE stops their whole link, so that token buckets do not make up for it.
//! * *admit below high water* (inside this crate) admits a frame whose verdict no earlier departure can change, before a settle.
//!   Accounts of a scheme *admit* where a buffer arrives: they count a frame, and hold none.
//!
//! Of PAUSE the simulator and the live switch share [`Ingress`] alone, which decides when a signal is due. A live port obeys
//! IEEE 802.3: PAUSE stops all its frames, also those in its driver's backlog, until its quanta have passed. Only the simulator has
//! [`PausableQueue`], whose classes stop until RESUME. One state machine for both would share one comparison of times: the live
//! port polls each round, and the simulator schedules the end.
//!
//! # Two drivers
//!
//! If every output is first in, first out on a link of fixed rate, departures are booked when frames arrive:
//! [`BookedDedicated`], [`BookedMemory`]. A departure then needs no step of its own; memory is freed when the output is
//! next settled. Any other queue is driven naively: when the link is free, its driver polls for the next frame
//! ([`NaiveOutput`], [`Rings::depart`]). [`NaiveMemory`] polls queues that could also be booked, as the reference in tests:
//! `tests/drive.rs` compares the results of both drivers.
//!
//! ```
//! use fanin_queueing::{BookedDedicated, EcnCodepoint, InService, OutputBuffer, OutputLink, Passage};
//! use fanin_units::{Bytes, Duration, Instant, Rate};
//!
//! let gigabit = OutputLink::new(Rate::new(1_000_000_000), Bytes::new(20));
//! let buffer = OutputBuffer::new(Bytes::new(786_000), Bytes::ZERO, Bytes::new(1));
//! let mut output = BookedDedicated::new(buffer, gigabit, InService::Counted);
//! let passage = output.arrive(Instant::START, 1_518, || EcnCodepoint::NotCapable, || 0);
//! let end = Instant::START + Duration::from_nanos(12_304);
//! assert_eq!(passage, Passage::Queued { start: Instant::START, end, marked: false });
//! ```
//!
//! # Adding a buffering scheme
//!
//! 1. State in one sentence when a frame is refused. Write one file for the scheme here, with its settings, its accounts and their
//!    verbs, and a constructor of [`Layout`] (models: `dynamic_threshold.rs`, `voq.rs`). A limit must only loosen when memory is
//!    freed: settling late relies on it.
//! 2. Name it in `buffering.rs`, and nowhere else: its settings in [`BufferingSettings`], its accounts in `BufferingAccounts`. The
//!    compiler then reports each `match` that lacks the scheme's pools, limits and checks.
//! 3. Add a new limit to [`AdmissionLimit`], [`AdmissionLimit::ALL`] and [`AdmissionLimit::name`]. All three list limits in the
//!    order in which they are checked, except `Frames`, which is checked first.
//! 4. Add the scheme to `layouts()` and its rule, spelled out naively, to `Naive` in `tests/drive.rs`. The property tests then
//!    compare every verdict, departure, counter and mark.
//! 5. Add a row to the table above and a case to `benches/queueing.rs`.
//!
//! The other rooms follow: "Add a buffering scheme" in `docs/CONTRIBUTING.md`.
//!
//! A discipline with an order of its own, which limits alone cannot express, is a queue like [`Rings`]. It also gets an
//! arm in the simulator's `OutputQueue`.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod account;
mod aqm;
mod bucket;
mod buffering;
mod dedicated;
mod drive;
mod dynamic_threshold;
mod fifo;
mod flows;
mod frame;
mod layout;
mod limits;
mod link;
mod m21tcp;
mod memory;
mod pausable;
mod pause;
mod ready;
mod rings;
mod shared;
mod voq;
mod wheel;

pub use aqm::{Aqm, AqmDecision, Depth, DepthError, NotCapable, Red, RedError, RedSettings, Threshold};
pub use bucket::{BucketError, TokenBucket};
pub use buffering::{Buffering, BufferingSettings, MemorySettings, PoolCharge};
pub use dedicated::OutputBuffer;
pub use drive::{BookedDedicated, BookedMemory, Departed, FIFO_FRAMES_MAX, NaiveMemory, NaiveOutput};
pub use dynamic_threshold::DynamicThresholdSettings;
pub use fifo::Fifo;
pub use flows::{FLOWS_MAX, FlowCounter, FlowStage};
pub use frame::{
    AdmissionLimit, Counters, EcnCodepoint, Frame, FrameCharge, FrameCount, MemoryOccupancy, Occupancy,
    Verdict,
};
pub use layout::{Layout, LayoutError, PORTS_MAX};
pub use link::{InService, OutputLink, Passage};
pub use m21tcp::{M21Charge, M21Switch, M21WindowRule};
pub use memory::{Memory, StoredFrame};
pub use pausable::{Class, PausableQueue};
pub use pause::{Ingress, PauseError, PauseSignal, PauseThresholds, pause_headroom};
pub use rings::{
    Departure, NextDeparture, RING_FRAMES_MAX, RINGS_MAX, RingError, RingService, RingSettings, Rings,
};
pub use shared::{PoolBy, PortLimits, SharedSettings};
pub use voq::{VOQS_MAX, VoqSettings};
