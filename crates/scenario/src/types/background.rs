use fanin_units::{Bytes, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CongestionControl;

/// The kind of background traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundKind {
    /// Each connection always has data, from the start of the run to its end.
    Bulk,
    /// Transfers begin at random times (a Poisson process), whether or not earlier ones have ended.
    Transfers,
}

/// TCP connections of other applications over the same ports, from readouts to collectors. They begin with the run and end with
/// it. Their receivers discard the data. A run without connections has no background traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BackgroundSettings {
    /// Connections to each collector. Their sources are spread evenly over the readouts. Zero: no background traffic.
    #[schemars(range(min = 0, max = 4096))]
    pub connections: u32,
    /// The kind of traffic.
    pub kind: BackgroundKind,
    /// The congestion control: `newreno`, `cubic`, `dctcp` or `bbr`. All other settings of TCP are those of `[transport]`; with
    /// the profiles `ns3-newreno` and `textbook`, which are no kernels, those of `linux-6`.
    pub congestion_control: CongestionControl,
    /// Mean load of each collector's link by the transfers, headers included: above 0, at most 1. Only `kind = "transfers"`
    /// reads this.
    pub load: Ratio,
    /// Mean size of a transfer, 64 B to 1 TiB. Only `kind = "transfers"` reads this.
    pub transfer_size: Bytes,
    /// Scale parameter σ of the log-normal sizes of transfers, 0 to 3; zero: all have the same size. Only `kind = "transfers"`
    /// reads this.
    pub transfer_sigma: Ratio,
}

impl BackgroundSettings {
    /// Returns true without any setting of background traffic.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for BackgroundSettings {
    fn default() -> Self {
        Self {
            connections: 0,
            kind: BackgroundKind::Bulk,
            congestion_control: CongestionControl::Cubic,
            load: Ratio::new(200_000),
            transfer_size: Bytes::new(1_000_000),
            transfer_sigma: Ratio::ZERO,
        }
    }
}
