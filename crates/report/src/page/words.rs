//! The words that a command adds to the page of its results.

use super::claims::JudgedClaim;

/// Words of a command on a page of its results.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageWords<'a> {
    /// The page's name.
    pub name: Option<&'a str>,
    /// The claims that the results judge.
    pub claims: &'a [JudgedClaim],
    /// Notes below the table of the results.
    pub notes: &'a [String],
    /// Sentences at the head of the page, in place of a verdict on all results.
    pub answer: &'a [String],
}
