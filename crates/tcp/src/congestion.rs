//! The seam for congestion control: one arm of each `match` is all a variant needs.
//!
//! A variant keeps its memory in [`Memory`] and answers the kernel's four questions
//! (`tcp_congestion_ops`): the threshold after a loss, the growth on an ACK, the window after a needless
//! reduction, and what it learns from round-trip times. Windows are in units (see
//! [`WindowUnit`](crate::config::WindowUnit)).

use fanin_units::Instant;

use crate::config::{Config, CongestionControl, Growth, Reduction};
use crate::cubic::Cubic;
use crate::dctcp::Dctcp;
use crate::swift::Swift;

/// Window, threshold and the counters every variant shares.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Window {
    pub(crate) memory: Memory,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// Units counted towards the next increase (`snd_cwnd_cnt`).
    pub(crate) counted: u32,
    /// No growth beyond this (`snd_cwnd_clamp`).
    pub(crate) clamp: u32,
}

/// What a variant remembers.
#[derive(Clone, Debug)]
pub(crate) enum Memory {
    None,
    Cubic(Cubic),
    Dctcp(Dctcp),
    Swift(Swift),
}

/// What a variant may look at when an ACK arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckView {
    pub(crate) now: Instant,
    /// Units newly delivered.
    pub(crate) acked: u32,
    /// Cumulative acknowledgement, and next offset to send (CUBIC's rounds).
    pub(crate) ack: u64,
    pub(crate) next: u64,
    /// It echoes a mark (DCTCP).
    pub(crate) echo: bool,
}

/// Slow-start threshold that stands for none.
pub(crate) const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;

impl Window {
    pub(crate) fn new(config: &Config) -> Self {
        let ssthresh = config.initial_ssthresh.saturating_mul(config.segment_units()).min(SSTHRESH_INFINITE);
        Self {
            cwnd: config.initial_cwnd(),
            ssthresh,
            counted: 0,
            clamp: u32::MAX,
            memory: match config.congestion_control {
                CongestionControl::Cubic(_) => Memory::Cubic(Cubic::default()),
                CongestionControl::Dctcp(parameters) => Memory::Dctcp(Dctcp::new(parameters)),
                CongestionControl::Swift(_) => Memory::Swift(Swift::default()),
                CongestionControl::NewReno | CongestionControl::Static { .. } => Memory::None,
            },
        }
    }

    /// Whether it is in slow start.
    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// DCTCP's α in millionths.
    pub(crate) fn alpha_ppm(&self) -> u32 {
        match &self.memory {
            Memory::Dctcp(dctcp) => (dctcp.alpha() * 1_000_000 / crate::dctcp::ONE) as u32,
            Memory::None | Memory::Cubic(_) | Memory::Swift(_) => 0,
        }
    }

    /// The threshold after a loss (`ssthresh`), or after a mark where `echo` says so.
    pub(crate) fn threshold_after_loss(&mut self, config: &Config, in_flight: u32, echo: bool) -> u32 {
        let segment = config.segment_units();
        match (&mut self.memory, config.congestion_control) {
            (Memory::Cubic(cubic), CongestionControl::Cubic(parameters)) => {
                cubic.threshold_after_loss(parameters, self.cwnd / segment) * segment
            }
            (_, CongestionControl::Static { segments }) => segments * segment,
            // Algorithm 1, lines 16 to 24: a loss counts as the greatest delay.
            (_, CongestionControl::Swift(parameters)) => {
                let by = u64::from(self.cwnd) * u64::from(parameters.decrease_max) / 1_000_000;
                (self.cwnd - by as u32).max(segment)
            }
            // RFC 8257 §3.3 step 10 for marks; a loss counts as for anybody else (§3.5).
            (Memory::Dctcp(dctcp), CongestionControl::Dctcp(parameters)) => {
                let reduced = if echo { dctcp.reduced(self.cwnd) } else { self.cwnd / 2 };
                reduced.max(parameters.window_min * segment)
            }
            // RFC 5681 equation 4 takes half the flight; Linux half the window.
            _ => match config.growth {
                Growth::PerByte | Growth::Ns3 => (in_flight / 2).max(2 * segment),
                Growth::PerAck | Growth::PerSegment => (self.cwnd / 2).max(2 * segment),
            },
        }
    }

    /// Growth on an ACK that finds the window fully used (`cong_avoid`).
    #[inline]
    pub(crate) fn grow(&mut self, config: &Config, view: AckView) {
        match (&mut self.memory, config.congestion_control) {
            (_, CongestionControl::Static { segments }) => {
                self.cwnd = (segments * config.segment_units()).min(self.clamp);
            }
            // Algorithm 1, lines 9 to 11: a segment a round trip. Only back to where a loss left it, it is faster.
            (Memory::Swift(swift), CongestionControl::Swift(_)) => {
                let may_grow = swift.may_grow();
                let slow = self.ssthresh < SSTHRESH_INFINITE && self.in_slow_start();
                if slow {
                    self.slow_start(config, view.acked);
                } else if may_grow {
                    self.additive(config, self.cwnd, view.acked);
                }
            }
            (Memory::Cubic(cubic), CongestionControl::Cubic(parameters)) => {
                let segment = config.segment_units();
                let slow = if parameters.counts_segments {
                    self.cwnd < self.ssthresh
                } else {
                    self.cwnd <= self.ssthresh
                };
                let mut acked = view.acked;
                if slow {
                    cubic.start_round_if_over(parameters, view);
                    acked = self.slow_start(config, acked);
                    if acked == 0 {
                        return;
                    }
                }
                let Memory::Cubic(cubic) = &mut self.memory else { unreachable!() };
                let step = cubic.acks_per_increase(
                    config,
                    parameters,
                    self.cwnd / segment,
                    acked.div_ceil(segment),
                    view.now,
                );
                self.additive(config, step.saturating_mul(segment), acked);
            }
            _ => {
                let mut acked = view.acked;
                let slow = match config.growth {
                    Growth::PerAck => self.cwnd <= self.ssthresh,
                    _ => self.in_slow_start(),
                };
                if slow {
                    acked = self.slow_start(config, acked);
                    if acked == 0 {
                        return;
                    }
                }
                if config.growth == Growth::Ns3 {
                    // TcpNewReno::CongestionAvoidance of ns-3.
                    let segment = u64::from(config.segment_units());
                    self.cwnd += (segment * segment / u64::from(self.cwnd)).max(1) as u32;
                } else {
                    self.additive(config, self.cwnd, acked);
                }
            }
        }
    }

    /// Slow start; returns what of `acked` is left over for congestion avoidance.
    #[inline]
    fn slow_start(&mut self, config: &Config, acked: u32) -> u32 {
        let segment = config.segment_units();
        match config.growth {
            Growth::PerAck => {
                // Without byte counting an ACK adds a segment, whatever it covers (tcp_slow_start, 2.6.32).
                self.cwnd = (self.cwnd + segment).min(self.clamp);
                0
            }
            Growth::PerSegment => {
                let grown = (self.cwnd + acked).min(self.ssthresh);
                let left = acked - (grown - self.cwnd);
                self.cwnd = grown.min(self.clamp);
                left
            }
            // RFC 5681 equation 2.
            Growth::PerByte => {
                self.cwnd = (self.cwnd + acked.min(segment)).min(self.clamp);
                0
            }
            Growth::Ns3 => {
                self.cwnd = (self.cwnd + segment).min(self.clamp);
                if self.cwnd < self.ssthresh { 0 } else { acked.saturating_sub(segment) }
            }
        }
    }

    /// One segment for each `step` units acknowledged (`tcp_cong_avoid_ai`; before 3.18 for each `step`
    /// ACKs).
    #[inline]
    fn additive(&mut self, config: &Config, step: u32, acked: u32) {
        let step = step.max(1);
        let segment = config.segment_units();
        if config.growth == Growth::PerAck {
            if self.counted >= step {
                if self.cwnd < self.clamp {
                    self.cwnd += segment;
                }
                self.counted = 0;
            } else {
                self.counted += segment;
            }
            return;
        }
        if self.counted >= step {
            self.counted = 0;
            self.cwnd += segment;
        }
        self.counted += acked;
        if self.counted >= step {
            let times = self.counted / step;
            self.counted -= times * step;
            self.cwnd += times * segment;
        }
        self.cwnd = self.cwnd.min(self.clamp);
    }

    /// The window after a reduction that was needless (`undo_cwnd`); `before` is what it was (`prior_cwnd`).
    pub(crate) fn undone(&self, config: &Config, before: u32) -> u32 {
        match (&self.memory, config.congestion_control) {
            (Memory::Cubic(cubic), CongestionControl::Cubic(parameters)) if parameters.undoes_to_maximum => {
                self.cwnd.max(cubic.maximum() * config.segment_units())
            }
            (_, CongestionControl::Static { .. }) => self.cwnd,
            _ => self.cwnd.max(before),
        }
    }

    /// A time-out happened (`set_state` with `TCP_CA_Loss`).
    pub(crate) fn timed_out(&mut self) {
        if let Memory::Cubic(cubic) = &mut self.memory {
            cubic.reset();
        }
    }

    /// A round-trip time was measured (`pkts_acked`).
    #[inline]
    pub(crate) fn measured(&mut self, config: &Config, view: AckView, rtt_ps: u64, open: bool) {
        match (&mut self.memory, config.congestion_control) {
            (Memory::Cubic(cubic), CongestionControl::Cubic(parameters)) => {
                let segment = config.segment_units();
                let slow = self.cwnd <= self.ssthresh;
                if cubic.measured(parameters, view, rtt_ps, self.cwnd / segment, slow, open) {
                    self.ssthresh = self.cwnd;
                }
            }
            (Memory::Swift(swift), CongestionControl::Swift(parameters)) => {
                let segment = config.segment_units();
                let segments = self.cwnd / segment;
                if let Some(cwnd) = swift.measured(parameters, view.now.get(), rtt_ps, self.cwnd, segments) {
                    self.cwnd = cwnd.max(segment);
                    self.ssthresh = self.ssthresh.min(self.cwnd);
                    self.counted = 0;
                }
            }
            (Memory::Dctcp(dctcp), CongestionControl::Dctcp(parameters)) => {
                let is_linux = config.reduction == Reduction::Proportional;
                dctcp.handle_ack(parameters, view, is_linux);
            }
            _ => {}
        }
    }

    /// Data is sent again after everything was acknowledged (`CA_EVENT_TX_START`).
    #[inline]
    pub(crate) fn restarted(&mut self, config: &Config, now: Instant, last_sent: Instant) {
        if let (Memory::Cubic(cubic), CongestionControl::Cubic(parameters)) =
            (&mut self.memory, config.congestion_control)
            && parameters.counts_segments
        {
            cubic.shift_epoch(now, last_sent);
        }
    }
}
