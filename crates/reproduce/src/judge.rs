//! Judges the figures of a claim's runs.

/// An understood reason why a claim does not hold here. `docs/papers.md` says more.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// The reason, in a sentence.
    pub why: &'static str,
    /// The least and the greatest permitted value of each of `Judged::figures`, in their order.
    pub ranges: &'static [(f64, f64)],
}

/// The result of a claim's runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// True if the claim holds.
    pub holds: bool,
    /// The result in the form of the table.
    pub outcome: String,
    /// The figures that [`Known::ranges`] bounds.
    pub figures: Vec<f64>,
    /// True if the runs gave all figures that the judgement needs.
    pub is_measured: bool,
}

/// The status of a claim, with its known reason taken into account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The claim holds.
    Holds,
    /// The claim does not hold, for the known reason, and each figure is in its range.
    Explained,
    /// The claim does not hold.
    Fails,
    /// The claim does not hold, for a known reason, but a figure is out of its range.
    OutOfRange,
    /// The claim cannot be judged: the run was too short to give a figure.
    Unmeasured,
    /// The claim holds although a reason against it is known, which is then out of date.
    Unexpected,
}

impl Status {
    /// Returns the word for a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Explained => "explained",
            Self::Fails => "FAILS",
            Self::OutOfRange => "FAILS, out of its known range",
            Self::Unmeasured => "not judged: too short",
            Self::Unexpected => "HOLDS, unexpected",
        }
    }

    /// Returns true if the claim holds, or fails for its known reason.
    pub const fn is_sound(self) -> bool {
        matches!(self, Self::Holds | Self::Explained)
    }
}

impl Judged {
    pub(crate) fn new(holds: bool, outcome: String) -> Self {
        // A mean without values is NaN, and a ratio to zero is not finite.
        let is_number =
            |word: &str| !matches!(word.trim_matches(|c: char| !c.is_alphanumeric()), "NaN" | "inf");
        let is_measured = outcome.split(' ').all(is_number);
        let outcome =
            if is_measured { outcome } else { outcome.replace("NaN", "–").replace("inf ", "– ") };
        Self { holds, outcome, figures: Vec::new(), is_measured }
    }

    /// Adds figures that a [`Known`] bounds.
    pub(crate) fn figures(mut self, figures: &[f64]) -> Self {
        self.is_measured &= figures.iter().all(|figure| figure.is_finite());
        self.figures.extend(figures);
        self
    }

    /// Returns the claim's status. Ranges are checked only for a run of the claim's own measured time.
    pub fn status(&self, known: Option<&Known>, has_own_duration: bool) -> Status {
        match (self.holds, known) {
            _ if !self.is_measured => Status::Unmeasured,
            (true, None) => Status::Holds,
            (false, None) => Status::Fails,
            (true, Some(_)) => Status::Unexpected,
            (false, Some(known)) if !has_own_duration || self.is_within(known) => Status::Explained,
            (false, Some(_)) => Status::OutOfRange,
        }
    }

    fn is_within(&self, known: &Known) -> bool {
        self.figures.len() == known.ranges.len()
            && self
                .figures
                .iter()
                .zip(known.ranges)
                .all(|(figure, (least, most))| (least..=most).contains(&figure))
    }
}

/// Returns true if `value` lies within the share `tolerance` of `expected`.
pub(crate) fn near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= tolerance * expected
}

/// Writes numbers in milliseconds, for a table.
pub(crate) fn ms(values: &[f64]) -> String {
    let texts: Vec<_> = values.iter().map(|value| format!("{value:.1}")).collect();
    format!("{} ms", texts.join(" / "))
}

/// Writes shares in per cent, for a table.
pub(crate) fn percent(values: &[f64]) -> String {
    let texts: Vec<_> = values.iter().map(|value| format!("{:.1}", 100.0 * value)).collect();
    format!("{} %", texts.join(" / "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_difference_stays_in_its_range() {
        const KNOWN: Known = Known { why: "a reason", ranges: &[(1.0, 2.0), (5.0, 6.0)] };
        let judged = |holds, figures: &[f64]| Judged::new(holds, String::new()).figures(figures);
        for (holds, figures, known, is_own, expected) in [
            (true, &[][..], None, true, Status::Holds),
            (false, &[], None, true, Status::Fails),
            (true, &[1.0, 5.0], Some(&KNOWN), true, Status::Unexpected),
            (false, &[1.0, 6.0], Some(&KNOWN), true, Status::Explained),
            (false, &[0.9, 6.0], Some(&KNOWN), true, Status::OutOfRange),
            (false, &[0.9, 6.0], Some(&KNOWN), false, Status::Explained),
            (false, &[1.0], Some(&KNOWN), true, Status::OutOfRange),
            (false, &[f64::NAN, 5.0], Some(&KNOWN), true, Status::Unmeasured),
            (false, &[f64::NAN, 5.0], Some(&KNOWN), false, Status::Unmeasured),
        ] {
            assert_eq!(judged(holds, figures).status(known, is_own), expected, "{holds} {figures:?}");
        }
        let nothing = Judged::new(true, ms(&[f64::NAN, 1.0]));
        assert_eq!((nothing.status(None, true), &*nothing.outcome), (Status::Unmeasured, "– / 1.0 ms"));
    }
}
