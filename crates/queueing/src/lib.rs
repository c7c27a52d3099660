//! Buffering schemes, schedulers and markers of switches, without I/O.
//!
//! The packet simulator and the real software switch both call this crate, so that what is predicted and what is run obey
//! one set of rules. Time and randomness are arguments; nothing here reads a clock, a socket, a file or the environment.
//!
//! # Two layers
//!
//! **Who is let in** is [`Memory`]: the packet memory of one switch in byte counts only. A [`Layout`] says how it is divided.
//! All schemes of the papers are sets of limits in it:
//!
//! | scheme | constructor | limits |
//! |---|---|---|
//! | dedicated buffers (switch A) | [`Layout::dedicated`] | each output's own |
//! | one shared pool | [`Layout::shared`] | the pool; each output's and input's too, if set |
//! | several pools (switch B) | [`Layout::shared_by_input`] | the pool of the input or output; each port's |
//! | dynamic threshold | [`Layout::dynamic_threshold`] | alpha times the free pool |
//! | VOQ modules (core router) | [`Layout::modules`] | each module's memory; each virtual output queue's |
//! | unlimited | [`Layout::unlimited`] | none |
//!
//! Where every port is first-in first-out on a link of fixed rate, [`FifoMemory`] needs no departures at all: it answers
//! each arrival with the times at which the frame will leave, and gives memory back when somebody looks.
//!
//! ```
//! use fanin_queueing::{FifoMemory, Frame, InService, Layout, Link, Passage};
//! use fanin_units::{Bytes, Duration, Instant, Rate};
//!
//! let gigabit = Link::new(Rate::new(1_000_000_000), Bytes::new(20));
//! let layout = Layout::dedicated(vec![Bytes::new(786_000); 48]);
//! let mut switch = FifoMemory::new(&layout, &[gigabit; 48], InService::Counted)?;
//! let passage = switch.handle_arrival(Instant::START, 0, 7, Frame::new(1_518), || 0);
//! let end = Instant::START + Duration::from_nanos(12_304);
//! assert_eq!(passage, Passage::Queued { start: Instant::START, end, marked: false });
//! # Ok::<(), fanin_queueing::LayoutError>(())
//! ```
//!
//! **What goes next** is [`Port`]: frames' descriptors with opaque handles, in one or thousands of rings ("daqrings"), each
//! with a capacity, a token bucket and a marker, served in turn, longest first or by priority. It is for the switch, and for
//! the simulator wherever a port is not plainly first-in first-out.
//!
//! A switch with a shared memory and rings uses both: [`Memory::admit`] when a frame comes, [`Port::handle_arrival`] if it
//! is let in ([`Memory::withdraw`] if the ring then refuses it), [`Memory::release`] when [`Port::poll_departure`] gives it out.
//!
//! Beside them stand [`TokenBucket`], [`Threshold`] and [`Red`] (in [`Aqm`]), [`PauseThresholds`], which look at
//! [`Memory::input`], [`FlowCounter`] and [`M21Switch`].
//!
//! # Adding a buffering scheme
//!
//! 1. Say in one sentence when a frame is refused. If that is a limit on something [`Memory`] already adds up (an output, an
//!    input, a pool, a pool's frames to one output), the scheme is a new constructor of [`Layout`] and you are at step 5.
//! 2. Otherwise give the new limit a name in [`Limit`], at its place in the order in which limits are tried, and in
//!    [`Limit::ALL`] and [`Limit::name`].
//! 3. Add its setting to [`Layout`] with a neutral default in [`Layout::unlimited`], and refuse impossible values in
//!    [`Layout::check`].
//! 4. In `memory.rs`, keep what it adds up in `charge_others` and `uncharge_input` or `uncharge_output`, test it in `refusal`, and, where frames of other outputs weigh on
//!    it, tell `depends_on_others` and `Layout::couples_outputs`. A limit must only loosen when memory is freed: lazy release relies on it.
//! 5. Add the scheme to `layouts()` and its rule, spelled out naively, to `Naive` in `tests/fifo.rs`. The property test then
//!    compares every verdict, counter and mark.
//! 6. Add a row to the table above, a case to `benches/queueing.rs`, and the scheme's name to the scenario file.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod aqm;
mod bucket;
mod fifo;
mod flows;
mod frame;
mod layout;
mod m21tcp;
mod memory;
mod pause;
mod port;
mod ready;
mod ring;
mod wheel;

pub use aqm::{Aqm, Decision, Depth, NotCapable, Red, RedError, RedSettings, Threshold};
pub use bucket::{BucketError, TokenBucket};
pub use fifo::{FIFO_FRAMES_MAX, FifoMemory, InService, Link, Passage};
pub use flows::{FLOWS_MAX, FlowCounter, FlowStage};
pub use frame::{Count, Counters, Ecn, Frame, Level, Limit, Occupancy, Verdict};
pub use layout::{Layout, LayoutError, PORTS_MAX, PoolBy, VOQS_MAX};
pub use m21tcp::{M21Accounting, M21Switch, m21tcp_flows_max, m21tcp_window};
pub use memory::Memory;
pub use pause::{PauseError, PauseSignal, PauseThresholds, pause_headroom};
pub use port::{Departure, Discipline, Port, RING_FRAMES_MAX, RINGS_MAX, Rest, RingError, RingSettings};
