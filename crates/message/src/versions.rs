//! Versions of an application's messages: the range that each side speaks, and the one that both use.

use std::fmt;
use std::sync::Arc;

/// The versions of its messages that an application speaks, from the lowest to the highest.
///
/// Each greeting carries the sender's range. Both sides of a connection use the highest version in both ranges. Without
/// one, the connection is refused with [`NoCommonVersion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Versions {
    /// The lowest version that the application still speaks.
    pub lowest: u16,
    /// The highest version that the application speaks.
    pub highest: u16,
}

impl Default for Versions {
    /// Returns version 1 alone.
    fn default() -> Self {
        Self { lowest: 1, highest: 1 }
    }
}

impl Versions {
    pub(crate) fn to_bytes(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.lowest.to_le_bytes(), self.highest.to_le_bytes());
        [a, b, c, d]
    }

    pub(crate) fn from_bytes(bytes: [u8; 4]) -> Self {
        let [a, b, c, d] = bytes;
        Self { lowest: u16::from_le_bytes([a, b]), highest: u16::from_le_bytes([c, d]) }
    }

    /// Returns the highest version in both ranges; `None` if the ranges have no version in common.
    pub fn common(self, other: Self) -> Option<u16> {
        let highest = self.highest.min(other.highest);
        (highest >= self.lowest.max(other.lowest)).then_some(highest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { lowest, highest } if lowest == highest => write!(out, "version {lowest}"),
            Self { lowest, highest } => write!(out, "versions {lowest} to {highest}"),
        }
    }
}

/// Two sides that speak no common version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCommonVersion {
    /// Name of this side.
    pub name: Arc<str>,
    /// Versions of this side.
    pub versions: Versions,
    /// Name of the peer.
    pub peer: Arc<str>,
    /// Versions of the peer.
    pub peer_versions: Versions,
}

impl fmt::Display for NoCommonVersion {
    /// Writes one sentence with both ranges, and the remedy: the older side has to speak a newer version.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, versions, peer, peer_versions } = self;
        let (older, needed) = if versions.highest < peer_versions.lowest {
            (name, peer_versions.lowest)
        } else {
            (peer, versions.lowest)
        };
        write!(
            out,
            "{name:?} speaks {versions} of the messages, {peer:?} {peer_versions}; upgrade {older:?} to a release that speaks \
             version {needed}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(lowest: u16, highest: u16) -> Versions {
        Versions { lowest, highest }
    }

    #[test]
    fn the_highest_common_version_is_used() {
        for (one, other, common) in [
            (range(1, 1), range(1, 1), Some(1)),
            (range(1, 2), range(1, 1), Some(1)),
            (range(1, 3), range(2, 5), Some(3)),
            (range(1, 4), range(2, 3), Some(3)),
            (range(1, 2), range(3, 4), None),
            (range(0, 0), range(u16::MAX, u16::MAX), None),
        ] {
            assert_eq!(one.common(other), common, "{one} and {other}");
            assert_eq!(other.common(one), common, "{other} and {one}");
        }
    }

    #[test]
    fn a_refusal_says_who_speaks_what_and_what_would_be_right() {
        let ours = NoCommonVersion {
            name: "supervisor".into(),
            versions: range(1, 2),
            peer: "readout-0".into(),
            peer_versions: range(3, 3),
        };
        let words = "\"supervisor\" speaks versions 1 to 2 of the messages, \"readout-0\" version 3; upgrade \"supervisor\" to a \
                     release that speaks version 3";
        assert_eq!(ours.to_string(), words);
        let theirs = NoCommonVersion {
            name: ours.peer.clone(),
            versions: ours.peer_versions,
            peer: ours.name.clone(),
            peer_versions: ours.versions,
        };
        assert!(
            theirs.to_string().ends_with("upgrade \"supervisor\" to a release that speaks version 3"),
            "{theirs}"
        );
    }
}
