//! TCP as kernels run it, without I/O: segments and deadlines in, segments out.
//!
//! A [`TcpConnection`] is one end of a TCP connection from SYN to TIME-WAIT (RFC 9293). It does no input or output and reads no
//! clock. Its driver passes the time to every call:
//!
//! | input | output |
//! |---|---|
//! | [`connect`](TcpConnection::connect), [`listen`](TcpConnection::listen), [`send`](TcpConnection::send), [`read`](TcpConnection::read), [`close`](TcpConnection::close), [`abort`](TcpConnection::abort) | [`poll_transmit`](TcpConnection::poll_transmit): a segment to put on the network |
//! | [`handle_segment`](TcpConnection::handle_segment): a segment came from the network | [`poll_deadline`](TcpConnection::poll_deadline): when a timer expires |
//! | [`handle_deadline`](TcpConnection::handle_deadline): a deadline is reached | [`received`](TcpConnection::received), [`readable`](TcpConnection::readable), [`state`](TcpConnection::state) |
//!
//! After each input, drain `poll_transmit`, then call `poll_deadline` again. An [`Endpoint`] is the established part of a
//! connection alone. The simulator uses it, as its connections are open from the start; one [`Config`] then serves many
//! endpoints.
//!
//! Payload is lengths only: the driver moves the bytes; `examples/lossy_channel.rs` is a driver of 40 lines. Stream offsets
//! are 64 bits wide, start at 0 in each direction and never wrap. A driver that speaks the wire format adds its initial
//! sequence numbers. A [`Config`] is a named profile, such as [`Config::linux_6`], or one changed field by field.
//!
//! ```
//! use fanin_tcp::{Config, TcpConnection, ConnectionState};
//! use fanin_units::{Duration, Instant};
//!
//! let mut client = TcpConnection::new(Config::linux_6());
//! let mut server = TcpConnection::new(Config::linux_6());
//! server.listen()?;
//! client.connect()?;
//! client.send(100_000)?;
//!
//! // A perfect channel: each segment arrives a millisecond later.
//! let mut now = Instant::START;
//! while server.received() < 100_000 {
//!     now = now + Duration::from_millis(1);
//!     let sent: Vec<_> = std::iter::from_fn(|| client.poll_transmit(now)).collect();
//!     sent.iter().for_each(|segment| server.handle_segment(now, segment));
//!     server.read(u64::MAX);
//!     let answers: Vec<_> = std::iter::from_fn(|| server.poll_transmit(now)).collect();
//!     answers.iter().for_each(|segment| client.handle_segment(now, segment));
//!     for end in [&mut client, &mut server] {
//!         if end.poll_deadline().is_some_and(|deadline| deadline <= now) {
//!             end.handle_deadline(now);
//!         }
//!     }
//! }
//! assert_eq!(client.state(), ConnectionState::Established);
//! client.close();
//! assert_eq!(client.state(), ConnectionState::FinWait1);
//! # Ok::<(), fanin_tcp::WrongState>(())
//! ```
//!
//! # Where things are
//!
//! | file | content |
//! |---|---|
//! | `connection/` | set-up, tear-down, RST (RFC 9293, RFC 5961) |
//! | `endpoint.rs`, `send_sequence.rs` | the state of an established connection; SND.UNA, SND.NXT and the offered window |
//! | `ack.rs` | an acknowledgement arrives: fast path, slow path |
//! | `transmit.rs`, `segmentation.rs` | new data within windows and Nagle's rule; bursts |
//! | `rto.rs`, `timers.rs`, `timeout.rs` | round-trip time and RTO (RFC 6298), the timer, the handling of a timeout |
//! | `loss_detection.rs`, `recovery.rs`, `reduction.rs`, `undo.rs` | RACK, FACK, SACK; fast recovery; PRR; Eifel and F-RTO |
//! | `ns3_recovery.rs` | recovery of ns-3 |
//! | `retransmit.rs`, `tail_loss_probe.rs` | retransmissions and probes |
//! | `congestion/` | one file for each congestion control |
//! | `delivery_rate.rs`, `model.rs` | the delivery rate by ACKs; the inputs of BBR and its pacing |
//! | `cwnd_validation.rs` | congestion windows that the application leaves unused (RFC 7661) |
//! | `flight.rs` | the retransmission queue |
//! | `receiver/` | reassembly, delayed ACKs, the window offered |
//! | `profile.rs` | named stacks, and how they differ |
//! | `config.rs`, `control.rs`, `segment.rs` | settings; what a driver reads and sets; segments |
//! | `ca_state.rs`, `runs.rs` | the state of congestion control; runs of segments |

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod ack;
mod ca_state;
mod config;
mod congestion;
mod connection;
mod control;
mod cwnd_validation;
mod delivery_rate;
mod endpoint;
mod flight;
mod loss_detection;
mod model;
mod ns3_recovery;
mod profile;
mod receiver;
mod recovery;
mod reduction;
mod retransmit;
mod rto;
mod runs;
mod segment;
mod segmentation;
mod send_sequence;
mod tail_loss_probe;
mod timeout;
mod timers;
mod transmit;
mod undo;

pub use ca_state::CongestionState;
pub use config::{
    Config, CongestionConfig, CubicParameters, DctcpParameters, DelayedAck, Growth, LossDetection,
    RECEIVE_WINDOW_MAX, Reduction, RtoConfig, RtoEstimator, RttSource, Segmentation, Stack, SwiftParameters,
    TimeoutRules, Validation, WindowUnit,
};
pub use connection::{CloseReason, ConnectionLimits, ConnectionState, TcpConnection, WrongState};
pub use control::Scoreboard;
pub use endpoint::{Endpoint, Stats, Written};
pub use profile::PROFILES;
pub use segment::{Flags, SackBlock, Segment, SynOptions};
