//! Bands predicted for a system's metrics.

use serde::{Deserialize, Serialize};

/// The least and the greatest expected value of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictedBand {
    /// The least expected value.
    pub low: f64,
    /// The greatest expected value.
    pub high: f64,
}

impl PredictedBand {
    /// True if both are finite, not negative, and in order.
    pub fn is_sound(self) -> bool {
        self.low >= 0.0 && self.high >= self.low && self.high.is_finite()
    }
}

/// Predicted means of a whole system over some seconds (`[metrics.predicted]`). The supervisor serves them as metrics.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PredictedBands {
    /// Mean time of a collection, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection_time: Option<PredictedBand>,
    /// Collections a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection_rate: Option<PredictedBand>,
    /// Bytes of fragments that collectors receive a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_rate: Option<PredictedBand>,
    /// Retransmission timeouts of TCP a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_rate: Option<PredictedBand>,
}

impl PredictedBands {
    /// The predicted bands by their keys.
    pub fn known(&self) -> impl Iterator<Item = (&'static str, PredictedBand)> {
        let all = [
            ("collection_time", self.collection_time),
            ("collection_rate", self.collection_rate),
            ("data_rate", self.data_rate),
            ("timeout_rate", self.timeout_rate),
        ];
        all.into_iter().filter_map(|(key, band)| Some((key, band?)))
    }

    /// The lines of a system's file, in its section `[metrics]`.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (key, PredictedBand { low, high }) in self.known() {
            text += &format!("predicted.{key} = {{ low = {low:?}, high = {high:?} }}\n");
        }
        text
    }
}
