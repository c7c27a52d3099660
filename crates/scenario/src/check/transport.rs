//! TCP: packet sizes, timers and windows.

use fanin_units::Bytes;

use super::ScenarioCheck;

/// The largest packet that Ethernet hardware in use takes.
const MTU_MAX: Bytes = Bytes::new(9_216);
/// The smallest packet that every IPv4 host takes (RFC 791).
const MTU_MIN: Bytes = Bytes::new(68);

impl ScenarioCheck<'_> {
    pub(super) fn transport(&mut self) {
        let t = &self.scenario.transport;
        if t.mtu > MTU_MAX || t.mtu < MTU_MIN {
            let message = format!("the MTU is {}; its range is 68 B to 9216 B", t.mtu);
            self.fail(
                "transport.mtu",
                message,
                "not from 68 B to 9216 B",
                None,
                "the standard MTU of Ethernet is 1500 B".to_owned(),
            );
        } else if t.mss.saturating_add(Bytes::new(40)) > t.mtu {
            self.fail(
                "transport.mss",
                format!("segments of {} do not fit into packets of {}", t.mss, t.mtu),
                "with 40 B of headers this is more than the MTU",
                Some(("transport.mtu", "the MTU")),
                format!("give at most \"{}\"", t.mtu.saturating_sub(Bytes::new(40))),
            );
        } else if t.segment_payload() < Bytes::new(8) {
            let message = format!("segments of {} have no room for data", t.mss);
            self.fail("transport.mss", message, "too small", None, "give at least \"20 B\"".to_owned());
        }
        if t.rto_min > t.rto_max {
            self.fail(
                "transport.rto_min",
                format!("the smallest timeout, {}, is above the largest, {}", t.rto_min, t.rto_max),
                "the smallest",
                Some(("transport.rto_max", "the largest")),
                "give an rto_min below rto_max".to_owned(),
            );
        }
        if t.rto_min.is_zero() || t.timer_granularity.is_zero() {
            let path = if t.rto_min.is_zero() { "transport.rto_min" } else { "transport.timer_granularity" };
            let message = format!("`{path}` is zero");
            self.fail(path, message, "zero", None, "give at least \"1 us\"".to_owned());
        }
        if t.receive_window < t.mss {
            self.fail(
                "transport.receive_window",
                format!("a receive window of {} is smaller than a segment of {}", t.receive_window, t.mss),
                "below one segment",
                Some(("transport.mss", "a segment")),
                format!("give at least \"{}\"", t.mss),
            );
        }
        let windows = [
            ("transport.static_window", t.static_window),
            ("transport.initial_window", t.initial_window),
            ("transport.diatcp.global_window", t.diatcp.global_window),
            ("transport.dctcp.window_min", t.dctcp.window_min),
        ];
        for (path, window) in windows {
            if window.is_zero() || window.get() > 1 << 20 {
                let message = format!("the window is {window}; its range is 1 to 1048576 packets");
                self.fail(
                    path,
                    message,
                    "not from 1 to 1048576 packets",
                    None,
                    "give a number of packets".to_owned(),
                );
            }
        }
        self.techniques();
        self.share("transport.rto_spread", t.rto_spread);
    }
}
