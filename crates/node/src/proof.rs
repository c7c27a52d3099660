//! Proves to loggers that the supervisor assigned an event.
//!
//! The supervisor sends a tag over the run and the event with each assignment. The collector puts the tag in front of the
//! event that it sends to a logger. The logger refuses an event without a valid tag. With
//! `insecure = true` and no shared key, the tag's key is public: it protects only against events that a faulty collector invents.

use fanin_dataflow::{FragmentPayload, L1Id};
use fanin_message::{SharedKey, TAG_BYTES};

use crate::config::System;
use crate::data::{Chunk, Data};

/// Key of the tags if the processes share no key.
const PUBLIC_KEY: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Maximum number of keys whose tags are valid.
const KEYS_MAX: usize = 4;

/// Computes and checks the tags of one run.
#[derive(Debug)]
pub(crate) struct AssignmentProofs {
    /// The keys whose tags are valid; tags are made with the first one. Keys of the past stay: a collector may still have
    /// events that were assigned with them.
    keys: Vec<SharedKey>,
    run: u32,
}

impl AssignmentProofs {
    /// Returns the tags of a system's run.
    pub(crate) fn of(system: &System) -> Self {
        let mut proofs = Self { keys: Vec::new(), run: system.run };
        proofs.set_keys(system.key.as_ref(), system.key_previous.as_ref());
        proofs
    }

    /// Makes tags with `key` from now on.
    pub(crate) fn set_keys(&mut self, key: Option<&SharedKey>, previous: Option<&SharedKey>) {
        let public = || SharedKey::from_hex(PUBLIC_KEY).expect("64 digits are a key");
        let mut keys = vec![key.cloned().unwrap_or_else(public)];
        for key in previous.into_iter().chain(&self.keys) {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        keys.truncate(KEYS_MAX);
        self.keys = keys;
    }

    fn tag(&self, key: &SharedKey, event: L1Id) -> [u8; TAG_BYTES] {
        let mut message = b"fanin assigned 1\0".to_vec();
        message.extend_from_slice(&self.run.to_le_bytes());
        message.extend_from_slice(&event.0.to_le_bytes());
        key.tag(&message)
    }

    /// Returns the proof of an assignment: the tag of the event.
    pub(crate) fn prove(&self, event: L1Id) -> Data {
        Data::new(Chunk::from(self.tag(&self.keys[0], event).to_vec()))
    }

    /// Removes the proof in front of an event and returns the event's data; `None` if the proof is not for this event.
    pub(crate) fn verify(&self, event: L1Id, payload: &Data) -> Option<Data> {
        let (first, rest) = payload.parts().split_first()?;
        let tag = first.get(..TAG_BYTES)?;
        if !self.keys.iter().any(|key| tag == self.tag(key, event)) {
            return None;
        }
        let mut found = Data::new(first.slice(TAG_BYTES..first.len()));
        rest.iter().for_each(|part| found.append(0, Data::new(part.clone())));
        Some(found)
    }
}

/// Returns the data of an event with the proof of its assignment in front.
pub(crate) fn with_proof(proof: &Data, event: Data) -> Data {
    let mut proven = proof.clone();
    proven.append(0, event);
    proven
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proofs(digit: &str, run: u32) -> AssignmentProofs {
        AssignmentProofs { keys: vec![SharedKey::from_hex(&digit.repeat(64)).unwrap()], run }
    }

    #[test]
    fn a_proof_holds_for_its_event_run_and_key_alone() {
        let ours = proofs("1", 7);
        let event = Data::new(Chunk::from(vec![5; 100]));
        let proven = with_proof(&ours.prove(L1Id(3)), event.clone());
        assert_eq!(ours.verify(L1Id(3), &proven).unwrap().size(), event.size());
        // As it arrives: in one piece.
        let bytes: Vec<u8> = proven.parts().iter().flat_map(|part| part.to_vec()).collect();
        let found = ours.verify(L1Id(3), &Data::new(Chunk::from(bytes))).unwrap();
        assert_eq!(found.parts(), event.parts());
        assert!(ours.verify(L1Id(4), &proven).is_none());
        assert!(proofs("1", 8).verify(L1Id(3), &proven).is_none());
        assert!(proofs("2", 7).verify(L1Id(3), &proven).is_none());
        assert!(ours.verify(L1Id(3), &event).is_none() && ours.verify(L1Id(3), &Data::default()).is_none());
        assert!(ours.verify(L1Id(3), &ours.prove(L1Id(3))).is_some());
    }

    #[test]
    fn a_proof_by_a_key_of_the_past_holds() {
        let [one, two, three] = ["1", "2", "3"].map(|digit| SharedKey::from_hex(&digit.repeat(64)).unwrap());
        let mut changed = proofs("1", 7);
        let of = |key: &SharedKey| AssignmentProofs { keys: vec![key.clone()], run: 7 }.prove(L1Id(3));
        let is_valid = |proofs: &AssignmentProofs, key| proofs.verify(L1Id(3), &of(key)).is_some();
        changed.set_keys(Some(&two), Some(&one));
        assert_eq!(changed.prove(L1Id(3)), of(&two));
        changed.set_keys(Some(&two), None);
        assert!(is_valid(&changed, &one) && is_valid(&changed, &two) && !is_valid(&changed, &three));
        // Before the supervisor has the new key, or after it.
        changed.set_keys(Some(&one), Some(&three));
        assert!(is_valid(&changed, &one) && is_valid(&changed, &two) && is_valid(&changed, &three));
        assert_eq!(changed.keys, [one, three, two]);
    }
}
