pub use fanin_dataflow::CreditPolicy;
pub use fanin_queueing::M21Charge;
use fanin_units::tcp::{DELAYED_ACK_MIN_LINUX, INITIAL_WINDOW_LINUX, RTO_MIN_LINUX};
use fanin_units::{Bytes, Duration, Packets, Ratio, wire};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A TCP stack: it sets the default of every other key of this section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Profile {
    /// Scientific Linux 6, the ATLAS system of 2014: CUBIC, initial window 10, minimum RTO 200 ms.
    #[serde(rename = "linux-2.6.32")]
    Linux2632,
    /// The stack inside the thesis' simulator (§5.1.1): CUBIC, initial window 3.
    #[serde(rename = "linux-2.6.26")]
    Linux2626,
    /// A current kernel: CUBIC, RACK-TLP, PRR.
    #[serde(rename = "linux-6")]
    Linux6,
    /// ns-3's NewReno as the classical incast studies set it up: no SACK, timestamps or delayed ACKs.
    #[serde(rename = "ns3-newreno")]
    Ns3Newreno,
    /// NewReno exactly as in the RFCs.
    #[serde(rename = "textbook")]
    Textbook,
}

/// The congestion control: how a sender sets its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// RFC 5681 and RFC 6582.
    #[serde(rename = "newreno")]
    NewReno,
    /// RFC 9438, as in Linux.
    Cubic,
    /// A fixed window, `transport.static_window` (ICC'15 §IV.C).
    Static,
    /// DCTCP as RFC 8257 has it.
    Dctcp,
    /// Many-to-one TCP: the switch sets the window of each flow (M21TCP §III).
    M21tcp,
    /// The receiver divides a global window among its senders (ICC'15 §IV.D).
    Diatcp,
    /// The receiver adjusts each connection's window from its measured throughput (ICTCP; Wu et al. 2013).
    Ictcp,
    /// Delay-based control after Swift (Kumar et al. 2020).
    Swift,
    /// Not TCP: receivers grant credit in bytes for messages (SIRD; Prasopoulos et al. 2025).
    Sird,
    /// BBR version 1, with pacing, as in Linux since 4.13 (Cardwell et al. 2016). Needs the profile `linux-6`.
    Bbr,
}

/// The facts of a congestion control that other settings depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongestionFacts {
    /// The key of `transport` that this congestion control alone reads.
    pub key: Option<&'static str>,
    /// True if the transport is TCP.
    pub is_tcp: bool,
    /// True if its packets are ECN-capable, whatever `transport.ecn` is.
    pub uses_ecn: bool,
    /// Bytes of its option in each segment with data.
    pub option_bytes: u32,
}

impl CongestionControl {
    /// Every congestion control, in the order of the reference.
    pub const ALL: [Self; 10] = [
        Self::NewReno,
        Self::Cubic,
        Self::Static,
        Self::Dctcp,
        Self::M21tcp,
        Self::Diatcp,
        Self::Ictcp,
        Self::Swift,
        Self::Sird,
        Self::Bbr,
    ];

    /// Returns the facts of the congestion control.
    #[must_use]
    pub const fn facts(self) -> CongestionFacts {
        let plain = CongestionFacts { key: None, is_tcp: true, uses_ecn: false, option_bytes: 0 };
        match self {
            Self::NewReno | Self::Cubic | Self::Ictcp | Self::Bbr => plain,
            Self::Static => CongestionFacts { key: Some("static_window"), ..plain },
            Self::Dctcp => CongestionFacts { key: Some("dctcp"), uses_ecn: true, ..plain },
            Self::M21tcp => CongestionFacts { key: Some("m21tcp"), option_bytes: wire::TCP_M21, ..plain },
            Self::Diatcp => CongestionFacts { key: Some("diatcp"), ..plain },
            Self::Swift => CongestionFacts { key: Some("swift"), ..plain },
            Self::Sird => CongestionFacts { key: Some("sird"), is_tcp: false, uses_ecn: true, ..plain },
        }
    }
}

/// The congestion window of persistent connections at the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowState {
    /// Connections are new: the initial window.
    Cold,
    /// Connections have carried data before: a window of `receive_window`.
    Warm,
}

/// DCTCP's parameters (RFC 8257).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DctcpSettings {
    /// Weight g of a new sample in the moving average α of the marked share, above 0.
    pub gain: Ratio,
    /// α of a new connection.
    pub alpha_initial: Ratio,
    /// Smallest window after a reduction; only a retransmission timeout sets it to one segment.
    pub window_min: Packets,
}

impl Default for DctcpSettings {
    fn default() -> Self {
        Self { gain: Ratio::new(62_500), alpha_initial: Ratio::ONE, window_min: Packets::new(2) }
    }
}

/// M21TCP's parameters (M21TCP §III.C). The key `m21` of a switch decides whether it writes the option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct M21tcpSettings {
    /// The headers that a switch subtracts from its buffer.
    pub charge: M21Charge,
    /// Header bytes of `charge = "flow"`.
    pub header: Bytes,
    /// Time without a frame after which a flow no longer counts; zero: until its FIN.
    pub idle: Duration,
    /// Switches also lower the window in the echo on its way back, so that it is at most half a round trip old.
    pub rewrite_echo: bool,
}

impl M21tcpSettings {
    /// Returns the time after which a flow without a frame no longer counts; [`Duration::MAX`] if only its FIN ends it.
    pub fn idle_limit(&self) -> Duration {
        if self.idle.is_zero() { Duration::MAX } else { self.idle }
    }
}

impl Default for M21tcpSettings {
    fn default() -> Self {
        Self {
            charge: M21Charge::Packet,
            header: Bytes::new(42),
            idle: Duration::from_secs(1),
            rewrite_echo: false,
        }
    }
}

/// Swift's parameters (Kumar et al. 2020, §3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwiftSettings {
    /// Target round-trip time of a large window, all hops included.
    pub target: Duration,
    /// Addition to the target for small windows: all of it far below one segment, 0.3 of it at one, nothing from 100 segments on.
    pub scaling: Duration,
    /// β: decrease of the window, as a factor of the relative excess over the target.
    pub beta: Ratio,
    /// Largest decrease of the window at once, as a share of it.
    pub decrease_max: Ratio,
}

impl Default for SwiftSettings {
    fn default() -> Self {
        Self {
            target: Duration::from_micros(300),
            scaling: Duration::from_micros(1_000),
            beta: Ratio::new(800_000),
            decrease_max: Ratio::new(500_000),
        }
    }
}

/// SIRD's parameters (Prasopoulos et al. 2025, §4 and §6). One BDP is the rate of the receiver's link times the longest
/// round-trip time on idle links. That is of a full frame there and a smallest one back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SirdSettings {
    /// B: largest outstanding credit of a receiver, in BDPs; at least one packet.
    pub bucket: Ratio,
    /// Largest outstanding credit for one sender, in BDPs; marks lower it.
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
}

impl Default for SirdSettings {
    fn default() -> Self {
        Self {
            bucket: Ratio::new(1_500_000),
            sender_bucket: Ratio::ONE,
            unscheduled: Ratio::ONE,
            sender_threshold: Ratio::new(500_000),
            gain: Ratio::new(62_500),
            policy: CreditPolicy::SmallestRemaining,
            timeout: Duration::from_millis(5),
        }
    }
}

/// DIATCP's parameters (ICC'15 §IV.D).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DiatcpSettings {
    /// The window that a collector divides among all its senders.
    pub global_window: Packets,
    /// A connection with a nearer deadline gets a larger share.
    pub deadline_aware: bool,
}

impl Default for DiatcpSettings {
    fn default() -> Self {
        Self { global_window: Packets::new(160), deadline_aware: false }
    }
}

/// TCP: the stack and its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Transport {
    /// The TCP stack; it sets the default of every other key of this section.
    pub profile: Profile,
    /// The congestion control: how a sender sets its window.
    pub congestion_control: CongestionControl,
    /// The window of `congestion_control = "static"`.
    pub static_window: Packets,
    /// Largest IP packet; 68 B to 9216 B.
    pub mtu: Bytes,
    /// Maximum segment size: payload and options of a segment together; default: the MTU less 40 bytes of headers.
    pub mss: Bytes,
    /// Timestamps (RFC 7323): 12 bytes of each segment.
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Window of a new connection.
    pub initial_window: Packets,
    /// The congestion window of persistent connections at the start of the run.
    pub window_state: WindowState,
    /// An idle connection restarts from the initial window (RFC 2861).
    pub slow_start_after_idle: bool,
    /// Largest window that a receiver offers.
    pub receive_window: Bytes,
    /// Smallest retransmission timeout.
    pub rto_min: Duration,
    /// Largest retransmission timeout.
    pub rto_max: Duration,
    /// Largest random addition to each timeout, as a share of it; 0 to 1. It breaks the synchronisation of many senders.
    pub rto_spread: Ratio,
    /// Granularity of the stack's timers: 1 ms for HZ = 1000, 4 ms for HZ = 250; above 0.
    pub timer_granularity: Duration,
    /// A receiver delays acknowledgements.
    pub delayed_ack: bool,
    /// Longest delay of an acknowledgement; at 40 ms Linux profiles follow the kernel's rule, from 40 ms to 200 ms.
    pub delayed_ack_timeout: Duration,
    /// Short segments are sent at once, without Nagle's algorithm (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Largest burst that a host passes to its network card at once (TSO); zero: one segment.
    pub offload_burst: Bytes,
    /// A receiver treats a burst as one segment and acknowledges it once (GRO, LRO).
    pub receive_offload: bool,
    /// Connections negotiate ECN (RFC 3168); with `congestion_control = "dctcp"` they always do.
    pub ecn: bool,
    /// The parameters of DCTCP.
    pub dctcp: DctcpSettings,
    /// The parameters of M21TCP.
    pub m21tcp: M21tcpSettings,
    /// The parameters of DIATCP.
    pub diatcp: DiatcpSettings,
    /// The parameters of Swift.
    pub swift: SwiftSettings,
    /// The parameters of SIRD.
    pub sird: SirdSettings,
}

impl Transport {
    /// Returns the option bytes of every segment with data: timestamps, and the option of the congestion control.
    pub fn option_bytes(&self) -> Bytes {
        let timestamps = if self.timestamps { wire::TCP_TIMESTAMPS } else { 0 };
        Bytes::new(u64::from(timestamps + self.congestion_control.facts().option_bytes))
    }

    /// Returns true if packets are ECN-capable.
    pub fn uses_ecn(&self) -> bool {
        self.ecn || self.congestion_control.facts().uses_ecn
    }

    /// Returns the payload of a full segment: the MSS less the options that every segment carries.
    pub fn segment_payload(&self) -> Bytes {
        self.mss.saturating_sub(self.option_bytes())
    }
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            profile: Profile::Linux6,
            congestion_control: CongestionControl::Cubic,
            static_window: Packets::new(2),
            mtu: Bytes::new(1500),
            mss: Bytes::new(1460),
            timestamps: true,
            sack: true,
            initial_window: INITIAL_WINDOW_LINUX,
            window_state: WindowState::Cold,
            slow_start_after_idle: true,
            receive_window: Bytes::new(4 << 20),
            rto_min: RTO_MIN_LINUX,
            rto_max: Duration::from_secs(120),
            rto_spread: Ratio::ZERO,
            timer_granularity: Duration::from_millis(4),
            delayed_ack: true,
            delayed_ack_timeout: DELAYED_ACK_MIN_LINUX,
            nodelay: true,
            offload_burst: Bytes::ZERO,
            receive_offload: false,
            ecn: false,
            dctcp: DctcpSettings::default(),
            m21tcp: M21tcpSettings::default(),
            diatcp: DiatcpSettings::default(),
            swift: SwiftSettings::default(),
            sird: SirdSettings::default(),
        }
    }
}

/// Returns the defaults that a profile sets, as TOML; `None` for an unknown profile.
pub(crate) fn profile_defaults(profile: &str) -> Option<&'static str> {
    Some(match profile {
        "linux-6" => "",
        "linux-2.6.32" => "timer_granularity = '1 ms'",
        // IW by RFC 3390; no tcp_init_cwnd of 10 before 2.6.39 and its back-ports.
        "linux-2.6.26" => "initial_window = 3\ntimer_granularity = '1 ms'",
        "ns3-newreno" => {
            "congestion_control = 'newreno'\ntimestamps = false\nsack = false\ndelayed_ack = false\n\
             slow_start_after_idle = false\nreceive_window = '1 MiB'\ntimer_granularity = '1 us'"
        }
        "textbook" => {
            "congestion_control = 'newreno'\ntimestamps = false\ninitial_window = 4\nrto_min = '1 s'\n\
             delayed_ack_timeout = '200 ms'\nrto_max = '60 s'\ntimer_granularity = '1 ms'"
        }
        _ => return None,
    })
}
