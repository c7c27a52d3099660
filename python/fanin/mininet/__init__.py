"""Topology scripts of Mininet as scenarios; `python -m fanin.mininet FILE.py` does the same.

The script is executed, so read it before. Mininet need not be installed.
"""

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from fanin import _fanin
from fanin._arguments import checked_path, checked_texts
from fanin.mininet import _standin

__all__ = ["MininetError", "import_script"]

#: The name of the script's module. It differs from `__main__`, so that nothing is started.
_MODULE = "fanin_mininet_script"
#: Options that say how Mininet builds a link or a node.
_OWN_OPTIONS = {"addr1", "addr2", "cls", "cls1", "cls2", "fast", "intf", "isSwitch", "node1", "node2"}
_OWN_OPTIONS |= {"intfName1", "intfName2", "port1", "port2"}


class MininetError(ValueError):
    """A script has no topology that can be read."""


def import_script(
    path: str | os.PathLike[str],
    topology: str = "",
    *,
    collectors: str | Sequence[str],
    switches: str | Sequence[str] = (),
    extends: str | None = None,
) -> str:
    """Return the scenario that a Mininet script describes, as TOML; the script is executed.

    `topology` is a key of its `topos` or a class derived from `Topo`, with arguments as `mn --topo` takes
    them: `NAME,3,bw=10`. It may be left out where there is one alone. `collectors` names the collecting
    hosts and `switches` the hosts that forward; names may end in `*`. Raise `ValueError` with the reason
    where the script has no such topology, or where no scenario has its shape.
    """
    path = Path(checked_path("path", path))
    collecting = checked_texts("collectors", collectors, 'a host such as "h1", or a list of them')
    forwarding = checked_texts("switches", switches, 'a host such as "r1", or a list of them')
    name, nodes = _read(path, topology)
    text = json.dumps(_miniedit(name, nodes, forwarding))
    return _fanin.import_text(path.stem, text, collecting, extends)


def _read(path: Path, topology: str) -> tuple[str, Any]:
    """Return the name of the topology and its instance."""
    has_mininet = importlib.util.find_spec("mininet") is not None
    wanted, args, params = _arguments(topology)
    # The script's own output must not become part of the scenario.
    package = nullcontext() if has_mininet else _standin.installed()
    with package, redirect_stdout(sys.stderr), _executed(path) as script:
        topos = _topos(script)
        name = wanted or (next(iter(topos)) if len(topos) == 1 else "")
        if not topos:
            raise MininetError(f"{path}: it has neither `topos` nor a class derived from Topo")
        if name not in topos:
            about = f"it has no topology `{wanted}`" if wanted else "choose a topology"
            raise MininetError(f"{path}: {about}; its topologies are {', '.join(topos)}")
        try:
            return name, topos[name](*args, **params)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            hint = f" (arguments are given as {name},3,bw=10)" if isinstance(error, TypeError) else ""
            raise MininetError(f"{path}: {name} failed: {why}{hint}") from error


def _arguments(topology: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Split `NAME,ARG,KEY=VALUE`."""
    name, *rest = topology.split(",")
    args = [_number(text) for text in rest if "=" not in text]
    pairs = [text.split("=", 1) for text in rest if "=" in text]
    return name, args, {key: _number(value) for key, value in pairs}


def _number(text: str) -> int | float | str:
    """Return a number where the text is one, as Mininet's command does."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@contextmanager
def _executed(path: Path) -> Iterator[ModuleType]:
    """Execute the script with its folder as the first place for imports and without arguments."""
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise MininetError(f"{path}: not a script of Python, whose name ends in .py")
    script = importlib.util.module_from_spec(spec)
    kept_argv, kept_path, kept_bytecode = sys.argv, sys.path.copy(), sys.dont_write_bytecode
    kept_modules = set(sys.modules)
    folder = str(path.resolve().parent)
    sys.argv, sys.dont_write_bytecode = [str(path)], True
    sys.path.insert(0, folder)
    sys.modules[_MODULE] = script
    try:
        try:
            spec.loader.exec_module(script)
        except (Exception, SystemExit) as error:
            raise MininetError(f"{path}: {type(error).__name__}: {error}") from error
        yield script
    finally:
        sys.argv, sys.dont_write_bytecode = kept_argv, kept_bytecode
        sys.path[:] = kept_path
        # Another script's modules may have the same names.
        for name in set(sys.modules) - kept_modules:
            if name == _MODULE or str(getattr(sys.modules[name], "__file__", "")).startswith(folder + os.sep):
                del sys.modules[name]


def _topos(script: ModuleType) -> Mapping[str, Any]:
    """Return the topologies that the script offers: those of `topos`, or else its own classes."""
    offered = getattr(script, "topos", None)
    if isinstance(offered, Mapping) and offered:
        return offered
    base = importlib.import_module("mininet.topo").Topo
    own = [value for value in vars(script).values() if isinstance(value, type) and issubclass(value, base)]
    return {one.__name__: one for one in own if one.__module__ == _MODULE}


def _miniedit(name: str, topo: Any, switches: Sequence[str]) -> dict[str, Any]:
    """Return the topology as MiniEdit would save it, with its name."""
    unknown = [pattern for pattern in switches if not any(_is_named(n, [pattern]) for n in topo.nodes())]
    if unknown:
        raise MininetError(f"there is no node `{unknown[0]}`; the nodes are {', '.join(topo.nodes())}")
    saved: dict[str, Any] = {"topo": name, "hosts": [], "switches": [], "links": []}
    for node in topo.nodes():
        is_switch = topo.isSwitch(node) or _is_named(node, switches)
        opts = {**_options(topo.nodeInfo(node)), "hostname": node}
        saved["switches" if is_switch else "hosts"].append({"opts": opts})
    for one, other, info in topo.links(sort=True, withInfo=True):
        saved["links"].append({"src": one, "dest": other, "opts": _options(info)})
    return saved


def _is_named(node: str, patterns: Sequence[str]) -> bool:
    return any(
        node.startswith(pattern[:-1]) if pattern.endswith("*") else node == pattern for pattern in patterns
    )


def _options(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that say something of the network, in types of JSON."""
    return {
        key: value if isinstance(value, str | int | float | None) else repr(value)
        for key, value in info.items()
        if key not in _OWN_OPTIONS
    }
