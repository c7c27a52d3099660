//! Refuses times beyond any run, and too large numbers of steps.

use fanin_units::Duration;

use super::ScenarioCheck;

/// The longest time of any setting, which is the longest run.
pub(super) const LONGEST: Duration = Duration::from_secs(86_400);

impl ScenarioCheck<'_> {
    /// Refuses times above 24 h, so that a sum of two or three times fits the clock of 106 days.
    pub(super) fn times(&mut self) {
        let s = self.scenario;
        let (t, fastpass, barrel) = (&s.transport, &s.shaping.fastpass, &s.shaping.barrel_shifter);
        let times = [
            ("run.stall_limit", s.run.stall_limit),
            ("readout.response_delay", s.readout.response_delay),
            ("readout.response_delay_sd", s.readout.response_delay_sd),
            ("collectors.processing_time", s.collectors.processing_time),
            ("collectors.processing_time_sd", s.collectors.processing_time_sd),
            ("workload.service_delay_max", s.workload.service_delay_max),
            ("workload.deadline", s.workload.deadline),
            ("transport.rto_min", t.rto_min),
            ("transport.rto_max", t.rto_max),
            ("transport.timer_granularity", t.timer_granularity),
            ("transport.delayed_ack_timeout", t.delayed_ack_timeout),
            ("transport.m21tcp.idle", t.m21tcp.idle),
            ("transport.swift.target", t.swift.target),
            ("transport.swift.scaling", t.swift.scaling),
            ("transport.sird.timeout", t.sird.timeout),
            ("shaping.fastpass.advance", fastpass.advance),
            ("shaping.fastpass.delay", fastpass.delay),
            ("shaping.fastpass.delay_sd", fastpass.delay_sd),
            ("shaping.fastpass.clock_error", fastpass.clock_error),
            ("shaping.fastpass.fail_at", fastpass.fail_at),
            ("shaping.fastpass.failover", fastpass.failover),
            ("shaping.barrel_shifter.slot", barrel.slot),
            ("shaping.barrel_shifter.timeout", barrel.timeout),
            ("shaping.barrel_shifter.fail_at", barrel.fail_at),
            ("record.queue_interval", s.record.queue_interval),
        ];
        for (path, time) in times {
            if time > LONGEST {
                let message = format!("`{path}` is {time}; the maximum is 24 h");
                self.fail(path, message, "above 24 h", None, "give at most \"24 h\"".to_owned());
            }
        }
    }
}
