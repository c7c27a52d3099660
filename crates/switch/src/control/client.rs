//! A client for one request at a time, over the local socket or HTTP.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::control::body::{ResponseBody, collect};
use crate::control::query::encode;

/// The longest time to wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The largest answer; larger ones are refused.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Address of a switch's control interface.
#[derive(Debug, Clone)]
pub enum ControlAddress {
    /// The local socket of the switch.
    Socket(PathBuf),
    /// HTTP, with the token if it needs one.
    Http(SocketAddr, Option<String>),
}

impl fmt::Display for ControlAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(out, "{}", path.display()),
            Self::Http(address, _) => write!(out, "http://{address}"),
        }
    }
}

/// An error of a request.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection fails.
    #[error("no switch answers at {address}: {error}")]
    Connect {
        /// Address of the switch.
        address: String,
        /// The system's error.
        error: io::Error,
    },
    /// The answer does not come from a switch.
    #[error("{address} does not answer like a switch: {reason}")]
    Protocol {
        /// Address of the switch.
        address: String,
        /// The fault in its answer.
        reason: String,
    },
    /// The switch did not answer in time.
    #[error("the switch at {address} has not answered for {} s", TIMEOUT.as_secs())]
    Silent {
        /// Address of the switch.
        address: String,
    },
    /// The switch refuses the request.
    #[error("{detail} (status {status})")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// The reason that the switch gives.
        detail: String,
    },
    /// The answer cannot be written.
    #[error("cannot write: {0}")]
    Write(io::Error),
}

/// An answer of the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status of HTTP.
    pub status: u16,
    /// Media type of the body; empty if the answer has none.
    pub kind: String,
    /// The body, as it was received.
    pub body: Vec<u8>,
}

/// A client of one switch.
#[derive(Debug, Clone)]
pub struct Client {
    address: ControlAddress,
}

impl Client {
    /// Makes a client of the switch at an address.
    pub fn new(address: ControlAddress) -> Self {
        Self { address }
    }

    /// Percent-encodes a name for a path or a parameter.
    pub fn escape(name: &str) -> String {
        encode(name)
    }

    /// Sends a GET request and parses the answer's body as JSON.
    ///
    /// # Errors
    /// If there is no answer, the switch refuses, or the body is not JSON.
    pub fn read(&self, path: &str) -> Result<Value, ClientError> {
        self.send_for_json("GET", path, None)
    }

    /// Sends a PATCH request and parses the answer's body as JSON: the changed item.
    ///
    /// # Errors
    /// If there is no answer, the switch refuses, or the body is not JSON.
    pub fn change(&self, path: &str, changes: &Value) -> Result<Value, ClientError> {
        self.send_for_json("PATCH", path, Some(changes))
    }

    fn send_for_json(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        let response = self.send(method, path, body)?;
        serde_json::from_slice(&response.body).map_err(|error| self.strange(error))
    }

    /// Sends a request with or without a body of JSON.
    ///
    /// # Errors
    /// If there is no answer, or a refusal.
    ///
    /// # Panics
    /// If the method or the path is invalid.
    pub fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Response, ClientError> {
        let response = self.exchange(method, path, body)?;
        if response.status >= 400 {
            return Err(refused(response.status, &response.body));
        }
        Ok(response)
    }

    /// Sends a request as [`Self::send`] does, but returns a refusal as an answer.
    ///
    /// # Errors
    /// If there is no answer.
    ///
    /// # Panics
    /// If the method or the path is invalid.
    pub fn exchange(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Response, ClientError> {
        self.wait(async {
            let response = self.request(method, path, body).await?;
            let status = response.status().as_u16();
            let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let kind = kind.unwrap_or_default().to_owned();
            let body = match timeout(TIMEOUT, collect(response.into_body(), ANSWER_BYTES_MAX)).await {
                Ok(Ok(body)) => body,
                Ok(Err(error)) => return Err(self.strange(format_args!("{error:?}"))),
                Err(_) => return Err(self.silent()),
            };
            Ok(Response { status, kind, body })
        })
    }

    /// Sends a GET request and writes the parts of the answer as they arrive. Returns the number of bytes.
    ///
    /// # Errors
    /// If there is no answer, or a refusal, or writing fails.
    ///
    /// # Panics
    /// If the path is invalid.
    pub fn download(&self, path: &str, mut into: impl Write) -> Result<u64, ClientError> {
        self.wait(async {
            let response = self.request("GET", path, None).await?;
            let status = response.status().as_u16();
            if status >= 400 {
                let body = collect(response.into_body(), ANSWER_BYTES_MAX).await.unwrap_or_default();
                return Err(refused(status, &body));
            }
            let mut written = 0;
            let mut body = pin!(response.into_body());
            while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
                let Ok(bytes) = frame.map_err(|error| self.strange(error))?.into_data() else { continue };
                into.write_all(&bytes).map_err(ClientError::Write)?;
                written += bytes.len() as u64;
            }
            into.flush().map_err(ClientError::Write)?;
            Ok(written)
        })
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime
            .map_err(|error| ClientError::Connect { address: self.address.to_string(), error })?
            .block_on(work)
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<hyper::Response<Incoming>, ClientError> {
        let connect = |error| ClientError::Connect { address: self.address.to_string(), error };
        let mut request = Request::new(ResponseBody::Whole(Bytes::new()));
        *request.method_mut() = Method::from_bytes(method.as_bytes()).expect("a method");
        *request.uri_mut() = path.parse().expect("a path");
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        let mut host = "localhost".to_owned();
        if let ControlAddress::Http(address, token) = &self.address {
            host = address.to_string();
            if let Some(token) = token {
                let value = HeaderValue::try_from(format!("Bearer {token}"));
                headers.insert(AUTHORIZATION, value.map_err(|error| self.strange(error))?);
            }
        }
        headers.insert(HOST, HeaderValue::try_from(host).expect("an address"));
        if let Some(body) = body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = ResponseBody::Whole(Bytes::from(body.to_string()));
        }
        let answer = async {
            match &self.address {
                ControlAddress::Socket(path) => {
                    self.ask(tokio::net::UnixStream::connect(path).await.map_err(connect)?, request).await
                }
                ControlAddress::Http(address, _) => {
                    self.ask(tokio::net::TcpStream::connect(address).await.map_err(connect)?, request).await
                }
            }
        };
        timeout(TIMEOUT, answer).await.map_err(|_| self.silent())?
    }

    async fn ask<S>(
        &self,
        stream: S,
        request: Request<ResponseBody>,
    ) -> Result<hyper::Response<Incoming>, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.strange(error))?;
        // The request reports errors of the connection.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        sender.send_request(request).await.map_err(|error| self.strange(error))
    }

    fn strange(&self, reason: impl fmt::Display) -> ClientError {
        ClientError::Protocol { address: self.address.to_string(), reason: reason.to_string() }
    }

    fn silent(&self) -> ClientError {
        ClientError::Silent { address: self.address.to_string() }
    }
}

fn refused(status: u16, body: &[u8]) -> ClientError {
    let problem: Option<Value> = serde_json::from_slice(body).ok();
    let detail =
        problem.as_ref().and_then(|problem| problem["detail"].as_str()).unwrap_or("the switch refuses");
    ClientError::Refused { status, detail: detail.to_owned() }
}
