//! The same system at lower rates, for a machine that cannot run the original.

use fanin_units::{Duration, Frequency, Rate, Ratio};

use crate::{LinkSettings, Scenario};

/// The number of parts in the whole of a [`Ratio`].
const WHOLE: u64 = 1_000_000;

impl Scenario {
    /// Returns the scenario with every rate multiplied by `scale` and every time divided by `scale`; sizes and buffers stay.
    /// Every step then happens `1 / scale` times as late, and each link carries the same bytes in the same order.
    ///
    /// Times of a kernel (`delayed_ack_timeout`, `timer_granularity`) and `run.stall_limit` stay unchanged.
    ///
    /// # Panics
    /// If `scale` is zero or above 1.
    #[must_use]
    pub fn slowed(&self, scale: Ratio) -> Self {
        assert!(!scale.is_zero() && scale <= Ratio::ONE, "a scale is above 0 and at most 1: {scale}");
        let mut slow = self.clone();
        slow.run.scale = Ratio::ONE;
        if scale == Ratio::ONE {
            return slow;
        }
        let s = &mut slow;
        let times = [
            &mut s.run.duration,
            &mut s.run.warmup,
            &mut s.readout.response_delay,
            &mut s.readout.response_delay_sd,
            &mut s.collectors.processing_time,
            &mut s.collectors.processing_time_sd,
            &mut s.workload.service_delay_max,
            &mut s.workload.deadline,
            &mut s.transport.rto_min,
            &mut s.transport.rto_max,
            &mut s.transport.m21tcp.idle,
            &mut s.transport.swift.target,
            &mut s.transport.swift.scaling,
            &mut s.shaping.fastpass.advance,
            &mut s.shaping.fastpass.delay,
            &mut s.shaping.fastpass.delay_sd,
            &mut s.shaping.fastpass.clock_error,
            &mut s.shaping.fastpass.fail_at,
            &mut s.shaping.fastpass.failover,
            &mut s.shaping.barrel_shifter.slot,
            &mut s.shaping.barrel_shifter.timeout,
            &mut s.shaping.barrel_shifter.fail_at,
            &mut s.live.processor_timeout,
            &mut s.live.request_timeout,
            &mut s.live.readout_wait,
            &mut s.live.logger_timeout,
            &mut s.live.reassign_delay,
            &mut s.live.drain,
            &mut s.record.queue_interval,
        ];
        times.into_iter().for_each(|time| stretch(time, scale));
        s.workload.steps.iter_mut().for_each(|step| stretch(&mut step.processing_time, scale));
        let links = [
            &mut s.link,
            &mut s.uplink,
            &mut s.readout.link,
            &mut s.supervisor.link,
            &mut s.logger.link,
            &mut s.network.hybrid.link,
        ];
        links.into_iter().for_each(|link| slow_link(link, scale));
        s.supervisor.rate = Frequency::new(part(s.supervisor.rate.get(), scale));
        for switch in [&mut s.tor, &mut s.core, &mut s.aggregation, &mut s.leaf, &mut s.spine] {
            stretch(&mut switch.latency, scale);
            stretch(&mut switch.pause.reaction, scale);
            // Zero stands for the rate of the port, which is slowed already.
            if !switch.daqring.rate.is_zero() {
                slow_rate(&mut switch.daqring.rate, scale);
            }
        }
        slow
    }
}

fn stretch(time: &mut Duration, scale: Ratio) {
    *time = time.checked_mul_ratio(WHOLE, scale.get()).unwrap_or(Duration::MAX);
}

fn part(value: u64, scale: Ratio) -> u64 {
    scale.checked_of(value).unwrap_or(value).max(u64::from(value > 0))
}

fn slow_rate(rate: &mut Rate, scale: Ratio) {
    *rate = Rate::new(part(rate.get(), scale));
}

fn slow_link(link: &mut LinkSettings, scale: Ratio) {
    slow_rate(&mut link.rate, scale);
    stretch(&mut link.delay, scale);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_system_has_the_same_bytes_in_flight() {
        let scenario = crate::load("replay", &[]).unwrap().scenario;
        let slow = scenario.slowed(Ratio::new(100_000));
        assert_eq!(slow.link.rate, Rate::new(100_000_000));
        assert_eq!(slow.link.delay, Duration::from_micros(10));
        assert_eq!(slow.transport.rto_min, Duration::from_secs(2));
        assert_eq!(slow.supervisor.rate.as_hertz_f64(), 20.0);
        assert_eq!(slow.run.duration, Duration::from_secs(100));
        assert_eq!(
            (&slow.tor.buffer, &slow.readout.fragment_size),
            (&scenario.tor.buffer, &scenario.readout.fragment_size)
        );
        // The product of bandwidth and delay, and a link's share of the load, stay unchanged.
        let product = |scenario: &Scenario| scenario.link.rate.bytes_in(scenario.readout.response_delay);
        assert_eq!(product(&slow), product(&scenario));
        // A scale that is given already is not applied twice.
        assert_eq!(slow.run.scale, Ratio::ONE);
    }

    // A new time or rate of the scenario must be added here, scaled or not.
    #[test]
    fn every_time_and_rate_is_scaled_or_known_not_to_be() {
        let sets = ["tor.daqring.rate=1 Gb/s", "workload.deadline=1 s", "readout.response_delay_sd=1 us"];
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = crate::load("replay", &sets).unwrap().scenario;
        let before = toml::Value::try_from(&scenario).unwrap();
        let after = toml::Value::try_from(scenario.slowed(Ratio::new(500_000))).unwrap();
        let mut same = Vec::new();
        unchanged("", &before, &after, &mut same);
        assert_eq!(
            same,
            [
                "run.stall_limit",
                "transport.timer_granularity",
                "transport.delayed_ack_timeout",
                // No live system has this transport.
                "transport.sird.timeout",
                "live.silence_max",
            ]
        );
    }

    /// Keys of times and rates other than zero that stayed unchanged.
    fn unchanged(path: &str, before: &toml::Value, after: &toml::Value, same: &mut Vec<String>) {
        match (before, after) {
            (toml::Value::Table(before), toml::Value::Table(after)) => {
                for (key, value) in before {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    unchanged(&path, value, &after[key], same);
                }
            }
            (toml::Value::String(one), toml::Value::String(other)) if one == other => {
                let is_time = one.parse::<Duration>().is_ok_and(|time| !time.is_zero());
                let is_rate = one.parse::<Rate>().is_ok_and(|rate| !rate.is_zero());
                let is_frequency = one.parse::<Frequency>().is_ok_and(|frequency| !frequency.is_zero());
                if is_time || is_rate || is_frequency {
                    same.push(path.to_owned());
                }
            }
            _ => {}
        }
    }
}
