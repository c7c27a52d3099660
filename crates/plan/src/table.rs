//! The plan as a table for people: plain text in aligned columns, less than a hundred characters wide.

use std::borrow::Cow;
use std::fmt::{self, Write};

use fanin_units::Ratio;

use crate::cost::{CostComparison, sweep_table};
use crate::derived::{Derivation, brief, percent};
use crate::plan::{Cost, LinkLoad, Plan};
use crate::queues::{BurstOutcome, Losses, Queue};

/// The widest line that is printed, in characters.
pub const WIDTH_MAX: usize = 99;

/// The role of a text, for the command line's colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextRole {
    /// The title of a section.
    Heading,
    /// A verdict that nothing is lost.
    Good,
    /// A verdict that frames are lost, or a load above 1.
    Bad,
    /// The text of a warning.
    Warning,
    /// A formula, less important than its value.
    Faint,
}

/// A function that styles a text for its role. It may add escape codes, but no visible characters.
pub type Style = fn(TextRole, &str) -> String;

/// Returns the text unchanged.
pub fn plain(_: TextRole, text: &str) -> String {
    text.to_owned()
}

impl Plan {
    /// Writes the plan as a table.
    pub fn table(&self, style: Style) -> String {
        let mut out = String::new();
        self.write_table(&mut out, style).expect("writing to a string");
        out
    }

    fn write_table(&self, out: &mut String, style: Style) -> fmt::Result {
        if !self.title.is_empty() {
            writeln!(out, "{}\n", style(TextRole::Heading, &self.title))?;
        }
        let (outcome, verdict) = self.verdict();
        let role = role(outcome);
        for line in wrap(&verdict, WIDTH_MAX) {
            writeln!(out, "{}", style(role, &line))?;
        }
        for warning in &self.warnings {
            for (index, line) in wrap(warning, WIDTH_MAX - 9).iter().enumerate() {
                let label = if index == 0 { "warning: " } else { "         " };
                writeln!(out, "{}{line}", style(TextRole::Warning, label))?;
            }
        }
        heading(out, style, "Ideal")?;
        let subject = if self.is_barrier { "goodput of a request" } else { "goodput of an event" };
        row(out, style, &self.ideal.collection_time.erase(), None)?;
        row(out, style, &self.ideal.goodput.erase(), Some(subject))?;
        heading(
            out,
            style,
            if self.is_closed_loop { "Links, at the highest rate possible" } else { "Links" },
        )?;
        links(out, style, &self.links)?;
        heading(out, style, "Queues")?;
        queues(out, style, &self.queues, self.losses())?;
        for section in &self.sections {
            heading(out, style, section.title)?;
            for derivation in &section.rows {
                row(out, style, derivation, None)?;
            }
        }
        if let Some(cost) = &self.cost {
            heading(out, style, "Cost and space")?;
            write_cost(out, style, cost)?;
        }
        Ok(())
    }
}

fn role(outcome: BurstOutcome) -> TextRole {
    match outcome {
        BurstOutcome::Loses => TextRole::Bad,
        BurstOutcome::MayLose => TextRole::Warning,
        BurstOutcome::Fits | BurstOutcome::HoldsBack | BurstOutcome::Unlimited => TextRole::Good,
    }
}

fn heading(out: &mut String, style: Style, title: &str) -> fmt::Result {
    writeln!(out, "\n{}", style(TextRole::Heading, title))
}

const NAME_WIDTH: usize = 34;
const VALUE_WIDTH: usize = 13;

/// Writes one result: name, value, derivation.
fn row(out: &mut String, style: Style, derivation: &Derivation, label: Option<&str>) -> fmt::Result {
    let name = label.map_or_else(|| words(&derivation.name), str::to_owned);
    write!(out, "  {name:<NAME_WIDTH$} {:>VALUE_WIDTH$}  ", derivation.value)?;
    let indent = NAME_WIDTH + VALUE_WIDTH + 5;
    let width = WIDTH_MAX - indent;
    let how = format!("{} = {}", derivation.formula, derivation.numbers);
    // If a formula does not fit on one line, its numbers follow on separate lines.
    let lines = if how.chars().count() <= width {
        vec![how]
    } else {
        let mut lines = wrap(derivation.formula, width);
        lines.extend(wrap(&format!("= {}", derivation.numbers), width));
        lines
    };
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            write!(out, "{:indent$}", "")?;
        }
        writeln!(out, "{}", style(TextRole::Faint, line))?;
    }
    Ok(())
}

/// Writes a key as words: `load.last_hop` becomes `load: last hop`.
fn words(name: &str) -> String {
    name.replacen('.', ": ", 1).replace('_', " ")
}

fn links(out: &mut String, style: Style, links: &[LinkLoad]) -> fmt::Result {
    writeln!(
        out,
        "  {:<24} {:>6} {:>10} {:>12} {:>9} {:>11}",
        "", "links", "rate", "offered", "load", "backwards"
    )?;
    for link in links {
        let load = format!("{:>9}", brief(link.load.value));
        let role = if link.load.value > Ratio::ONE { TextRole::Bad } else { TextRole::Good };
        let backwards =
            link.load_reverse.as_ref().map_or_else(String::new, |load| format!(" {:>11}", brief(load.value)));
        writeln!(
            out,
            "  {:<24} {:>6} {:>10} {:>12} {}{backwards}",
            link.name,
            link.count,
            brief(link.rate),
            brief(link.offered.value),
            style(role, &load),
        )?;
    }
    Ok(())
}

fn queues(out: &mut String, style: Style, queues: &[Queue], losses: Losses) -> fmt::Result {
    writeln!(
        out,
        "  {:<18} {:>10} {:>10} {:>11} {:>11} {:>11}  verdict",
        "", "inflow", "outflow", "burst", "waits", "fits"
    )?;
    for queue in queues {
        let expected = queue.bracket.and_then(|bracket| bracket.expected);
        let verdict = match (queue.outcome, queue.losses) {
            (BurstOutcome::HoldsBack, _) => Cow::Borrowed("holds back"),
            (BurstOutcome::Unlimited, _) => Cow::Borrowed("no limit"),
            _ if losses == Losses::Never => Cow::Borrowed("never"),
            (_, Losses::InShare(share)) => Cow::Owned(format!("loses in {}", percent(share))),
            (_, Losses::Always) => Cow::Borrowed("always"),
            _ => match expected {
                Some(Ratio::ZERO) => Cow::Borrowed("expected never"),
                Some(Ratio::ONE) => Cow::Borrowed("expected always"),
                Some(share) => Cow::Owned(format!("expected {}", percent(share))),
                None => Cow::Borrowed("depends"),
            },
        };
        let role = role(queue.outcome);
        writeln!(
            out,
            "  {:<18} {:>10} {:>10} {:>11} {:>11} {:>11}  {}",
            queue.name,
            brief(queue.inflow),
            brief(queue.outflow),
            brief(queue.burst.value),
            brief(queue.peak.value),
            queue.capacity.map_or_else(String::new, brief),
            style(role, &verdict),
        )?;
    }
    for queue in queues.iter().filter(|queue| queue.outcome != BurstOutcome::Unlimited) {
        let text = format!("{}: {}", queue.name, queue.reason);
        for (index, line) in wrap(&text, WIDTH_MAX - 4).iter().enumerate() {
            writeln!(out, "  {}{line}", if index == 0 { "" } else { "  " })?;
        }
    }
    Ok(())
}

fn write_cost(out: &mut String, style: Style, cost: &Cost) -> fmt::Result {
    match &cost.network {
        Some(comparison) => {
            for derivation in comparison.derivations() {
                row(out, style, &derivation, None)?;
            }
        }
        None => writeln!(
            out,
            "  the catalogue's server has no port left for {} ports and these spines",
            cost.ports
        )?,
    }
    if !cost.sweep.is_empty() {
        writeln!(out)?;
        out.push_str(&sweep_table(&cost.sweep));
    }
    Ok(())
}

impl CostComparison {
    /// Returns every result with its formula.
    pub fn derivations(&self) -> Vec<Derivation> {
        let mut rows = vec![
            self.oversubscription.erase(),
            self.switches.erase(),
            self.fabric_price.erase(),
            self.routers_price.erase(),
            self.price_ratio.erase(),
            self.fabric_area.erase(),
            self.routers_area.erase(),
            self.area_ratio.erase(),
        ];
        rows.extend(self.multi_host_area.as_ref().map(|area| area.erase()));
        rows
    }
}

/// Breaks a text at spaces into lines of at most `width` characters; a longer word has its own line.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
