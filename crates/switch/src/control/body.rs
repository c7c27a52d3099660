//! Bodies of requests and answers, both bounded.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

/// The most bytes of a request's body: a ring or a rule takes a few hundred.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;

/// The body of an answer.
pub(crate) enum ResponseBody {
    /// All bytes at once.
    Whole(Bytes),
    /// Parts from a channel; ends when the sender is dropped.
    Stream(Receiver<Bytes>),
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(queue) => {
                queue.poll_recv(context).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// An error while a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// More bytes than allowed.
    TooLarge,
    /// The connection broke, or the body is not HTTP.
    Broken,
}

/// Reads a body of at most `bytes_max` bytes.
pub(crate) async fn collect<B: Body<Data = Bytes>>(body: B, bytes_max: usize) -> Result<Vec<u8>, BodyError> {
    // A body with a declared length above the limit is refused before it is read.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut body = pin!(body);
    let mut all = Vec::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let Ok(frame) = frame else { return Err(BodyError::Broken) };
        let Ok(data) = frame.into_data() else { continue };
        if all.len() + data.len() > bytes_max {
            return Err(BodyError::TooLarge);
        }
        all.extend_from_slice(&data);
    }
    Ok(all)
}
