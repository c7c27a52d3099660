//! Background traffic: its connections, their congestion control and their transfers.

use fanin_dataflow::BackgroundTraffic;
use fanin_units::{Bytes, Duration, Ratio};

use super::ScenarioCheck;
use crate::role_configs;
use crate::types::*;

/// The most connections to a collector.
const CONNECTIONS_MAX: u32 = 4_096;
/// The most transfers a second to a collector.
const TRANSFERS_MAX: u64 = 1_000_000;

impl ScenarioCheck<'_> {
    pub(super) fn background(&mut self) {
        let s = self.scenario;
        let b = &s.background;
        if b.connections > CONNECTIONS_MAX {
            let message = format!("`background.connections` is {}", b.connections);
            let label = format!("above {CONNECTIONS_MAX}");
            let help = format!("give at most {CONNECTIONS_MAX} connections to each collector");
            return self.fail("background.connections", message, &label, None, help);
        }
        let is_foreign = matches!(
            b.congestion_control,
            CongestionControl::NewReno
                | CongestionControl::Cubic
                | CongestionControl::Dctcp
                | CongestionControl::Bbr
        );
        if !is_foreign {
            let name = serde_json::json!(b.congestion_control);
            self.fail(
                "background.congestion_control",
                format!("other applications do not use {name}, a technique of this system"),
                "not the TCP of an unmodified host",
                None,
                "give \"newreno\", \"cubic\", \"dctcp\" or \"bbr\"".to_owned(),
            );
        } else if b.connections > 0
            && b.congestion_control == CongestionControl::Bbr
            && s.background_transport().profile != Profile::Linux6
        {
            self.fail(
                "background.congestion_control",
                "\"bbr\" needs the measurements of the profile \"linux-6\"".to_owned(),
                "not in this profile",
                Some(("transport.profile", "the profile of all hosts")),
                "set transport.profile = \"linux-6\", or give \"cubic\"".to_owned(),
            );
        }
        self.transfers();
    }

    fn transfers(&mut self) {
        let b = &self.scenario.background;
        if b.load.is_zero() || b.load > Ratio::ONE {
            let message = format!("the load of the background traffic is {}", b.load);
            let help = "give a share such as 0.2; without a limit: background.kind = \"bulk\"".to_owned();
            self.fail("background.load", message, "not above 0 and up to 1", None, help);
        }
        if b.transfer_size < Bytes::new(64) || b.transfer_size > Bytes::new(1 << 40) {
            let message = format!("transfers have {} on average", b.transfer_size);
            let help = "give a size such as \"1 MB\"".to_owned();
            self.fail("background.transfer_size", message, "not from 64 B to 1 TiB", None, help);
        }
        if b.transfer_sigma > Ratio::new(3_000_000) {
            let message = format!("the scale parameter σ of the transfers is {}", b.transfer_sigma);
            let help = "give at most 3; 2 is a heavy tail already".to_owned();
            self.fail("background.transfer_sigma", message, "above 3", None, help);
        }
        let Some(BackgroundTraffic::Transfers { interval, .. }) = role_configs::background(self.scenario)
        else {
            return;
        };
        let second = Duration::from_secs(1).get();
        let each = second.checked_div(interval.get()).unwrap_or(second);
        let transfers = each.saturating_mul(b.connections.into());
        if transfers > TRANSFERS_MAX {
            self.fail(
                "background.transfer_size",
                format!("{transfers} transfers a second begin to each collector"),
                &format!("more than {TRANSFERS_MAX} a second"),
                Some(("background.load", "the load")),
                "give larger transfers or a lower load".to_owned(),
            );
        }
    }
}
