"""Our own scripts hold, and the interpreter finds a difference where there is one."""

from pathlib import Path

import pytest
import run
from known import KNOWN, known_reason, lacking

SCRIPTS = Path(__file__).resolve().parent / "scripts"

OPEN = """
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <...>
  +.1 < . 1:1(0) ack 1 win 600
   +0 accept(3, ..., ...) = 4
   +0 write(4, ..., 2000) = 2000
"""


@pytest.fixture(scope="module")
def binary() -> Path:
    return run.build()


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.pkt")), ids=lambda path: path.stem)
def test_script(binary: Path, path: Path) -> None:
    outcome = run.play(binary, "linux-6", path.read_text())
    assert outcome.verdict == "pass", outcome.detail


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("+0 > P. 1:2001(2000) ack 2", "line 10: acknowledgement"),
        ("+0 > P. 1:1001(1000) ack 1", "line 10: bytes"),
        ("+0 > . 1:1501(1500) ack 1", "line 10: flags"),
        ("+.2 > P. 1:2001(2000) ack 1", "at 0.3"),
        ("+0 > [ect0] P. 1:2001(2000) ack 1", "line 10: ECN"),
        ("+0 > P. 1:2001(2000) ack 1 <nop,nop,TS val 1 ecr 1>", "line 10: options"),
        ("+0 > P. 1:9001(9000) ack 1", "expected P. 1:9001(9000) ack 1"),
        ("+0 %{ assert tcpi_snd_cwnd == 11, tcpi_snd_cwnd }%", "not 10"),
        ("+0 read(4, ..., 100) = 7", "expected 7, not -1 EAGAIN"),
        ("+0...0.2 read(4, ..., 100) = 7", "expected 7, not -1 EAGAIN"),
        ("+0 > . 1:1(0) ack 1 <mss MSS>", "cannot be read: option 'mss MSS': mss takes a number"),
        ("+0 > . 1:1(0) ack 1 <sack 1>", "cannot be read: option 'sack 1': sack takes blocks like 1:1001"),
    ],
)
def test_difference_is_found(binary: Path, line: str, detail: str) -> None:
    outcome = run.play(binary, "linux-6", f"`sysctl -q net.ipv4.tcp_timestamps=0`{OPEN}{line}\n")
    assert outcome.verdict == "fail"
    assert detail in outcome.detail


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("`tc qdisc replace dev tun0 root fq`", "command tc qdisc replace"),
        ("`sysctl -q net.ipv4.tcp_mtu_probing=2`", "sysctl tcp_mtu_probing=2"),
        ("`sysctl -q net.ipv4.tcp_frto=0`", "sysctl tcp_frto=0"),
        ("`sysctl -q net.ipv4.tcp_syn_retries=2`", "sysctl tcp_syn_retries=2"),
        ("`sysctl -q net.ipv4.tcp_synack_retries=1`", "sysctl tcp_synack_retries=1"),
        ("`sysctl -q net.ipv4.tcp_invalid_ratelimit=0`", "sysctl tcp_invalid_ratelimit=0"),
        ("+0 > . 1:1(0) ack 1 <FO 1234>", "TCP option FO"),
        ("+0 %{ assert tcpi_busy_time > 0 }%", "tcpi_busy_time is not in the model"),
        ("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0", "socket option TCP_CORK"),
        ("+0 send(4, ..., 9, MSG_DONTWAIT | MSG_MORE) = 9", "send with MSG_DONTWAIT | MSG_MORE"),
        ("+0 sendfile(4, 5, [0], 10) = 10", "call sendfile"),
    ],
)
def test_unsupported_is_named(binary: Path, line: str, reason: str) -> None:
    outcome = run.play(binary, "linux-6", OPEN + line + "\n")
    assert outcome.verdict == "unsupported"
    assert reason in outcome.detail
    assert lacking(outcome.detail)


@pytest.mark.parametrize(
    "detail",
    [
        "line 3: the moon",
        "line 3: sysctl tcp_new_setting",
        "line 3: sysctl tcp_new_setting=1",
        "line 3: command /bin/sh -c make",
        "line 3: command tc filter add",
        "line 3: socket option IP_MTU_OF_ANOTHER",
        "line 3: packet 'the mtu, as udp or icmp'",
        "line 3: call epoll_of_another",
        "code: name 'tcpi_busy_time' is not defined",
    ],
)
def test_an_unsupported_script_without_a_reason_has_no_name(detail: str) -> None:
    assert lacking(detail) is None


def test_a_known_failure_is_known_at_its_line_alone() -> None:
    name, (line, reason) = next((name, known) for name, known in KNOWN.items() if known[0])
    assert known_reason(name, f"line {line}: what it says") == reason
    assert known_reason(name, "line 1: another fault") is None
    assert known_reason("unknown.pkt", f"line {line}: what it says") is None
