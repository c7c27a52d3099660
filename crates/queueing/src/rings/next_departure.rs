//! The next departure of an output.

use fanin_units::Instant;

/// The next time at which an output has a frame that may depart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextDeparture {
    /// At once: all requested frames have departed, and more may be due.
    Now,
    /// At this time, unless an arrival or a change of settings comes first.
    At(Instant),
    /// Only after another frame arrives, or a paused ring resumes.
    Never,
}

impl NextDeparture {
    /// The earlier of the two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        match (self, other) {
            (Self::Now, _) | (_, Self::Now) => Self::Now,
            (Self::At(a), Self::At(b)) => Self::At(a.min(b)),
            (Self::At(at), Self::Never) | (Self::Never, Self::At(at)) => Self::At(at),
            (Self::Never, Self::Never) => Self::Never,
        }
    }

    /// The earlier of `self` and `at`; `self` without `at`.
    #[must_use]
    pub fn or_at(self, at: Option<Instant>) -> Self {
        self.min(at.map_or(Self::Never, Self::At))
    }
}
