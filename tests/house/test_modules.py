"""Imports inside a crate run one way: no circle between folders, and no child uses a parent that uses it.

A folder is read as a whole: a circle of files that lie in one folder passes. A circle with the folder's own
file (`mod.rs`, `lib.rs`) fails.

`python tests/house/test_modules.py [CRATE]...` prints the circles of each crate.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sources import without_noise

ROOT = Path(__file__).resolve().parents[2]
# A module's path within its crate; the crate's root is ().
Module = tuple[str, ...]
Arrow = tuple[Module, Module]

USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
MOD = re.compile(r"\bmod\s+(\w+)\s*;")
PATH = re.compile(r"(?<![\w:$])(\w+(?:::\w+)+)")
DEFINED = re.compile(
    r"\b(?:fn|struct|enum|union|trait|type|const|static|mod|macro_rules!)\s+(?:mut\s+)?(\w+)"
)


def expand(tree: str) -> Iterator[tuple[str, str]]:
    """Yield each path of a `use` tree with its name here: `a::{b, c as d}` gives (a::b, b) and (a::c, d)."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if brace:
        depth, start = 0, 0
        inner = rest[: rest.rindex("}")] + ","
        for at, letter in enumerate(inner):
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                if part := inner[start:at].strip():
                    for path, name in expand(part):
                        yield (head + path).removesuffix("::self"), name
                start = at + 1
        return
    path, _, alias = tree.partition(" as ")
    path = path.strip()
    plain = path.removesuffix("::self")
    yield plain, alias.strip() or plain.rsplit("::", 1)[-1]


@dataclass
class Source:
    """One file: its child modules, the names it defines, and the names it imports."""

    path: Path
    body: str
    children: set[str]
    defined: set[str]
    # Each imported name with its path, and whether it is handed on (`pub use`).
    imports: list[tuple[str, str, bool]] = field(default_factory=list)


def read(path: Path) -> Source:
    """Read one file."""
    text = without_noise(path.read_text())
    body = USE.sub(" ", text)
    imports = [
        (name, target, bool(match[1])) for match in USE.finditer(text) for target, name in expand(match[2])
    ]
    return Source(path, body, set(MOD.findall(body)), set(DEFINED.findall(body)), imports)


class Crate:
    """The modules of one crate, and the arrows between them."""

    def __init__(self, folder: Path) -> None:
        """Read all files under `src` that are built outside tests."""
        self.sources: dict[Module, Source] = {}
        self.arrows: dict[Arrow, set[str]] = defaultdict(set)
        src = folder / "src"
        for root in (src / "lib.rs", src / "main.rs"):
            if root.exists():
                self._add((), root, src)
        for module in self.sources:
            self._link(module)

    def _add(self, module: Module, path: Path, folder: Path) -> None:
        if module in self.sources and module:
            return
        source = read(path)
        self.sources[module] = source
        for child in source.children:
            for file in (folder / f"{child}.rs", folder / child / "mod.rs"):
                if file.exists():
                    self._add((*module, child), file, folder / child)

    def _absolute(self, module: Module, path: str) -> Module | None:
        """Return a path from the crate's root on; None where it leads out of the crate."""
        parts = path.split("::")
        source = self.sources[module]
        if parts[0] == "crate":
            return tuple(parts[1:])
        if parts[0] in {"self", "super"}:
            base = module
            while parts and parts[0] in {"self", "super"}:
                base = base[:-1] if parts.pop(0) == "super" else base
            return (*base, *parts)
        if parts[0] in source.children:
            return (*module, *parts)
        for name, target, _ in source.imports:
            if name == parts[0] and target != path and not target.startswith(name + "::"):
                start = self._absolute(module, target)
                return (*start, *parts[1:]) if start is not None else None
        return None

    def _owner(self, path: Module, seen: frozenset[Module] = frozenset()) -> Module | None:
        """Return the module that defines what a path names, through every `use` on the way."""
        module = path
        while module not in self.sources:
            module = module[:-1]
        rest = path[len(module) :]
        source = self.sources[module]
        if not rest or rest[0] in source.defined or path in seen:
            return module
        for name, target, _ in source.imports:
            if name in {rest[0], "*"}:
                start = self._absolute(module, target.removesuffix("::*"))
                if start is None or (name == "*" and not self._defines(start, rest[0])):
                    continue
                ending = rest if name == "*" else rest[1:]
                return self._owner((*start, *ending), seen | {path})
            if name == rest[0]:
                return None
        return module

    def _defines(self, module: Module, name: str) -> bool:
        source = self.sources.get(module)
        return source is not None and (
            name in source.defined or any(name == given for given, _, public in source.imports if public)
        )

    def _arrow(self, module: Module, path: str) -> None:
        target = self._absolute(module, path.removesuffix("::*"))
        owner = self._owner(target) if target is not None else None
        if owner is not None and owner != module:
            self.arrows[module, owner].add(path)

    def _link(self, module: Module) -> None:
        source = self.sources[module]
        for name, target, public in source.imports:
            # A name that is only handed on makes this file its shop window, not its user.
            if not public or re.search(rf"\b{re.escape(name)}\b", source.body):
                self._arrow(module, target)
        for path in set(PATH.findall(source.body)):
            self._arrow(module, path)


def unit(module: Module, crate: Crate, depth: int) -> str:
    """Name the child of a folder that a module belongs to; the folder's own file is `.`."""
    if len(module) <= depth:
        return "."
    inner = (*module[: depth + 1],)
    is_folder = any(len(other) > depth + 1 and other[: depth + 1] == inner for other in crate.sources)
    return module[depth] + ("/" if is_folder else "")


def components(edges: dict[str, set[str]]) -> Iterator[set[str]]:
    """Yield the sets of nodes that reach each other."""
    reach: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for node in edges.get(todo.pop(), ()):
                if node not in seen:
                    seen.add(node)
                    todo.append(node)
        reach[start] = seen
    done: set[str] = set()
    for node in sorted(edges):
        ring = {other for other in reach[node] if node in reach.get(other, ())}
        if ring and not ring & done:
            done |= ring
            yield ring


def circles(crate: Crate) -> dict[str, list[str]]:
    """Return the circles of a crate: those that a folder takes part in, and imports back up."""
    folders = {module[:depth] for module in crate.sources for depth in range(len(module))}
    found = {}
    for folder in sorted(folders):
        depth = len(folder)
        edges: dict[str, set[str]] = defaultdict(set)
        causes: dict[tuple[str, str], list[str]] = defaultdict(list)
        for (source, target), paths in crate.arrows.items():
            if source[:depth] != folder or target[:depth] != folder:
                continue
            pair = unit(source, crate, depth), unit(target, crate, depth)
            if pair[0] != pair[1]:
                edges[pair[0]].add(pair[1])
                causes[pair] += [f"{'::'.join(source) or 'crate'}: {path}" for path in sorted(paths)]
        for ring in components(edges):
            if "." in ring or any(name.endswith("/") for name in ring):
                name = "::".join(("crate", *folder)) + " {" + ", ".join(sorted(ring)) + "}"
                found[name] = [
                    f"{a} -> {b}   {cause}"
                    for (a, b), lines in sorted(causes.items())
                    if a in ring and b in ring
                    for cause in lines
                ]
    return found


def all_circles(names: Iterable[str] = ()) -> dict[str, dict[str, list[str]]]:
    """Return the circles of every crate, or of those named."""
    crates = sorted(path.parent for path in ROOT.glob("crates/*/Cargo.toml"))
    wanted = set(names)
    return {path.name: circles(Crate(path)) for path in crates if not wanted or path.name in wanted}


def test_no_import_runs_in_a_circle() -> None:
    found = [f"{crate}: {ring}" for crate, rings in all_circles().items() for ring in rings]
    assert not found, f"circles of imports (run this file with the crate's name to see the arrows): {found}"


def test_the_parser_finds_a_circle(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a; mod b; pub use a::Part; #[cfg(test)] mod tests { use crate::b::Other; }",
        "a/mod.rs": "pub mod part; pub mod leaf; pub use part::Part; use leaf::Alias; fn f(_: Alias) {}",
        "a/part.rs": "// crate::lib\nuse super::Alias; use crate::b::Other; pub struct Part(Alias, Other);",
        "a/leaf.rs": "pub type Alias = u32;",
        "b.rs": "use crate::Part; pub struct Other; fn f(_: &Part) {}",
    }
    for name, text in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert list(circles(Crate(tmp_path))) == ["crate {a/, b}"]
    # A parent that uses its child, and a child using the parent's own items.
    (tmp_path / "src" / "a" / "mod.rs").write_text("mod part; pub struct Own; fn f(_: part::Part) {}")
    (tmp_path / "src" / "a" / "part.rs").write_text("use super::Own; pub struct Part(Own);")
    assert list(circles(Crate(tmp_path))) == ["crate::a {., part}"]


if __name__ == "__main__":
    for crate_name, rings_found in all_circles(sys.argv[1:]).items():
        print(f"{crate_name}: {len(rings_found)} circles")
        for ring_name, arrows in rings_found.items():
            print(f"  {ring_name}")
            for line in arrows:
                print(f"    {line}")
