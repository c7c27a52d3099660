//! A small HTTP/1.1 server for `/metrics`, `/healthz` and `/readyz`: one thread serves many clients at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Maximum time from `accept` until the response is written; the connection is closed afterwards.
const REQUEST_MAX: Duration = Duration::from_secs(2);
/// Maximum size of a request's head, bytes.
const REQUEST_BYTES_MAX: usize = 8192;
/// Maximum number of connections at a time. A further connection closes the oldest one.
const CONNECTIONS_MAX: usize = 64;

/// The response to a GET request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Status code and reason, such as `200 OK`.
    pub status: &'static str,
    /// Value of `Content-Type`.
    pub kind: &'static str,
    /// Body of the response.
    pub body: String,
}

/// A client's connection: the request as far as it was received, then the rest of the response.
struct HttpConnection {
    stream: TcpStream,
    until: Instant,
    request: Vec<u8>,
    answer: Option<Vec<u8>>,
}

/// State of a connection after one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waits,
    Done,
}

/// Starts a thread that serves requests until the process ends, and returns the address with its port. `answer` receives
/// the path of each request.
///
/// # Errors
/// If the kernel refuses the address or a thread.
pub fn serve(
    address: SocketAddr,
    answer: impl Fn(&str) -> HttpAnswer + Send + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    std::thread::Builder::new().name("metrics".to_owned()).spawn(move || run(&listener, &answer))?;
    Ok(address)
}

fn run(listener: &TcpListener, answer: &impl Fn(&str) -> HttpAnswer) {
    let mut connections: Vec<HttpConnection> = Vec::new();
    loop {
        assert!(connections.len() <= CONNECTIONS_MAX);
        wait(listener, &connections);
        accept(listener, &mut connections);
        let now = Instant::now();
        connections.retain_mut(|connection| {
            now < connection.until && matches!(connection.proceed(answer), Ok(Progress::Waits))
        });
    }
}

/// Waits until a client connects, a connection is readable or writable, or the first time limit is reached.
fn wait(listener: &TcpListener, connections: &[HttpConnection]) {
    let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
    fds.extend(connections.iter().map(|connection| {
        let wanted = if connection.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&connection.stream, wanted)
    }));
    let until = connections.iter().map(|connection| connection.until).min();
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    // An interrupted call is repeated by the caller's loop.
    let _ = poll(&mut fds, left.as_ref());
}

fn accept(listener: &TcpListener, connections: &mut Vec<HttpConnection>) {
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => {
                // Without free descriptors the listener stays readable: the pause prevents a busy loop.
                tracing::debug!(%error, "cannot accept a connection for metrics");
                std::thread::sleep(Duration::from_millis(100));
                return;
            }
        };
        if stream.set_nonblocking(true).is_err() {
            continue;
        }
        if connections.len() == CONNECTIONS_MAX {
            connections.remove(0);
        }
        let until = Instant::now() + REQUEST_MAX;
        connections.push(HttpConnection { stream, until, request: Vec::new(), answer: None });
    }
}

impl HttpConnection {
    /// Reads and writes until the socket would block.
    fn proceed(&mut self, answer: &impl Fn(&str) -> HttpAnswer) -> io::Result<Progress> {
        while self.answer.is_none() {
            let mut block = [0; 1024];
            let count = match self.stream.read(&mut block) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Waits),
                Err(error) => return Err(error),
            };
            self.request.extend_from_slice(&block[..count]);
            let is_whole = self.request.windows(4).any(|end| end == b"\r\n\r\n");
            if is_whole || count == 0 || self.request.len() >= REQUEST_BYTES_MAX {
                self.answer = Some(respond(&self.request, answer));
            }
        }
        while let Some(left) = self.answer.as_mut().filter(|left| !left.is_empty()) {
            match self.stream.write(left) {
                Ok(count) => drop(left.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Waits),
                Err(error) => return Err(error),
            }
        }
        Ok(Progress::Done)
    }
}

/// Returns the whole response to a request's head.
fn respond(request: &[u8], answer: &impl Fn(&str) -> HttpAnswer) -> Vec<u8> {
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let HttpAnswer { status, kind, body } = match method {
        "GET" | "HEAD" => answer(path),
        _ => HttpAnswer {
            status: "405 Method Not Allowed",
            kind: "text/plain",
            body: "only GET and HEAD are served\n".to_owned(),
        },
    };
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if method == "GET" {
        text += &body;
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn idle_clients_delay_no_other_and_are_bounded() {
        let echo = |path: &str| HttpAnswer {
            status: "200 OK",
            kind: "text/plain",
            body: format!("{path}\n").repeat(200_000),
        };
        let address = serve("127.0.0.1:0".parse().unwrap(), echo).unwrap();
        // More clients than are served at a time. One of them requests a large response and never reads it.
        let mut idle: Vec<TcpStream> =
            (0..CONNECTIONS_MAX + 20).map(|_| TcpStream::connect(address).unwrap()).collect();
        idle[CONNECTIONS_MAX].write_all(b"GET /large HTTP/1.1\r\n\r\n").unwrap();
        let text = get(address, "GET /healthz?x HTTP/1.1\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\n/healthz\n"));
        assert!(get(address, "HEAD / HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
        assert!(get(address, "PUT / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    }
}
