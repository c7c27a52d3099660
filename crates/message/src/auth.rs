//! Authentication with a key that all peers share. Each side proves in the greeting that it has the key.
//!
//! The caller's greeting carries a nonce. The accepting side answers with its own nonce and a proof; the caller then
//! sends its proof. A proof is an HMAC-SHA256 (RFC 2104) over the side, the caller's whole greeting and the other
//! nonce. A side with a previous key too sends one proof for each, and the caller answers by the first key that it has. A
//! proof holds for one connection. It neither encrypts nor signs the messages that follow; [`Tls`](crate::Tls) does.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// Length of a nonce and of a key, bytes.
pub(crate) const NONCE_BYTES: usize = 32;
/// Length of a proof, bytes.
pub(crate) const PROOF_BYTES: usize = 32;
/// Maximum number of keys, and thus of proofs in an acceptor's answer: the present one and the one before it.
pub(crate) const KEYS_MAX: usize = 2;

/// Length of a tag, bytes.
pub const TAG_BYTES: usize = 16;

/// The side of a proof. A proof of one side is invalid for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProvingSide {
    Caller,
    Acceptor,
}

impl ProvingSide {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Caller => b"fanin caller 1\0",
            Self::Acceptor => b"fanin acceptor 1\0",
        }
    }
}

/// A 256-bit key shared by all peers of a system.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey([u8; NONCE_BYTES]);

/// An error: the text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key has 64 hexadecimal digits, as `openssl rand -hex 32` prints them")]
pub struct KeyError;

impl SharedKey {
    /// Creates a key from the kernel's random numbers.
    ///
    /// # Errors
    /// If the kernel returns none.
    pub fn random() -> io::Result<Self> {
        random().map(Self)
    }

    /// Parses a key of 64 hexadecimal digits; white space around them is ignored.
    ///
    /// # Errors
    /// [`KeyError`] for any other text.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        let digits = text.trim().as_bytes();
        if digits.len() != 2 * NONCE_BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(KeyError);
        }
        let mut key = [0; NONCE_BYTES];
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| KeyError)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| KeyError)?;
        }
        Ok(Self(key))
    }

    /// Returns the key as 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the proof of `side` for a connection with this greeting and nonce.
    pub(crate) fn prove(&self, side: ProvingSide, greeting: &[u8], nonce: &[u8]) -> [u8; PROOF_BYTES] {
        let mut context = hmac::Context::with_key(&self.hmac());
        Self::message(side, greeting, nonce).iter().for_each(|part| context.update(part));
        let mut proof = [0; PROOF_BYTES];
        proof.copy_from_slice(context.sign().as_ref());
        proof
    }

    /// Returns true if the proof is valid. Takes the same time for every invalid proof.
    pub(crate) fn verify(&self, side: ProvingSide, greeting: &[u8], nonce: &[u8], proof: &[u8]) -> bool {
        let message = Self::message(side, greeting, nonce).concat();
        hmac::verify(&self.hmac(), &message, proof).is_ok()
    }

    /// Returns a tag that requires the key: the first bytes of the message's HMAC-SHA256.
    pub fn tag(&self, message: &[u8]) -> [u8; TAG_BYTES] {
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&hmac::sign(&self.hmac(), message).as_ref()[..TAG_BYTES]);
        tag
    }

    /// Returns an address of 127.0.0.0/8 for connections on the loopback, which follows from the key. The processes of one system
    /// share it, and programs without the key are unlikely to have it.
    pub fn loopback_address(&self) -> Ipv4Addr {
        let [a, b, c, ..] = self.tag(b"fanin loopback address 1\0");
        Ipv4Addr::new(127, 1 + a % 254, b, 1 + c % 254)
    }

    /// Authenticates both ends of a connection without frames, on the side that connected. Blocks until the other side
    /// has answered.
    ///
    /// # Errors
    /// `PermissionDenied` if the other side has another key, and the stream's own errors.
    pub fn greet_stream(&self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        let greeting = random()?;
        stream.write_all(&greeting)?;
        let (mut nonce, mut proof) = ([0; NONCE_BYTES], [0; PROOF_BYTES]);
        stream.read_exact(&mut nonce)?;
        stream.read_exact(&mut proof)?;
        if !self.verify(ProvingSide::Acceptor, &greeting, &nonce, &proof) {
            return Err(other_key());
        }
        stream.write_all(&self.prove(ProvingSide::Caller, &greeting, &nonce))
    }

    /// Authenticates both ends of a connection without frames, on the side that accepted. Blocks until the other side
    /// has answered.
    ///
    /// # Errors
    /// The same as for [`Self::greet_stream`].
    pub fn accept_stream(&self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        let mut greeting = [0; NONCE_BYTES];
        stream.read_exact(&mut greeting)?;
        let nonce = random()?;
        let proof = self.prove(ProvingSide::Acceptor, &greeting, &nonce);
        stream.write_all(&[nonce, proof].concat())?;
        let mut proof = [0; PROOF_BYTES];
        stream.read_exact(&mut proof)?;
        if self.verify(ProvingSide::Caller, &greeting, &nonce, &proof) { Ok(()) } else { Err(other_key()) }
    }

    fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }

    /// Returns the parts of the message to sign. The nonce has a fixed size, so two different messages never have the
    /// same bytes.
    fn message<'a>(side: ProvingSide, greeting: &'a [u8], nonce: &'a [u8]) -> [&'a [u8]; 3] {
        [side.label(), nonce, greeting]
    }
}

fn other_key() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "the other side has another key")
}

impl fmt::Debug for SharedKey {
    /// Hides the key, because debug output goes to logs.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SharedKey(…)")
    }
}

/// Returns random bytes for a nonce or a key.
pub(crate) fn random() -> io::Result<[u8; NONCE_BYTES]> {
    let mut bytes = [0; NONCE_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("the kernel returns no random numbers"))?;
    Ok(bytes)
}

/// State of one side of a connection until both sides have proven that they have the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyHandshake {
    /// The caller's greeting as sent.
    pub(crate) greeting: Vec<u8>,
    /// The acceptor's nonce; empty at the caller until it has arrived.
    pub(crate) nonce: Vec<u8>,
    /// True if the other side has proven that it has the key.
    pub(crate) is_verified: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_text_and_other_text_is_none() {
        let key = SharedKey::random().unwrap();
        assert_eq!(SharedKey::from_hex(&format!(" {}\n", key.to_hex())), Ok(key.clone()));
        assert_ne!(key, SharedKey::random().unwrap());
        for wrong in ["", "00", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            assert_eq!(SharedKey::from_hex(wrong), Err(KeyError), "{wrong}");
        }
        assert_eq!(format!("{key:?}"), "SharedKey(…)");
    }

    #[test]
    fn a_stream_takes_the_same_key_alone_on_either_side() {
        use std::os::unix::net::UnixStream;
        let (key, other) = (SharedKey::random().unwrap(), SharedKey::random().unwrap());
        for (ours, theirs, is_same) in [(&key, &key, true), (&key, &other, false)] {
            let (mut caller, mut acceptor) = UnixStream::pair().unwrap();
            let theirs = theirs.clone();
            let accepted = std::thread::spawn(move || theirs.accept_stream(&mut acceptor).is_ok());
            assert_eq!(ours.greet_stream(&mut caller).is_ok(), is_same);
            drop(caller);
            assert_eq!(accepted.join().unwrap(), is_same);
        }
        assert_eq!(key.tag(b"one"), key.tag(b"one"));
        assert!(key.tag(b"one") != key.tag(b"two") && key.tag(b"one") != other.tag(b"one"));
    }

    #[test]
    fn a_proof_holds_for_its_key_side_greeting_and_nonce_alone() {
        let (key, other) = (SharedKey::random().unwrap(), SharedKey::random().unwrap());
        let (one, two) = ([1; NONCE_BYTES], [2; NONCE_BYTES]);
        let proof = key.prove(ProvingSide::Caller, b"hello", &one);
        assert!(key.verify(ProvingSide::Caller, b"hello", &one, &proof));
        assert!(!other.verify(ProvingSide::Caller, b"hello", &one, &proof));
        assert!(!key.verify(ProvingSide::Acceptor, b"hello", &one, &proof));
        assert!(!key.verify(ProvingSide::Caller, b"hullo", &one, &proof));
        assert!(!key.verify(ProvingSide::Caller, b"hello", &two, &proof));
        assert!(!key.verify(ProvingSide::Caller, b"hello", &one, &proof[1..]));
        assert!(!key.verify(ProvingSide::Caller, b"hello", &one, &[]));
    }
}
