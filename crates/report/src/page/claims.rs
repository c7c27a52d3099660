//! Claims that were judged by simulations: how many hold, and a line for each.

use std::fmt::Write;

use serde::Deserialize;

use super::markup::escape;

/// A claim of a paper, and its judgement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct JudgedClaim {
    /// Number of the claim.
    pub id: String,
    /// The claim's place in the paper.
    pub place: String,
    /// The paper's words, shortened.
    pub says: String,
    /// The figure that is expected.
    pub expected: String,
    /// The figure that the simulations gave.
    pub outcome: String,
    /// `holds`, `explained`, or the name of a failure.
    pub status: String,
    /// The reason for a known difference.
    pub why: Option<String>,
}

impl JudgedClaim {
    /// Returns true if the run was too short to judge the claim.
    fn is_unmeasured(&self) -> bool {
        self.status.starts_with("not judged")
    }

    fn class(&self) -> &'static str {
        match self.status.as_str() {
            "holds" => "good",
            "explained" => "open",
            _ if self.is_unmeasured() => "open",
            _ => "bad",
        }
    }
}

/// Writes the verdict on all claims.
pub(super) fn head(claims: &[JudgedClaim], out: &mut String) {
    if claims.is_empty() {
        return;
    }
    let count = |class: &str| claims.iter().filter(|claim| claim.class() == class).count();
    let (good, open, bad) = (count("good"), count("open"), count("bad"));
    let unmeasured = claims.iter().filter(|claim| claim.is_unmeasured()).count();
    let class = match (open, bad) {
        (_, 1..) => "bad",
        (1.., 0) => "open",
        (0, 0) => "good",
    };
    let words = match (open, bad) {
        (0, 0) => "All claims hold",
        (_, 0) if unmeasured == claims.len() => "No claim was judged",
        (_, 0) if unmeasured > 0 => "No claim fails, but some were not judged",
        (_, 0) => "All claims hold, or are explained",
        _ => "Some claims do not hold",
    };
    let _ = writeln!(
        out,
        "<div class=\"verdict {class}\"><p><strong>{words}.</strong> {good} of {} hold, {} do not for a known reason, {bad} \
         fail{}.</p></div>",
        claims.len(),
        open - unmeasured,
        if unmeasured > 0 {
            format!(", {unmeasured} were not judged: the runs were too short")
        } else {
            String::new()
        }
    );
}

/// Writes a line for each claim, failed ones first.
pub(super) fn section(claims: &[JudgedClaim], out: &mut String) {
    if claims.is_empty() {
        return;
    }
    out.push_str(
        "<section>\n<h2>Claims</h2>\n<div class=\"scroll\" role=\"region\" aria-label=\"Claims\" tabindex=\"0\">\n\
         <table class=\"claims judged\">\n<thead><tr><th scope=\"col\">Claim</th><th scope=\"col\">The paper says</th>\
         <th scope=\"col\">Expected</th><th scope=\"col\">Simulated</th><th scope=\"col\">Verdict</th></tr></thead>\n<tbody>\n",
    );
    let mut sorted: Vec<&JudgedClaim> = claims.iter().collect();
    sorted.sort_by_key(|claim| ["bad", "open", "good"].iter().position(|class| *class == claim.class()));
    for claim in sorted {
        let why = claim
            .why
            .as_ref()
            .filter(|_| claim.class() != "good")
            .map_or_else(String::new, |why| format!("<small>{}</small>", escape(why)));
        let _ = writeln!(
            out,
            "<tr class=\"{}\"><th scope=\"row\">{}<small>{}</small></th><td>{}</td><td data-label=\"Expected\">{}</td>\
             <td data-label=\"Simulated\">{}</td><td class=\"says\">{}{why}</td></tr>",
            claim.class(),
            escape(&claim.id),
            escape(&claim.place),
            escape(&claim.says),
            escape(&claim.expected),
            escape(&claim.outcome),
            escape(&claim.status)
        );
    }
    out.push_str("</tbody>\n</table>\n</div>\n</section>\n");
}
