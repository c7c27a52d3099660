use fanin_units::{Bytes, Duration, Packets, Ratio};
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
    /// NewReno by the RFCs and nothing else.
    #[serde(rename = "textbook")]
    Textbook,
}

/// How a sender sizes its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// RFC 5681 and RFC 6582.
    Newreno,
    /// RFC 9438, as Linux does it.
    Cubic,
    /// A fixed window, `transport.static_window` (ICC'15 §IV.C).
    Static,
    /// RFC 8257.
    Dctcp,
    /// Many-to-one TCP: the switch says how much each flow may have in flight (M21TCP §III).
    M21tcp,
    /// The receiver shares a global window out among its senders (ICC'15 §IV.D).
    Diatcp,
    /// The receiver adjusts each connection's window from its measured throughput (ICTCP; Wu et al. 2013).
    Ictcp,
    /// Delay-based control in the manner of Swift (Kumar et al. 2020).
    Swift,
    /// No TCP: receivers hand out credit in bytes for messages (SIRD; Prasopoulos et al. 2025).
    Sird,
    /// The kernel's BBR: for live systems only, the simulator has none.
    Bbr,
}

/// What persistent connections remember at the start of the measurement.
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
pub struct Dctcp {
    /// Weight g of a new sample in the moving average α of the marked share, above 0.
    pub gain: Ratio,
    /// α of a new connection.
    pub alpha_initial: Ratio,
    /// No reduction takes the window below so many segments; only a time-out takes it to one for a while.
    pub window_min: Packets,
}

impl Default for Dctcp {
    fn default() -> Self {
        Self { gain: Ratio::new(62_500), alpha_initial: Ratio::ONE, window_min: Packets::new(2) }
    }
}

/// What an M21TCP switch sets aside for headers (equation (1)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum M21Charge {
    /// Every packet's whole frame: the buffer cannot overflow while there is a segment for each flow.
    Packet,
    /// `header` once for each flow, as equation (1) of the paper has it: larger windows of many packets overflow.
    Flow,
}

/// M21TCP's parameters (M21TCP §III.C). Which switches write the option is said by their own key `m21`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct M21tcp {
    /// What is set aside for headers.
    pub charge: M21Charge,
    /// Header bytes of `charge = "flow"`.
    pub header: Bytes,
    /// A flow without a frame for so long no longer counts; zero: only its FIN ends it.
    pub idle: Duration,
    /// Whether switches also lower the window in the echo on its way back: it is then never older than half a round trip.
    pub rewrite_echo: bool,
}

impl Default for M21tcp {
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
pub struct Swift {
    /// The round-trip time aimed at with a large window, hops included.
    pub target: Duration,
    /// What small windows may take beyond it: all of it far below a segment, 0.3 of it at one, nothing from 100 on.
    pub scaling: Duration,
    /// β: the share of the relative excess that the window falls by.
    pub beta: Ratio,
    /// The most that it falls by at once.
    pub decrease_max: Ratio,
}

impl Default for Swift {
    fn default() -> Self {
        Self {
            target: Duration::from_micros(300),
            scaling: Duration::from_micros(1_000),
            beta: Ratio::new(800_000),
            decrease_max: Ratio::new(500_000),
        }
    }
}

/// To which message a SIRD receiver gives its credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CreditPolicy {
    /// The one of which the fewest bytes are left; of equal ones the one that asked first.
    SmallestRemaining,
    /// A packet of each sender in turn.
    RoundRobin,
}

/// SIRD's parameters (Prasopoulos et al. 2025, §4 and §6). A BDP is the rate of the receiver's link times the longest way of a
/// full frame to it and a smallest one back, on idle links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sird {
    /// B: the most credit that a receiver has outstanding, in BDPs; at least a packet.
    pub bucket: Ratio,
    /// The most credit for one sender, in BDPs; marks make it less.
    pub sender_bucket: Ratio,
    /// Messages up to this size go without credit, in BDPs of the receiver.
    pub unscheduled: Ratio,
    /// A sender whose link has more than this waiting says so, in BDPs of the receiver.
    pub sender_threshold: Ratio,
    /// Weight of the newest marked share.
    pub gain: Ratio,
    /// To which message credit is given.
    pub policy: CreditPolicy,
    /// How long a receiver waits for data before it asks for them again; a sender waits twice as long.
    pub timeout: Duration,
}

impl Default for Sird {
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
pub struct Diatcp {
    /// The window that a collector shares out among all its senders.
    pub global_window: Packets,
    /// Whether a connection whose deadline is nearer gets a larger share.
    pub deadline_aware: bool,
}

impl Default for Diatcp {
    fn default() -> Self {
        Self { global_window: Packets::new(160), deadline_aware: false }
    }
}

/// TCP: the stack and its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Transport {
    /// The stack; it sets the default of every other key of this section.
    pub profile: Profile,
    /// How a sender sizes its window.
    pub congestion_control: CongestionControl,
    /// The window of `congestion_control = "static"`.
    pub static_window: Packets,
    /// Largest IP packet.
    pub mtu: Bytes,
    /// Largest TCP payload, options not counted; by default what the MTU leaves after 40 bytes of headers.
    pub mss: Bytes,
    /// Timestamps (RFC 7323): 12 bytes of each segment.
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Window of a new connection.
    pub initial_window: Packets,
    /// What persistent connections remember at the start.
    pub window_state: WindowState,
    /// Whether an idle connection starts again from the initial window (RFC 2861).
    pub slow_start_after_idle: bool,
    /// Largest window that a receiver offers.
    pub receive_window: Bytes,
    /// Smallest retransmission timeout.
    pub rto_min: Duration,
    /// Largest retransmission timeout.
    pub rto_max: Duration,
    /// A random part added to each timeout, as a share of it (breaks the phase of many senders).
    pub rto_spread: Ratio,
    /// Steps in which the stack's timers run: 1 ms for HZ = 1000, 4 ms for HZ = 250.
    pub timer_granularity: Duration,
    /// Whether a receiver may wait before it acknowledges.
    pub delayed_ack: bool,
    /// The longest that it waits; at 40 ms Linux profiles keep the kernel's own rule, which goes from there to 200 ms.
    pub delayed_ack_timeout: Duration,
    /// Whether short segments are sent at once (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Largest burst that the host hands to its network card at once (TSO); zero: one segment at a time.
    pub offload_burst: Bytes,
    /// Whether a receiver takes a burst of its peer's for one segment and acknowledges it once (GRO, LRO).
    pub receive_offload: bool,
    /// Whether connections negotiate ECN (RFC 3168); with `congestion_control = "dctcp"` they do in any case.
    pub ecn: bool,
    /// DCTCP's parameters.
    pub dctcp: Dctcp,
    /// M21TCP's parameters.
    pub m21tcp: M21tcp,
    /// DIATCP's parameters.
    pub diatcp: Diatcp,
    /// Swift's parameters.
    pub swift: Swift,
    /// SIRD's parameters.
    pub sird: Sird,
}

impl Transport {
    /// Options that every segment with data carries: timestamps, and the 8 bytes of M21TCP's.
    pub fn option_bytes(&self) -> Bytes {
        let m21 = self.congestion_control == CongestionControl::M21tcp;
        Bytes::new(if self.timestamps { 12 } else { 0 } + if m21 { 8 } else { 0 })
    }

    /// Payload of a full segment: the MSS less the options that every segment carries.
    pub fn segment_payload(&self) -> Bytes {
        self.mss.saturating_sub(self.option_bytes())
    }
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            profile: Profile::Linux2632,
            congestion_control: CongestionControl::Cubic,
            static_window: Packets::new(2),
            mtu: Bytes::new(1500),
            mss: Bytes::new(1460),
            timestamps: true,
            sack: true,
            initial_window: Packets::new(10),
            window_state: WindowState::Cold,
            slow_start_after_idle: true,
            receive_window: Bytes::new(4 << 20),
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_secs(120),
            rto_spread: Ratio::ZERO,
            timer_granularity: Duration::from_millis(1),
            delayed_ack: true,
            delayed_ack_timeout: Duration::from_millis(40),
            nodelay: true,
            offload_burst: Bytes::ZERO,
            receive_offload: false,
            ecn: false,
            dctcp: Dctcp::default(),
            m21tcp: M21tcp::default(),
            diatcp: Diatcp::default(),
            swift: Swift::default(),
            sird: Sird::default(),
        }
    }
}

/// What a profile sets where the file does not: keys of this section as TOML.
pub(crate) fn profile_defaults(profile: &str) -> Option<&'static str> {
    Some(match profile {
        "linux-2.6.32" => "",
        // IW by RFC 3390; no tcp_init_cwnd of 10 before 2.6.39 and its back-ports.
        "linux-2.6.26" => "initial_window = 3",
        "linux-6" => "timer_granularity = '4 ms'",
        "ns3-newreno" => {
            "congestion_control = 'newreno'\ntimestamps = false\nsack = false\ndelayed_ack = false\n\
             slow_start_after_idle = false\nreceive_window = '1 MiB'\ntimer_granularity = '1 us'"
        }
        "textbook" => {
            "congestion_control = 'newreno'\ntimestamps = false\ninitial_window = 4\nrto_min = '1 s'\n\
             delayed_ack_timeout = '200 ms'\nrto_max = '60 s'"
        }
        _ => return None,
    })
}
