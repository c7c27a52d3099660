//! SIRD's counters.

/// Counters of all hosts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SirdCounters {
    /// Requests for credit.
    pub requests: u64,
    /// Packets that grant credit.
    pub credits: u64,
    /// Packets that request data again.
    pub resends: u64,
    /// Acknowledgements of whole messages.
    pub acknowledgements: u64,
    /// Bytes of granted credit.
    pub credit_bytes: u64,
    /// Bytes of credit that returned with data.
    pub credit_returned: u64,
    /// Payload sent without credit.
    pub unscheduled_bytes: u64,
    /// Data packets that were sent.
    pub packets: u64,
    /// Data packets that reported a congested sender.
    pub congested: u64,
    /// Timeouts of receivers.
    pub timeouts: u64,
    /// Data packets that were sent again.
    pub retransmits: u64,
    /// The largest outstanding credit of a receiver, in bytes.
    pub outstanding_max: u32,
}

/// Counters of one end of a connection.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SirdEndCounters {
    /// Data packets sent.
    pub packets: u64,
    /// Data packets sent again.
    pub retransmits: u64,
    /// Timeouts of the receiver of these data.
    pub timeouts: u64,
    /// Number of bytes known to have arrived.
    pub arrived_bytes: u64,
}
