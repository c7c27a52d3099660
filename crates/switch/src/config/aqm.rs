//! Makes the queue management of `fanin-queueing` from the configuration's `mark`.

use fanin_queueing::{Aqm, Depth, Red, RedError, Threshold};
use fanin_scenario::{Ecn, EcnMode};
use fanin_units::{Bytes, Rate, wire};

use super::limits::RATE_ASSUMED;
use super::port_spec::MarkSpec;

/// Makes the queue management of a queue with this rate, in a switch with this MTU. Without a rate, the average of an idle
/// queue decays at [`RATE_ASSUMED`].
///
/// # Errors
/// If the thresholds or shares of RED are wrong.
pub(crate) fn aqm_of(mark: Option<MarkSpec>, mtu: Bytes, rate: Option<Rate>) -> Result<Aqm, RedError> {
    let Some(mark) = mark else { return Ok(Aqm::None) };
    let threshold = |depth| Aqm::Threshold(Threshold { depth, not_capable: mark.not_capable });
    match (mark.mode, mark.bytes, mark.frames) {
        (EcnMode::Threshold, Some(bytes), _) => Ok(threshold(Depth::Bytes(bytes))),
        (EcnMode::Threshold, None, Some(frames)) => Ok(threshold(Depth::Packets(frames))),
        (EcnMode::Off, ..) | (EcnMode::Threshold, None, None) => Ok(Aqm::None),
        (EcnMode::RedMark | EcnMode::RedDrop, ..) => red(mark, mtu, rate).map(Aqm::Red),
    }
}

fn red(mark: MarkSpec, mtu: Bytes, rate: Option<Rate>) -> Result<Red, RedError> {
    let defaults = Ecn::default();
    let ecn = Ecn {
        mode: mark.mode,
        unit: mark.unit.unwrap_or(defaults.unit),
        min: mark.min.unwrap_or(defaults.min),
        max: mark.max.unwrap_or(defaults.max),
        weight: mark.weight.unwrap_or(defaults.weight),
        probability_max: mark.probability_max.unwrap_or(defaults.probability_max),
        gentle: mark.gentle.unwrap_or(defaults.gentle),
        hard_drop: mark.hard_drop.unwrap_or(defaults.hard_drop),
        ..defaults
    };
    let frame = mark.frame.unwrap_or(mtu.saturating_add(Bytes::new(wire::ETHERNET_STORED.into())));
    // Frames of the switch lack the check sequence.
    let stored = frame.saturating_sub(Bytes::new(wire::ETHERNET_CHECK.into()));
    let on_the_wire = stored.saturating_add(Bytes::new(wire::ETHERNET_UNCOUNTED.into()));
    ecn.red(frame, stored, rate.unwrap_or(RATE_ASSUMED).time_to_send(on_the_wire))
}

#[cfg(test)]
mod tests {
    use fanin_queueing::RedSettings;
    use fanin_scenario::QueueUnit;

    use super::*;

    #[test]
    fn red_counts_full_frames() {
        let rate = Rate::new(1_000_000_000);
        let spec = MarkSpec { mode: EcnMode::RedMark, unit: Some(QueueUnit::Bytes), ..MarkSpec::default() };
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
