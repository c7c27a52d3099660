//! The rules of a switch: for each output a classifier, for each rule a counter.

use std::collections::HashMap;

use crate::config::Config;
use crate::frame::Ethernet;
use crate::snapshot::Tally;

use super::classify::{Classifier, RuleAction};

/// The result of classification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Classified {
    /// No rule matches: the frame waits in the plain queue.
    Unmatched,
    /// The frame waits in this ring.
    Ring(usize),
    /// A rule drops the frame.
    Drop,
}

/// All rules of a switch.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// One classifier for each output.
    classifiers: Vec<Classifier>,
    /// Matched frames by rule.
    tallies: Vec<Tally>,
}

impl Rules {
    /// Makes the counters for the rules of a configuration. [`Self::rebuild`] makes the classifiers.
    pub(super) fn new(config: &Config) -> Self {
        Self {
            classifiers: vec![Classifier::default(); config.port.len()],
            tallies: vec![Tally::default(); config.rule.len()],
        }
    }

    /// Rebuilds the classifiers. `rings` holds the port and number of every ring by its name.
    pub(super) fn rebuild(&mut self, config: &Config, rings: &HashMap<&str, (usize, usize)>) {
        assert_eq!(self.tallies.len(), config.rule.len(), "a counter for each rule");
        let mut of_outputs: Vec<Vec<_>> = vec![Vec::new(); config.port.len()];
        for (number, rule) in config.rule.iter().enumerate() {
            let input = rule.input.as_ref().and_then(|input| config.port_index(input));
            match &rule.ring {
                None => {
                    for rules in &mut of_outputs {
                        rules.push((number as u32, rule, RuleAction::Drop, input));
                    }
                }
                Some(ring) => {
                    if let Some(&(port, ring)) = rings.get(ring.as_str()) {
                        of_outputs[port].push((number as u32, rule, RuleAction::Ring(ring as u32), input));
                    }
                }
            }
        }
        self.classifiers = of_outputs.into_iter().map(Classifier::new).collect();
    }

    /// Starts the counter of a rule that was appended.
    pub(super) fn add(&mut self) {
        self.tallies.push(Tally::default());
    }

    /// Removes the counter of a rule.
    pub(super) fn remove(&mut self, rule: usize) {
        self.tallies.remove(rule);
    }

    /// Returns the tally of the frames that each rule matched.
    pub(super) fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// Returns true if any rule applies to frames to an output.
    #[inline]
    pub(super) fn apply_to(&self, output: usize) -> bool {
        !self.classifiers[output].is_empty()
    }

    /// Finds the rule that wins for a frame to an output, and counts the frame.
    #[inline(always)]
    pub(super) fn classify(
        &mut self,
        input: usize,
        output: usize,
        vlan: u16,
        head: &[u8],
        bytes: u32,
        ethernet: &Ethernet,
    ) -> Classified {
        let Some(found) = self.classifiers[output].classify(input, vlan, head, ethernet) else {
            return Classified::Unmatched;
        };
        self.tallies[found.rule()].add(bytes);
        match found.action() {
            RuleAction::Ring(ring) => Classified::Ring(ring as usize),
            RuleAction::Drop => Classified::Drop,
        }
    }
}
