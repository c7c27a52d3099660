//! TCP with the scenario's settings: kernel settings of each namespace, options of its routes, programs for the run.

use std::path::Path;

use fanin_node::techniques::{LiveTechnique, technique};
use fanin_scenario::{Profile, Scenario, Transport};
use fanin_units::tcp::{DELAYED_ACK_MIN_LINUX, INITIAL_WINDOW_LINUX};
use fanin_units::{Duration, wire};

use super::LiveRefusal;
use crate::Setting;

/// The kernel's range of the minimum retransmission timeout (`tcp_rto_min_us`); the lower end is its clock's resolution.
const RTO_MIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(60));

/// The BPF programs loaded for the run; dropping the value unloads them.
#[derive(Debug, Default)]
pub struct Techniques {
    #[cfg(feature = "bpf")]
    _control: Option<crate::bpf::LoadedControl>,
    #[cfg(feature = "bpf")]
    m21: Option<crate::bpf::M21Hosts>,
}

impl Techniques {
    /// Loads the programs that the scenario's congestion control needs.
    ///
    /// # Errors
    /// If this program was built without them, or the kernel refuses.
    pub fn load(transport: &Transport) -> Result<Self, super::BenchError> {
        #[cfg(feature = "bpf")]
        {
            use crate::bpf::LoadedControl;
            use fanin_scenario::CongestionControl;
            let control = match transport.congestion_control {
                CongestionControl::Static => {
                    let segments = u32::try_from(transport.static_window.get()).unwrap_or(u32::MAX);
                    Some(LoadedControl::static_window(segments)?)
                }
                CongestionControl::Dctcp => Some(LoadedControl::dctcp()?),
                other => {
                    let is_program = technique(other).is_some_and(|technique| technique.is_program);
                    assert!(!is_program, "the program of {other:?} is not loaded");
                    None
                }
            };
            let edits =
                technique(transport.congestion_control).is_some_and(|technique| technique.edits_segments);
            let m21 = edits.then(|| crate::bpf::M21Hosts::load(crate::bpf::M21Parts::default()));
            let m21 = m21.transpose()?;
            Ok(Self { _control: control, m21 })
        }
        #[cfg(not(feature = "bpf"))]
        match technique(transport.congestion_control) {
            Some(technique) if technique.is_program || technique.edits_segments => {
                let control = serde_json::json!(transport.congestion_control);
                let feature = format!("`transport.congestion_control = {control}`");
                Err(LiveRefusal::NoBpf { feature }.into())
            }
            _ => Ok(Self::default()),
        }
    }
}

impl Techniques {
    /// Applies the programs to new connections of a host.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add(&mut self, host: &crate::Namespace) -> Result<(), super::BenchError> {
        #[cfg(feature = "bpf")]
        if let Some(m21) = &mut self.m21 {
            m21.add(host)?;
        }
        let _ = host;
        Ok(())
    }

    /// Returns the hosts' M21TCP counters by name; empty without M21TCP.
    #[must_use]
    pub fn m21_figures(&self) -> Vec<(&'static str, u64)> {
        #[cfg(feature = "bpf")]
        if let Some(figures) = self.m21.as_ref().and_then(|m21| m21.figures().ok()) {
            return vec![
                ("echoes", figures.echoes),
                ("bounds_changed", figures.changes),
                ("windows_below_segment", figures.below_segment),
                ("bounds_refused", figures.refused),
            ];
        }
        Vec::new()
    }
}

/// Returns the technique of a scenario's congestion control.
///
/// # Errors
/// If no kernel has that congestion control.
pub(super) fn live_technique(transport: &Transport) -> Result<LiveTechnique, LiveRefusal> {
    technique(transport.congestion_control).ok_or_else(|| {
        LiveRefusal::named(
            "transport.congestion_control",
            &transport.congestion_control,
            "one that a kernel has: \"newreno\", \"cubic\", \"bbr\", \"static\", \"dctcp\", \"m21tcp\" or \"diatcp\"",
        )
    })
}

/// Returns the kernel settings of every host's namespace.
pub(super) fn settings(transport: &Transport) -> Vec<Setting> {
    let technique = technique(transport.congestion_control);
    let flag = |on: bool| u8::from(on).to_string();
    let rto = transport.rto_min.max(RTO_MIN.0).min(RTO_MIN.1);
    // Half of a receive buffer is the window that it offers (`tcp_win_from_space`).
    let buffer = transport.receive_window.get().saturating_mul(2).clamp(8_192, 1 << 30);
    let ipv4 = |name: &str, value: String| Setting { key: format!("net.ipv4.{name}"), value };
    let mut settings = vec![
        Setting { key: "net.ipv6.conf.all.disable_ipv6".to_owned(), value: "1".to_owned() },
        Setting { key: "net.ipv6.conf.default.disable_ipv6".to_owned(), value: "1".to_owned() },
        ipv4("tcp_no_metrics_save", flag(true)),
        ipv4("tcp_timestamps", flag(transport.timestamps)),
        ipv4("tcp_sack", flag(transport.sack)),
        ipv4("tcp_ecn", flag(transport.uses_ecn())),
        ipv4("tcp_slow_start_after_idle", flag(transport.slow_start_after_idle)),
        ipv4("tcp_rto_min_us", (rto.as_nanos() / 1000).to_string()),
        ipv4("tcp_rmem", format!("4096 {} {buffer}", buffer.min(131_072))),
        ipv4("tcp_wmem", "4096 1048576 16777216".to_owned()),
        ipv4("ip_local_port_range", "32768 60999".to_owned()),
    ];
    let sysctls = technique.map_or(&[][..], |technique| technique.sysctls);
    settings.extend(sysctls.iter().map(|sysctl| ipv4(sysctl.name, sysctl.value.to_owned())));
    if Path::new("/proc/sys/net/ipv4/tcp_rto_max_ms").exists() {
        let most = (transport.rto_max.as_nanos() / 1_000_000).clamp(1_000, 120_000);
        settings.push(ipv4("tcp_rto_max_ms", most.to_string()));
    }
    settings
}

/// Returns the words that `ip route` takes for every host's route to the others.
///
/// # Errors
/// If no kernel has the congestion control.
pub(super) fn route_options(transport: &Transport) -> Result<Vec<String>, LiveRefusal> {
    let mut words = vec!["congctl".to_owned(), live_technique(transport)?.kernel_name.to_owned()];
    let headers = u64::from(wire::IP_TCP_HEADERS);
    let mut add = |key: &str, value: u64| words.extend([key.to_owned(), value.to_string()]);
    if transport.mss.get() + headers < transport.mtu.get() {
        add("advmss", transport.mss.get());
    }
    // A static window opens at once.
    if transport.initial_window != INITIAL_WINDOW_LINUX {
        add("initcwnd", transport.initial_window.get());
    }
    if !transport.delayed_ack {
        add("quickack", 1);
    }
    Ok(words)
}

/// Returns the differences of this kernel's TCP from the scenario, in sentences.
pub(super) fn notes(scenario: &Scenario) -> Vec<String> {
    let transport = &scenario.transport;
    let mut notes = Vec::new();
    if transport.profile != Profile::Linux6 {
        notes.push(
            "TCP is this kernel's, not that of `transport.profile`; \"linux-6\" is the one that describes it"
                .to_owned(),
        );
    }
    if transport.delayed_ack && transport.delayed_ack_timeout != DELAYED_ACK_MIN_LINUX {
        notes.push(format!(
            "acknowledgements are delayed by the kernel's {DELAYED_ACK_MIN_LINUX}, not by {}",
            transport.delayed_ack_timeout
        ));
    }
    if !transport.rto_spread.is_zero() {
        notes.push("retransmission timeouts are not spread (`transport.rto_spread`)".to_owned());
    }
    notes
}
