//! From `mark` of the configuration to the queue management of `fanin-queueing`.

use fanin_queueing::{Aqm, Depth, NotCapable, Red, RedError, RedSettings, Threshold};
use fanin_scenario::{Ecn, QueueUnit};
use fanin_units::{Bytes, Packets, Rate, wire};

use crate::frame::WIRE_BYTES;

use super::port_spec::{MarkMode, MarkSpec, Unmarkable};

/// The rate at which the average of an idle queue decays if neither the queue nor its port has a rate.
const RATE_ASSUMED: Rate = Rate::new(10_000_000_000);

/// The queue management of a queue of this rate, in a switch of this MTU.
///
/// # Errors
/// If the thresholds or shares of RED are wrong.
pub(crate) fn aqm_of(mark: Option<MarkSpec>, mtu: Bytes, rate: Option<Rate>) -> Result<Aqm, RedError> {
    let Some(mark) = mark else { return Ok(Aqm::None) };
    let threshold = match (mark.mode, mark.bytes, mark.frames) {
        (MarkMode::Threshold, Some(bytes), _) => Some(Depth::Bytes(bytes)),
        (MarkMode::Threshold, None, Some(frames)) => Some(Depth::Packets(frames)),
        (MarkMode::Threshold, None, None) => return Ok(Aqm::None),
        (MarkMode::RedMark | MarkMode::RedDrop, ..) => None,
    };
    if let Some(depth) = threshold {
        let not_capable = match mark.others {
            Unmarkable::Pass => NotCapable::Pass,
            Unmarkable::Drop => NotCapable::Drop,
        };
        return Ok(Aqm::Threshold(Threshold { depth, not_capable }));
    }
    let frame = mark.frame.unwrap_or(mtu.saturating_add(Bytes::new(wire::ETHERNET_STORED.into())));
    // Frames of the switch lack the check sequence.
    let stored = frame.saturating_sub(Bytes::new(wire::ETHERNET_CHECK.into()));
    let depth = |packets: Packets| match mark.unit.unwrap_or(QueueUnit::Packets) {
        QueueUnit::Packets => Depth::Packets(packets),
        QueueUnit::Bytes => Depth::Bytes(packets.checked_times(frame).unwrap_or(Bytes::MAX)),
    };
    let defaults = Ecn::default();
    let on_the_wire = stored.saturating_add(Bytes::new(WIRE_BYTES.into()));
    Red::new(RedSettings {
        depth_min: depth(mark.min.unwrap_or(defaults.min)),
        depth_max: depth(mark.max.unwrap_or(defaults.max)),
        weight: mark.weight.unwrap_or(defaults.weight),
        probability_max: mark.probability_max.unwrap_or(defaults.probability_max),
        gentle: mark.gentle.unwrap_or(defaults.gentle),
        ecn: mark.mode == MarkMode::RedMark,
        hard_drop: mark.hard_drop.unwrap_or(defaults.hard_drop),
        packet_mean: stored,
        packet_time: rate.unwrap_or(RATE_ASSUMED).time_to_send(on_the_wire),
    })
    .map(Aqm::Red)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn red_counts_full_frames() {
        let rate = Rate::new(1_000_000_000);
        let spec = MarkSpec { mode: MarkMode::RedMark, unit: Some(QueueUnit::Bytes), ..MarkSpec::default() };
        for (frame, bytes) in [(None, 1518), (Some(Bytes::new(594)), 594)] {
            let defaults = Ecn::default();
            let expected = Red::new(RedSettings {
                depth_min: Depth::Bytes(Bytes::new(15 * bytes)),
                depth_max: Depth::Bytes(Bytes::new(25 * bytes)),
                weight: defaults.weight,
                probability_max: defaults.probability_max,
                gentle: false,
                ecn: true,
                hard_drop: true,
                packet_mean: Bytes::new(bytes - 4),
                packet_time: rate.time_to_send(Bytes::new(bytes + 20)),
            });
            let aqm = aqm_of(Some(MarkSpec { frame, ..spec }), Bytes::new(1500), Some(rate)).unwrap();
            assert_eq!(format!("{aqm:?}"), format!("{:?}", Aqm::Red(expected.unwrap())));
        }
    }
}
