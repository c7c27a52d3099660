"""System calls on sockets, as far as scripts use them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from endpoint import Connection
from script import Call, UnsupportedError
from sysctls import Sysctls

# Socket options without an effect on the model.
IDLE_OPTIONS = {
    "SO_REUSEADDR", "SO_SNDBUF", "SO_RCVLOWAT", "SO_PRIORITY", "SO_MARK", "TCP_NOTSENT_LOWAT",
    "IP_TOS", "IP_MTU_DISCOVER", "IPV6_TCLASS", "IP_FREEBIND",
}  # fmt: skip

SYNCHRONIZED = {"Established", "FinWait1", "FinWait2", "CloseWait", "Closing", "LastAck", "TimeWait"}


class DifferenceError(Exception):
    """The model does not do what the script expects."""


@dataclass
class Socket:
    """A file descriptor."""

    is_blocking: bool = True
    is_listening: bool = False
    is_read_shut: bool = False
    connection: Connection | None = None
    mss: int | None = None
    nodelay: bool = False
    lingers: bool = True
    congestion_control: str | None = None
    accepted: bool = False


@dataclass
class SystemCalls:
    """The sockets of a script and their connections.

    `call_NAME` makes the call of that name, without waiting.
    """

    binary: Path
    profile: str
    origin: int = 0
    """When the script starts, in nanoseconds: it shifts the script against the ticks of the timers."""
    now: int = 0
    sysctls: Sysctls = field(default_factory=Sysctls)
    sockets: dict[int, Socket] = field(default_factory=dict)
    connections: list[Connection] = field(default_factory=list)
    listener: Socket | None = None

    def open(self, socket: Socket, is_passive: bool) -> Connection:
        """Open a connection for a socket."""
        settings = self.sysctls.settings(is_passive)
        settings["nodelay"] = int(socket.nodelay)
        if socket.mss:
            settings["mss_with_options"] = socket.mss
        if socket.congestion_control:
            settings["congestion_control"] = socket.congestion_control
        connection = Connection(self.binary, self.profile, settings)
        self.connections.append(connection)
        connection.call("listen" if is_passive else "connect", self.now)
        return connection

    def socket(self, call: Call) -> Socket:
        """Return the socket that a call names."""
        number = int(call.arguments[0])
        if number not in self.sockets:
            raise UnsupportedError(f"file descriptor {number}")
        return self.sockets[number]

    def connection(self, call: Call) -> Connection:
        """Return the connection that a call names."""
        connection = self.socket(call).connection
        if connection is None:
            raise UnsupportedError(f"{call.name} on a socket without a connection")
        return connection

    def call_socket(self, call: Call) -> tuple[int, str | None]:
        if call.arguments[1] not in ("SOCK_STREAM",) or call.arguments[2] not in ("IPPROTO_TCP", "0"):
            raise UnsupportedError(f"socket {' '.join(call.arguments[1:])}")
        assert call.result is not None
        self.sockets[call.result] = Socket()
        return call.result, None

    def call_bind(self, _call: Call) -> tuple[int, str | None]:
        return 0, None

    def call_listen(self, call: Call) -> tuple[int, str | None]:
        socket = self.socket(call)
        socket.is_listening = True
        self.listener = socket
        return 0, None

    def call_accept(self, call: Call) -> tuple[int, str | None]:
        listener = self.socket(call)
        taken = {id(socket.connection) for socket in self.sockets.values()}
        for connection in self.connections:
            if id(connection) not in taken and connection.state["state"] in SYNCHRONIZED | {"Closed"}:
                assert call.result is not None
                self.sockets[call.result] = Socket(
                    connection=connection, accepted=True, nodelay=listener.nodelay
                )
                return call.result, None
        return -1, "EAGAIN"

    def start_connect(self, call: Call) -> None:
        socket = self.socket(call)
        socket.connection = self.open(socket, is_passive=False)

    def call_connect(self, call: Call) -> tuple[int, str | None]:
        socket = self.socket(call)
        if socket.connection is None:
            self.start_connect(call)
        assert socket.connection
        state = socket.connection.state
        if state["state"] in SYNCHRONIZED:
            return 0, None
        if state["reason"] == "Refused":
            return -1, "ECONNREFUSED"
        if state["reason"] == "TimedOut":
            return -1, "ETIMEDOUT"
        return -1, "EINPROGRESS" if call.error != "EALREADY" else "EALREADY"

    def start_write(self, call: Call) -> None:
        connection = self.connection(call)
        connection.call("send", self.now, int(call.arguments[2]))
        self.socket(call).accepted = True

    start_send = start_sendto = start_write

    def call_write(self, call: Call) -> tuple[int, str | None]:
        bytes_count = int(call.arguments[2])
        if (call.result is not None and 0 <= call.result < bytes_count) or call.error == "EAGAIN":
            raise UnsupportedError("the limit of the send buffer")
        if call.end is None:
            connection = self.connection(call)
            state = connection.state["state"]
            if connection.state["reason"] in ("Reset", "TimedOut"):
                return -1, {"Reset": "ECONNRESET", "TimedOut": "ETIMEDOUT"}[connection.state["reason"]]
            if state not in ("SynSent", "SynReceived", "Established", "CloseWait"):
                return -1, "EPIPE"
            if state in ("SynSent", "SynReceived"):
                return -1, "EAGAIN"
            connection.call("send", self.now, bytes_count)
        return bytes_count, None

    def call_send(self, call: Call) -> tuple[int, str | None]:
        if len(call.arguments) > 3 and call.arguments[3] not in ("0", "MSG_NOSIGNAL", "MSG_DONTWAIT"):
            raise UnsupportedError(f"send with {call.arguments[3]}")
        return self.call_write(call)

    def call_sendto(self, call: Call) -> tuple[int, str | None]:
        return self.call_send(call)

    def call_read(self, call: Call) -> tuple[int, str | None]:
        socket, connection = self.socket(call), self.connection(call)
        count = connection.call("read", self.now, int(call.arguments[2]))
        if count or call.arguments[2] == "0":
            return count, None
        if connection.state["ended"] == "1" or socket.is_read_shut:
            return 0, None
        if connection.state["reason"] == "Reset":
            return -1, "ECONNRESET"
        if connection.state["reason"] == "TimedOut":
            return -1, "ETIMEDOUT"
        return -1, "EAGAIN"

    def call_recv(self, call: Call) -> tuple[int, str | None]:
        if call.arguments[3:] not in ([], ["0"]):
            raise UnsupportedError(f"recv with {call.arguments[3]}")
        return self.call_read(call)

    def call_close(self, call: Call) -> tuple[int, str | None]:
        socket = self.sockets.pop(int(call.arguments[0]), None)
        if socket is None:
            raise UnsupportedError(f"file descriptor {call.arguments[0]}")
        if socket is self.listener:
            self.listener = None
        if socket.connection:
            # Linux resets a connection that is closed with unread data (RFC 2525 §2.17).
            is_abort = int(socket.connection.state["readable"]) > 0 or not socket.lingers
            socket.connection.call("abort" if is_abort else "close", self.now)
        return 0, None

    def call_shutdown(self, call: Call) -> tuple[int, str | None]:
        socket, how = self.socket(call), call.arguments[1]
        connection = self.connection(call)
        if connection.state["state"] == "Closed":
            return -1, "ENOTCONN"
        if how in ("SHUT_RD", "SHUT_RDWR"):
            socket.is_read_shut = True
        if how in ("SHUT_WR", "SHUT_RDWR"):
            connection.call("close", self.now)
        return 0, None

    def call_fcntl(self, call: Call) -> tuple[int, str | None]:
        socket = self.socket(call)
        if call.arguments[1] == "F_SETFL":
            socket.is_blocking = "O_NONBLOCK" not in call.arguments[2]
            return 0, None
        return call.result or 0, None

    def call_setsockopt(self, call: Call) -> tuple[int, str | None]:
        socket, option = self.socket(call), call.arguments[2]
        value = call.arguments[3].strip("[]{}")
        if option in IDLE_OPTIONS:
            return 0, None
        if option == "TCP_NODELAY":
            socket.nodelay = value == "1"
            if socket.connection:
                socket.connection.call("nodelay", self.now, value)
            return 0, None
        if option == "TCP_MAXSEG" and socket.connection is None:
            socket.mss = int(value)
            return 0, None
        if option == "TCP_CONGESTION" and socket.connection is None:
            socket.congestion_control = value.strip('"')
            return 0, None
        if option == "SO_LINGER":
            match = re.search(r"onoff\s*=\s*(\d+)\s*,\s*linger\s*=\s*(\d+)", value)
            socket.lingers = not (match and match[1] != "0" and match[2] == "0")
            return 0, None
        raise UnsupportedError(f"socket option {option}")

    def call_getsockopt(self, call: Call) -> tuple[int, str | None]:
        socket, option = self.socket(call), call.arguments[2]
        wanted = int(call.arguments[3].strip("[]"), 0)
        if option == "TCP_MAXSEG":
            actual = socket.mss or 536
            if socket.connection:
                actual = socket.connection.info(self.now)["tcpi_snd_mss"]
        elif option == "SO_ERROR":
            reason = socket.connection.state["reason"] if socket.connection else "-"
            actual = {"Refused": 111, "Reset": 104, "TimedOut": 110}.get(reason, 0)
        else:
            raise UnsupportedError(f"reading socket option {option}")
        if actual != wanted:
            raise DifferenceError(f"{option}: expected {wanted}, not {actual}")
        return 0, None

    def call_ioctl(self, call: Call) -> tuple[int, str | None]:
        if call.arguments[1] != "SIOCINQ":
            raise UnsupportedError(f"ioctl {call.arguments[1]}")
        actual, wanted = int(self.connection(call).state["readable"]), int(call.arguments[2].strip("[]"))
        if actual != wanted:
            raise DifferenceError(f"SIOCINQ: expected {wanted}, not {actual}")
        return 0, None

    def call_poll(self, call: Call) -> tuple[int, str | None]:
        ready = 0
        for entry in re.findall(r"\{([^}]*)\}", call.arguments[0]):
            fields = dict(re.findall(r"(\w+)\s*=\s*([\w|]+)", entry))
            socket = self.sockets.get(int(fields["fd"]))
            if socket is None or socket.connection is None:
                raise UnsupportedError("poll of a socket without a connection")
            found = self.readiness(socket) & (set(fields["events"].split("|")) | {"POLLHUP", "POLLERR"})
            wanted = set(fields.get("revents", "0").split("|")) - {"0"}
            if found != wanted and (found or call.end is None):
                raise DifferenceError(f"poll: expected {wanted or 'nothing'}, not {found or 'nothing'}")
            ready += bool(found)
        return ready, None

    @staticmethod
    def readiness(socket: Socket) -> set[str]:
        """Return what `poll` says about a connection."""
        assert socket.connection
        state = socket.connection.state
        ready = set()
        has_ended = state["ended"] == "1" or socket.is_read_shut
        if int(state["readable"]) or has_ended:
            ready |= {"POLLIN", "POLLRDNORM"}
        if has_ended:
            ready.add("POLLRDHUP")
        if state["state"] not in ("SynSent", "SynReceived", "Listen"):
            ready |= {"POLLOUT", "POLLWRNORM"}
        if state["state"] == "Closed" or (has_ended and state["state"] not in ("Established", "CloseWait")):
            ready.add("POLLHUP")
        if state["reason"] in ("Reset", "Refused", "TimedOut"):
            ready |= {"POLLERR", "POLLIN", "POLLRDNORM", "POLLRDHUP"}
        return ready


def verify(call: Call, result: int, error: str | None) -> None:
    """Compare a call's result with what the script expects."""
    if call.result is not None and (result, error) != (call.result, call.error):
        actual = f"{result} {error or ''}".strip()
        raise DifferenceError(
            f"{call.name}: expected {call.result} {call.error or ''}".strip() + f", not {actual}"
        )
