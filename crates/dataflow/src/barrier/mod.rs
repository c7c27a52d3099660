//! The barrier workloads of the datacentre papers (M21TCP §II.A). An [`Aggregator`] requests data from all senders at
//! once, and requests again when the last [`BarrierSender`] has answered.
//!
//! One round is one request to every sender and all their answers. Both state machines work without I/O, as the roles of
//! event building do: the simulator drives them through simulated TCP, the live processes through sockets. The aggregator
//! is [`Peer::Collector`](crate::Peer::Collector) 0, sender `n` is [`Peer::Readout`](crate::Peer::Readout) `n`.
//!
//! ```
//! use fanin_dataflow::*;
//! use fanin_units::{Bytes, Duration, Instant};
//!
//! let request_size = AnswerSize::FixedFragment(Bytes::new(256_000));
//! let mut aggregator = Aggregator::new(AggregatorConfig { senders: 1, request_size, ..AggregatorConfig::default() })?;
//! let answer = request_size.answer(0, 1);
//! let mut sender = BarrierSender::new(BarrierSenderConfig { answer, ..BarrierSenderConfig::default() });
//! sender.handle_connected(Instant::START, Peer::Collector(0));
//! aggregator.handle_connected(Instant::START, Peer::Readout(0));
//!
//! let (to, request) = aggregator.poll_transmit().expect("the first round has begun");
//! assert_eq!(to, Peer::Readout(0));
//! sender.handle_message(Instant::START, Peer::Collector(0), request)?;
//! sender.handle_deadline(sender.poll_deadline().expect("an answer is in preparation"));
//!
//! let (_, answer) = sender.poll_transmit().expect("it is due");
//! let end = Instant::START + Duration::from_millis(2);
//! aggregator.handle_message(end, Peer::Readout(0), answer)?;
//! assert_eq!(aggregator.poll_record(), Some(BarrierRecord::Round { round: 0, start: Instant::START, end }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aggregator;
mod message;
mod sender;

pub use aggregator::{Aggregator, AggregatorConfig, AggregatorError, BarrierRecord};
pub use message::{AnswerSize, BARRIER_REQUEST_BYTES, BarrierMessage, SENDERS_MAX};
pub use sender::{BarrierSender, BarrierSenderConfig};
