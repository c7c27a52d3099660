//! One GET of `/metrics`.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use fanin_testbed::Namespace;

use super::target::{MetricsEndpoint, TopTarget};

/// Longest time from the connect until the last byte.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
/// The most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Fetches the text of a target's metrics.
///
/// # Errors
/// The reason in words.
pub(super) fn fetch(target: &TopTarget, token: Option<&str>) -> Result<String, String> {
    let until = Instant::now() + TIMEOUT;
    let (stream, host) = match &target.endpoint {
        MetricsEndpoint::Socket(path) => {
            let connected = UnixStream::connect(path);
            (connected.map(MetricsStream::Unix), "localhost".to_owned())
        }
        MetricsEndpoint::Tcp(address) => (connect(address), address.clone()),
        MetricsEndpoint::Namespace { address, namespace } => {
            let inside = Namespace::open(namespace).and_then(|inside| inside.run(|| connect(address)));
            (inside.map_err(|error| error.to_string())?, address.clone())
        }
    };
    let mut stream = stream.map_err(|error| reason(&error))?;
    // HTTP/1.0: the answer ends with the connection and comes in one piece.
    let mut request = format!("GET /metrics HTTP/1.0\r\nHost: {host}\r\n");
    if let Some(token) = token {
        request += &format!("Authorization: Bearer {token}\r\n");
    }
    let answer = stream.exchange(&(request + "\r\n"), until).map_err(|error| reason(&error))?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").ok_or("the answer is not HTTP")?;
    let line = head.lines().next().unwrap_or_default();
    let status = line.split_once(' ').map_or(line, |(_, status)| status);
    if status.starts_with("200") { Ok(body.to_owned()) } else { Err(refusal(status, body)) }
}

fn refusal(status: &str, body: &str) -> String {
    if status.starts_with("401") {
        return format!("it answers {status}: give its token with --token-file");
    }
    let line = body.lines().next().unwrap_or_default();
    format!("it answers {status}: {line}")
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("no answer within {} s", TIMEOUT.as_secs())
        }
        ErrorKind::ConnectionRefused => "nothing listens there: connection refused".to_owned(),
        _ => error.to_string(),
    }
}

fn connect(address: &str) -> io::Result<MetricsStream> {
    let mut failed = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT / 2) {
            Ok(stream) => return Ok(MetricsStream::Tcp(stream)),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

enum MetricsStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl MetricsStream {
    fn exchange(&mut self, request: &str, until: Instant) -> io::Result<Vec<u8>> {
        self.limit(until)?;
        match self {
            Self::Tcp(stream) => stream.write_all(request.as_bytes())?,
            Self::Unix(stream) => stream.write_all(request.as_bytes())?,
        }
        let (mut answer, mut block) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            self.limit(until)?;
            let count = match self {
                Self::Tcp(stream) => stream.read(&mut block)?,
                Self::Unix(stream) => stream.read(&mut block)?,
            };
            answer.extend_from_slice(&block[..count]);
            if count == 0 {
                return Ok(answer);
            }
            if answer.len() > ANSWER_BYTES_MAX {
                return Err(io::Error::other("the answer is too long"));
            }
        }
    }

    fn limit(&self, until: Instant) -> io::Result<()> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        match self {
            Self::Tcp(stream) => {
                stream.set_write_timeout(Some(left))?;
                stream.set_read_timeout(Some(left))
            }
            Self::Unix(stream) => {
                stream.set_write_timeout(Some(left))?;
                stream.set_read_timeout(Some(left))
            }
        }
    }
}
