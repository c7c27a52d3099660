//! Derives socket options from the scenario's `transport`, and lists the settings that this kernel does not support.

use std::fs;
use std::time::Duration as StdDuration;

use fanin_message::{Misfit, OsError, SocketOptions};
use fanin_scenario::{CongestionControl, Scenario, Transport, WindowState};
use fanin_units::tcp::{DELAYED_ACK_MIN_LINUX, INITIAL_WINDOW_LINUX, RTO_MIN_LINUX};
use fanin_units::{Duration, Ratio, wire};

use crate::clock::std_duration;
use crate::techniques::{CUBIC, LiveTechnique, Sysctl, technique};

/// Largest minimum RTO that a socket option accepts; routes and namespaces accept larger ones.
const SOCKET_RTO_MIN_MAX: Duration = RTO_MIN_LINUX;
/// Substitute for a congestion control that this kernel lacks.
const SUBSTITUTE: &str = CUBIC.kernel_name;

/// Environment of a system's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// One loopback interface, without links or switches.
    Loopback,
    /// Hosts or namespaces, whose switches and kernel settings are configured elsewhere.
    Hosts,
}

/// The socket options in force, and the settings of the scenario that are not in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fitted {
    /// Options that this kernel accepts.
    pub socket: SocketOptions,
    /// One description for each setting that is not fully in force. Its text completes "not in force: ".
    pub unmet: Vec<String>,
}

/// Returns the technique in force on a kernel: the scenario's, or the substitute.
fn in_force(transport: &Transport) -> LiveTechnique {
    technique(transport.congestion_control).unwrap_or(CUBIC)
}

/// Returns the options of a scenario, including those that this kernel lacks. `offered_max` is the largest receive window
/// that the kernel offers by default, in bytes.
pub fn wanted(scenario: &Scenario, offered_max: u64) -> SocketOptions {
    let transport = &scenario.transport;
    let whole = transport.mss.get() + u64::from(wire::IP_TCP_HEADERS) >= transport.mtu.get();
    let technique = in_force(transport);
    let window = (technique.receive_window)(scenario);
    let clamp = window.or(Some(transport.receive_window.get()).filter(|&bytes| bytes < offered_max));
    let delayed = transport.delayed_ack_timeout;
    SocketOptions {
        nodelay: Some(transport.nodelay),
        congestion_control: Some(technique.kernel_name.to_owned()),
        window_clamp: clamp.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX >> 1)),
        // A buffer of fixed size keeps the kernel from raising the window while data are read (`tcp_rcv_space_adjust`).
        receive_buffer: window.map(|bytes| u32::try_from(2 * bytes).unwrap_or(u32::MAX >> 1)),
        quickack: (!transport.delayed_ack).then_some(true),
        rto_min: Some(std_duration(transport.rto_min)),
        rto_max: Some(std_duration(transport.rto_max)),
        delayed_ack_max: (transport.delayed_ack && delayed < DELAYED_ACK_MIN_LINUX)
            .then(|| std_duration(delayed)),
        segment_bytes_max: (!whole).then(|| u32::try_from(transport.mss.get()).unwrap_or(u32::MAX)),
        user_timeout: (!scenario.live.user_timeout.is_zero())
            .then(|| std_duration(scenario.live.user_timeout)),
        ..SocketOptions::default()
    }
}

/// Returns the options of a scenario that the kernel accepts in the calling thread's network namespace.
///
/// # Errors
/// If no socket can be created.
pub fn fit(scenario: &Scenario, environment: Environment) -> Result<Fitted, OsError> {
    let transport = &scenario.transport;
    let mut socket = wanted(scenario, offered_max());
    let mut unmet = Vec::new();
    if technique(transport.congestion_control).is_none() {
        unmet.push(format!(
            "transport.congestion_control = {} (no kernel has it; {SUBSTITUTE} is used)",
            word(transport.congestion_control)
        ));
    }
    for misfit in socket.fit()? {
        unmet.push(reason(transport, &misfit));
        if misfit.error.option == "congestion_control" {
            socket.congestion_control = Some(SUBSTITUTE.to_owned());
        }
    }
    // A kernel without the substitute keeps its default.
    for misfit in socket.fit()? {
        unmet.push(reason(transport, &misfit));
    }
    unmet.extend(settings(transport));
    if environment == Environment::Loopback {
        unmet.extend(beyond_loopback(transport));
    }
    Ok(Fitted { socket, unmet })
}

/// Returns the largest receive window that the kernel offers by default, in bytes: half of its largest receive buffer
/// (`net.ipv4.tcp_rmem`).
fn offered_max() -> u64 {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap_or_default();
    text.split_whitespace().nth(2).and_then(|most| most.parse().ok()).unwrap_or(6 << 20) / 2
}

fn word(control: CongestionControl) -> String {
    toml::Value::try_from(control).map_or_else(|_| format!("{control:?}"), |value| value.to_string())
}

fn reason(transport: &Transport, misfit: &Misfit) -> String {
    let error = &misfit.error;
    let why = error.error;
    match (error.option, misfit.instead) {
        ("congestion_control", _) => {
            let name = error.value.trim_matches('"');
            let whence = if in_force(transport).is_program {
                format!("{name} is a BPF program that is not loaded here")
            } else {
                format!("{name}: {why}")
            };
            format!(
                "transport.congestion_control = {} ({whence}; {SUBSTITUTE} is used)",
                word(transport.congestion_control)
            )
        }
        ("rto_min", Some(least)) => {
            format!("transport.rto_min = {} (the least of this kernel is {})", transport.rto_min, ms(least))
        }
        ("rto_min", None) if transport.rto_min > SOCKET_RTO_MIN_MAX => {
            format!("transport.rto_min = {} (a socket takes 200 ms at most)", transport.rto_min)
        }
        ("rto_min", None) => format!("transport.rto_min = {} ({why}: Linux 6.15 has it)", transport.rto_min),
        ("rto_max", _) => format!("transport.rto_max = {} ({why})", transport.rto_max),
        ("delayed_ack_max", Some(least)) => format!(
            "transport.delayed_ack_timeout = {} (the least of this kernel is {})",
            transport.delayed_ack_timeout,
            ms(least)
        ),
        ("delayed_ack_max", None) => {
            format!(
                "transport.delayed_ack_timeout = {} ({why}: Linux 6.15 has it)",
                transport.delayed_ack_timeout
            )
        }
        ("segment_bytes_max", _) => format!("transport.mss = {} ({why})", transport.mss),
        ("window_clamp", _) => format!("transport.receive_window = {} ({why})", transport.receive_window),
        (option, _) => format!("{option} = {} ({why})", error.value),
    }
}

fn ms(time: StdDuration) -> String {
    format!("{} ms", time.as_secs_f64() * 1e3)
}

/// Returns descriptions of settings that differ from the network namespace's sysctls (`net.ipv4`).
fn settings(transport: &Transport) -> Vec<String> {
    let technique = in_force(transport);
    let rows = [
        ("timestamps", "tcp_timestamps", transport.timestamps, &["0"][..]),
        ("sack", "tcp_sack", transport.sack, &["0"]),
        ("slow_start_after_idle", "tcp_slow_start_after_idle", transport.slow_start_after_idle, &["0"]),
        // With 0 and 2, the kernel never requests ECN; a congestion control may request it by itself.
        ("ecn", "tcp_ecn", transport.uses_ecn(), &["0", "2"]),
    ];
    let requests_ecn = transport.congestion_control.facts().uses_ecn;
    let mut unmet = Vec::new();
    for (key, file, wanted, off) in rows {
        let Ok(now) = fs::read_to_string(format!("/proc/sys/net/ipv4/{file}")) else { continue };
        let now = now.trim();
        if off.contains(&now) == wanted && !(key == "ecn" && requests_ecn) {
            unmet.push(format!("transport.{key} = {wanted} (net.ipv4.{file} is {now} here)"));
        }
    }
    for Sysctl { name, value, effect: [effect, instead] } in technique.sysctls {
        let now = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"));
        if now.is_ok_and(|now| now.trim() == *value) {
            continue;
        }
        unmet.push(format!("{effect} (net.ipv4.{name} is not {value} here: {instead})"));
    }
    unmet
}

/// Returns descriptions of settings that need a route, a switch or another kernel.
fn beyond_loopback(transport: &Transport) -> Vec<String> {
    let mut unmet = Vec::new();
    if let Some(need) = in_force(transport).beyond_loopback {
        let control = word(transport.congestion_control);
        unmet.push(format!("transport.congestion_control = {control} ({need})"));
    }
    if transport.initial_window != INITIAL_WINDOW_LINUX {
        unmet.push(format!("transport.initial_window = {} (a route sets it)", transport.initial_window));
    }
    if transport.window_state == WindowState::Warm {
        unmet.push("transport.window_state = \"warm\" (connections are new)".to_owned());
    }
    if transport.rto_spread != Ratio::ZERO {
        unmet.push(format!("transport.rto_spread = {} (no kernel has it)", transport.rto_spread));
    }
    unmet
}

#[cfg(test)]
mod tests {
    use fanin_scenario::load_text;

    use super::*;

    fn scenario(text: &str) -> Scenario {
        load_text("test.toml", text, &[]).unwrap().scenario
    }

    #[test]
    fn a_scenario_becomes_options() {
        let text = "[transport]\ncongestion_control = 'newreno'\nrto_min = '20 ms'\ndelayed_ack = false\nmss = '536 B'\n\
                    receive_window = '64 kB'\n[live]\nuser_timeout = '3 s'";
        let options = wanted(&scenario(text), 3 << 20);
        assert_eq!(options.congestion_control.as_deref(), Some("reno"));
        assert_eq!((options.rto_min, options.quickack), (Some(StdDuration::from_millis(20)), Some(true)));
        assert_eq!((options.segment_bytes_max, options.window_clamp), (Some(536), Some(64_000)));
        assert_eq!(options.user_timeout, Some(StdDuration::from_secs(3)));
        // The scenario's defaults equal the kernel's.
        let options = wanted(&scenario(""), 3 << 20);
        assert_eq!((options.quickack, options.delayed_ack_max, options.window_clamp), (None, None, None));
        assert_eq!((options.segment_bytes_max, options.user_timeout), (None, None));
        assert_eq!(options.congestion_control.as_deref(), Some("cubic"));
    }

    #[test]
    fn a_receiver_that_shares_starts_with_the_whole() {
        let text = "[transport]\ncongestion_control = 'diatcp'\n[transport.diatcp]\nglobal_window = 40";
        let options = wanted(&scenario(text), 3 << 20);
        assert_eq!((options.window_clamp, options.receive_buffer), (Some(1 << 16), Some(1 << 17)));
        let text = "[transport]\ncongestion_control = 'diatcp'\n[transport.diatcp]\nglobal_window = 100";
        assert_eq!(wanted(&scenario(text), 3 << 20).window_clamp, Some(100 * 1448));
        assert_eq!(options.congestion_control.as_deref(), Some("cubic"));
    }

    #[test]
    fn missing_features_of_the_kernel_are_reported_and_replaced() {
        let fitted = fit(
            &scenario("[transport]\ncongestion_control = 'swift'\nrto_spread = 0.5"),
            Environment::Loopback,
        );
        let fitted = fitted.unwrap();
        let said = |fitted: &Fitted, text: &str| fitted.unmet.iter().any(|reason| reason.contains(text));
        assert!(said(&fitted, "\"swift\" (no kernel has it; cubic is used)"), "{fitted:?}");
        assert!(said(&fitted, "rto_spread"), "{fitted:?}");
        let fitted = fit(&scenario("[transport]\nrto_min = '1 us'"), Environment::Hosts).unwrap();
        assert!(said(&fitted, "transport.rto_min = 1 us ("), "{fitted:?}");
        assert!(fitted.socket.rto_min != Some(StdDuration::from_micros(1)));
        // The kernel accepts the remaining options.
        assert_eq!(fitted.socket.clone().fit().unwrap(), []);
    }
}
