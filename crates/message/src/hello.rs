//! Messages of the crate itself: greetings with names, heartbeats, refusals.

use std::time::Duration;

use crate::auth::NONCE_BYTES;
use crate::versions::Versions;

/// Type of the first message in each direction.
pub(crate) const HELLO: u32 = 0xFFFF_FF01;
/// Type of a heartbeat, which has no payload.
pub(crate) const HEARTBEAT: u32 = 0xFFFF_FF02;
/// Type of the accepting side's answer to a greeting with a nonce: its nonce and its proof.
pub(crate) const CHALLENGE: u32 = 0xFFFF_FF04;
/// Type of the caller's proof.
pub(crate) const PROOF: u32 = 0xFFFF_FF05;
/// Type of the last message to a refused peer.
pub(crate) const REFUSAL: u32 = 0xFFFF_FF03;
/// Type of the last message to a peer without a common version: the sender's lowest and highest version, 16 bits each.
pub(crate) const OTHER_VERSIONS: u32 = 0xFFFF_FF06;

const MAGIC: [u8; 4] = *b"FNIN";
const LAYOUT: u16 = 2;
/// Maximum length of a name, bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// The greeting, the first message in each direction: the sender's name, and the expected name of the receiver.
///
/// On the wire, all little-endian: `"FNIN"`, layout (16 bits), heartbeat interval in milliseconds (32 bits, 0 for
/// none). Then the lowest and the highest version of the application's messages (16 bits each). Then two names, each
/// after its length (16 bits). An empty second name fits every peer. A caller with a shared key adds a nonce of 32
/// bytes.
///
/// This layout stays: later differences between releases are versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HelloMessage {
    pub(crate) heartbeat: Duration,
    pub(crate) versions: Versions,
    pub(crate) name: String,
    pub(crate) expects: String,
    /// The caller's nonce; absent without a shared key.
    pub(crate) nonce: Option<[u8; NONCE_BYTES]>,
}

/// Error in a greeting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadHello {
    /// The first message has another type.
    #[error("the first message has type {0:#x}, not a greeting's {HELLO:#x}")]
    Kind(u32),
    /// The message does not begin with `"FNIN"`.
    #[error("it begins with {0:02x?}, not with \"FNIN\"")]
    Magic([u8; 4]),
    /// The layout of the greeting differs.
    #[error(
        "a greeting of layout {layout} arrived where layout {LAYOUT} is needed; upgrade the process that {} it",
        if *layout < LAYOUT { "sent" } else { "received" }
    )]
    Layout {
        /// The layout that arrived.
        layout: u16,
    },
    /// The highest version is below the lowest.
    #[error("its versions are {lowest} to {highest}")]
    Versions {
        /// The lowest version.
        lowest: u16,
        /// The highest version.
        highest: u16,
    },
    /// The message is shorter or longer than its fields.
    #[error("it has {actual} bytes, its fields {needed}")]
    Size {
        /// Size of the message, bytes.
        actual: usize,
        /// Size of its fields, bytes.
        needed: usize,
    },
    /// A name is too long, or is not UTF-8.
    #[error("a name is not UTF-8 of at most {NAME_BYTES_MAX} bytes")]
    Name,
}

impl HelloMessage {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(18 + self.name.len() + self.expects.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&LAYOUT.to_le_bytes());
        let heartbeat = u32::try_from(self.heartbeat.as_millis()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&heartbeat.to_le_bytes());
        bytes.extend_from_slice(&self.versions.to_bytes());
        for name in [&self.name, &self.expects] {
            bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes.extend(self.nonce.into_iter().flatten());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, BadHello> {
        let mut left = bytes;
        let mut used = 0;
        let mut take = |count: usize| {
            used += count;
            left.split_off(..count).ok_or(BadHello::Size { actual: bytes.len(), needed: used })
        };
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        let magic = take(4)?;
        if magic != MAGIC {
            return Err(BadHello::Magic([magic[0], magic[1], magic[2], magic[3]]));
        }
        let layout = word(take(2)?) as u16;
        if layout != LAYOUT {
            return Err(BadHello::Layout { layout });
        }
        let heartbeat = Duration::from_millis(u64::from(word(take(4)?)));
        let versions = take(4)?;
        let versions = Versions::from_bytes([versions[0], versions[1], versions[2], versions[3]]);
        let Versions { lowest, highest } = versions;
        if lowest > highest {
            return Err(BadHello::Versions { lowest, highest });
        }
        let mut name = || {
            let length = word(take(2)?) as usize;
            let name = take(length)?;
            if length > NAME_BYTES_MAX {
                return Err(BadHello::Name);
            }
            String::from_utf8(name.to_vec()).map_err(|_| BadHello::Name)
        };
        let (name, expects) = (name()?, name()?);
        let nonce = <[u8; NONCE_BYTES]>::try_from(left).ok();
        if nonce.is_some() {
            left = &[];
        }
        if !left.is_empty() {
            return Err(BadHello::Size { actual: bytes.len(), needed: used });
        }
        Ok(Self { heartbeat, versions, name, expects, nonce })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_survives_the_wire_and_no_part_of_it_does() {
        let hello = HelloMessage {
            heartbeat: Duration::from_millis(250),
            versions: Versions { lowest: 1, highest: 3 },
            name: "ros-7".into(),
            expects: String::new(),
            nonce: None,
        };
        let bytes = hello.to_bytes();
        assert_eq!(bytes, b"FNIN\x02\0\xfa\0\0\0\x01\0\x03\0\x05\0ros-7\0\0");
        assert_eq!(HelloMessage::from_bytes(&bytes), Ok(hello.clone()));
        let with_nonce = HelloMessage { nonce: Some([7; NONCE_BYTES]), ..hello };
        assert_eq!(HelloMessage::from_bytes(&with_nonce.to_bytes()), Ok(with_nonce));
        for end in 0..bytes.len() {
            assert!(matches!(HelloMessage::from_bytes(&bytes[..end]), Err(BadHello::Size { .. })), "{end}");
        }
        let mut long = bytes.clone();
        long.push(0);
        assert_eq!(HelloMessage::from_bytes(&long), Err(BadHello::Size { actual: 24, needed: 23 }));
        assert_eq!(HelloMessage::from_bytes(b"GET / HTTP/1.1"), Err(BadHello::Magic(*b"GET ")));
        let mut other = bytes.clone();
        other[10] = 4;
        assert_eq!(HelloMessage::from_bytes(&other), Err(BadHello::Versions { lowest: 4, highest: 3 }));
        let mut other = bytes;
        other[4] = 9;
        assert_eq!(HelloMessage::from_bytes(&other), Err(BadHello::Layout { layout: 9 }));
        assert!(BadHello::Layout { layout: 9 }.to_string().ends_with("upgrade the process that received it"));
        let first = HelloMessage::from_bytes(b"FNIN\x01\0\xfa\0\0\0\x05\0ros-7\0\0").unwrap_err();
        let words =
            "a greeting of layout 1 arrived where layout 2 is needed; upgrade the process that sent it";
        assert_eq!(first.to_string(), words);
    }
}
