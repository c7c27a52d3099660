"""Open vSwitch with its userspace datapath, stations around it, and our switch behind its host ports.

All of it is in namespaces under a name of its own, and goes away with the test, also after a failure.
"""

import contextlib
import ctypes
import hashlib
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
PACKET_OUTGOING = 4
ETH_P_ALL = 3
WAIT_SECONDS_MAX = 20
TOOLS = (
    "ovs-vswitchd",
    "ovsdb-server",
    "ovsdb-tool",
    "ovsdb-client",
    "ovs-vsctl",
    "ovs-ofctl",
    "ovs-appctl",
    "ethtool",
    "ip",
)
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
BYTES = 1_000_000
# Ports of the switch with their OpenFlow numbers, and the stations behind them.
STATIONS = {"r1": 1, "r2": 2, "c1": 3, "c2": 4}
HOST_PORTS = {"pep0": 11, "pep1": 12}


def missing() -> str | None:
    """Return why these tests cannot run, if they cannot."""
    if os.geteuid() != 0:
        return "needs root for network namespaces"
    for tool in TOOLS:
        if shutil.which(tool) is None:
            return f"{tool} is missing: apt-get install openvswitch-switch ethtool iproute2"
    return None


def mac(station: str) -> str:
    return f"02:00:00:00:00:{STATIONS[station]:02x}"


def address(station: str) -> str:
    return f"10.77.0.{STATIONS[station]}"


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Enter a network namespace with this thread; sockets made there stay there."""
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{namespace}") as there:
        assert LIBC.setns(there.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert LIBC.setns(home.fileno(), CLONE_NEWNET) == 0


def wait_for(awaited: str, condition: Callable[[], object]) -> None:
    """Wait until something is so, for a limited time."""
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, f"waited {WAIT_SECONDS_MAX} s for {awaited}"
        time.sleep(0.02)


class Tap:
    """Counts the frames that arrive at an interface, and sends them back to the address in its argument."""

    def __init__(self, namespace: str, interface: str, *, reflect: bool) -> None:
        self.frames: list[bytes] = []
        self.reflect = reflect
        self.stopped = threading.Event()
        with inside(namespace):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.bind((interface, ETH_P_ALL))
        self.socket.settimeout(0.1)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                frame, where = self.socket.recvfrom(65536)
            except TimeoutError:
                continue
            except OSError:
                return
            if where[2] == PACKET_OUTGOING:
                continue
            self.frames.append(frame)
            if self.reflect:
                with contextlib.suppress(OSError):
                    self.socket.send(frame)

    def close(self) -> None:
        self.stopped.set()
        self.thread.join()
        self.socket.close()


@dataclass
class Network:
    """Open vSwitch in a namespace, stations and the software switch's host around it."""

    prefix: str
    folder: Path
    binary: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        folder = str(self.folder)
        return os.environ | {
            "OVS_RUNDIR": folder,
            "OVS_LOGDIR": folder,
            "OVS_DBDIR": folder,
            "OVS_SYSCONFDIR": folder,
        }

    @property
    def control(self) -> Path:
        return self.folder / "control"

    def call(self, *command: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            command,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def start(self, *command: str) -> None:
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.processes.append(process)

    def space(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def build(self) -> None:
        for name in ("sw", "host", *STATIONS):
            self.call("ip", "netns", "add", self.space(name))
            self.namespaces.append(self.space(name))
            self.call("ip", "-n", self.space(name), "link", "set", "lo", "up")
        switch = self.space("sw")
        for name in (*STATIONS, *HOST_PORTS):
            there, port = (self.space(name), "eth0") if name in STATIONS else (self.space("host"), name)
            mine = f"p-{name}" if name in STATIONS else name
            self.call(
                *(
                    "ip",
                    "link",
                    "add",
                    mine,
                    "netns",
                    switch,
                    "type",
                    "veth",
                    "peer",
                    "name",
                    port,
                    "netns",
                    there,
                )
            )
            for space, interface in ((switch, mine), (there, port)):
                self.call("ip", "netns", "exec", space, "ethtool", "-K", interface, "tx", "off")
                self.call("ip", "-n", space, "link", "set", interface, "up")
                path = f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"
                self.call("ip", "netns", "exec", space, "sh", "-c", f"echo 1 > {path}")
            if name in STATIONS:
                self.call("ip", "-n", there, "link", "set", port, "address", mac(name))
                self.call("ip", "-n", there, "address", "add", f"{address(name)}/24", "dev", port)
        self.call("ovsdb-tool", "create", str(self.folder / "conf.db"), str(SCHEMA))
        socket_path = self.folder / "db.sock"
        self.start(
            "ovsdb-server", "--no-chdir", str(self.folder / "conf.db"), f"--remote=punix:{socket_path}"
        )
        wait_for("ovsdb-server", socket_path.exists)
        self.call("ovs-vsctl", "--no-wait", "init")
        options = ("--no-chdir", f"--unixctl={self.control}", f"unix:{socket_path}")
        self.start("ip", "netns", "exec", switch, "ovs-vswitchd", *options)
        self.call(
            "ovs-vsctl", "--timeout=20", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"
        )

    def description(self, flows: str) -> Path:
        parts = ['[openflow]\nbridge = "br0"\n', '[ring]\nbytes = "16 MiB"\n']
        for name, number in STATIONS.items():
            parts.append(f'[[port]]\nname = "p-{name}"\nnumber = {number}\n')
            kind = "collector" if name.startswith("c") else "host"
            parts.append(f'[[{kind}]]\nname = "{name}"\nport = "p-{name}"\nmac = "{mac(name)}"\n')
        for name, number in HOST_PORTS.items():
            parts.append(f'[[host_port]]\nname = "{name}"\nnumber = {number}\n')
        path = self.folder / "hybrid.toml"
        path.write_text("".join(parts) + flows)
        return path

    def apply(self, description: Path, *options: str) -> None:
        """Run the script that the command prints, as an operator would."""
        self.call("sh", stdin=self.call(self.binary, "switch", "openflow", str(description), *options))
        # The data path keeps flows of earlier rules until the switch has revalidated them.
        self.call("ovs-appctl", "-t", str(self.control), "revalidator/wait")

    def rules(self) -> list[str]:
        text = self.call("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "br0", "cookie=0xfa41/-1")
        return [line for line in text.splitlines() if "cookie" in line]

    def close(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for name in self.namespaces:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def transfer(network: Network, readout: str, collector: str, port: int) -> None:
    """Let a collector ask a readout for a megabyte, and compare what came."""
    data = random.Random(port).randbytes(BYTES)
    with inside(network.space(readout)):
        server = socket.create_server((address(readout), port))
    server.settimeout(WAIT_SECONDS_MAX)

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.settimeout(WAIT_SECONDS_MAX)
            assert connection.recv(1) == b"?"
            connection.sendall(data)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with inside(network.space(collector)):
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with server, client:
        client.settimeout(WAIT_SECONDS_MAX)
        client.connect((address(readout), port))
        client.sendall(b"?")
        received = b"".join(iter(lambda: client.recv(1 << 16), b""))
        thread.join()
    assert hashlib.sha256(received).digest() == hashlib.sha256(data).digest()


@contextlib.contextmanager
def built(name: str, folder: Path, binary: Path) -> Iterator[Network]:
    """Build a network whose namespaces begin with `name`, and take it down at the end."""
    network = Network(f"{name}{os.getpid()}", folder, str(binary))
    try:
        network.build()
        yield network
    finally:
        network.close()


def start_switch(network: Network, description: Path, *options: str) -> Path:
    """Start the software switch behind the host ports, and return its local socket."""
    command = (network.binary, "switch", "openflow", str(description), "--as", "switch", *options)
    config = network.call(*command)
    control = network.folder / "switch.sock"
    control.unlink(missing_ok=True)
    path = network.folder / "switch.toml"
    path.write_text(f'{config}\n[control]\nsocket = "{control}"\n')
    network.start("ip", "netns", "exec", network.space("host"), network.binary, "switch", str(path))
    wait_for("the switch", lambda: control.exists() or network.processes[-1].poll() is not None)
    log = network.folder / f"{len(network.processes) - 1}.log"
    assert control.exists(), log.read_text()
    return control
