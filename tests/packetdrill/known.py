"""The scripts of others that the model is known to fail, and what it does not have.

"Here" is Linux 6.18. `docs/packetdrill.md` has more about each.
"""

import re

# The line at which each fails, where it was seen with the present rules, and why.
KNOWN: dict[str, tuple[int | None, str]] = {
    # google/packetdrill
    "cwnd-moderation-ecn-enter-cwr-no-moderation-700.pkt": (24, "the window is 5 after the mark, as here"),
    "fr-4pkt-fack-last-mss.pkt": (27, "written for another tick than 4 ms"),
    "gro-mss-option.pkt": (23, "needs receive offload of the device"),
    "shutdown-rdwr-write-queue-close.pkt": (25, "written for another tick than 4 ms"),
    "invalid_ack.pkt": (24, "a segment with a wrong acknowledgement is answered at once, as here"),
    # The kernel's selftests
    "tcp_ooo-before-and-after-accept.pkt": (None, "the receive window grows by simplified rules"),
    "tcp_ooo_rcv_mss.pkt": (None, "the receive window grows by simplified rules"),
}

# Flags of a call, joined.
FLAGS = r"[A-Z_ |]*"
# Reasons of unsupported scripts, with a pattern of all that the interpreter says. One without is a fault.
LACKING = {
    "fast open": rf"TCP option (FO|FOEXP)|data on a SYN \(fast open\)|send with {FLAGS}MSG_FASTOPEN{FLAGS}"
    r"|(reading )?socket option TCP_FASTOPEN(_CONNECT|_KEY|_NO_COOKIE)?"
    r"|sysctl tcp_fastopen_blackhole_timeout_sec",
    "zero copy": rf"socket option SO_ZEROCOPY|send with {FLAGS}MSG_ZEROCOPY{FLAGS}",
    "boundaries that the application sets (MSG_EOR, MSG_MORE, TCP_CORK)": r"socket option TCP_CORK"
    rf"|send with {FLAGS}MSG_(EOR|MORE){FLAGS}",
    "the limits of the send buffer": r"(reading )?socket option (SO_SNDBUF|TCP_NOTSENT_LOWAT)"
    r"|the limit of the send buffer|tcpi_(rwnd|sndbuf)_limited is not in the model",
    "a device's queue (`tc`, `ethtool`)": r"command (tc qdisc (add|change|delete|replace)|ethtool -K tun0)",
    "time stamps for the application": r"socket option SO_TIMESTAMPING",
    "times of the application in `tcp_info`": r"tcpi_last_(data_sent|data_recv|ack_recv)"
    r" is not in the model|tcpi_busy_time is not in the model",
    "bytes readable as ancillary data (TCP_INQ)": r"socket option TCP_INQ",
    "a limit of time for sent data (TCP_USER_TIMEOUT)": r"socket option TCP_USER_TIMEOUT",
    "path MTU discovery": r"sysctl (tcp_mtu_probing=[12]|tcp_base_mss)|option --mtu|icmp packets"
    r"|(reading )?socket option IP_MTU(_DISCOVER)?",
    "files and calls of many buffers": r"command /bin/rm -f /tmp/testfile"
    r"|call (sendfile|splice|sendmsg|recvmsg|writev)",
    "epoll": r"call epoll_(create|ctl|wait)",
    "system calls with arguments that the kernel refuses": r"a call with bad arguments \(E[A-Z]+\)",
    "signed segments (TCP MD5)": r"TCP option md5|socket option TCP_MD5SIG",
    "urgent data": rf"urgent data|send with {FLAGS}MSG_OOB{FLAGS}",
    "accurate ECN": r"(flags \S+|sysctl tcp_ecn=[3-5]) \(accurate ECN\)|TCP option (ECN|e0b|e1b|ace)",
    "other address families and protocols": r"(udp|ipv6) packets|socket SOCK_DGRAM (IPPROTO_UDP|0)",
    "values of a kernel's setting that the model does not have": r"sysctl (tcp_frto|tcp_syn_retries"
    r"|tcp_synack_retries|tcp_invalid_ratelimit)=\d+",
}


def lacking(detail: str) -> str | None:
    """Return what the model lacks for an unsupported script, or `None` if that has no name."""
    said = re.sub(r"^line \d+: ", "", detail)
    return next((name for name, pattern in LACKING.items() if re.fullmatch(pattern, said)), None)


def known_reason(name: str, detail: str) -> str | None:
    """Say why a script fails; none if it is not on record, or fails at another line."""
    line, reason = KNOWN.get(name, (None, None))
    return reason if line is None or detail.startswith(f"line {line}:") else None
