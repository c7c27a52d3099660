//! SIRD's parameters, and the links of the hosts.

use fanin_units::{Duration, Rate, Ratio};

/// Rule for the next message to which a SIRD receiver grants credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum CreditPolicy {
    /// The message with the fewest remaining bytes; of equal ones the first that requested.
    SmallestRemaining,
    /// One packet of each sender in turn.
    RoundRobin,
}

/// The parameters of all hosts. One BDP is the rate of the receiver's link times the longest round-trip time to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SirdConfig {
    /// B: largest outstanding credit of a receiver, in BDPs; at least one packet.
    pub bucket: Ratio,
    /// Largest outstanding credit for one sender, in BDPs.
    pub sender_bucket: Ratio,
    /// Largest message that is sent without credit, in BDPs of the receiver.
    pub unscheduled: Ratio,
    /// Backlog of a sender's link above which the sender signals congestion, in BDPs of the receiver.
    pub sender_threshold: Ratio,
    /// Weight of the newest marked share.
    pub gain: Ratio,
    /// Rule for the next message to receive credit.
    pub policy: CreditPolicy,
    /// Time without data after which a receiver requests them again; a sender waits twice as long.
    pub timeout: Duration,
    /// Payload of a full packet.
    pub mss: u16,
}

/// The host of one end of a connection, and its link.
#[derive(Clone, Copy, Debug)]
pub struct AccessLink {
    /// The number of the host.
    pub node: u32,
    /// Time of a full frame to the host and a smallest frame back, on idle links.
    pub rtt: Duration,
    /// The rate of the host's link.
    pub rate: Rate,
}
