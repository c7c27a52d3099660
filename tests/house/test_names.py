"""A type's name is unique in the workspace, unless it is the same idea in each place; names say a meaning.

`python tests/house/test_names.py` prints the names that stand for several types, and where.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from sources import NOISE, without_noise

ROOT = Path(__file__).resolve().parents[2]
# A type by its definition, as an alias, or as the first word of a macro that defines it: `section!(Load {`.
# Associated types are indented.
TYPE = re.compile(
    r"\b(?:struct|enum|union|trait)\s+(\w+)|^(?:pub(?:\([^)]*\))? )?type (\w+)"
    r"|^\w+!\s*[({]\s*([A-Z]\w*)\s*\{",
    re.MULTILINE,
)

# One idea that each place has its own of: a command's arguments, an error, a result, settings, a count.
RECUR = frozenset(("Arguments", "Config", "Counters", "Error", "ReadError", "Result", "WriteError"))
# As a whole name, in either case; as a part of one; and at its beginning.
EMPTY = re.compile(
    r"what|who|whom|whose|rise|fall|(?:.*_)?got(?:_.*)?|(?:test_)?(?:what|who|whom|whose)_.*", re.IGNORECASE
)

# In texts and comments. The other words are found by test_words.py.
EMPTY_WORD = re.compile(r"\bgot\b", re.IGNORECASE)


def types(text: str) -> list[str]:
    """Return the names of the types that a source defines."""
    return ["".join(names) for names in TYPE.findall(without_noise(text))]


def places() -> dict[str, list[str]]:
    """Return each name that several types have, with the files that define them."""
    found = defaultdict(list)
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        for name in types(path.read_text()):
            found[name].append(str(path.relative_to(ROOT)))
    return {name: files for name, files in found.items() if len(files) > 1}


def test_a_name_stands_for_one_type() -> None:
    found = {name: files for name, files in places().items() if name not in RECUR}
    assert not found, f"give these types names of their own: {found}"


def test_every_permitted_name_recurs() -> None:
    unused = RECUR - places().keys()
    assert not unused, f"one type has each of these names: remove them from the list: {unused}"


def rust_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield each name of a Rust source with its line: of tests too, but not of comments and texts."""
    blank = NOISE.sub(lambda match: "\n" * match[0].count("\n") or " ", text)
    for number, line in enumerate(blank.splitlines(), 1):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            yield number, name


def python_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield each name of a Python source with its line."""
    for node in ast.walk(ast.parse(text)):
        for field in ("id", "arg", "attr", "name"):
            if isinstance(name := getattr(node, field, None), str):
                yield getattr(node, "lineno", 0), name


def empty_names() -> Iterator[str]:
    """Yield each name that says no meaning, with its place."""
    for folder, names in SOURCES.items():
        suffix = "rs" if names is rust_names else "py"
        for path in sorted((ROOT / folder).glob(f"**/*.{suffix}")):
            for number, name in names(path.read_text()):
                if EMPTY.fullmatch(name):
                    yield f"{path.relative_to(ROOT)}:{number}: {name}"


SOURCES = {
    **dict.fromkeys(("crates", "fuzz/fuzz_targets"), rust_names),
    **dict.fromkeys(("python", "scripts", "tests"), python_names),
}


def empty_texts() -> Iterator[str]:
    """Yield each text and comment in the sources with a word that says no meaning, with its place."""
    for folder, names in SOURCES.items():
        suffix = "rs" if names is rust_names else "py"
        for path in sorted((ROOT / folder).glob(f"**/*.{suffix}")):
            if path != Path(__file__).resolve():
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    if EMPTY_WORD.search(line):
                        yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def test_texts_say_a_meaning() -> None:
    found = list(empty_texts())
    assert not found, 'write "not {actual}", "received" or another verb:\n' + "\n".join(found)


def test_words_of_texts_are_found() -> None:
    assert EMPTY_WORD.search('"at most 1; got {share}"')
    assert EMPTY_WORD.search("// Got it.")
    assert not EMPTY_WORD.search("forgotten, ergot")


def test_names_say_a_meaning() -> None:
    found = list(empty_names())
    assert not found, "call these by their meaning (docs/style.md):\n" + "\n".join(found)


def test_empty_names_are_found() -> None:
    source = 'fn what_is(got: &str) {}  // got\nconst T: &str = "got"; enum Who { Gotten, Whatever }\n'
    assert [name for _, name in rust_names(source) if EMPTY.fullmatch(name)] == ["what_is", "got", "Who"]
    source = "def test_who_comes(what):\n    return sent_got.what.forgot\n"
    names = sorted(name for _, name in python_names(source) if EMPTY.fullmatch(name))
    assert names == ["sent_got", "test_who_comes", "what", "what"]


def test_types_of_macros_are_found() -> None:
    source = (
        "section!(\n    Load {\n        last_hop: f64,\n    }\n);\n"
        "pub struct Summary;\n    matches!(Load { last_hop });\n"
    )
    assert types(source) == ["Load", "Summary"]


def test_aliases_are_types() -> None:
    source = "type Row = u8;\npub(crate) type Wake<'a> = &'a u8;\nimpl T for S {\n    type Target = u8;\n}\n"
    assert types(source) == ["Row", "Wake"]


if __name__ == "__main__":
    for type_name, type_files in sorted(places().items(), key=lambda item: -len(item[1])):
        permitted = "" if type_name not in RECUR else " (permitted)"
        print(f"{len(type_files)} {type_name}{permitted}: {' '.join(type_files)}")
