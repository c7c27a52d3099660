//! The sender of a barrier workload: answers each request after a random delay.

use fanin_units::{Bytes, Duration, Instant};

use super::message::BarrierMessage;
use crate::timers::later;
use crate::{Delay, Peer, Random, Unexpected};

/// The settings of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BarrierSenderConfig {
    /// The size of each answer.
    pub answer: Bytes,
    /// The longest delay before an answer; delays are uniform from 0 up to it (`workload.service_delay_max`).
    pub service_delay_max: Duration,
    /// The seed of its random numbers.
    pub seed: u64,
}

/// One sender of a barrier workload. It serves one aggregator and answers one request at a time.
#[derive(Debug, Clone)]
pub struct BarrierSender {
    config: BarrierSenderConfig,
    random: Random,
    aggregator: Option<Peer>,
    state: Service,
}

/// State of the present round's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    /// No request is outstanding.
    Idle,
    /// The answer leaves at this time.
    Preparing { due: Instant },
    /// The answer waits for [`BarrierSender::poll_transmit`].
    Ready,
}

impl BarrierSender {
    /// Makes a sender that waits for its aggregator to connect.
    #[must_use]
    pub fn new(config: BarrierSenderConfig) -> Self {
        Self { random: Random::new(config.seed), aggregator: None, state: Service::Idle, config }
    }

    /// Handles the aggregator's connection. A request of an earlier connection is forgotten.
    pub fn handle_connected(&mut self, _now: Instant, peer: Peer) {
        if matches!(peer, Peer::Collector(_)) {
            self.aggregator = Some(peer);
            self.state = Service::Idle;
        }
    }

    /// Handles the loss of the connection; an answer in preparation is dropped. A second call has no effect.
    pub fn handle_closed(&mut self, _now: Instant, peer: Peer) {
        if self.aggregator == Some(peer) {
            self.aggregator = None;
            self.state = Service::Idle;
        }
    }

    /// Handles a message.
    ///
    /// # Errors
    /// If it is not a request of the connected aggregator, or the answer to the last request has not left. The state is
    /// then unchanged.
    pub fn handle_message(
        &mut self,
        now: Instant,
        peer: Peer,
        message: BarrierMessage,
    ) -> Result<(), Unexpected> {
        let unexpected = |why| Err(Unexpected { peer, message: message.name(), why });
        if self.aggregator != Some(peer) {
            return unexpected("no aggregator is connected as this peer");
        }
        match message {
            BarrierMessage::Answer { .. } => unexpected("a sender receives requests only"),
            BarrierMessage::Request { .. } if self.state != Service::Idle => {
                unexpected("the last request is not answered yet")
            }
            BarrierMessage::Request { .. } => {
                let delay = Delay::Uniform { min: Duration::ZERO, max: self.config.service_delay_max };
                let due = later(now, delay.draw(&mut self.random));
                assert!(due >= now, "an answer is due before its request");
                self.state = Service::Preparing { due };
                Ok(())
            }
        }
    }

    /// Handles the deadline of [`Self::poll_deadline`]: the answer leaves.
    pub fn handle_deadline(&mut self, now: Instant) {
        if let Service::Preparing { due } = self.state
            && due <= now
        {
            assert!(self.aggregator.is_some(), "an answer is prepared without a connected aggregator");
            self.state = Service::Ready;
        }
    }

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<(Peer, BarrierMessage)> {
        if self.state != Service::Ready {
            return None;
        }
        self.state = Service::Idle;
        self.aggregator.map(|peer| (peer, BarrierMessage::Answer { bytes: self.config.answer }))
    }

    /// Returns the time at which [`Self::handle_deadline`] must be called; `None` while no answer is in preparation.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Instant> {
        match self.state {
            Service::Preparing { due } => Some(due),
            Service::Idle | Service::Ready => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGGREGATOR: Peer = Peer::Collector(0);
    const REQUEST: BarrierMessage = BarrierMessage::Request { round: 0, is_measured: true };

    fn connected() -> BarrierSender {
        let config = BarrierSenderConfig {
            answer: Bytes::new(1_000),
            service_delay_max: Duration::from_micros(100),
            seed: 7,
        };
        let mut sender = BarrierSender::new(config);
        sender.handle_connected(Instant::START, AGGREGATOR);
        sender
    }

    #[test]
    fn an_answer_leaves_after_its_delay() {
        let mut sender = connected();
        sender.handle_message(Instant::START, AGGREGATOR, REQUEST).unwrap();
        let due = sender.poll_deadline().unwrap();
        assert!(due > Instant::START && due <= Instant::START + Duration::from_micros(100), "{due}");
        sender.handle_deadline(Instant::START);
        assert_eq!(sender.poll_transmit(), None, "it is not due yet");
        sender.handle_deadline(due);
        let answer = BarrierMessage::Answer { bytes: Bytes::new(1_000) };
        assert_eq!(sender.poll_transmit(), Some((AGGREGATOR, answer)));
        assert_eq!((sender.poll_transmit(), sender.poll_deadline()), (None, None));
    }

    #[test]
    fn forbidden_messages_are_refused() {
        let mut sender = connected();
        let answer = BarrierMessage::Answer { bytes: Bytes::new(1) };
        assert!(sender.handle_message(Instant::START, AGGREGATOR, answer).is_err());
        assert!(sender.handle_message(Instant::START, Peer::Logger(0), REQUEST).is_err());
        sender.handle_message(Instant::START, AGGREGATOR, REQUEST).unwrap();
        assert!(sender.handle_message(Instant::START, AGGREGATOR, REQUEST).is_err(), "one at a time");
    }

    #[test]
    fn a_lost_connection_drops_the_answer() {
        let mut sender = connected();
        sender.handle_message(Instant::START, AGGREGATOR, REQUEST).unwrap();
        sender.handle_closed(Instant::START, AGGREGATOR);
        sender.handle_closed(Instant::START, AGGREGATOR);
        assert_eq!((sender.poll_transmit(), sender.poll_deadline()), (None, None));
        assert!(sender.handle_message(Instant::START, AGGREGATOR, REQUEST).is_err());
        sender.handle_connected(Instant::START, AGGREGATOR);
        sender.handle_message(Instant::START, AGGREGATOR, REQUEST).unwrap();
    }

    #[test]
    fn a_delay_past_the_end_of_time_never_comes() {
        let mut sender = connected();
        sender.handle_message(Instant::FAR_FUTURE, AGGREGATOR, REQUEST).unwrap();
        assert_eq!(sender.poll_deadline(), Some(Instant::FAR_FUTURE));
    }
}
