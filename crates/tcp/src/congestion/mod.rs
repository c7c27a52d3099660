//! Congestion control: one file for each algorithm, behind the callbacks of Linux's `tcp_congestion_ops`.
//!
//! An algorithm is a struct with its state. It reads and sets the [`CongestionWindow`], which counts in units of the window
//! ([`WindowUnit`](crate::WindowUnit)). [`Algorithm`] has one variant for each algorithm and these methods:
//!
//! | method | called when | in Linux |
//! |---|---|---|
//! | [`ssthresh`](Algorithm::ssthresh) | a loss or a mark reduces the window | `ssthresh` |
//! | [`react_to_loss`](Algorithm::react_to_loss) | recovery begins, or a timeout reduces the window | `set_state`, `cwnd_event` |
//! | [`on_ack`](Algorithm::on_ack) | an ACK finds the window in full use | `cong_avoid` |
//! | [`on_sample`](Algorithm::on_sample) | an ACK covers new data that was sent once; with `counts_deliveries`, any ACK | `pkts_acked`, `in_ack_event` |
//! | [`counts_deliveries`](Algorithm::counts_deliveries) | an ACK covers no new data that was sent once | `in_ack_event` |
//! | [`undo_cwnd`](Algorithm::undo_cwnd) | a reduction proved needless | `undo_cwnd` |
//! | [`on_timeout`](Algorithm::on_timeout) | the retransmission timer expired | `set_state` |
//! | [`on_restart`](Algorithm::on_restart) | data is sent and none is outstanding | `cwnd_event` |
//! | [`governs_recovery`](Algorithm::governs_recovery) | a connection is in recovery | `cong_control` |
//! | [`alpha_ppm`](Algorithm::alpha_ppm) | a report or a test reads the state | `get_info` |
//! | [`models_path`](Algorithm::models_path) | the four below may apply, and slow start after idleness may not | `cong_control` |
//! | [`pacing`](Algorithm::pacing) | a burst is sized, or could leave | `sk_pacing_rate` |
//! | [`on_sent`](Algorithm::on_sent) | a segment is sent | `tcp_rate_skb_sent` |
//! | [`on_delivery`](Algorithm::on_delivery) | an ACK reports deliveries or losses | `cong_control` |
//! | [`on_app_limited`](Algorithm::on_app_limited) | the application has too little to send | `tcp_rate_check_app_limited` |
//!
//! Each method is a `match` that names every algorithm, so that the compiler reports the methods missing in a new one. The
//! [path window](CongestionWindow::limit_to_path) bounds the window of any algorithm.

mod bbr;
mod cubic;
mod dctcp;
mod newreno;
mod path_window;
mod static_window;
mod swift;
mod window;

use alloc::boxed::Box;

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::{Config, CongestionConfig, Reduction};
use crate::delivery_rate::Delivery;
pub(crate) use bbr::{Pacing, PathState, SentSegment};
pub(crate) use window::{AckSample, CongestionWindow, SSTHRESH_INFINITE};

/// A congestion control with its state.
#[derive(Clone, Debug)]
pub(crate) enum Algorithm {
    NewReno,
    Cubic(cubic::Cubic),
    Dctcp(dctcp::Dctcp),
    Swift(swift::Swift),
    Static,
    Bbr(Box<bbr::Bbr>),
}

impl Algorithm {
    /// The algorithm in `config`, for a new connection.
    pub(crate) fn new(config: &Config) -> Self {
        match config.congestion_control {
            CongestionConfig::NewReno => Self::NewReno,
            CongestionConfig::Cubic(_) => Self::Cubic(cubic::Cubic::default()),
            CongestionConfig::Dctcp(parameters) => Self::Dctcp(dctcp::Dctcp::new(parameters)),
            CongestionConfig::Swift(_) => Self::Swift(swift::Swift::default()),
            CongestionConfig::Static { .. } => Self::Static,
            CongestionConfig::Bbr => Self::Bbr(Box::new(bbr::Bbr::new())),
        }
    }

    /// The slow-start threshold after a mark if `has_ece` is true, otherwise after a loss, in units of the window. So is
    /// `flight_size`.
    pub(crate) fn ssthresh(
        &mut self,
        config: &Config,
        window: &CongestionWindow,
        flight_size: u32,
        has_ece: bool,
    ) -> u32 {
        let ssthresh = match self {
            Self::NewReno => newreno::ssthresh(config, window, flight_size),
            Self::Cubic(cubic) => cubic.ssthresh(config, cubic::parameters(config), window),
            Self::Dctcp(dctcp) => dctcp.ssthresh(config, dctcp::parameters(config), window, has_ece),
            Self::Swift(_) => swift::ssthresh(config, swift::parameters(config), window),
            Self::Static => static_window::cwnd(config),
            Self::Bbr(bbr) => bbr.ssthresh(window),
        };
        assert!(ssthresh > 0, "a threshold of zero stops the sender");
        ssthresh
    }

    /// Lowers the threshold once more where recovery begins or a timeout reduces the window. DCTCP of Linux halves the window then, also
    /// after a mark.
    pub(crate) fn react_to_loss(&self, config: &Config, window: &mut CongestionWindow) {
        match self {
            Self::Dctcp(_) if config.is_linux_6() => {
                window.ssthresh = dctcp::Dctcp::half(config, dctcp::parameters(config), window);
            }
            Self::NewReno
            | Self::Cubic(_)
            | Self::Dctcp(_)
            | Self::Swift(_)
            | Self::Static
            | Self::Bbr(_) => {}
        }
    }

    /// Grows the window on an ACK that finds it in full use.
    #[inline]
    pub(crate) fn on_ack(&mut self, config: &Config, window: &mut CongestionWindow, ack: AckSample) {
        match self {
            Self::NewReno | Self::Dctcp(_) => newreno::on_ack(config, window, ack),
            Self::Cubic(cubic) => cubic.on_ack(config, cubic::parameters(config), window, ack),
            Self::Swift(swift) => swift.on_ack(config, window, ack),
            Self::Static => window.cwnd = static_window::cwnd(config).min(window.cwnd_clamp),
            // A model sets the window in `on_delivery`.
            Self::Bbr(_) => {}
        }
    }

    /// Takes a round-trip sample, in picoseconds, with the smoothed round-trip time. CUBIC also reads the
    /// congestion state (`icsk_ca_state`).
    #[inline]
    pub(crate) fn on_sample(
        &mut self,
        config: &Config,
        window: &mut CongestionWindow,
        ack: AckSample,
        [rtt_ps, srtt_ps]: [u64; 2],
        ca_state: CongestionState,
    ) {
        match self {
            Self::NewReno | Self::Static | Self::Bbr(_) => {}
            Self::Cubic(cubic) => {
                let parameters = cubic::parameters(config);
                cubic.on_sample(config, parameters, window, ack, [rtt_ps, srtt_ps], ca_state);
            }
            Self::Dctcp(dctcp) => {
                dctcp.on_sample(dctcp::parameters(config), ack, config.is_linux_6());
            }
            Self::Swift(swift) => swift.on_sample(config, swift::parameters(config), window, ack, rtt_ps),
        }
    }

    /// Returns true if [`on_sample`](Self::on_sample) takes each ACK, also those of SACKed and retransmitted segments. DCTCP of Linux
    /// counts all deliveries (`dctcp_update_alpha`).
    pub(crate) fn counts_deliveries(&self, config: &Config) -> bool {
        match self {
            Self::Dctcp(_) => config.is_linux_6(),
            Self::NewReno | Self::Cubic(_) | Self::Swift(_) | Self::Static | Self::Bbr(_) => false,
        }
    }

    /// The window after a needless reduction is undone; `prior_cwnd` is the window before it, and `lost` the units declared lost
    /// so far.
    pub(crate) fn undo_cwnd(
        &mut self,
        config: &Config,
        window: &CongestionWindow,
        prior_cwnd: u32,
        lost: u64,
    ) -> u32 {
        match self {
            Self::Cubic(cubic) if cubic::parameters(config).undoes_to_maximum => {
                window.cwnd.max(cubic.window_max() * config.segment_units())
            }
            Self::Static => window.cwnd,
            Self::Bbr(bbr) => {
                bbr.on_undo(lost);
                window.cwnd
            }
            Self::NewReno | Self::Cubic(_) | Self::Dctcp(_) | Self::Swift(_) => window.cwnd.max(prior_cwnd),
        }
    }

    /// Handles an expired retransmission timer; the flight is already declared lost.
    pub(crate) fn on_timeout(&mut self, now: Instant, path: &PathState, salt: u32) {
        match self {
            Self::Cubic(cubic) => cubic.reset(),
            Self::Bbr(bbr) => bbr.on_timeout(now, path, salt),
            Self::NewReno | Self::Dctcp(_) | Self::Swift(_) | Self::Static => {}
        }
    }

    /// Handles data sent after everything was acknowledged; the last transmission was at `last_sent`.
    #[inline]
    pub(crate) fn on_restart(&mut self, config: &Config, now: Instant, last_sent: Instant) {
        match self {
            Self::Cubic(cubic) if cubic::parameters(config).counts_segments => {
                cubic.shift_epoch(now, last_sent);
            }
            Self::NewReno
            | Self::Cubic(_)
            | Self::Dctcp(_)
            | Self::Swift(_)
            | Self::Static
            | Self::Bbr(_) => {}
        }
    }

    /// Returns true if the algorithm sets the window in recovery, too, instead of [`Config::reduction`]. The static
    /// window does so on kernels with proportional rate reduction.
    pub(crate) fn governs_recovery(&self, config: &Config) -> bool {
        match self {
            Self::Static => config.reduction == Reduction::Proportional,
            Self::Bbr(_) => true,
            Self::NewReno | Self::Cubic(_) | Self::Dctcp(_) | Self::Swift(_) => false,
        }
    }

    /// DCTCP's α in millionths; 0 for any other algorithm.
    pub(crate) fn alpha_ppm(&self) -> u32 {
        match self {
            Self::Dctcp(dctcp) => dctcp.alpha_ppm(),
            Self::NewReno | Self::Cubic(_) | Self::Swift(_) | Self::Static | Self::Bbr(_) => 0,
        }
    }

    /// Returns true if the algorithm models the path. Then it paces, receives each segment and delivery, and sets the window at each
    /// ACK. Neither idleness nor the end of a recovery changes that window (`cong_control`).
    #[inline]
    pub(crate) fn models_path(&self) -> bool {
        match self {
            Self::Bbr(_) => true,
            Self::NewReno | Self::Cubic(_) | Self::Dctcp(_) | Self::Swift(_) | Self::Static => false,
        }
    }

    /// The times and sizes of paced bursts; `None` if the algorithm does not pace.
    #[inline]
    pub(crate) fn pacing(&self) -> Option<&Pacing> {
        match self {
            Self::Bbr(bbr) => Some(bbr.pacing()),
            Self::NewReno | Self::Cubic(_) | Self::Dctcp(_) | Self::Swift(_) | Self::Static => None,
        }
    }

    /// Handles a segment before it is sent.
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        window: &mut CongestionWindow,
        path: &PathState,
        sent: SentSegment,
    ) {
        match self {
            Self::Bbr(bbr) => bbr.on_sent(now, window, path, sent),
            Self::NewReno | Self::Cubic(_) | Self::Dctcp(_) | Self::Swift(_) | Self::Static => {}
        }
    }

    /// Handles the deliveries that an ACK reports. All outstanding segments were sent at `oldest_sent_at` ps or later.
    pub(crate) fn on_delivery(
        &mut self,
        window: &mut CongestionWindow,
        delivery: &Delivery,
        path: &PathState,
        oldest_sent_at: u64,
        salt: u32,
    ) {
        match self {
            Self::Bbr(bbr) => bbr.on_delivery(window, delivery, path, oldest_sent_at, salt),
            Self::NewReno | Self::Cubic(_) | Self::Dctcp(_) | Self::Swift(_) | Self::Static => {}
        }
    }

    /// Handles that the application, with `in_flight` segments outstanding, limits the rate.
    pub(crate) fn on_app_limited(&mut self, in_flight: u32) {
        match self {
            Self::Bbr(bbr) => bbr.limit_by_app(in_flight),
            Self::NewReno | Self::Cubic(_) | Self::Dctcp(_) | Self::Swift(_) | Self::Static => {}
        }
    }
}
