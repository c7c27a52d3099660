//! Answers, and problem details of refused requests (RFC 9457).

use std::fmt;

use hyper::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::capture::CaptureStream;
use crate::command::CommandError;

/// An answer without an error.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A JSON object.
    Json(StatusCode, String),
    /// Status 204 without a body.
    Done,
    /// Text, with its media type.
    Text(&'static str, String),
    /// A running capture.
    Capture(CaptureStream),
}

impl Answer {
    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::with(StatusCode::OK, value)
    }

    pub(crate) fn with(status: StatusCode, value: &impl Serialize) -> Self {
        Self::Json(status, serde_json::to_string(value).expect("answers serialize to JSON"))
    }
}

/// Problem details of a refused request (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct Refusal {
    /// The kind of problem in a few words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// The problem of this request, with advice.
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

    pub(crate) fn unknown(kind: &'static str, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, CommandError::Unknown { kind, name: name.to_owned() })
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
