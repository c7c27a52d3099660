//! Bands predicted for a system's metrics.

use serde::{Deserialize, Serialize};

/// Range of the expected values of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictedBand {
    /// Smallest expected value, in the unit of the figure.
    pub low: f64,
    /// Largest expected value, in the unit of the figure.
    pub high: f64,
}

impl PredictedBand {
    /// Returns true if both limits are finite, not negative, and in order.
    pub fn is_sound(self) -> bool {
        self.low >= 0.0 && self.high >= self.low && self.high.is_finite()
    }
}

/// Predicted means of a whole system over some seconds (`[metrics.predicted]`). The supervisor serves them as metrics.
/// A figure without a prediction is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PredictedBands {
    /// Mean collection time, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection_time: Option<PredictedBand>,
    /// Collections a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection_rate: Option<PredictedBand>,
    /// Fragment bytes that all collectors receive a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_rate: Option<PredictedBand>,
    /// Retransmission timeouts (RTO) of TCP a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_rate: Option<PredictedBand>,
}

impl PredictedBands {
    /// Returns the bands that are predicted, with their keys.
    pub fn known(&self) -> impl Iterator<Item = (&'static str, PredictedBand)> {
        let all = [
            ("collection_time", self.collection_time),
            ("collection_rate", self.collection_rate),
            ("data_rate", self.data_rate),
            ("timeout_rate", self.timeout_rate),
        ];
        all.into_iter().filter_map(|(key, band)| Some((key, band?)))
    }

    /// Returns the bands as lines for the section `[metrics]` of a system's file.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (key, PredictedBand { low, high }) in self.known() {
            text += &format!("predicted.{key} = {{ low = {low:?}, high = {high:?} }}\n");
        }
        text
    }
}
