"""The hybrid with a real Open vSwitch: userspace datapath, namespaces, the kernel's own TCP."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from openvswitch import (
    BYTES,
    HOST_PORTS,
    STATIONS,
    Network,
    Tap,
    built,
    inside,
    mac,
    missing,
    start_switch,
    transfer,
    wait_for,
)

REDIRECTED, DIRECT = 5001, 6001


@pytest.fixture(scope="session", autouse=True)
def _able() -> None:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory, binary: Path) -> Iterator[Network]:
    with built("swops", tmp_path_factory.mktemp("ovs"), binary) as network:
        yield network


@pytest.fixture
def host(network: Network) -> Iterator[dict[str, Tap]]:
    """Stand in for the software switch: whatever comes by a host port goes back by it."""
    taps = {name: Tap(network.space("host"), name, reflect=True) for name in HOST_PORTS}
    yield taps
    for tap in taps.values():
        tap.close()


def tcp_frames(tap: Tap, source: str, destination: str) -> int:
    """Count the TCP frames with payload from one station to another."""
    addresses = bytes.fromhex((mac(destination) + mac(source)).replace(":", ""))
    return sum(
        frame[:12] == addresses and frame[12:14] == b"\x08\x00" and len(frame) > 100 for frame in tap.frames
    )


FLOWS = '[[flow]]\nprotocol = "tcp"\nsource_port = "5000-5063"\n'
# Segments of 1448 bytes and more cannot be in fewer frames.
FRAMES_MIN = BYTES // 1460


def test_only_what_is_named_makes_the_detour(network: Network, host: dict[str, Tap]) -> None:
    description = network.description(FLOWS)
    network.apply(description)
    first = len(network.rules())
    # A second time changes nothing, and two host ports share the collectors.
    network.apply(description)
    assert len(network.rules()) == first > 10
    transfer(network, "r1", "c1", REDIRECTED)
    transfer(network, "r2", "c2", REDIRECTED)
    assert tcp_frames(host["pep0"], "r1", "c1") >= FRAMES_MIN
    assert tcp_frames(host["pep1"], "r2", "c2") >= FRAMES_MIN
    assert tcp_frames(host["pep1"], "r1", "c1") == tcp_frames(host["pep0"], "r2", "c2") == 0
    # Requests and acknowledgements to the readouts go straight, as does everything on other ports.
    assert tcp_frames(host["pep0"], "c1", "r1") == 0
    before = tcp_frames(host["pep1"], "r1", "c2")
    transfer(network, "r1", "c2", DIRECT)
    assert tcp_frames(host["pep1"], "r1", "c2") == before == 0


@pytest.mark.parametrize("host_ports", [0, 1, 2])
def test_collectors_are_spread_over_the_host_ports(
    network: Network, host: dict[str, Tap], host_ports: int
) -> None:
    network.apply(network.description(""), "--host-ports", str(host_ports))
    transfer(network, "r1", "c1", DIRECT)
    transfer(network, "r1", "c2", DIRECT)
    through = {
        name: [tcp_frames(tap, "r1", collector) >= FRAMES_MIN for collector in ("c1", "c2")]
        for name, tap in host.items()
    }
    assert (
        through
        == {
            0: {"pep0": [False, False], "pep1": [False, False]},
            1: {"pep0": [True, True], "pep1": [False, False]},
            2: {"pep0": [True, False], "pep1": [False, True]},
        }[host_ports]
    )


def frame(source: str, destination: str, mark: int) -> bytes:
    """Make a frame of a kind of its own that a test knows again."""
    return (
        bytes.fromhex((destination + source).replace(":", ""))
        + b"\x88\xb5"
        + mark.to_bytes(4, "big")
        + bytes(60)
    )


def test_no_frame_goes_round(network: Network, host: dict[str, Tap]) -> None:
    network.apply(network.description(""))
    taps = {name: Tap(network.space(name), "eth0", reflect=False) for name in STATIONS}
    senders = {}
    for space, interface in [
        *((name, "eth0") for name in STATIONS),
        *(("host", name) for name in HOST_PORTS),
    ]:
        with inside(network.space(space)):
            sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sender.bind((interface, 0))
        senders[interface if space == "host" else space] = sender
    everyone, stranger = "ff:ff:ff:ff:ff:ff", "02:00:00:00:00:99"
    # Source, destination, and the interface of arrival.
    cases = [
        ("r1", mac("c1"), {"c1"}),
        ("r1", everyone, {"r2", "c1", "c2"}),
        ("r1", stranger, {"r2", "c1", "c2"}),
        ("c2", mac("c1"), {"c1"}),
        # From the side where the collector is attached, as a rack switch that floods would send it.
        ("c1", mac("c1"), set()),
        # Frames that the software switch sends by itself.
        ("pep0", everyone, set()),
        ("pep0", mac("r1"), set()),
        ("pep0", stranger, set()),
        ("pep1", mac("c1"), {"c1"}),
    ]
    try:
        for mark, (source, destination, _) in enumerate(cases):
            senders[source].send(frame(mac("r1") if source in HOST_PORTS else mac(source), destination, mark))

        def arrived(mark: int) -> list[str]:
            kind = b"\x88\xb5" + mark.to_bytes(4, "big")
            return sorted(name for name, tap in taps.items() for f in tap.frames if f[12:18] == kind)

        wait_for("the last frame", lambda: arrived(len(cases) - 1))
        # Had one gone round, it would have come again many times by now.
        time.sleep(0.3)
        for mark, (source, destination, expected) in enumerate(cases):
            assert arrived(mark) == sorted(expected), f"from {source} to {destination}"
        # Floods do not reach the software switch; the frame from r1 to c1 did, once.
        kinds = [f[14:18] for tap in host.values() for f in tap.frames if f[12:14] == b"\x88\xb5"]
        assert sorted(kinds) == [(0).to_bytes(4, "big"), (3).to_bytes(4, "big")]
    finally:
        for tap in taps.values():
            tap.close()
        for sender in senders.values():
            sender.close()


def test_the_rules_can_be_taken_back(network: Network, host: dict[str, Tap]) -> None:
    description = network.description(FLOWS)
    network.apply(description)
    assert network.rules()
    network.apply(description, "--remove")
    assert network.rules() == []
    transfer(network, "r1", "c1", REDIRECTED)
    assert all(tcp_frames(tap, "r1", "c1") == 0 for tap in host.values())


def test_the_database_takes_the_transaction(network: Network) -> None:
    description = network.description(FLOWS)
    network.apply(description)
    request = network.call(network.binary, "switch", "openflow", str(description), "--as", "ovsdb")
    socket_path = f"unix:{network.folder / 'db.sock'}"
    answer = json.loads(network.call("ovsdb-client", "transact", socket_path, request))
    assert len(answer) == 2 * (len(STATIONS) + len(HOST_PORTS))
    assert all(result in ({}, {"count": 1}) for result in answer)
    # A port that does not exist is not passed over in silence.
    wrong = request.replace('"p-r1"', '"p-r9"')
    assert "timed out" in network.call("ovsdb-client", "transact", socket_path, wrong)


def test_every_form_of_rules_means_the_same(network: Network) -> None:
    """Rules as JSON, put together again by their names in OXM, are the rules that the switch shows."""
    network.apply(network.description(FLOWS))
    listed = json.loads(
        network.call(
            network.binary, "switch", "openflow", str(network.folder / "hybrid.toml"), "--as", "json"
        )
    )
    assert len(listed) == len(network.rules())
    shown = {
        int(part.split("=")[1])
        for rule in network.rules()
        for part in rule.replace(",", " ").split()
        if part.startswith("priority=")
    }
    assert {rule["priority"] for rule in listed} == shown


def departed(network: Network, control: Path) -> dict[str, int]:
    """Return how many frames left each ring."""
    shown = network.call(network.binary, "switch", "show", "rings", "--json", "--at", str(control))
    return {ring["name"]: ring["state"]["queue"]["departed"]["frames"] for ring in json.loads(shown)}


def remove_filters(network: Network) -> None:
    for name in HOST_PORTS:
        space = network.space("host")
        network.call("ip", "netns", "exec", space, "tc", "qdisc", "delete", "dev", name, "clsact")


def kill_switch(network: Network) -> None:
    network.processes[-1].kill()
    network.processes[-1].wait(timeout=20)


def stop_switch(network: Network) -> None:
    network.processes[-1].terminate()
    network.processes[-1].wait(timeout=20)


def test_collectors_are_reached_while_our_switch_is_gone(network: Network) -> None:
    description = network.description(FLOWS)
    network.apply(description)
    # The switch installs the kernel's filters itself, without a further step.
    control = start_switch(network, description)
    try:
        transfer(network, "r1", "c1", REDIRECTED)
        assert departed(network, control)["c1"] >= FRAMES_MIN
        kill_switch(network)
        transfer(network, "r1", "c1", REDIRECTED)
        transfer(network, "r2", "c2", REDIRECTED)
        control = start_switch(network, description)
        transfer(network, "r1", "c1", REDIRECTED)
        # The frames take the deep queue again, all of them, once each.
        assert FRAMES_MIN <= departed(network, control)["c1"] < 2 * FRAMES_MIN
        # After a second start there is still one filter.
        stop_switch(network)
        transfer(network, "r1", "c1", REDIRECTED)
        space = network.space("host")
        filters = network.call("ip", "netns", "exec", space, "tc", "filter", "show", "dev", "pep0", "ingress")
        assert filters.count("Egress Redirect to device pep0") == 1, filters
    finally:
        stop_switch(network)
        remove_filters(network)


def test_collectors_are_reached_before_our_switch_runs(network: Network) -> None:
    description = network.description(FLOWS)
    network.apply(description)
    script = network.call(network.binary, "switch", "openflow", str(description), "--as", "bypass")
    network.call("ip", "netns", "exec", network.space("host"), "sh", stdin=script)
    try:
        transfer(network, "r1", "c1", REDIRECTED)
        transfer(network, "r2", "c2", REDIRECTED)
    finally:
        remove_filters(network)


def test_collectors_are_reached_while_the_machine_of_our_switch_is_gone(
    network: Network, host: dict[str, Tap]
) -> None:
    description = network.description(FLOWS)
    text = description.read_text()
    description.write_text(text.replace("[openflow]", "[openflow]\nfailover = true"))
    network.apply(description)
    # A second time changes nothing.
    network.apply(description)
    listed = network.call("ovs-ofctl", "-O", "OpenFlow13", "dump-groups", "br0")
    assert listed.count("type=ff") == 2
    transfer(network, "r1", "c1", REDIRECTED)
    passed = tcp_frames(host["pep0"], "r1", "c1")
    assert passed >= FRAMES_MIN
    # Without power, the other end of the cable has no carrier.
    network.call("ip", "-n", network.space("host"), "link", "set", "pep0", "down")
    try:
        transfer(network, "r1", "c1", REDIRECTED)
        transfer(network, "r2", "c2", REDIRECTED)
        assert tcp_frames(host["pep0"], "r1", "c1") == passed
        assert tcp_frames(host["pep1"], "r2", "c2") >= FRAMES_MIN
    finally:
        network.call("ip", "-n", network.space("host"), "link", "set", "pep0", "up")
    # The former one ended with its link.
    tap = Tap(network.space("host"), "pep0", reflect=True)
    try:
        transfer(network, "r1", "c1", REDIRECTED)
        assert tcp_frames(tap, "r1", "c1") >= FRAMES_MIN
    finally:
        tap.close()
    network.apply(description, "--remove")
    assert "type=ff" not in network.call("ovs-ofctl", "-O", "OpenFlow13", "dump-groups", "br0")


def test_our_switch_keeps_the_queues_behind_the_host_ports(network: Network) -> None:
    description = network.description(FLOWS)
    network.apply(description)
    control = start_switch(network, description)
    try:
        transfer(network, "r1", "c1", REDIRECTED)
        transfer(network, "r2", "c2", REDIRECTED)
        transfer(network, "r1", "c2", DIRECT)
        shown = network.call(network.binary, "switch", "show", "rings", "--json", "--at", str(control))
        rings = {ring["name"]: ring["state"] for ring in json.loads(shown)}
        assert set(rings) == {"c1", "c2"}
        for name, port in (("c1", "pep0"), ("c2", "pep1")):
            queue = rings[name]["queue"]
            # One transfer each: the frames to c2 on other ports went straight.
            assert FRAMES_MIN <= queue["departed"]["frames"] < 2 * FRAMES_MIN
            assert (rings[name]["port"], queue["dropped"]) == (port, [])
    finally:
        stop_switch(network)
        remove_filters(network)
