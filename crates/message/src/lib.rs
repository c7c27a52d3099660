//! Framed messages over TCP, for one or thousands of peers.
//!
//! A message has a type, a stream and a payload (thesis §3.8.2, fig. 3.15). Connections are reliable, ordered and
//! point to point. A [`MessageEndpoint`] drives any number of them with one thread:
//!
//! ```
//! use std::time::{Duration, Instant};
//! use fanin_message::{EndpointEvent, ConnectionOptions, EndpointSettings, MessageEndpoint};
//!
//! let named = |name: &str| MessageEndpoint::new(EndpointSettings { name: name.into(), ..EndpointSettings::default() });
//! let (mut server, mut client) = (named("supervisor")?, named("collector-1")?);
//! let listener = server.listen("127.0.0.1:0".parse()?, ConnectionOptions::default())?;
//! let address = server.local_address(listener).ok_or("no address")?;
//! client.connect("supervisor", address, ConnectionOptions::default());
//!
//! let mut answered = false;
//! while !answered {
//!     let soon = || Some(Instant::now() + Duration::from_millis(1));
//!     match server.poll(soon())? {
//!         Some(EndpointEvent::Connected { name, .. }) => assert_eq!(&*name, "collector-1"),
//!         Some(EndpointEvent::Message { peer, stream, payload, .. }) => server.send(peer, 2, stream, &[b"re: ", &payload])?,
//!         _ => {}
//!     }
//!     match client.poll(soon())? {
//!         Some(EndpointEvent::Connected { peer, .. }) => client.send(peer, 1, 0, &[b"ready"])?,
//!         Some(EndpointEvent::Message { payload, .. }) => answered = *payload == *b"re: ready",
//!         _ => {}
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Received payloads are lent from pooled buffers. They can be kept, sliced and sent on without a copy ([`Payload`]).
//! Every limit has a name ([`Limits`], [`Timing`]). Every connection ends with a reason, a variant of [`Closed`], and
//! is counted in [`Counters`].

#![deny(unsafe_code)]

mod assembler;
mod auth;
mod backoff;
mod callers;
mod counters;
mod endpoint;
mod epoll;
mod event;
mod frame;
#[cfg(test)]
#[path = "../../../tests/hang_guard.rs"]
mod hang_guard;
mod hello;
mod limits;
mod net;
mod options;
mod outbox;
mod pool;
#[cfg(test)]
#[path = "../../../tests/skip.rs"]
mod skip;
mod socket;
#[allow(unsafe_code)]
mod sys;
mod tcp_info;
mod tls;
mod versions;
mod wake;

pub use assembler::{ArrivedMessage, Assembler, Partial, Starved};
pub use auth::{KeyError, SharedKey, TAG_BYTES};
pub use backoff::Backoff;
pub use callers::{CallerRates, caller_group, first_of_most};
pub use counters::Counters;
pub use endpoint::{MessageEndpoint, SetupError};
pub use event::{Closed, EndpointEvent, Listener, NotAccepting, PeerId, SendError};
pub use frame::{HEADER_BYTES, Header, Oversize};
pub use hello::{BadHello, NAME_BYTES_MAX};
pub use limits::{Limits, RESERVED_KINDS, Timing};
pub use net::{Interest, Readiness, SimulatedNetwork, SimulatedSocket};
pub use options::{Address, Backend, ConnectionOptions, EndpointSettings, Greeting, SameName};
pub use outbox::Unsent;
pub use pool::{Payload, ReceiveMemory};
pub use socket::{Misfit, OptionError, OsError, SocketError, SocketOptions, clamp_window};
pub use tcp_info::TcpInfo;
pub use tls::{Tls, TlsError};
pub use versions::{NoCommonVersion, Versions};
pub use wake::Waker;
