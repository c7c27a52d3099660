//! From `mark` of the configuration to the queue management of `fanin-queueing`.

use fanin_queueing::{Aqm, Depth, NotCapable, Red, RedError, RedSettings, Threshold};
use fanin_scenario::Ecn;
use fanin_units::{Bytes, Packets, Rate};

use crate::frame::{ETHERNET_BYTES, WIRE_BYTES};

use super::port_spec::{MarkMode, MarkSpec, MarkUnit, Unmarkable};

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
    let frame = Bytes::new(mtu.get() + ETHERNET_BYTES as u64);
    let depth = |packets: Packets| match mark.unit.unwrap_or_default() {
        MarkUnit::Packets => Depth::Packets(packets),
        MarkUnit::Bytes => Depth::Bytes(packets.checked_times(frame).unwrap_or(Bytes::MAX)),
    };
    let defaults = Ecn::default();
    let on_the_wire = Bytes::new(frame.get() + u64::from(WIRE_BYTES));
    Red::new(RedSettings {
        depth_min: depth(mark.min.unwrap_or(defaults.min)),
        depth_max: depth(mark.max.unwrap_or(defaults.max)),
        weight: mark.weight.unwrap_or(defaults.weight),
        probability_max: mark.probability_max.unwrap_or(defaults.probability_max),
        gentle: mark.gentle.unwrap_or(defaults.gentle),
        ecn: mark.mode == MarkMode::RedMark,
        hard_drop: mark.hard_drop.unwrap_or(defaults.hard_drop),
        packet_mean: frame,
        packet_time: rate.unwrap_or(RATE_ASSUMED).time_to_send(on_the_wire),
    })
    .map(Aqm::Red)
}
