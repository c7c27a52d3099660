//! Objectives, and the constraints that a result must meet.

use std::str::FromStr;

use fanin_report::{FigureUnit, NAMED_FIGURES, NamedFigure, Summary, named_figure};
use fanin_units::{Bytes, Duration, Rate};

use crate::search::{End, Score};

/// The direction of an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// Smaller values are better.
    Minimise,
    /// Larger values are better.
    Maximise,
}

/// The subject of an objective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A figure of the summary.
    Figure(&'static NamedFigure),
    /// The value of a tuned setting.
    Key(String),
}

/// An objective: the figure or key to make as small or as large as possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objective {
    /// The objective's direction.
    pub sense: Sense,
    /// The figure or setting.
    pub target: Target,
}

/// Errors of objectives and constraints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// No figure has the name.
    #[error("there is no figure `{name}`; the figures are {}", names())]
    UnknownFigure {
        /// The given name.
        name: String,
    },
    /// The objective is neither a figure nor a key.
    #[error("`{name}` is neither a figure nor a key; the figures are {}", names())]
    UnknownObjective {
        /// The given name.
        name: String,
    },
    /// The objective is a setting without a constraint to bound it.
    #[error(
        "`{key}` is a setting, and nothing bounds it: write a constraint with it, for example --subject drops=0"
    )]
    Unbounded {
        /// The key of the setting.
        key: String,
    },
    /// The constraint has no relation.
    #[error("`{text}` is not a constraint: write for example drops=0, \"p99<20 ms\" or \"goodput>=1 Gb/s\"")]
    NoRelation {
        /// The given text.
        text: String,
    },
    /// The limit lacks the figure's unit, or has another one.
    #[error("`{figure}` is {quantity}, not `{given}`: write for example \"{figure}{relation}{example}\"")]
    Unit {
        /// The constrained figure.
        figure: &'static str,
        /// Quantity of the figure.
        quantity: &'static str,
        /// The given relation.
        relation: &'static str,
        /// The given limit.
        given: String,
        /// A correct limit.
        example: &'static str,
    },
    /// No value meets the constraints.
    #[error("no value of `{figure}` can meet {constraints}")]
    Contradiction {
        /// The constrained figure.
        figure: &'static str,
        /// The contradicting constraints.
        constraints: String,
    },
}

fn names() -> String {
    NAMED_FIGURES.iter().map(|figure| figure.name).collect::<Vec<_>>().join(", ")
}

/// Returns true if the scenario has the section of a dotted key.
fn is_of_scenario(key: &str) -> bool {
    let section = |key: &str| key.split('.').next().unwrap_or_default().to_owned();
    fanin_scenario::keys().iter().any(|known| section(known) == section(key))
}

impl Objective {
    /// Reads an objective: the name of a figure, or a dotted key.
    ///
    /// # Errors
    /// If it is neither.
    pub fn new(sense: Sense, text: &str) -> Result<Self, GoalError> {
        let text = text.trim();
        let target = match named_figure(text) {
            Some(figure) => Target::Figure(figure),
            None if text.contains('.') && !is_of_scenario(text) => {
                return Err(GoalError::UnknownObjective { name: text.to_owned() });
            }
            None if text.contains('.') => Target::Key(text.to_owned()),
            None => return Err(GoalError::UnknownFigure { name: text.to_owned() }),
        };
        Ok(Self { sense, target })
    }

    /// Returns the name of the objective's figure or setting.
    pub fn name(&self) -> &str {
        match &self.target {
            Target::Figure(figure) => figure.name,
            Target::Key(key) => key,
        }
    }
}

/// Relation of a figure to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    AtMost,
    AtLeast,
    Below,
    Above,
    Equal,
}

/// Relations by their sign; longer signs come first.
const RELATIONS: [(&str, Relation); 5] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Below),
    (">", Relation::Above),
    ("=", Relation::Equal),
];

/// A constraint: a figure, a relation and a limit, such as `p99<20 ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// The constrained figure.
    pub figure: &'static NamedFigure,
    /// The constraint as it was written.
    pub text: String,
    relation: Relation,
    limit: f64,
}

impl FromStr for Constraint {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let at = text.find(['<', '>', '=']).ok_or_else(|| GoalError::NoRelation { text: text.to_owned() })?;
        let (name, rest) = text.split_at(at);
        let found = RELATIONS
            .into_iter()
            .find_map(|(sign, relation)| Some((sign, relation, rest.strip_prefix(sign)?)));
        let (sign, relation, limit) = found.ok_or_else(|| GoalError::NoRelation { text: text.to_owned() })?;
        let (name, limit) = (name.trim(), limit.trim());
        if limit.starts_with(['<', '>', '=']) {
            return Err(GoalError::NoRelation { text: text.to_owned() });
        }
        let figure = named_figure(name).ok_or_else(|| GoalError::UnknownFigure { name: name.to_owned() })?;
        let (quantity, example) = words(figure.unit);
        let unit = || GoalError::Unit {
            figure: figure.name,
            quantity,
            relation: sign,
            given: limit.to_owned(),
            example,
        };
        let limit = parse(figure.unit, limit).ok_or_else(unit)?;
        Ok(Self { figure, text: format!("{name}{rest}"), relation, limit })
    }
}

/// Reads a limit as a number in the figure's unit.
fn parse(unit: FigureUnit, text: &str) -> Option<f64> {
    match unit {
        FigureUnit::Millis => text.parse::<Duration>().ok().map(|time| time.get() as f64 / 1e9),
        FigureUnit::Bytes => text.parse::<Bytes>().ok().map(|bytes| bytes.get() as f64),
        FigureUnit::BitsPerSecond => text.parse::<Rate>().ok().map(|rate| rate.get() as f64),
        FigureUnit::Count => text.parse::<u64>().ok().map(|count| count as f64),
        FigureUnit::Factor => text.parse::<f64>().ok().filter(|factor| factor.is_finite() && *factor >= 0.0),
    }
}

/// Returns the quantity of a figure in words, and an example of a limit.
fn words(unit: FigureUnit) -> (&'static str, &'static str) {
    match unit {
        FigureUnit::Millis => ("a time", "20 ms"),
        FigureUnit::Bytes => ("a size", "90 kB"),
        FigureUnit::BitsPerSecond => ("a rate", "1 Gb/s"),
        FigureUnit::Count => ("a whole number", "1"),
        FigureUnit::Factor => ("a number", "1.05"),
    }
}

impl Constraint {
    /// Returns zero if a value meets the constraint, otherwise its distance from the limit as a share of the limit.
    pub fn violation(&self, value: f64) -> f64 {
        let (over, is_met) = match self.relation {
            Relation::AtMost => (value - self.limit, value <= self.limit),
            Relation::Below => (value - self.limit, value < self.limit),
            Relation::AtLeast => (self.limit - value, value >= self.limit),
            Relation::Above => (self.limit - value, value > self.limit),
            Relation::Equal => ((value - self.limit).abs(), value == self.limit),
        };
        let whole = if self.limit == 0.0 { 1.0 } else { self.limit.abs() };
        if is_met { 0.0 } else { (over / whole).max(f64::MIN_POSITIVE) }
    }

    /// Returns the least and the largest value that meet the constraint. Each flag is true if the end itself meets the
    /// constraint.
    fn span(&self) -> ((f64, bool), (f64, bool)) {
        let (least, most) = ((0.0, true), (f64::INFINITY, true));
        match self.relation {
            Relation::AtMost => (least, (self.limit, true)),
            Relation::Below => (least, (self.limit, false)),
            Relation::AtLeast => ((self.limit, true), most),
            Relation::Above => ((self.limit, false), most),
            Relation::Equal => ((self.limit, true), (self.limit, true)),
        }
    }
}

/// An objective with its constraints.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The objective to optimise.
    pub objective: Objective,
    /// Constraints that each seed of a point must meet.
    pub constraints: Vec<Constraint>,
}

impl Goal {
    /// Makes an objective with constraints that do not contradict each other.
    ///
    /// # Errors
    /// If no value of a figure can meet all its constraints, or if the objective is a setting without a constraint.
    pub fn new(objective: Objective, constraints: Vec<Constraint>) -> Result<Self, GoalError> {
        if let (Target::Key(key), []) = (&objective.target, constraints.as_slice()) {
            return Err(GoalError::Unbounded { key: key.clone() });
        }
        for (at, one) in constraints.iter().enumerate() {
            for other in &constraints[..=at] {
                if one.figure != other.figure {
                    continue;
                }
                let ((a, with_a), (b, with_b)) = one.span();
                let ((c, with_c), (d, with_d)) = other.span();
                let is_met = |low: f64, with_low: bool, high: f64, with_high: bool| {
                    low < high || (low == high && with_low && with_high)
                };
                if !(is_met(a, with_a, b, with_b)
                    && is_met(a, with_a, d, with_d)
                    && is_met(c, with_c, b, with_b))
                {
                    let mut texts = vec![format!("`{}`", other.text), format!("`{}`", one.text)];
                    texts.dedup();
                    return Err(GoalError::Contradiction {
                        figure: one.figure.name,
                        constraints: texts.join(" and "),
                    });
                }
            }
        }
        Ok(Self { objective, constraints })
    }

    /// Returns the end of the range that is best if the objective is the single tuned setting; `None` if the objective is a
    /// figure.
    pub fn end(&self) -> Option<End> {
        match (&self.objective.target, self.objective.sense) {
            (Target::Figure(_), _) => None,
            (Target::Key(_), Sense::Minimise) => Some(End::Low),
            (Target::Key(_), Sense::Maximise) => Some(End::High),
        }
    }

    /// Computes the score of a result. `value` is the setting's value if the objective is a setting. A missing figure gives the
    /// worst score.
    pub fn score(&self, summary: &Summary, value: Option<f64>) -> Score {
        let mut violation: f64 = self
            .constraints
            .iter()
            .map(|constraint| {
                constraint
                    .figure
                    .of(summary)
                    .map_or(f64::INFINITY, |value| constraint.violation(value).ln_1p())
            })
            .map(|far| far.max(0.0))
            .sum();
        let objective = match &self.objective.target {
            Target::Figure(figure) => figure.of(summary),
            Target::Key(_) => value,
        };
        if objective.is_none() {
            violation = f64::INFINITY;
        }
        let objective = objective.unwrap_or(f64::MAX);
        let objective = if self.objective.sense == Sense::Maximise { -objective } else { objective };
        Score { violation, objective }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_report::{NetworkFigures, ResultKind, ScenarioName, Slowdown};

    fn constraint(text: &str) -> Constraint {
        text.parse().unwrap()
    }

    fn summary(drops: u64, slowdown: f64) -> Summary {
        let mut summary = Summary::new(ResultKind::Sim, "1", ScenarioName::default());
        summary.network = Some(NetworkFigures { drops: Some(drops), ..NetworkFigures::default() });
        summary.slowdown = Some(Slowdown { mean: slowdown, ..Slowdown::default() });
        summary
    }

    #[test]
    fn an_objective_outside_the_scenario_is_no_setting() {
        let error = Objective::new(Sense::Minimise, "time_ms.mean").unwrap_err().to_string();
        assert!(error.contains("neither a figure nor a key") && error.contains("p99"), "{error}");
        assert!(Objective::new(Sense::Minimise, "tor.buffer").is_ok());
    }

    #[test]
    fn constraints_measure_how_far_a_value_is() {
        for (text, value, far) in [
            ("drops=0", 0.0, 0.0),
            ("drops=0", 7.0, 7.0),
            ("p99<20 ms", 19.9, 0.0),
            ("p99 < 20 ms", 25.0, 0.25),
            ("p99<=20 ms", 20.0, 0.0),
            ("goodput>=1 Gb/s", 0.5e9, 0.5),
            ("queue<90 kB", 180e3, 1.0),
            ("slowdown_bound<=1.05", 1.0, 0.0),
        ] {
            assert!((constraint(text).violation(value) - far).abs() < 1e-9, "{text} at {value}");
        }
        assert!(constraint("p99<20 ms").violation(20.0) > 0.0, "the limit itself is not below it");
        assert!(constraint("p99<20 ms").violation(20.0).ln_1p() > 0.0);
    }

    #[test]
    fn wrong_constraints_say_what_would_be_right() {
        let message = |text: &str| text.parse::<Constraint>().unwrap_err().to_string();
        assert!(message("p99").contains("not a constraint"));
        assert!(message("speed<3").contains("no figure `speed`; the figures are collected,"));
        assert!(message("p99<20").contains("`p99` is a time, not `20`"));
        assert!(message("p99<20 kB").contains("write for example \"p99<20 ms\""));
        assert!(message("drops=-1").contains("a whole number"));
        assert!(message("drops=").contains("a whole number"));
        assert!(message("drops<x").contains("write for example \"drops<1\""), "no value is below 0");
        for doubled in ["drops<<3", "drops=<3", "p99>=<20 ms"] {
            assert!(message(doubled).contains("is not a constraint: write for example drops=0"), "{doubled}");
        }
        let objective = Objective::new(Sense::Minimise, "speed").unwrap_err();
        assert!(objective.to_string().contains("no figure"));
    }

    #[test]
    fn contradictions_are_found() {
        let objective = || Objective::new(Sense::Minimise, "mean").unwrap();
        let goal =
            |texts: &[&str]| Goal::new(objective(), texts.iter().map(|text| constraint(text)).collect());
        for wrong in [
            &["p99<20 ms", "p99>30 ms"][..],
            &["drops<0"],
            &["drops=0", "drops>0"],
            &["p99<20 ms", "mean<5 ms", "p99=20 ms"],
        ] {
            let error = goal(wrong).unwrap_err().to_string();
            assert!(error.contains("no value of"), "{wrong:?}: {error}");
        }
        for right in [&["p99<20 ms", "p99>10 ms"][..], &["drops=0", "drops<=0"], &["p99<20 ms", "mean<10 ms"]]
        {
            assert!(goal(right).is_ok(), "{right:?}");
        }
    }

    #[test]
    fn a_score_is_the_objective_and_the_distance_from_the_constraints() {
        let goal =
            Goal::new(Objective::new(Sense::Minimise, "slowdown").unwrap(), vec![constraint("drops=0")])
                .unwrap();
        assert_eq!(goal.score(&summary(0, 1.5), None), Score { violation: 0.0, objective: 1.5 });
        assert!(goal.score(&summary(3, 1.5), None).violation > 0.0);
        let most = Objective::new(Sense::Maximise, "tor.buffer").unwrap();
        let most = Goal::new(most, vec![constraint("p99<20 ms")]).unwrap();
        let score = most.score(&summary(0, 1.5), Some(7.0));
        assert_eq!((score.violation, score.objective), (f64::INFINITY, -7.0), "there is no p99");
    }
}
