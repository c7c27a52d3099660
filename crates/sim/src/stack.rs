//! The TCP stack that a scenario describes.

use fanin_scenario::{CongestionControl, Profile, Transport};
use fanin_units::Ratio;
use fanin_units::tcp::DELAYED_ACK_MIN_LINUX;

use crate::Error;
use crate::techniques::{configure, packets};
use fanin_tcp::{Config, CongestionConfig, DelayedAck};

/// Returns the TCP settings of a scenario's `transport` section: the named profile, and each key that differs from it.
pub(crate) fn stack(transport: &Transport) -> Result<Config, Error> {
    let profile = match transport.profile {
        Profile::Linux2632 => Config::linux_2_6_32(),
        Profile::Linux2626 => Config::linux_2_6_26(),
        Profile::Linux6 => Config::linux_6(),
        Profile::Ns3Newreno => Config::ns3_newreno(),
        Profile::Textbook => Config::textbook(),
    };
    let mut config = profile.clone();
    let mss = transport.segment_payload().get();
    config.mss =
        u16::try_from(mss).map_err(|_| Error::unsupported("transport.mss", format!("{mss} bytes")))?;
    config.timestamps = transport.timestamps;
    config.sack = transport.sack;
    config.initial_window = packets(transport.initial_window.get());
    config.congestion_control = match transport.congestion_control {
        CongestionControl::NewReno => CongestionConfig::NewReno,
        CongestionControl::Cubic => match profile.congestion_control {
            cubic @ CongestionConfig::Cubic(_) => cubic,
            _ => Config::linux_6().congestion_control,
        },
        // The technique's folder makes its further changes.
        _ => profile.congestion_control,
    };
    config.ecn = transport.ecn;
    config.slow_start_after_idle = transport.slow_start_after_idle;
    config.receive_window = transport.receive_window.get().min(fanin_tcp::RECEIVE_WINDOW_MAX.into()) as u32;
    configure(transport, &mut config);
    config.receive_window_initial = config.receive_window_initial.min(config.receive_window);
    // The window field has 16 bits.
    while config.receive_window >> config.window_scale > u32::from(u16::MAX) {
        config.window_scale += 1;
    }
    config.rto.max = transport.rto_max;
    config.rto.spread = (transport.rto_spread.get() * 1024 / Ratio::ONE.get()) as u32;
    config.timer_granularity = transport.timer_granularity;
    config.delayed_ack = match profile.delayed_ack {
        _ if !transport.delayed_ack => DelayedAck::Off,
        linux @ DelayedAck::Linux { .. } if transport.delayed_ack_timeout == DELAYED_ACK_MIN_LINUX => linux,
        // icsk_delack_max bounds the adapted timeout of tcp_send_delayed_ack.
        DelayedAck::Linux { .. } => DelayedAck::Linux { max: transport.delayed_ack_timeout },
        DelayedAck::Off | DelayedAck::Rfc1122 { .. } => {
            DelayedAck::Rfc1122 { timeout: transport.delayed_ack_timeout }
        }
    };
    config.set_rto_min(transport.rto_min);
    config.nodelay = transport.nodelay;
    config.receive_offload = transport.receive_offload;
    let largest = u32::try_from(transport.offload_burst.get()).unwrap_or(u32::MAX);
    config.set_offload_burst((transport.offload_burst > transport.mss).then_some(largest));
    Ok(config)
}

#[cfg(test)]
#[path = "../tests/unit/stack.rs"]
mod tests;
