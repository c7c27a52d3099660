//! Names of runs and their nodes.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The prefix of every name that a run creates.
pub(crate) const PREFIX: &str = "fanin-";
/// The longest name of a node. Namespaces are files in `/run/netns/`.
const NODE_NAME_MAX: usize = 40;

/// The name of one run: `fanin-` and eight letters and digits that no other live run on this machine has.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunName(String);

impl RunName {
    /// Makes a new name by the standard library's randomly keyed hash of this process, the time and a count. With the
    /// count, threads may call it in the same microsecond.
    #[must_use]
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut rest = RandomState::new().hash_one((std::process::id(), moment, count)) % 36_u64.pow(8);
        let mut text = [b'0'; 8];
        for letter in text.iter_mut().rev() {
            *letter = b"0123456789abcdefghijklmnopqrstuvwxyz"[(rest % 36) as usize];
            rest /= 36;
        }
        Self(format!("{PREFIX}{}", text.iter().map(|&letter| char::from(letter)).collect::<String>()))
    }

    /// Returns the namespace of a node of the run, such as `fanin-1k3x90ab-host7`.
    #[must_use]
    pub fn namespace(&self, node: &NodeName) -> String {
        format!("{}-{node}", self.0)
    }
}

impl Default for RunName {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a node: 1 to 40 of `a`–`z`, `0`–`9` and `-`, not beginning with `-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeName(String);

/// An error: no node can have this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{given:?} is not a valid name of a node: use 1 to {NODE_NAME_MAX} characters from a-z, 0-9 and -, the first not -"
)]
pub struct BadName {
    /// The name given.
    pub given: String,
}

impl NodeName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`BadName`], for names that a file name or a shell would interpret.
    pub fn new(name: &str) -> Result<Self, BadName> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let good =
            (1..=NODE_NAME_MAX).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(plain);
        if good { Ok(Self(name.into())) } else { Err(BadName { given: name.into() }) }
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_that_a_shell_or_a_file_system_would_read_otherwise_are_refused() {
        for name in ["", "-v", "a b", "a/b", "..", "Host", "é", &"a".repeat(41)] {
            assert_eq!(NodeName::new(name), Err(BadName { given: name.into() }), "{name}");
        }
        assert_eq!(NodeName::new("tor-7").map(|name| name.to_string()), Ok("tor-7".into()));
    }

    #[test]
    fn runs_of_one_process_differ_however_close_together() {
        let names: HashSet<_> = (0..10_000).map(|_| RunName::new()).collect();
        // Ten thousand of 2.8e12 names: two alike would be a chance of 2 in 100 000.
        assert_eq!(names.len(), 10_000);
        let name = RunName::new().to_string();
        assert!(name.starts_with(PREFIX) && name.len() == PREFIX.len() + 8, "{name}");
    }
}
