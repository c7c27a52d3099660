//! What is answered, and how it is said that something was wrong (RFC 9457).

use std::fmt;

use hyper::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::capture::Stream;
use crate::command::CommandError;

/// A good answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A JSON object.
    Json(StatusCode, String),
    /// Done, and nothing to say.
    Done,
    /// Text of another kind.
    Text(&'static str, String),
    /// A capture, while it is made.
    Capture(Stream),
}

impl Answer {
    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::with(StatusCode::OK, value)
    }

    pub(crate) fn with(status: StatusCode, value: &impl Serialize) -> Self {
        Self::Json(status, serde_json::to_string(value).expect("what is answered is JSON"))
    }
}

/// What was wrong with a request, as RFC 9457 writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct Refusal {
    /// The kind of problem in a few words.
    title: &'static str,
    /// The status of HTTP once more.
    status: u16,
    /// What was wrong with this request, and what would be right.
    detail: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, detail: impl fmt::Display) -> Self {
        Self {
            title: status.canonical_reason().unwrap_or("Refused"),
            status: status.as_u16(),
            detail: detail.to_string(),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).expect("made from one")
    }

    pub(crate) fn unknown(what: &'static str, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, CommandError::Unknown { what, name: name.to_owned() })
    }
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Self {
        let status = match &error {
            CommandError::Wrong(_) => StatusCode::UNPROCESSABLE_ENTITY,
            CommandError::Unknown { .. } => StatusCode::NOT_FOUND,
            CommandError::Exists { .. }
            | CommandError::InUse { .. }
            | CommandError::Moved { .. }
            | CommandError::Full { .. } => StatusCode::CONFLICT,
            CommandError::Busy | CommandError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error)
    }
}
