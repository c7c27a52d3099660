"""The scripts of others that the model is known to fail, and what it does not have.

"Here" is Linux 6.18. `docs/packetdrill.md` has more about each.
"""

import re

KNOWN = {
    # google/packetdrill
    "cwnd-moderation-ecn-enter-cwr-no-moderation-700.pkt": "the window is 5 after the mark, as here",
    "fr-4pkt-fack-last-mss.pkt": "written for another tick than 4 ms",
    "gro-mss-option.pkt": "needs receive offload of the device",
    "shutdown-rdwr-write-queue-close.pkt": "written for another tick than 4 ms",
    "invalid_ack.pkt": "a segment with a wrong acknowledgement is answered at once, as here",
    # The kernel's selftests
    "tcp_ooo-before-and-after-accept.pkt": "the receive window grows by simplified rules",
    "tcp_ooo_rcv_mss.pkt": "the receive window grows by simplified rules",
}

# Reasons of unsupported scripts, with a pattern of what the interpreter says. One without is a fault.
LACKING = {
    "fast open": r"TCP option (FO|FOEXP)\b|data on a SYN|TCP_FASTOPEN|MSG_FASTOPEN",
    "zero copy": r"SO_ZEROCOPY|MSG_ZEROCOPY",
    "boundaries that the application sets (MSG_EOR, MSG_MORE, TCP_CORK)": r"MSG_EOR|MSG_MORE|TCP_CORK",
    "the limits of the send buffer": r"reading socket option (SO_SNDBUF|TCP_NOTSENT_LOWAT)"
    r"|the limit of the send buffer|tcpi_rwnd_limited|tcpi_sndbuf_limited",
    "a device's queue (`tc`, `ethtool`)": r"command (tc|ethtool)\b",
    "time stamps for the application": r"SO_TIMESTAMPING|SCM_TIMESTAMPING",
    "times of the application in `tcp_info`": r"tcpi_(last_\w+|busy_time|rwnd_limited)",
    "bytes readable as ancillary data (TCP_INQ)": r"TCP_INQ",
    "a limit of time for sent data (TCP_USER_TIMEOUT)": r"TCP_USER_TIMEOUT",
    "path MTU discovery": r"tcp_mtu_probing|ICMP|icmp|IP_MTU|tcp_base_mss|mtu",
    "files and calls of many buffers": r"command /bin/\w+|call (sendfile|splice|sendmsg|recvmsg|writev)",
    "epoll": r"call epoll_\w+",
    "system calls with arguments that the kernel refuses": r"a call with bad arguments",
    "signed segments (TCP MD5)": r"TCP option md5|TCP_MD5SIG",
    "urgent data": r"urgent data|MSG_OOB",
    "accurate ECN": r"accurate ECN|tcp_ecn=[3-5]|ACE flags|TCP option (ECN|e0b|e1b|ace)|tcp_ecn_option",
    "other address families and protocols": r"AF_INET6|IPv6|ipv6|SOCK_DGRAM|UDP|udp|IPPROTO_\w+",
    "values of a kernel's setting that the model does not have": r"sysctl \w+",
}


def lacking(detail: str) -> str | None:
    """Return what the model lacks for an unsupported script, or `None` if that has no name."""
    return next((name for name, pattern in LACKING.items() if re.search(pattern, detail)), None)
