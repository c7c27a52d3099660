//! BBR version 1 (Cardwell et al. 2016): its settings. Senders act in `crates/tcp/src/congestion/bbr`; it has no figures.

use fanin_scenario::{CongestionControl, Profile, Transport};
use fanin_tcp::{Config, CongestionConfig};

use super::hooks::{Installed, Setup, TechniqueFunctions};
use crate::Error;

pub(super) const TECHNIQUE: TechniqueFunctions =
    TechniqueFunctions { build, configure, ..TechniqueFunctions::NONE };

fn configure(transport: &Transport, config: &mut Config) {
    if transport.congestion_control == CongestionControl::Bbr && transport.profile == Profile::Linux6 {
        config.congestion_control = CongestionConfig::Bbr;
    }
}

/// Refuses profiles without the measurements that BBR needs.
fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    let transport = &setup.scenario.transport;
    if transport.congestion_control == CongestionControl::Bbr && transport.profile != Profile::Linux6 {
        let reason = "bbr without profile = \"linux-6\"";
        return Err(Error::unsupported("transport.congestion_control", reason));
    }
    Ok(None)
}
