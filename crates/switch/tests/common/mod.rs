//! A network of namespaces around a switch: one for each host and one for the switch, joined by veth pairs.

#![allow(dead_code, reason = "each user takes what it needs")]

#[path = "../../../../tests/hang_guard.rs"]
pub(crate) mod hang_guard;
#[path = "../../../../tests/skip.rs"]
pub(crate) mod skip;

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fanin_switch::config::PortSpec;
use fanin_switch::{Config, Running, StartError};
use hang_guard::HangGuard;

/// The port on which hosts listen.
pub(crate) const PORT: u16 = 5000;

/// The namespaces; dropping this removes them.
pub(crate) struct Lab {
    prefix: String,
    hosts: usize,
}

fn command(words: &str) -> Result<(), String> {
    let mut parts = words.split_whitespace();
    let program = parts.next().unwrap_or_default();
    let output = Command::new(program).args(parts).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{words}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

impl Lab {
    /// Makes hosts 10.77.0.1 and so on, with the ports p0 and so on in the switch's namespace.
    ///
    /// Returns `None`, and skips the test, if the namespaces cannot be made.
    pub(crate) fn new(name: &str, hosts: usize, mtu: u32) -> Option<Self> {
        Self::with_queues(name, hosts, mtu, 1)
    }

    /// Makes hosts as [`Self::new`] does, with this number of queues at both ends of every pair.
    pub(crate) fn with_queues(name: &str, hosts: usize, mtu: u32, queues: u32) -> Option<Self> {
        let lab = Self { prefix: format!("sw-{name}-{}", std::process::id()), hosts };
        match lab.build(mtu, queues) {
            Ok(()) => Some(lab),
            Err(error) => {
                skip::skip(format!("namespaces need root, ip and ethtool: {error}"));
                None
            }
        }
    }

    fn build(&self, mtu: u32, queues: u32) -> Result<(), String> {
        let switch = self.switch();
        command(&format!("ip netns add {switch}"))?;
        quiet_namespace(&switch)?;
        for host in 0..self.hosts {
            let name = self.host(host);
            command(&format!("ip netns add {name}"))?;
            quiet_namespace(&name)?;
            self.join(host, mtu, queues)?;
        }
        Ok(())
    }

    /// Joins a host and the switch.
    fn join(&self, host: usize, mtu: u32, queues: u32) -> Result<(), String> {
        let (switch, name) = (self.switch(), self.host(host));
        let queues = format!("numtxqueues {queues} numrxqueues {queues}");
        // A recreated link has the address that the other hosts know.
        let mac = format!("address 02:00:00:00:00:{:02x}", host + 1);
        command(&format!(
            "ip -n {name} link add eth0 {mac} mtu {mtu} {queues} type veth peer name p{host} mtu {mtu} {queues} netns {switch}"
        ))?;
        // With offload frames carry no checksums, and have up to 64 kB.
        command(&format!("ip netns exec {name} ethtool -K eth0 tx off"))?;
        command(&format!("ip -n {name} addr add {}/24 dev eth0", address(host)))?;
        command(&format!("ip -n {name} link set eth0 up"))?;
        command(&format!("ip -n {switch} link set p{host} up"))
    }

    /// The switch's namespace.
    pub(crate) fn switch(&self) -> String {
        format!("{}-s", self.prefix)
    }

    /// A host's namespace.
    pub(crate) fn host(&self, host: usize) -> String {
        format!("{}-{host}", self.prefix)
    }

    /// Sets the state of a host's link.
    pub(crate) fn set_link(&self, host: usize, state: &str) {
        command(&format!("ip -n {} link set eth0 {state}", self.host(host))).expect("a link of our own");
    }

    /// Deletes a host's link.
    pub(crate) fn delete_link(&self, host: usize) {
        command(&format!("ip -n {} link del p{host}", self.switch())).expect("a link of our own");
    }

    /// Creates a host's link again, with the same names and address.
    pub(crate) fn make_link(&self, host: usize, mtu: u32) {
        self.join(host, mtu, 1).expect("a link of our own");
    }

    /// Number of queues by which frames have arrived at a host's port, by its driver's counters.
    pub(crate) fn queues_used(&self, host: usize) -> usize {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.switch(), "ethtool", "-S", &format!("p{host}")])
            .output()
            .expect("ethtool runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let count = |line: &str| -> Option<u64> {
            let (name, value) = line.trim().split_once(": ")?;
            (name.starts_with("rx_queue_") && name.ends_with("_xdp_packets")).then(|| value.parse().ok())?
        };
        text.lines().filter_map(count).filter(|&packets| packets > 0).count()
    }

    /// Packets, segments and datagrams that a host dropped for a wrong checksum.
    pub(crate) fn checksum_errors(&self, host: usize) -> u64 {
        let task = || ["snmp", "netstat"].iter().map(|name| count_of(name, "InCsumErrors")).sum();
        self.on(host, task).join().expect("counters can be read")
    }

    /// A configuration with all ports and defaults.
    pub(crate) fn config(&self) -> Config {
        let port =
            |host| PortSpec { interface: Some(format!("p{host}")), ..PortSpec::new(&format!("p{host}")) };
        Config { port: (0..self.hosts).map(port).collect(), ..Config::default() }
    }

    /// Starts a switch in its namespace. A separate thread does it, because it loses its capabilities.
    pub(crate) fn start(&self, config: &Config) -> Result<Running, StartError> {
        let config = config.clone();
        inside(&self.switch(), move || Running::start(&config))
            .join()
            .expect("the switch starts or says why not")
    }

    /// Runs a task in a thread in a host's namespace.
    pub(crate) fn on<T: Send + 'static>(
        &self,
        host: usize,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        inside(&self.host(host), task)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in (0..self.hosts).map(|host| self.host(host)).chain([self.switch()]) {
            let _ = command(&format!("ip netns del {name}"));
        }
    }
}

fn quiet_namespace(name: &str) -> Result<(), String> {
    // Tests count frames, without IPv6 neighbour discovery, and TCP payload, without time stamps (0.8 % of a line).
    let quiet = || {
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?;
        std::fs::write("/proc/sys/net/ipv4/tcp_timestamps", "0")
    };
    inside(name, quiet)
        .join()
        .map_err(|_| "a thread panicked".to_owned())?
        .map_err(|error| format!("disabling IPv6 and time stamps in {name}: {error}"))
}

/// Runs a task in a thread in a namespace.
pub(crate) fn inside<T: Send + 'static>(
    name: &str,
    task: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let path = format!("/run/netns/{name}");
    std::thread::spawn(move || {
        let file = File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        // SAFETY: moves the calling thread, which was started for this, into the namespace.
        let result = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(result, 0, "{path}: {}", std::io::Error::last_os_error());
        task()
    })
}

/// A counter of the calling thread's namespace, over all protocols of a file of /proc/net.
fn count_of(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).expect("counters");
    let lines: Vec<&str> = text.lines().collect();
    let mut sum = 0;
    let mut found = false;
    for pair in lines.chunks_exact(2) {
        let values = pair[1].split_whitespace();
        for (_, value) in pair[0].split_whitespace().zip(values).filter(|(key, _)| *key == name) {
            found = true;
            sum += value.parse::<u64>().expect("a number");
        }
    }
    assert!(found, "{file} has no {name}");
    sum
}

/// A host's address.
pub(crate) fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, (host / 250) as u8, (host % 250 + 1) as u8)
}

/// Chooses a socket's congestion control.
pub(crate) fn set_congestion_control(socket: &impl AsRawFd, name: &str) {
    let text = CString::new(name).expect("a plain name");
    // SAFETY: the kernel reads the bytes of the name.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            text.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    };
    assert_eq!(result, 0, "{name}: {}", std::io::Error::last_os_error());
}

/// Connects to a host; repeats while links come up.
pub(crate) fn connect(host: usize) -> TcpStream {
    let to = SocketAddr::from((address(host), PORT));
    let guard = HangGuard::new();
    loop {
        match TcpStream::connect_timeout(&to, Duration::from_secs(2)) {
            Ok(stream) => {
                stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket takes a timeout");
                stream.set_nodelay(true).expect("a socket takes an option");
                return stream;
            }
            Err(error) => guard.check(format_args!("{to}: {error}")),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The pseudo-random byte at an offset of a stream.
pub(crate) fn pattern(seed: u64, place: u64) -> u8 {
    ((place ^ seed.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
}

/// Sends bytes of a pattern to the first client.
pub(crate) fn serve_pattern(listener: &TcpListener, seed: u64, bytes: u64) {
    let (mut stream, _) = listener.accept().expect("a client connects");
    let block: Vec<u8> = (0..bytes).map(|place| pattern(seed, place)).collect();
    stream.write_all(&block).expect("the other side reads");
}

/// Reads bytes of a pattern; returns false if any is wrong.
pub(crate) fn read_pattern(stream: &mut TcpStream, seed: u64, bytes: u64) -> bool {
    let mut all = vec![0; bytes as usize];
    stream.read_exact(&mut all).expect("everything arrives");
    all.iter().zip(0..).all(|(&byte, place)| byte == pattern(seed, place))
}

/// Figures of a barrier-synchronised client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incast {
    /// Goodput of the answers, in bit/s.
    pub(crate) goodput: u64,
    /// Segments that the senders sent again.
    pub(crate) retransmits: u64,
    /// Retransmission timeouts of the senders.
    pub(crate) timeouts: u64,
}

/// Runs rounds of an incast: the first host requests `bytes` from all others at once, and waits for all answers.
pub(crate) fn incast(lab: &Lab, senders: usize, bytes: usize, time: Duration) -> Incast {
    let mut servers = Vec::new();
    for host in 1..=senders {
        let (ready, listens) = std::sync::mpsc::channel();
        servers.push(lab.on(host, move || {
            let listener =
                TcpListener::bind(SocketAddr::from((address(host), PORT))).expect("an address of our own");
            set_congestion_control(&listener, "cubic");
            ready.send(()).expect("the test waits");
            let (mut stream, _) = listener.accept().expect("the client connects");
            stream.set_nodelay(true).expect("a socket takes an option");
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket takes a timeout");
            let block = vec![7; bytes];
            let mut request = [0];
            while stream.read(&mut request).is_ok_and(|read| read > 0) {
                if stream.write_all(&block).is_err() {
                    break;
                }
            }
            counts(&stream)
        }));
        listens.recv().expect("a server listens");
    }
    let goodput = lab
        .on(0, move || {
            let mut streams: Vec<TcpStream> = (1..=senders).map(connect).collect();
            let mut block = vec![0; bytes];
            let mut received = 0u64;
            // The first rounds open the windows.
            let mut began = Instant::now();
            let mut warm = false;
            while began.elapsed() < time {
                if !warm && began.elapsed() > time / 5 {
                    (warm, received, began) = (true, 0, Instant::now());
                }
                for stream in &mut streams {
                    stream.write_all(&[1]).expect("the server is there");
                }
                for stream in &mut streams {
                    stream.read_exact(&mut block).expect("the answer arrives");
                    received += bytes as u64;
                }
            }
            received * 8_000_000 / began.elapsed().as_micros() as u64
        })
        .join()
        .expect("the client finishes");
    let (mut retransmits, mut timeouts) = (0, 0);
    for server in servers {
        let (again, late) = server.join().expect("the server finishes");
        (retransmits, timeouts) = (retransmits + again, timeouts + late);
    }
    Incast { goodput, retransmits, timeouts }
}

/// Offsets of `tcpi_total_retrans` and, since Linux 6.7, `tcpi_total_rto` in `struct tcp_info`.
const TOTAL_RETRANSMITS: usize = 100;
const TOTAL_TIMEOUTS: usize = 240;

/// Retransmitted segments of a connection, and its timeouts.
fn counts(stream: &TcpStream) -> (u64, u64) {
    let mut info = [0u8; 512];
    let mut bytes = info.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most the bytes of the buffer.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    assert_eq!(result, 0, "TCP_INFO: {}", std::io::Error::last_os_error());
    let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let timeouts = u16::from_ne_bytes([info[TOTAL_TIMEOUTS], info[TOTAL_TIMEOUTS + 1]]);
    (word(TOTAL_RETRANSMITS).into(), timeouts.into())
}
