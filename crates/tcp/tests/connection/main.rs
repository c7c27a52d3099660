//! Connections from SYN to TIME-WAIT. Covers each transition of RFC 9293, the loss of each segment of set-up and
//! tear-down, and a channel that loses, reorders and duplicates.

mod channel;
mod close;
mod handshake;
mod pair;
