#!/usr/bin/env python3
"""Plays a TCP script against this machine's kernel and writes down what the kernel sends.

    sudo unshare -n tests/record.py tests/scripts/*.txt

Each script is rewritten in place: lines that begin with a time and ">" are replaced by what was seen. The
kernel is behind a TUN device in the network namespace of this process. The script plays the other end of the
connection, so nothing but the kernel's own TCP is measured. Needs root, Python 3.11, no packages.

A script opens with settings: `profile NAME` (for the test), `rtt MS` (of the handshake), `window BYTES` (the
peer's), `until MS`. Then each line begins with a time in milliseconds since the connection is open:

    T write N                                   the kernel's application writes N bytes
    T < START:END ack A [win W] [sack S:E ...]  the peer sends payload START:END and acknowledges A
      [echo L] [more]                           L: echo the timestamp of output line L, not of the last one;
                                                more: without PSH
    T > START:END ack A [sack S:E ...]          expected output; written by this program

Space inputs two milliseconds apart: the machine's scheduling shows below that.
"""

import contextlib
import fcntl
import os
import platform
import re
import select
import socket
import struct
import subprocess
import sys
import time

KERNEL, PEER = "10.77.0.1", "10.77.0.2"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000


def checksum(data):
    """Return the Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Peer:
    """The scripted end: raw packets in and out of the TUN device."""

    def __init__(self, options):
        """Make the device and its address."""
        self.options = options
        self.tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.tun, TUNSETIFF, struct.pack("16sH", b"rec0", IFF_TUN | IFF_NO_PI))
        for command in (
            f"ip addr add {KERNEL}/24 dev rec0",
            "ip link set rec0 up",
            "sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_ecn=0",
        ):
            subprocess.run(command.split(), check=True)
        self.isn = 1_000_000
        self.kernel_isn = None
        self.stamps = []  # timestamp values of the kernel's segments, in order
        self.last_stamp = 0
        self.window_scale = 7

    def send(self, offset, ack, window, payload=0, flags=0x10, sack=(), echo=None, syn=False, mark=False):
        """Send one segment to the kernel."""
        stamp = int(time.monotonic() * 1000) & 0xFFFFFFFF
        echo = self.last_stamp if echo is None else self.stamps[echo - 1]
        tcp_options = b""
        if syn:
            tcp_options += struct.pack("!BBH", 2, 4, 1460) + b"\4\2"
            tcp_options += struct.pack("!BBII", 8, 10, stamp, echo)
            tcp_options += b"\1" + struct.pack("!BBB", 3, 3, self.window_scale)
        else:
            tcp_options += b"\1\1" + struct.pack("!BBII", 8, 10, stamp, echo)
            if sack:
                tcp_options += b"\1\1" + struct.pack("!BB", 5, 2 + 8 * len(sack))
                for start, end in sack:
                    tcp_options += struct.pack("!II", self.kernel_isn + 1 + start, self.kernel_isn + 1 + end)
        sequence = self.isn if syn else self.isn + 1 + offset
        acknowledged = self.kernel_isn + 1 + ack
        wire_window = min(window if syn else window >> self.window_scale, 65535)
        header = (
            struct.pack(
                "!HHIIBBHHH",
                5001,
                self.port,
                sequence & 0xFFFFFFFF,
                acknowledged & 0xFFFFFFFF,
                (5 + len(tcp_options) // 4) << 4,
                flags,
                wire_window,
                0,
                0,
            )
            + tcp_options
        )
        body = header + bytes(payload)
        source, target = socket.inet_aton(PEER), socket.inet_aton(KERNEL)
        pseudo = source + target + struct.pack("!BBH", 0, 6, len(body))
        body = body[:16] + struct.pack("!H", checksum(pseudo + body)) + body[18:]
        tos = 3 if mark else 0
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, tos, 20 + len(body), 0, 0x4000, 64, 6, 0, source, target)
        ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
        os.write(self.tun, ip + body)

    def receive(self):
        """Return the next TCP segment of the kernel, or None."""
        while True:
            try:
                packet = os.read(self.tun, 65536)
            except BlockingIOError:
                return None
            if packet[0] >> 4 != 4 or packet[9] != 6:
                continue
            tcp = packet[(packet[0] & 15) * 4 :]
            self.port = struct.unpack("!H", tcp[:2])[0]
            sequence, ack, offset, flags, _window = struct.unpack("!IIBBH", tcp[4:16])
            size = (offset >> 4) * 4
            segment = {"flags": flags, "payload": len(tcp) - size, "sack": [], "stamp": None}
            options = tcp[20:size]
            while options:
                kind = options[0]
                if kind == 0:
                    break
                if kind == 1:
                    options = options[1:]
                    continue
                length = options[1]
                if kind == 8:
                    segment["stamp"] = struct.unpack("!I", options[2:6])[0]
                if kind == 5:
                    values = struct.unpack(f"!{(length - 2) // 4}I", options[2:length])
                    relative = [(value - self.isn - 1) & 0xFFFFFFFF for value in values]
                    segment["sack"] = list(zip(relative[::2], relative[1::2], strict=True))
                options = options[length:]
            if flags & 2:
                self.kernel_isn = sequence
            segment["offset"] = (sequence - (self.kernel_isn or 0) - 1) & 0xFFFFFFFF
            segment["ack"] = (ack - self.isn - 1) & 0xFFFFFFFF
            if segment["stamp"] is not None:
                self.last_stamp = segment["stamp"]
            return segment


def parse_ranges(text):
    """Read ranges such as `0:1448 2896:4344`."""
    return [tuple(map(int, block.split(":"))) for block in text.split()]


def play(lines):
    """Run the script; return (milliseconds, segment) of everything the kernel sent."""
    options = {}
    actions = []
    for line in lines:
        line = line.split("#")[0].strip()
        if not line or re.match(r"[\d.]+ >", line):
            continue
        words = line.split()
        if re.fullmatch(r"[\d.]+", words[0]):
            actions.append((float(words[0]), " ".join(words[1:])))
        else:
            options[words[0]] = " ".join(words[1:])
    peer = Peer(options)
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.get("congestion", "cubic").encode())
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        client.connect((PEER, 5001))
    while True:
        select.select([peer.tun], [], [], 1)
        syn = peer.receive()
        if syn and syn["flags"] & 2:
            break
    rtt = float(options.get("rtt", "10")) / 1000
    window = int(options.get("window", "1048576"))
    time.sleep(rtt)
    peer.send(0, 0, 65535, flags=0x12, syn=True)
    time.sleep(0.05)
    while peer.receive():
        pass
    # The SYN-ACK's window is not scaled: a plain ACK opens it.
    peer.send(0, 0, window)
    time.sleep(0.05)
    while peer.receive():
        pass
    try:
        return converse(peer, client, [*actions, (float(options["until"]), "end")], window)
    finally:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        os.close(peer.tun)


def converse(peer, client, actions, window):
    """Do what the script says at its times, and note what the kernel sends."""
    seen = []
    peer.stamps.clear()
    start = time.monotonic()
    for at, action in actions:
        while True:
            left = start + at / 1000 - time.monotonic()
            if left <= 0:
                break
            # The last stretch is spun through: select is late by a timer tick at times.
            readable, _, _ = select.select([peer.tun, client], [], [], left if left > 0.002 else 0)
            now = (time.monotonic() - start) * 1000
            if client in readable:
                client.recv(1 << 20)
            while segment := peer.receive():
                seen.append((now, segment))
                peer.stamps.append(segment["stamp"])
        late = (time.monotonic() - start) * 1000 - at
        if late > 0.3 and action != "end":
            raise TimeoutError(f"{action!r} came {late:.1f} ms late: the machine is too busy")
        if action.startswith("write "):
            client.send(bytes(int(action.split()[1])))
        elif action.startswith("< "):
            match = re.match(r"< (\d+):(\d+) ack (\d+)(.*)", action)
            offset, stop, ack = (int(match[i]) for i in (1, 2, 3))
            rest = match[4]
            sack = re.search(r"sack((?: \d+:\d+)+)", rest)
            echo = re.search(r"echo (\d+)", rest)
            width = re.search(r"win (\d+)", rest)
            peer.send(
                offset,
                ack,
                int(width[1]) if width else window,
                payload=stop - offset,
                flags=0x10 if stop == offset or " more" in rest else 0x18,
                sack=parse_ranges(sack[1]) if sack else (),
                echo=int(echo[1]) if echo else None,
                mark=" ce" in rest,
            )
        now = (time.monotonic() - start) * 1000
        while segment := peer.receive():
            seen.append((now, segment))
            peer.stamps.append(segment["stamp"])
    return seen


def play_quietly(lines):
    """Plays until no action was late."""
    for _ in range(10):
        try:
            return play(lines)
        except TimeoutError as error:
            print(error, file=sys.stderr)
    sys.exit("gave up")


def show(at, segment):
    """Write one segment as a line of the script."""
    text = f"{at:.3f} > {segment['offset']}:{segment['offset'] + segment['payload']} ack {segment['ack']}"
    if segment["sack"]:
        text += " sack " + " ".join(f"{start}:{end}" for start, end in segment["sack"])
    return text


def main():
    """Record every script that is named."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        seen = play_quietly(lines)
        kept = [
            line for line in lines if not re.match(r"[\d.]+ >", line) and not line.startswith("# recorded")
        ]
        timed = [
            (float(line.split()[0]), index, line)
            for index, line in enumerate(kept)
            if re.match(r"[\d.]+ ", line)
        ]
        head = [line for line in kept if not re.match(r"[\d.]+ ", line)]
        timed += [(at, 10_000 + index, show(at, segment)) for index, (at, segment) in enumerate(seen)]
        timed.sort(key=lambda entry: (entry[0], entry[1]))
        with open(path, "w", encoding="utf-8") as file:
            for line in head:
                file.write(line + "\n")
            file.write(f"# recorded on Linux {platform.release()}, {platform.machine()}, HZ 250\n")
            for _, _, line in timed:
                file.write(line + "\n")
        print(path, len(seen), "segments")


if __name__ == "__main__":
    main()
