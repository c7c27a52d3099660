//! Judging a number against what was expected of it.

/// What a claim's runs came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Whether the claim holds.
    pub holds: bool,
    /// What was found, for the table.
    pub got: String,
}

/// How a claim stands, its explanation taken into account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    Holds,
    /// It does not hold, and the reason is understood.
    Explained,
    /// It does not hold.
    Fails,
    /// It holds although an explanation says that it does not: the explanation is out of date.
    Unexpected,
}

impl Status {
    /// The word for a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Explained => "explained",
            Self::Fails => "FAILS",
            Self::Unexpected => "HOLDS, unexpected",
        }
    }

    /// Whether this is as it should be.
    pub const fn is_sound(self) -> bool {
        matches!(self, Self::Holds | Self::Explained)
    }
}

impl Judged {
    /// Holds or not, with the words for it.
    pub(crate) fn new(holds: bool, got: String) -> Self {
        Self { holds, got }
    }

    /// The claim's status.
    pub fn status(&self, known: Option<&str>) -> Status {
        match (self.holds, known) {
            (true, None) => Status::Holds,
            (false, Some(_)) => Status::Explained,
            (false, None) => Status::Fails,
            (true, Some(_)) => Status::Unexpected,
        }
    }
}

/// Whether `got` lies within the share `tolerance` of `expected`.
pub(crate) fn near(got: f64, expected: f64, tolerance: f64) -> bool {
    (got - expected).abs() <= tolerance * expected
}

/// Numbers in milliseconds, for a table.
pub(crate) fn ms(values: &[f64]) -> String {
    let texts: Vec<_> = values.iter().map(|value| format!("{value:.1}")).collect();
    format!("{} ms", texts.join(" / "))
}

/// Shares, for a table.
pub(crate) fn percent(values: &[f64]) -> String {
    let texts: Vec<_> = values.iter().map(|value| format!("{:.1}", 100.0 * value)).collect();
    format!("{} %", texts.join(" / "))
}
