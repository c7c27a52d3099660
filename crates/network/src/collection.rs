//! The messages of one collection, and the ideal time that follows from them.

use fanin_dataflow::{BARRIER_REQUEST_BYTES, answer_bytes, request_bytes};
use fanin_scenario::{Scenario, WorkloadKind, role_configs};
use fanin_units::{Bytes, Duration};

use crate::{Ideal, Network, NetworkError, Roles};

/// A collection with answers of mean size. The simulator, the planner and measured runs report its ideal time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collection {
    /// The ideal time of a collection with such answers.
    pub ideal: Ideal,
    /// Bytes of a request on its connection; zero where sources push.
    pub request_bytes: u64,
    /// Bytes of an answer on its connection; of the shortest if answers differ.
    pub answer_bytes: u64,
    /// Hosts that answer.
    pub hosts: u64,
    /// Payload of all answers.
    pub payload: Bytes,
    /// Bytes of link time of all answers.
    pub wire_bytes: u64,
}

impl Collection {
    /// Makes the collection of a whole event with `payload` on each host. For a collection in steps, these
    /// are the readouts of all steps.
    ///
    /// # Errors
    /// [`NetworkError::NoPath`].
    pub fn event(
        scenario: &Scenario,
        network: &Network,
        roles: &Roles,
        payload: Bytes,
    ) -> Result<Self, NetworkError> {
        let fragments = u64::from(scenario.readout.fragments_per_host);
        let headers = scenario.readout.fragment_header * fragments;
        let request = request_bytes(fragments).get();
        let answer = answer_bytes(0, payload + headers).get();
        let response = scenario.readout.response_delay;
        let mut ideal = Ideal::new(scenario, network, roles, response, request, answer)?;
        let is_push = scenario.workload.kind == WorkloadKind::Push;
        if is_push {
            ideal.without_request();
        }
        let hosts = Self::hosts(scenario, roles);
        let wire_bytes = ideal.segments().wire_bytes(answer) * hosts;
        let request_bytes = if is_push { 0 } else { request };
        Ok(Self { ideal, request_bytes, answer_bytes: answer, hosts, payload: payload * hosts, wire_bytes })
    }

    /// Number of hosts that answer for a complete event.
    pub fn hosts(scenario: &Scenario, roles: &Roles) -> u64 {
        let workload = &scenario.workload;
        let readouts = Self::asked(workload.kind, roles.readouts.len() as u64);
        workload.step_parts(readouts).iter().map(|part| part.readouts).sum()
    }

    /// Number of hosts that a collector may ask, of all `readouts`: all but its own, where both are on one host.
    pub fn asked(kind: WorkloadKind, readouts: u64) -> u64 {
        readouts - u64::from(kind == WorkloadKind::AllToAll)
    }

    /// Makes a round of a barrier workload. The response delay counts as zero: with many senders, the first one answers almost
    /// at once.
    ///
    /// # Errors
    /// [`NetworkError::NoPath`].
    pub fn round(scenario: &Scenario, network: &Network, roles: &Roles) -> Result<Self, NetworkError> {
        let (senders, size) = (scenario.workload.senders, role_configs::request_size(scenario));
        let shortest = size.answer(senders - 1, senders).get();
        let ideal = Ideal::new(scenario, network, roles, Duration::ZERO, BARRIER_REQUEST_BYTES, shortest)?;
        let wire = |sender| ideal.segments().wire_bytes(size.answer(sender, senders).get());
        let wire_bytes = (0..senders).map(wire).sum();
        Ok(Self {
            ideal,
            request_bytes: BARRIER_REQUEST_BYTES,
            answer_bytes: shortest,
            hosts: senders.into(),
            payload: size.block(senders),
            wire_bytes,
        })
    }

    /// The ideal time of the collection.
    pub fn time(&self) -> Duration {
        self.ideal.time(self.wire_bytes)
    }

    /// The ideal time of an event of `payload` bytes, in equal parts from the `hosts` of this collection.
    pub fn time_of(&self, payload: Bytes) -> Duration {
        let hosts = self.hosts.max(1);
        let headers = self.answer_bytes - self.payload.get() / hosts;
        let answer = payload.get() / hosts + headers;
        self.ideal.time(hosts * self.ideal.segments().wire_bytes(answer))
    }

    /// The payload divided by the ideal time, in bits a second.
    pub fn goodput_bps(&self) -> f64 {
        self.payload.get() as f64 * 8.0 / self.time().as_secs_f64()
    }

    /// The formula of the ideal time as text, with the numbers filled in.
    pub fn how(&self) -> String {
        self.ideal.how(self.payload, self.wire_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    fn network(preset: &str) -> (Scenario, Network, Roles) {
        let scenario = fanin_scenario::load(preset, &[]).unwrap().scenario;
        let (network, roles) = topology::build(&scenario).unwrap();
        (scenario, network, roles)
    }

    #[test]
    fn a_collector_asks_all_hosts_but_its_own() {
        let (scenario, network, roles) = network("lcn15-all-to-all");
        let event = Collection::event(&scenario, &network, &roles, Bytes::new(1000)).unwrap();
        assert_eq!((event.hosts, event.payload), (11, Bytes::new(11_000)));
        // A request with one fragment: header 12, L1 ID 8, name 4. An answer has an L1 ID and flags.
        let fragments = u64::from(scenario.readout.fragments_per_host);
        assert_eq!((event.request_bytes, event.answer_bytes), (20 + 4 * fragments, 1022));
    }

    #[test]
    fn a_live_answer_has_a_header_in_front_of_each_fragment() {
        let (mut scenario, network, roles) = network("lcn15-all-to-all");
        let fragments = u64::from(scenario.readout.fragments_per_host);
        scenario.readout.fragment_header = Bytes::new(16);
        let event = Collection::event(&scenario, &network, &roles, Bytes::new(1000)).unwrap();
        assert_eq!((event.payload, event.answer_bytes), (Bytes::new(11_000), 1022 + 16 * fragments));
        assert_eq!(event.time_of(event.payload), event.time());
    }

    #[test]
    fn a_round_has_the_answers_of_all_senders() {
        let (scenario, network, roles) = network("incast");
        let round = Collection::round(&scenario, &network, &roles).unwrap();
        let size = scenario.workload.request_size.get();
        assert_eq!((round.hosts, round.request_bytes), (scenario.workload.senders.into(), 64));
        assert_eq!(round.payload.get(), size * round.hosts);
        assert!(round.wire_bytes > round.payload.get());
        assert_eq!(round.goodput_bps(), round.payload.get() as f64 * 8.0 / round.time().as_secs_f64());
    }
}
