//! Greetings, refusals and heartbeats.

use std::sync::Arc;

use super::MessageEndpoint;
use super::completion::SMALL_READS_MIN;
use super::slot::{ConnectionOrigin, State};
use crate::assembler::ArrivedMessage;
use crate::auth::{KEYS_MAX, KeyHandshake, NONCE_BYTES, PROOF_BYTES, ProvingSide, SharedKey};
use crate::event::{Closed, EndpointEvent, Listener, PeerId};
use crate::frame::Header;
use crate::hello::{BadHello, CHALLENGE, HEARTBEAT, HELLO, HelloMessage, OTHER_VERSIONS, PROOF, REFUSAL};
use crate::limits::CONTROL_BYTES_MAX;
use crate::options::{Greeting, SameName};
use crate::versions::{NoCommonVersion, Versions};

const NO_RANDOM: Closed = Closed::Unauthenticated("the kernel returns no random numbers");

impl MessageEndpoint {
    /// Starts the greeting on a connected socket, or opens the connection if no greeting is needed.
    pub(super) fn greet(&mut self, index: u32) {
        if !self.begin_encryption(index) {
            return;
        }
        let slot = self.slots.at(index);
        slot.state = State::Greeting(self.now + slot.options.timing.greeting_max);
        let accepted = matches!(slot.origin, ConnectionOrigin::Accepted(_));
        match slot.options.greeting {
            Greeting::Bare => {
                slot.version = self.settings.versions.highest;
                self.established(index);
            }
            Greeting::Names => {
                self.arm_next(index);
                // The accepting side answers only a greeting that it accepts.
                if !accepted {
                    self.send_hello(index);
                }
            }
        }
    }

    /// Sends this side's greeting; with a shared key, the caller's has a nonce.
    fn send_hello(&mut self, index: u32) {
        let slot = self.slots.at(index);
        let is_caller = matches!(slot.origin, ConnectionOrigin::Outgoing(_));
        let expects = match &slot.origin {
            ConnectionOrigin::Outgoing(outgoing) => outgoing.expects.to_string(),
            ConnectionOrigin::Accepted(_) => slot.name.to_string(),
        };
        let heartbeat = slot.options.timing.heartbeat;
        let nonce = match (&slot.options.key, is_caller) {
            (Some(_), true) => match self.net.random() {
                Ok(nonce) => Some(nonce),
                Err(_) => return self.end(index, NO_RANDOM),
            },
            _ => None,
        };
        let hello = HelloMessage {
            heartbeat,
            versions: self.settings.versions,
            name: self.name.to_string(),
            expects,
            nonce,
        };
        let bytes = hello.to_bytes();
        if nonce.is_some() {
            let handshake = KeyHandshake { greeting: bytes.clone(), nonce: Vec::new(), is_verified: false };
            self.slots.at(index).handshake = Some(Box::new(handshake));
        }
        self.push_control(index, HELLO, &bytes);
    }

    fn push_control(&mut self, index: u32, kind: u32, payload: &[u8]) {
        self.push(index, Header { kind, stream: 0, size: payload.len() as u32 }, &[payload]);
    }

    /// Handles a frame of the crate itself, or a frame before the greeting.
    pub(super) fn handle_control(&mut self, index: u32, frame: &ArrivedMessage) {
        let greeting = matches!(self.slots.at(index).state, State::Greeting(_));
        match frame.kind {
            HELLO if greeting => match HelloMessage::from_bytes(&frame.payload) {
                Ok(hello) => self.handle_hello(index, &hello),
                Err(error) => self.refuse(index, Closed::BadHello(error)),
            },
            CHALLENGE if greeting => self.handle_challenge(index, &frame.payload),
            PROOF if greeting => self.handle_proof(index, &frame.payload),
            OTHER_VERSIONS if greeting => self.handle_other_versions(index, &frame.payload),
            REFUSAL => {
                let words = String::from_utf8_lossy(&frame.payload).as_ref().into();
                self.end(index, Closed::Refused(words));
            }
            HEARTBEAT if !greeting => {
                self.slots.at(index).counters.heartbeats_in += 1;
                self.totals.heartbeats_in += 1;
            }
            kind if greeting => self.refuse(index, Closed::BadHello(BadHello::Kind(kind))),
            kind => self.end(index, Closed::Reserved(kind)),
        }
    }

    fn handle_hello(&mut self, index: u32, hello: &HelloMessage) {
        let name: Arc<str> = hello.name.as_str().into();
        let slot = self.slots.at(index);
        slot.promised = hello.heartbeat;
        if let (Some(tls), ConnectionOrigin::Accepted(_)) = (&slot.tls, &slot.origin)
            && let Err(words) = tls.check_name(&hello.name)
        {
            return self.refuse(index, Closed::Tls(words.into()));
        }
        let wrong = |expected: &str, actual: &str| Closed::WrongName {
            expected: expected.into(),
            actual: actual.into(),
        };
        let version = self.settings.versions.common(hello.versions);
        match &slot.origin {
            ConnectionOrigin::Outgoing(outgoing) => {
                let is_verified = slot.handshake.as_ref().is_some_and(|handshake| handshake.is_verified);
                if slot.options.key.is_some() && !is_verified {
                    return self.refuse(
                        index,
                        Closed::Unauthenticated("the peer did not prove that it has the key"),
                    );
                }
                if !outgoing.expects.is_empty() && outgoing.expects != name {
                    let reason = wrong(&outgoing.expects, &name);
                    return self.refuse(index, reason);
                }
                let Some(version) = version else {
                    return self.refuse_versions(index, name, hello.versions);
                };
                (slot.name, slot.version) = (name, version);
                self.established(index);
            }
            ConnectionOrigin::Accepted(_) => {
                if slot.handshake.is_some() {
                    return self.refuse(index, Closed::BadHello(BadHello::Kind(HELLO)));
                }
                if !hello.expects.is_empty() && hello.expects != *self.name {
                    let reason = wrong(&self.name.clone(), &hello.expects);
                    return self.refuse(index, reason);
                }
                let names = &slot.options.names;
                if !names.is_empty() && !names.contains(&hello.name) {
                    let reason = wrong(&names.join(", "), &name);
                    return self.refuse(index, reason);
                }
                let Some(version) = version else {
                    return self.refuse_versions(index, name, hello.versions);
                };
                (slot.name, slot.version) = (name, version);
                match slot.options.key {
                    Some(_) => self.send_challenge(index, hello),
                    None => self.welcome(index),
                }
            }
        }
    }

    /// Sends the range of versions that this side speaks, and ends the connection.
    fn refuse_versions(&mut self, index: u32, peer: Arc<str>, peer_versions: Versions) {
        self.push_control(index, OTHER_VERSIONS, &self.settings.versions.to_bytes());
        self.flush_slot(index);
        self.end_without_version(index, peer, peer_versions);
    }

    /// Ends a connection whose peer speaks none of this side's versions.
    fn handle_other_versions(&mut self, index: u32, payload: &[u8]) {
        let theirs = <[u8; 4]>::try_from(payload).map(Versions::from_bytes);
        match (theirs, &self.slots.at(index).origin) {
            (Ok(theirs), ConnectionOrigin::Outgoing(outgoing))
                if self.settings.versions.common(theirs).is_none() =>
            {
                let peer = Arc::clone(&outgoing.expects);
                self.end_without_version(index, peer, theirs);
            }
            _ => self.refuse(index, Closed::BadHello(BadHello::Kind(OTHER_VERSIONS))),
        }
    }

    fn end_without_version(&mut self, index: u32, peer: Arc<str>, peer_versions: Versions) {
        let (name, versions) = (Arc::clone(&self.name), self.settings.versions);
        let reason = NoCommonVersion { name, versions, peer, peer_versions };
        self.end(index, Closed::NoCommonVersion(Arc::new(reason)));
    }

    /// Answers the caller's greeting, unless its name is taken.
    fn welcome(&mut self, index: u32) {
        let slot = self.slots.at(index);
        let ConnectionOrigin::Accepted(listener) = &slot.origin else { return };
        let (listener, name) = (*listener, Arc::clone(&slot.name));
        if self.register(index, listener, name) {
            self.send_hello(index);
            self.established(index);
        }
    }

    /// Answers a caller's greeting with a nonce and the proof of this side by each of its keys.
    fn send_challenge(&mut self, index: u32, hello: &HelloMessage) {
        let slot = self.slots.at(index);
        if hello.nonce.is_none() {
            return self.refuse(index, Closed::Unauthenticated("the caller has no key"));
        }
        let Ok(nonce) = self.net.random() else { return self.end(index, NO_RANDOM) };
        let greeting = hello.to_bytes();
        let mut challenge = nonce.to_vec();
        for key in slot.options.keys() {
            challenge.extend_from_slice(&key.prove(ProvingSide::Acceptor, &greeting, &nonce));
        }
        let handshake = KeyHandshake { greeting, nonce: nonce.to_vec(), is_verified: false };
        slot.handshake = Some(Box::new(handshake));
        self.push_control(index, CHALLENGE, &challenge);
    }

    /// Checks the acceptor's proof, and sends the caller's.
    fn handle_challenge(&mut self, index: u32, payload: &[u8]) {
        let slot = self.slots.at(index);
        let is_caller = matches!(slot.origin, ConnectionOrigin::Outgoing(_));
        let (Some(handshake), true, true) = (&mut slot.handshake, slot.options.key.is_some(), is_caller)
        else {
            return self
                .refuse(index, Closed::Unauthenticated("the peer requires a key, and this side has none"));
        };
        let (nonce, proofs) = payload.split_at(payload.len().min(NONCE_BYTES));
        let is_proven = |key: &SharedKey| {
            let mut proofs = proofs.chunks(PROOF_BYTES).take(KEYS_MAX);
            proofs.any(|proof| key.verify(ProvingSide::Acceptor, &handshake.greeting, nonce, proof))
        };
        let common = slot.options.keys().find(|key| is_proven(key));
        let Some(key) = common.filter(|_| handshake.nonce.is_empty()) else {
            return self.refuse(index, Closed::Unauthenticated("the peer has another key"));
        };
        (handshake.nonce, handshake.is_verified) = (nonce.to_vec(), true);
        let proof = key.prove(ProvingSide::Caller, &handshake.greeting, nonce);
        self.push_control(index, PROOF, &proof);
    }

    /// Checks the caller's proof, and answers its greeting.
    fn handle_proof(&mut self, index: u32, payload: &[u8]) {
        let slot = self.slots.at(index);
        let is_caller = matches!(slot.origin, ConnectionOrigin::Outgoing(_));
        let (Some(handshake), false) = (&mut slot.handshake, is_caller) else {
            return self.refuse(index, Closed::BadHello(BadHello::Kind(PROOF)));
        };
        let is_proven =
            |key: &SharedKey| key.verify(ProvingSide::Caller, &handshake.greeting, &handshake.nonce, payload);
        if !slot.options.keys().any(is_proven) {
            return self.refuse(index, Closed::Unauthenticated("the caller has another key"));
        }
        handshake.is_verified = true;
        self.welcome(index);
    }

    /// Registers an accepted connection under its name; returns false if the name is taken.
    fn register(&mut self, index: u32, listener: Listener, name: Arc<str>) -> bool {
        let policy = self.same_name(listener);
        if name.is_empty() || policy == SameName::Allow {
            return true;
        }
        let key = (listener, Arc::clone(&name));
        if let Some(older) = self.names.get(&key).copied() {
            if policy == SameName::Refuse {
                self.refuse(index, Closed::NameTaken(name));
                return false;
            }
            self.end(older, Closed::Superseded(name));
        }
        self.names.insert(key, index);
        true
    }

    /// Sends the reason to the peer, and ends the connection.
    fn refuse(&mut self, index: u32, reason: Closed) {
        let words = match &reason {
            Closed::WrongName { expected, actual }
                if matches!(self.slots.at(index).origin, ConnectionOrigin::Accepted(_)) =>
            {
                format!("{actual:?} is not accepted here, only {expected}")
            }
            Closed::NameTaken(name) => format!("{name:?} is connected already"),
            other => other.to_string(),
        };
        let end = words.len().min(CONTROL_BYTES_MAX as usize);
        self.push_control(index, REFUSAL, &words.as_bytes()[..end]);
        self.flush_slot(index);
        self.end(index, reason);
    }

    fn established(&mut self, index: u32) {
        self.leave_strangers(index);
        let name = Arc::clone(&self.slots.at(index).name);
        let memory = self.memory_of(&name);
        let slot = self.slots.at(index);
        slot.partial.set_memory(memory);
        slot.state = State::Open;
        slot.established = true;
        slot.counters.connected += 1;
        (slot.last_in, slot.last_out) = (self.now, self.now);
        slot.timer = None;
        slot.small_reads = SMALL_READS_MIN;
        let listener = match &mut slot.origin {
            ConnectionOrigin::Accepted(listener) => Some(*listener),
            ConnectionOrigin::Outgoing(outgoing) => {
                outgoing.attempts = 0;
                None
            }
        };
        self.totals.connected += 1;
        self.events.push_back(EndpointEvent::Connected {
            peer: PeerId(index),
            name: Arc::clone(&slot.name),
            version: slot.version,
            listener,
        });
        self.arm_next(index);
    }
}
