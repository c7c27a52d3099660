//! Strangers do not keep a switch's clients out.

#[path = "../../../tests/hang_guard.rs"]
mod hang_guard;
#[path = "../examples/busy/traffic.rs"]
mod traffic;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use fanin_switch::Running;
use fanin_switch::control::{ControlServer, ControlSettings};
use hang_guard::HangGuard;
use tokio::net::TcpSocket;

const TOKEN: &str = "correct-horse-battery";
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Connections at a time.
const PLACES: usize = 32;

/// Connects from an address of this machine.
fn connect_from(caller: [u8; 4], to: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connected = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((caller, 0))).unwrap();
        socket.connect(to).await.unwrap()
    });
    let stream = connected.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
    stream
}

/// Sends a request, and returns the start of the answer.
fn ask(stream: &mut TcpStream, path: &str, headers: &str) -> String {
    // A connection that was closed may refuse the request.
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    status(stream)
}

fn status(stream: &mut TcpStream) -> String {
    let mut answer = [0; 12];
    let read = stream.read_exact(&mut answer);
    read.map_or_else(|error| error.to_string(), |()| String::from_utf8_lossy(&answer).into_owned())
}

fn server() -> (Running, ControlServer, SocketAddr) {
    let config = traffic::config();
    let ports = traffic::Traffic::new(&config, 100, Arc::default());
    let running = Running::over(&config, vec![ports]).unwrap();
    let settings = ControlSettings {
        http: Some("127.0.0.1:0".parse().unwrap()),
        token: Some(TOKEN.to_owned()),
        ..ControlSettings::default()
    };
    let server = ControlServer::start(&settings, running.operation()).unwrap();
    let address = server.http_address().unwrap();
    (running, server, address)
}

#[test]
fn idle_connections_of_one_address_leave_places_for_others() {
    let (running, server, address) = server();
    let authorized = format!("authorization: Bearer {TOKEN}\r\n");
    // Clients whose connections stay open: one has shown the token, and one has sent nothing yet.
    let mut kept = connect_from([127, 0, 0, 2], address);
    assert_eq!(ask(&mut kept, "/metrics", &authorized), "HTTP/1.1 200");
    let mut waiting = connect_from([127, 0, 0, 1], address);
    let mut idle: Vec<TcpStream> = (0..2 * PLACES).map(|_| connect_from([127, 0, 0, 2], address)).collect();
    let mut client = connect_from([127, 0, 0, 1], address);
    assert_eq!(ask(&mut client, "/healthz", "connection: close\r\n"), "HTTP/1.1 200");
    let mut client = connect_from([127, 0, 0, 1], address);
    assert_eq!(ask(&mut client, "/metrics", &authorized), "HTTP/1.1 200");
    assert_eq!(ask(&mut waiting, "/metrics", &authorized), "HTTP/1.1 200");
    // The oldest ones made room; the first client's address has most connections, and it showed the token.
    assert_eq!(idle[0].read(&mut [0]).unwrap(), 0);
    let _ = write!(kept, "GET /nowhere HTTP/1.1\r\nhost: localhost\r\n{authorized}connection: close\r\n\r\n");
    let mut rest = String::new();
    kept.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("HTTP/1.1 404 "), "{rest}");
    server.stop();
    running.stop();
}

#[test]
fn clients_with_the_token_are_not_displaced() {
    let (running, server, address) = server();
    let authorized = format!("authorization: Bearer {TOKEN}\r\n");
    let mut clients: Vec<TcpStream> = (0..PLACES).map(|_| connect_from([127, 0, 0, 2], address)).collect();
    for client in &mut clients {
        assert_eq!(ask(client, "/nowhere", &authorized), "HTTP/1.1 404");
    }
    // A refused connection is closed without reading, which would lose the answer if there were a request.
    assert_eq!(status(&mut connect_from([127, 0, 0, 1], address)), "HTTP/1.1 503");
    drop(clients.pop());
    let guard = HangGuard::new();
    while ask(&mut connect_from([127, 0, 0, 1], address), "/healthz", "") != "HTTP/1.1 200" {
        guard.check("an answer");
        std::thread::sleep(Duration::from_millis(10));
    }
    server.stop();
    running.stop();
}
