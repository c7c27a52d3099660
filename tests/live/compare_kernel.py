"""Compares an incast on this machine's kernel with the same incast in `fanin sim`.

sudo python tests/live/compare_kernel.py --fanin target/release/fanin [--senders 8 16 32] [--seconds 20]
    [--limit 64000] [--rto-min-ms 200] [--congestion cubic] [--delay-us 1000]

Three network namespaces: servers, a router, a client; true frames (no offloads). The router's link
to the client is a token bucket of 100 Mb/s over a FIFO of `--limit` bytes. Each server answers 10 kB
after a random delay, so that the senders do not lock in phase. Prints goodput and the
rounds' times of both, as a Markdown table. Exit code 1 where a goodput differs by more than
`--within`, 3 where root, gcc, tc or ethtool are missing.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("incast.c")
ANSWER_BYTES = 10_000
RATE = "100mbit"
SERVER, PORT = "10.91.1.1", "5001"


def namespace(role: str) -> str:
    """Name of a namespace of this process alone."""
    return f"fanin-{os.getpid()}-{role}"


def command(line: str) -> None:
    """Run a command; its words hold no blanks."""
    subprocess.run(line.split(), check=True, stdout=subprocess.DEVNULL)


@contextmanager
def network(limit: int, rto_min_ms: int) -> Iterator[None]:
    """Hold the namespaces and links; they go with the process's errors, too."""
    server, router, client = (namespace(role) for role in ("s", "r", "c"))
    try:
        for name in (server, router, client):
            command(f"ip netns add {name}")
            command(f"ip -n {name} link set lo up")
        for name, device, far, network_part in ((server, "s0", "r0", 1), (client, "c0", "r1", 2)):
            command(f"ip -n {name} link add {device} type veth peer name {far} netns {router}")
            for place, link, host in ((name, device, 1), (router, far, 2)):
                command(f"ip -n {place} addr add 10.91.{network_part}.{host}/24 dev {link}")
                command(f"ip -n {place} link set {link} up")
                command(f"ip netns exec {place} ethtool -K {link} tx off")
            command(f"ip -n {name} route add default via 10.91.{network_part}.2")
            for setting in (
                "tcp_no_metrics_save=1",
                "tcp_ecn=0",
                f"tcp_rto_min_us={rto_min_ms * 1000}",
            ):
                command(f"ip netns exec {name} sysctl -qw net.ipv4.{setting}")
        command(f"ip netns exec {router} sysctl -qw net.ipv4.ip_forward=1")
        bucket = f"rate {RATE} burst 3000 limit 10000000"
        command(f"tc -n {router} qdisc add dev r1 root handle 1: tbf {bucket}")
        command(f"tc -n {router} qdisc add dev r1 parent 1:1 handle 10: bfifo limit {limit}")
        yield
    finally:
        for name in (server, router, client):
            subprocess.run(["ip", "netns", "del", name], check=False)


def live(binary: Path, senders: int, options: argparse.Namespace) -> tuple[float, list[float]]:
    """Goodput in Mb/s and the rounds' times in ms, on the kernel."""
    common = [SERVER, PORT, str(ANSWER_BYTES), options.congestion]
    enter = ["ip", "netns", "exec"]
    server = subprocess.Popen([*enter, namespace("s"), str(binary), "server", *common, str(options.delay_us)])
    try:
        time.sleep(0.3)
        client = [*enter, namespace("c"), str(binary), "client", *common, str(senders)]
        done = subprocess.run([*client, str(options.seconds)], check=True, capture_output=True, text=True)
    finally:
        server.kill()
        server.wait()
    head, *times = done.stdout.split("\n")
    rounds, seconds = head.split()
    goodput = int(rounds) * senders * ANSWER_BYTES * 8 / float(seconds) / 1e6
    return goodput, [float(line) for line in times if line]


def simulated(senders: int, options: argparse.Namespace) -> tuple[float, dict[str, float]]:
    """Goodput in Mb/s and the distribution of the rounds' times in ms, simulated."""
    names = {"reno": "newreno"}
    settings = {
        "transport.profile": "linux-6",
        "transport.congestion_control": names.get(options.congestion, options.congestion),
        "transport.rto_min": f"{options.rto_min_ms} ms",
        "workload.request_size": f"{ANSWER_BYTES} B",
        "workload.senders": senders,
        "workload.service_delay_max": f"{options.delay_us} us",
        "tor.buffer": f"{options.limit} B",
        "tor.count_in_service": "true",
        "run.duration": f"{options.seconds} s",
        "link.rate": "100 Mb/s",
        "link.delay": "5 us",
        "readout.link.rate": "10 Gb/s",
    }
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    done = subprocess.run(
        [options.fanin, "sim", "incast", "--quiet", "--json", "-", *sets],
        check=True,
        capture_output=True,
        text=True,
    )
    summary = json.loads(done.stdout)
    return summary["goodput_bps"]["total"] / 1e6, summary["requests"]["time_ms"]


def main(words: Sequence[str] | None = None) -> int:
    """Compare, print the table, and say whether all is within the bounds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--fanin", default="target/release/fanin")
    parser.add_argument("--senders", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--limit", type=int, default=64_000)
    parser.add_argument("--rto-min-ms", type=int, default=200)
    parser.add_argument("--congestion", choices=["cubic", "reno"], default="cubic")
    parser.add_argument("--delay-us", type=int, default=1_000)
    parser.add_argument("--within", type=float, default=0.25)
    options = parser.parse_args(words)
    missing = [tool for tool in ("gcc", "ip", "tc", "ethtool", "sysctl") if not shutil.which(tool)]
    if os.geteuid() != 0 or missing:
        print(f"needs root and {', '.join(missing) or 'nothing else'}", file=sys.stderr)
        return 3
    sound = True
    print("| senders | kernel Mb/s | Fanin Mb/s | ratio | median ms | p99 ms |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, network(options.limit, options.rto_min_ms):
        binary = Path(folder) / "incast"
        subprocess.run(["gcc", "-O2", "-o", str(binary), str(SOURCE)], check=True)
        for senders in options.senders:
            goodput, times = live(binary, senders, options)
            expected, figures = simulated(senders, options)
            centiles = statistics.quantiles(times, n=100)
            ratio = expected / goodput
            sound = sound and abs(ratio - 1) <= options.within
            print(
                f"| {senders} | {goodput:.1f} | {expected:.1f} | {ratio:.2f} "
                f"| {centiles[49]:.1f} / {figures['p50']:.1f} "
                f"| {centiles[98]:.0f} / {figures['p99']:.0f} |",
                flush=True,
            )
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
