"""Mininet scripts: what they say becomes a scenario, and what they lack or cannot do is named."""

import subprocess
import sys
from pathlib import Path

import pytest

from fanin import Scenario
from fanin.mininet import MininetError, import_script

STAR = """
from mininet.cli import CLI
from mininet.link import TCLink
from mininet.log import lg, setLogLevel
from mininet.net import Mininet
from mininet.node import Node, OVSSwitch
from mininet.topo import Topo
from mininet.util import irange

lg.setLogLevel("info")
print("read by Mininet")


class Router(Node):
    def config(self, **params):
        super().config(**params)


class IncastTopo(Topo):
    "Servers that answer one client."

    def build(self, servers=3, bw=1000):
        switch = self.addSwitch("s1", cls=OVSSwitch)
        client = self.addHost("client")
        self.addLink(client, switch, cls=TCLink, bw=100.5)
        for number in irange(1, servers):
            server = self.addHost(f"h{number}", ip=f"10.0.0.{number}/8")
            self.addLink(server, switch, bw=bw, delay="50us", max_queue_size=20)
        self.addHost("spare")


if __name__ == "__main__":
    setLogLevel("info")
    net = Mininet(topo=IncastTopo(), link=TCLink)
    net.start()
    CLI(net)
    net.stop()
"""

LEAF_SPINE = """
from mininet.topo import Topo


class Fabric(Topo):
    def __init__(self, readouts=3, **opts):
        Topo.__init__(self, **opts)
        spines = [self.addSwitch(f"spine{n}") for n in (1, 2)]
        for leaf, hosts in (("tor1", ["dcm1", "dcm2"]), ("leaf1", [f"ros{n}" for n in range(readouts)])):
            self.addSwitch(leaf)
            for host in hosts:
                self.addLink(self.addHost(host), leaf)
            for spine in spines:
                self.addLink(leaf, spine)


class Routed(Topo):
    def build(self):
        self.addHost("r0")
        for name in ("a", "b", "c"):
            self.addLink(self.addHost(name), "r0", params1={"ip": "10.0.0.1/24"})


topos = {"fabric": Fabric, "routed": lambda: Routed()}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "daq.py"
    path.write_text(text)
    return path


def wrong(folder: Path, text: str, topology: str = "") -> str:
    with pytest.raises(MininetError) as caught:
        import_script(write(folder, text), topology, collectors=["h1"])
    return str(caught.value)


def test_a_class_of_topo_is_a_star_with_its_rates_and_delays(tmp_path: Path) -> None:
    text = import_script(write(tmp_path, STAR), collectors=["client"])
    assert import_script(write(tmp_path, STAR), collectors="client") == text
    scenario = Scenario.load_text("daq", text)
    settings = scenario.settings
    assert settings["title"] == "IncastTopo, imported from Mininet"
    assert settings["network"]["topology"] == "star"
    assert (settings["collectors"]["hosts_per_rack"], settings["readout"]["hosts"]) == (1, 3)
    assert (settings["link"]["rate"], settings["readout"]["link"]["rate"]) == ("100.5 Mb/s", "1 Gb/s")
    assert settings["readout"]["link"]["delay"] == "50 us"
    for refused in (
        "# - spare: a host without links",
        "max_queue_size: a queue",
        "hosts.*.opts: ip: addresses",
    ):
        assert refused in text
    # Options of Mininet's own construction have no counterpart.
    assert "cls" not in text
    assert "port1" not in text


def test_arguments_are_given_as_mininet_takes_them(tmp_path: Path) -> None:
    text = import_script(write(tmp_path, STAR), "IncastTopo,5,bw=10", collectors=["client"])
    settings = Scenario.load_text("daq", text).settings
    assert (settings["readout"]["hosts"], settings["readout"]["link"]["rate"]) == (5, "10 Mb/s")


def test_a_key_of_topos_is_one_of_racks(tmp_path: Path) -> None:
    path = write(tmp_path, LEAF_SPINE)
    text = import_script(path, "fabric,4", collectors=["dcm*"], extends="thesis-a-1000hz")
    settings = Scenario.load_text("daq", text).settings
    assert (settings["network"]["topology"], settings["network"]["cores"]) == ("racks", 2)
    assert (settings["collectors"]["hosts_per_rack"], settings["readout"]["hosts"]) == (2, 4)
    # Settings of the base stay.
    assert settings["supervisor"]["rate"] == "1 kHz"


def test_a_router_is_a_switch_where_the_user_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, LEAF_SPINE)
    with pytest.raises(ValueError, match="a link joins two hosts"):
        import_script(path, "routed", collectors=["a"])
    text = import_script(path, "routed", collectors=["a"], switches=["r*"])
    assert Scenario.load_text("daq", text).settings["readout"]["hosts"] == 2
    assert "params1" in text
    with pytest.raises(MininetError, match="no node `x`; the nodes are a, b, c, r0"):
        import_script(path, "routed", collectors=["a"], switches=["x"])


def test_wrong_scripts_are_refused_with_the_reason(tmp_path: Path) -> None:
    assert "neither `topos` nor a class" in wrong(tmp_path, "from mininet.topo import Topo")
    assert "choose a topology; its topologies are fabric, routed" in wrong(tmp_path, LEAF_SPINE)
    assert "no topology `ring`; its topologies are IncastTopo" in wrong(tmp_path, STAR, "ring")
    assert "arguments are given as IncastTopo,3" in wrong(tmp_path, STAR, "IncastTopo,1,2,3")
    assert "No module named 'nowhere'" in wrong(tmp_path, "import nowhere")
    assert "SystemExit" in wrong(tmp_path, "raise SystemExit(3)")
    starts = "from mininet.net import Mininet\nnet = Mininet()"
    assert "calls Mininet(...) as it is read" in wrong(tmp_path, starts)
    path = tmp_path / "daq.mn"
    path.write_text("{}")
    with pytest.raises(MininetError, match=r"ends in \.py"):
        import_script(path, collectors=["h1"])
    with pytest.raises(ValueError, match="no node `h9`"):
        import_script(write(tmp_path, STAR), collectors=["h9"])


def test_nothing_of_a_script_stays_behind(tmp_path: Path) -> None:
    path = write(tmp_path, "import helper\n" + STAR)
    (tmp_path / "helper.py").write_text("")
    before = sys.argv.copy(), sys.path.copy(), sys.meta_path.copy()
    import_script(path, collectors=["client"])
    assert (sys.argv, sys.path, sys.meta_path) == before
    assert not [
        name for name in sys.modules if name.startswith(("mininet", "fanin_mininet_script", "helper"))
    ]
    assert not list(tmp_path.glob("__pycache__"))


def test_the_module_prints_a_scenario_and_its_notes(tmp_path: Path) -> None:
    path = write(tmp_path, STAR)
    command = [sys.executable, "-m", "fanin.mininet", str(path)]
    done = subprocess.run([*command, "--collector", "client"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # The script's own words are not part of the scenario.
    assert "read by Mininet" in done.stderr
    assert done.stdout == import_script(path, collectors=["client"])
    assert f"keys of {path} were not taken" in done.stderr
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--collector client; the hosts are client, h1, h2, h3" in done.stderr
    assert done.stdout == ""
