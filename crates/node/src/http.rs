//! A small HTTP/1.1 server for `/metrics`, `/healthz` and `/readyz`: one thread serves many clients at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fanin_message::{CallerRates, caller_group, first_of_most};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Maximum time from `accept` until the response is written; the connection is closed afterwards.
const REQUEST_MAX: Duration = Duration::from_secs(2);
/// Maximum size of a request's head, bytes.
const REQUEST_BYTES_MAX: usize = 8192;
/// Maximum number of connections at a time. A further connection closes the oldest one of the address that has most of
/// them.
const CONNECTIONS_MAX: usize = 64;
/// Maximum number of connections that are accepted before requests are read again.
const ACCEPTS_MAX: usize = 16;
/// End of a request's head.
const HEAD_END: &[u8] = b"\r\n\r\n";

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
    caller: IpAddr,
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

/// A listening socket and the limit to the rate of its connections.
struct HttpListener {
    socket: TcpListener,
    rates: CallerRates,
    /// Number of connections that were closed because their address connects too often.
    too_frequent: Arc<AtomicU64>,
}

/// Starts a thread that serves requests until the process ends, and returns the address with its port. `answer` receives
/// the path of each request. Connections of an address beyond `per_second` are closed, and counted in `too_frequent`.
///
/// # Errors
/// If the kernel refuses the address or a thread.
pub fn serve(
    address: SocketAddr,
    per_second: u32,
    too_frequent: Arc<AtomicU64>,
    answer: impl Fn(&str) -> HttpAnswer + Send + 'static,
) -> io::Result<SocketAddr> {
    let socket = TcpListener::bind(address)?;
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    let listener = HttpListener { socket, rates: CallerRates::new(per_second), too_frequent };
    std::thread::Builder::new().name("metrics".to_owned()).spawn(move || run(listener, &answer))?;
    Ok(address)
}

fn run(mut listener: HttpListener, answer: &impl Fn(&str) -> HttpAnswer) {
    let mut connections: Vec<HttpConnection> = Vec::new();
    loop {
        assert!(connections.len() <= CONNECTIONS_MAX);
        let ready = wait(&listener.socket, &connections);
        let mut ready = ready.into_iter();
        let has_callers = ready.next() == Some(true);
        let now = Instant::now();
        connections.retain_mut(|connection| {
            let is_ready = ready.next() == Some(true);
            now < connection.until && (!is_ready || matches!(connection.proceed(answer), Ok(Progress::Waits)))
        });
        if has_callers {
            accept(&mut listener, &mut connections);
        }
    }
}

/// Waits until a client connects, a connection is readable or writable, or the first time limit is reached. Returns which of
/// them are ready, the listener first.
fn wait(listener: &TcpListener, connections: &[HttpConnection]) -> Vec<bool> {
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
    fds.iter().map(|fd| !fd.revents().is_empty()).collect()
}

fn accept(listener: &mut HttpListener, connections: &mut Vec<HttpConnection>) {
    for _ in 0..ACCEPTS_MAX {
        let (stream, caller) = match listener.socket.accept() {
            Ok((stream, caller)) => (stream, caller.ip()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => {
                // Without free descriptors the listener stays readable: the pause prevents a busy loop.
                tracing::debug!(%error, "cannot accept a connection for metrics");
                std::thread::sleep(Duration::from_millis(100));
                return;
            }
        };
        let now = Instant::now();
        if !listener.rates.admit(caller, now) {
            listener.too_frequent.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        if stream.set_nonblocking(true).is_err() {
            continue;
        }
        if connections.len() == CONNECTIONS_MAX {
            let callers = connections.iter().map(|connection| connection.caller);
            connections.remove(first_of_most(callers).unwrap_or(0));
        }
        let (caller, until) = (caller_group(caller), now + REQUEST_MAX);
        connections.push(HttpConnection { stream, caller, until, request: Vec::new(), answer: None });
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
            // Earlier bytes are not looked at again, or a head that comes byte by byte would be costly.
            let seen = self.request.len().saturating_sub(HEAD_END.len() - 1);
            self.request.extend_from_slice(&block[..count]);
            let is_whole = self.request[seen..].windows(HEAD_END.len()).any(|end| end == HEAD_END);
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
    use rustix::net::{AddressFamily, SocketType, bind, socket};

    use super::*;

    fn get(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn served(answer: impl Fn(&str) -> HttpAnswer + Send + 'static) -> SocketAddr {
        serve("127.0.0.1:0".parse().unwrap(), 1000, Arc::default(), answer).unwrap()
    }

    fn connect_from(caller: [u8; 4], address: SocketAddr) -> TcpStream {
        let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&fd, &SocketAddr::from((caller, 0))).unwrap();
        rustix::net::connect(&fd, &address).unwrap();
        let stream = TcpStream::from(fd);
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    #[test]
    fn idle_clients_delay_no_other_and_are_bounded() {
        let echo = |path: &str| HttpAnswer {
            status: "200 OK",
            kind: "text/plain",
            body: format!("{path}\n").repeat(200_000),
        };
        let address = served(echo);
        // More clients than are served at a time. One of them requests a large response and never reads it.
        let mut idle: Vec<TcpStream> =
            (0..CONNECTIONS_MAX + 20).map(|_| TcpStream::connect(address).unwrap()).collect();
        idle[CONNECTIONS_MAX].write_all(b"GET /large HTTP/1.1\r\n\r\n").unwrap();
        let text = get(address, "GET /healthz?x HTTP/1.1\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\n/healthz\n"));
        assert!(get(address, "HEAD / HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
        assert!(get(address, "PUT / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    }

    fn echo(path: &str) -> HttpAnswer {
        HttpAnswer { status: "200 OK", kind: "text/plain", body: format!("{path}\n") }
    }

    #[test]
    fn an_address_that_connects_too_often_is_closed_alone() {
        let too_frequent: Arc<AtomicU64> = Arc::default();
        let address = serve("127.0.0.1:0".parse().unwrap(), 1, Arc::clone(&too_frequent), echo).unwrap();
        // One connection a second is permitted.
        let closed = (0..CONNECTIONS_MAX / 2).map(|_| connect_from([127, 0, 0, 2], address)).filter_map(
            |mut stream| {
                // A connection that is closed at once may refuse the request.
                stream.write_all(b"GET / HTTP/1.1\r\n\r\n").err().or_else(|| match stream.read(&mut [0]) {
                    Ok(0) => Some(ErrorKind::UnexpectedEof.into()),
                    Ok(_) => None,
                    Err(error) => Some(error),
                })
            },
        );
        let closed = closed.count() as u64;
        assert!(closed > 0 && closed == too_frequent.load(Ordering::Relaxed), "{closed}, {too_frequent:?}");
        assert!(get(address, "GET /other HTTP/1.1\r\n\r\n").ends_with("\n/other\n"));
    }

    #[test]
    fn a_client_is_displaced_by_its_own_address_alone() {
        let address = served(echo);
        let mut patient = connect_from([127, 0, 0, 1], address);
        patient.write_all(b"GET /late HTTP/1.1\r\n").unwrap();
        let mut flood: Vec<TcpStream> =
            (0..CONNECTIONS_MAX + 20).map(|_| connect_from([127, 0, 0, 2], address)).collect();
        // The last one that is displaced: all were accepted.
        assert_eq!(flood[20].read(&mut [0]).unwrap(), 0);
        patient.write_all(b"\r\n").unwrap();
        let mut text = String::new();
        patient.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("\n/late\n"), "{text}");
    }

    #[test]
    fn a_head_in_single_bytes_is_answered_at_its_end() {
        let address = served(echo);
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        for byte in b"GET /slow HTTP/1.1\r\nX: \r\r\n\r\n" {
            stream.write_all(&[*byte]).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("\n/slow\n"), "{text}");
    }
}
