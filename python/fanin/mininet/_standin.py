"""A stand-in for the modules of Mininet that topology scripts import, where Mininet is not installed.

`Topo` and the shipped topologies work as Mininet's own. All other names, such as `TCLink`, are classes that a
script may name or extend, but not call: nothing here starts a network.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

__all__ = ["LinearTopo", "MinimalTopo", "SingleSwitchTopo", "Topo", "TorusTopo", "TreeTopo", "installed"]

_PACKAGE = "mininet"


class Topo:
    """Hosts, switches and links by their names, as `mininet.topo.Topo` keeps them."""

    def __init__(self, *args: Any, **params: Any) -> None:
        """Build the topology; `hopts`, `sopts`, `lopts` are default options of hosts, switches, links."""
        self.hopts: dict[str, Any] = params.pop("hopts", {})
        self.sopts: dict[str, Any] = params.pop("sopts", {})
        self.lopts: dict[str, Any] = params.pop("lopts", {})
        self._nodes: dict[str, dict[str, Any]] = {}
        self._links: list[dict[str, Any]] = []
        self.build(*args, **params)

    def build(self, *args: Any, **params: Any) -> None:
        """Add nodes and links; topologies override it."""

    def addNode(self, name: str, **opts: Any) -> str:
        """Add a node, and return its name."""
        self._nodes[name] = opts
        return name

    def addHost(self, name: str, **opts: Any) -> str:
        """Add a host, and return its name."""
        return self.addNode(name, **(opts or self.hopts))

    def addSwitch(self, name: str, **opts: Any) -> str:
        """Add a switch, and return its name."""
        return self.addNode(name, isSwitch=True, **(opts or self.sopts))

    def addLink(
        self,
        node1: str,
        node2: str,
        port1: int | None = None,
        port2: int | None = None,
        key: object = None,
        **opts: Any,
    ) -> int:
        """Add a link, and return its number."""
        for node in (node1, node2):
            self._nodes.setdefault(node, {})
        self._links.append({**(opts or self.lopts), "node1": node1, "node2": node2})
        return len(self._links)

    def nodes(self, sort: bool = True) -> list[str]:
        """Return the names of all nodes."""
        return sorted(self._nodes, key=natural) if sort else list(self._nodes)

    def isSwitch(self, n: str) -> bool:
        """Return whether a node is a switch."""
        return bool(self._nodes[n].get("isSwitch", False))

    def switches(self, sort: bool = True) -> list[str]:
        """Return the names of the switches."""
        return [name for name in self.nodes(sort) if self.isSwitch(name)]

    def hosts(self, sort: bool = True) -> list[str]:
        """Return the names of the hosts."""
        return [name for name in self.nodes(sort) if not self.isSwitch(name)]

    def links(self, sort: bool = False, withKeys: bool = False, withInfo: bool = False) -> list[Any]:
        """Return the two ends of each link; with its number and its options where they are asked for."""
        links = []
        for number, info in enumerate(self._links, 1):
            ends = (info["node1"], info["node2"])
            links.append((*ends, *((number,) if withKeys else ()), *((info,) if withInfo else ())))
        return sorted(links, key=lambda link: [natural(end) for end in link[:2]]) if sort else links

    def nodeInfo(self, name: str) -> dict[str, Any]:
        """Return the options of a node."""
        return self._nodes[name]

    def linkInfo(self, src: str, dst: str, key: object = None) -> dict[str, Any]:
        """Return the options of the first link between two nodes."""
        return next(info for info in self._links if {info["node1"], info["node2"]} == {src, dst})


class SingleSwitchTopo(Topo):
    """One switch with `k` hosts."""

    def build(self, k: int = 2, **_opts: Any) -> None:
        """Add the switch and its hosts."""
        switch = self.addSwitch("s1")
        for number in irange(1, k):
            self.addLink(self.addHost(f"h{number}"), switch)


class MinimalTopo(SingleSwitchTopo):
    """One switch with two hosts."""


class LinearTopo(Topo):
    """A line of `k` switches with `n` hosts each."""

    def build(self, k: int = 2, n: int = 1, **_opts: Any) -> None:
        """Add the switches, each with its hosts and a link to the one before."""
        last = ""
        for i in irange(1, k):
            switch = self.addSwitch(f"s{i}")
            for j in irange(1, n):
                self.addLink(self.addHost(f"h{i}" if n == 1 else f"h{j}s{i}"), switch)
            if last:
                self.addLink(switch, last)
            last = switch


class TreeTopo(Topo):
    """A tree of switches with hosts as its leaves."""

    def build(self, depth: int = 1, fanout: int = 2) -> None:
        """Add the tree from its root."""
        self.hostNum = 1
        self.switchNum = 1
        self.addTree(depth, fanout)

    def addTree(self, depth: int, fanout: int) -> str:
        """Add a subtree, and return its root."""
        if depth == 0:
            self.hostNum += 1
            return self.addHost(f"h{self.hostNum - 1}")
        node = self.addSwitch(f"s{self.switchNum}")
        self.switchNum += 1
        for _ in range(fanout):
            self.addLink(node, self.addTree(depth - 1, fanout))
        return node


class TorusTopo(Topo):
    """A torus of `x` by `y` switches with `n` hosts each."""

    def build(self, x: int, y: int, n: int = 1) -> None:
        """Add the switches with their hosts, then the rings."""
        if x < 3 or y < 3:
            raise ValueError("a torus of Mininet has at least 3 x 3 switches")
        for i, j in ((i, j) for i in irange(1, x) for j in irange(1, y)):
            switch = self.addSwitch(f"s{i}x{j}", dpid=f"{256 * i + j:x}")
            for k in irange(1, n):
                self.addLink(self.addHost(f"h{i}x{j}" if n == 1 else f"h{i}x{j}x{k}"), switch)
        for i, j in ((i, j) for i in irange(1, x) for j in irange(1, y)):
            self.addLink(f"s{i}x{j}", f"s{i}x{j % y + 1}")
            self.addLink(f"s{i}x{j}", f"s{i % x + 1}x{j}")


def irange(start: int, end: int) -> range:
    """Return the numbers from `start` to `end`, both included."""
    return range(start, end + 1)


def natural(text: str) -> list[tuple[int, int | str]]:
    """Return a key that sorts h2 before h10."""
    parts: list[str] = [""]
    for letter in str(text):
        if parts[-1] and letter.isdecimal() != parts[-1][-1].isdecimal():
            parts.append("")
        parts[-1] += letter
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def _do_nothing(*_args: Any, **_params: Any) -> None:
    """Take the messages and the level of Mininet's log."""


class _Log:
    """Mininet's log, without output."""

    setLogLevel = debug = info = output = warn = warning = error = critical = staticmethod(_do_nothing)


def _refuse(self: Any, *_args: Any, **_params: Any) -> NoReturn:
    raise RuntimeError(
        f"the script calls {type(self).__name__}(...) as it is read, and without Mininet nothing is started: "
        "such calls belong under `if __name__ == '__main__'`"
    )


class _Module(ModuleType):
    """A module of Mininet. Unknown names are classes that refuse to be called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__ == _PACKAGE and name.islower():
            return importlib.import_module(f"{_PACKAGE}.{name}")
        value = type(name, (), {"__init__": _refuse, "__module__": self.__name__})
        setattr(self, name, value)
        return value


_LOG: dict[str, Callable[..., None]] = dict.fromkeys(
    ("setLogLevel", "debug", "info", "output", "warn", "warning", "error"), _do_nothing
)
_KNOWN: dict[str, dict[str, Any]] = {
    "mininet.topo": {one.__name__: one for one in (Topo, SingleSwitchTopo, MinimalTopo, LinearTopo)},
    "mininet.topolib": {one.__name__: one for one in (TreeTopo, TorusTopo)},
    "mininet.util": {"irange": irange, "natural": natural},
    "mininet.log": {**_LOG, "lg": _Log()},
}


class _Finder(MetaPathFinder, Loader):
    """Finds all modules of Mininet."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> ModuleSpec | None:
        """Return where a module of Mininet comes from: here."""
        is_ours = fullname.partition(".")[0] == _PACKAGE
        return ModuleSpec(fullname, self, is_package=True) if is_ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a module without names."""
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Add the names that work."""
        module.__dict__.update(_KNOWN.get(module.__name__, {}))


@contextmanager
def installed() -> Iterator[None]:
    """Let `import mininet` find the stand-in, until the end of the block."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
            del sys.modules[name]
