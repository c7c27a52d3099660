//! Problems of a file: the fault, its place, and a remedy.

use std::fmt;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::tree::SourcePlace;

/// One problem of a scenario.
#[derive(Debug, Clone)]
pub struct Problem {
    pub(crate) message: String,
    /// The caret's label.
    pub(crate) label: String,
    pub(crate) place: Option<SourcePlace>,
    /// A second place that is part of the problem, and its label.
    pub(crate) other: Option<(SourcePlace, String)>,
    pub(crate) help: Vec<String>,
}

impl Problem {
    pub(crate) fn at(place: SourcePlace, message: String) -> Self {
        Self { message, label: String::new(), place: Some(place), other: None, help: Vec::new() }
    }

    pub(crate) fn anywhere(message: String) -> Self {
        Self { message, label: String::new(), place: None, other: None, help: Vec::new() }
    }

    /// Returns the fault, in one sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns file, line and column; `None` if no file is at fault. Line and column count from 1.
    pub fn location(&self) -> Option<(&str, usize, usize)> {
        let place = self.place.as_ref()?;
        let before = &place.source.text[..place.span.start.min(place.source.text.len())];
        let column = 1 + before.chars().rev().take_while(|&c| c != '\n').count();
        Some((&place.source.name, place.line(), column))
    }

    /// Returns correct values or remedies.
    pub fn help(&self) -> &[String] {
        &self.help
    }

    fn render(&self, level: &Level<'_>, renderer: &Renderer) -> String {
        let mut group = match &self.place {
            None => annotate_snippets::Group::with_title(level.clone().primary_title(&self.message)),
            Some(place) => {
                let mut snippet = snippet(place)
                    .annotation(AnnotationKind::Primary.span(shown(place)).label(self.label.as_str()));
                let mut more = None;
                match &self.other {
                    Some((other, label)) if other.source == place.source => {
                        snippet = snippet
                            .annotation(AnnotationKind::Context.span(shown(other)).label(label.as_str()));
                    }
                    Some((other, label)) => {
                        more = Some(
                            self::snippet(other)
                                .annotation(AnnotationKind::Context.span(shown(other)).label(label.as_str())),
                        );
                    }
                    None => {}
                }
                let group = level.clone().primary_title(&self.message).element(snippet);
                more.into_iter().fold(group, annotate_snippets::Group::element)
            }
        };
        for help in &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

fn snippet(place: &SourcePlace) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    Snippet::source(place.source.text.as_str()).path(place.source.name.as_str())
}

/// Returns the part of a value to mark: only the first line of a value that spans several lines, and nothing beyond the value's
/// end.
fn shown(place: &SourcePlace) -> std::ops::Range<usize> {
    let text = &place.source.text;
    let start = place.span.start.min(text.len());
    let end = place.span.end.clamp(start, text.len());
    let line = text[start..end].find('\n').map_or(end, |newline| start + newline);
    start..line
}

/// All problems of a scenario, at least one.
#[derive(Debug, Clone)]
pub struct Errors(pub(crate) Vec<Problem>);

impl Errors {
    /// Returns the problems, in the order of the file as far as possible.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }

    /// Returns the problems as text for a terminal, each with its line and a caret.
    pub fn render(&self, colour: bool) -> String {
        render(&self.0, &Level::ERROR, colour)
    }
}

/// Settings that are valid but most likely not intended.
#[derive(Debug, Clone)]
pub struct Warnings(pub(crate) Vec<Problem>);

impl Warnings {
    /// Returns the warnings, in no particular order.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }

    /// Returns the warnings as text for a terminal; may be empty.
    pub fn render(&self, colour: bool) -> String {
        render(&self.0, &Level::WARNING, colour)
    }
}

fn render(problems: &[Problem], level: &Level<'_>, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    problems.iter().map(|problem| problem.render(level, &renderer)).collect::<Vec<_>>().join("\n\n")
}

impl fmt::Display for Errors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.render(false))
    }
}

impl std::error::Error for Errors {}
