"""Plain words, as docs/style.md asks: no ruled-out phrases, clear doc comments, short sentences.

`python tests/house/test_words.py [ROOM]...` prints the lines that break a rule.
"""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# In a sentence, and as a word of a name.
WORDS = (
    *("nobody", "somebody", "anybody", "everybody", "told", "lanes?", "troubles?", "doubtful", "ample"),
    *("calm(?:ly|er)?", "amiss", "foresight", "beside", "time-outs?", "tells?", "go[t]"),
)
PHRASES = (
    *(
        "as far as any",
        "those of (?:whom|which)",
        "whose time has come",
        "who looks",
        "so many",
        "so much",
        "as much is",
        "whoever",
        "what it came to",
    ),
    *("(?:of|by|for|to|with|from) whom",),
)
WORD = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(f'[{w[0]}{w[0].upper()}]{w[1:]}' for w in WORDS)})(?![a-z])")
PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
# Files in which `#` begins a comment, with their names or endings, and those with comments as in C.
HASHES = frozenset((".py", ".toml", ".sh", ".yml", ".yaml", ".service", ".target", ".conf", ".in"))
HASH_NAMES = frozenset(("Makefile", ".gitignore", "run", "nightly"))
SLASHES = frozenset((".c", ".h", ".cc", ".cpp", ".js", ".mjs", ".css"))
OPENINGS = (
    "What",
    "Whose",
    "Who",
    "So many",
    "As many",
    "As much",
    "Whether",
    "Which",
    "Of which",
    "Of whom",
    "By what",
    "By which",
)
# At the start of a comment of documentation, or of a text in the code.
OPENING = re.compile(rf'(?:^\s*//[/!]\s?|""?"?)(?:{"|".join(OPENINGS)})\b(?!")')
# At the start of a line of any comment with these signs.
CLAUSE = re.compile(r"^\s*(?://[/!]?|#|/?\*) (?:What|Whose|Whom?|Whether)\b")
# At the start of a doc comment of Rust: a clause, or a word for a thing that a tooltip does not show.
FIRST = re.compile(r"(?:How|Why|When|Where|Its?|They|Their|Those|Of (?:these|those|which))\b")
# A doc comment has more words than this, and a sentence at most this many.
DOC_WORDS_MIN = 3
SENTENCE_WORDS_MAX = 25
# A *that* which opens no clause: after `so` and prepositions, before `of` and marks, and at the beginning.
POINTING = re.compile(
    r"\b(?:so|such|about|after|at|because of|before|behind|by|during|for|from|into|like|of|on|over|than|to"
    r"|under|until|with|within|without|upon|one) that\b"
    r"|\bthat (?:of|is why)\b|\bthat\b(?=[,.;:)]|$)|^That\b|: that\b",
    re.IGNORECASE,
)
# The most clauses with *that* in a sentence.
CLAUSES_MAX = 1
# Generated from sources that are counted themselves, or the record of the past.
LEFT_OUT = frozenset(
    (
        *("CHANGELOG.md", "docs/commands.md", "docs/scenario.md", "docs/style.md"),
        *("tests/house/test_names.py", "tests/house/test_words.py"),
    )
)

# PCI Express has lanes, and a study of Optuna has a method `tell`.
FIELD_WORDS = {
    "crates/plan/src/bounds/host.rs": re.compile(r"\blanes?\b"),
    "crates/plan/tests/claims.rs": re.compile(r"\blane\b"),
    "python/fanin/_study.py": re.compile(r"\bstudy\.tell\("),
    "python/fanin/tuning.py": re.compile(r"\bstudy\.tell\("),
}
# Pages for users say how things are; history stands in docs/engineering and in CHANGELOG.md.
HISTORY = re.compile(
    r"\bthere (?:was|were)\b|(?<!is )(?<!are )\bused to\b|\bmended\b|\bformerly\b|\bpreviously\b"
    r"|\bas before\b|\bearlier versions?\b|\buntil recently\b|\b(?:were|was) found\b|\b(?:was|were) studied\b"
    r"|\bbefore (?:this|the (?:change|order|least burst|redesign))\b|\bwhile \w+ were\b"
    r"|\bsince the delay\b|\bolder than (?:fair|this|that)\b|\b(?:was|were) rewritten\b"
    r"|\bbefore times began\b|\b(?:was|were) looked at\b"
    r"|\bbefore(?: (?!is|are|was|were|begins)\w+){1,4} were\b|\bbefore[.)]"
    r"|\bbefore,(?! (?:it|they|the|and|since)\b)"
    r"|\bmeasured before (?:later|earlier|these|those)\b|\b(?:differed|found) before\b|\blater rules\b"
    r"|\bhad (?:found|shown|seen)\b|\bnot repeated\b|\bwas called grown\b|\b(?:fall|fell) from \d"
    r"|\bthen (?:grew|fell|rose)\b|(?<!\bof )\bnow,? and\b|\bwould (?:reach|have reached|cost)\b"
    r"|\bthere is no \w+ yet\b|\bin this way: of\b|\bcommit (?=[a-f]*\d)[0-9a-f]{7,} \(|\bframes arrived,",
    re.IGNORECASE,
)
# Pages with sentences that are still too long: a count may only fall.
LONG_SENTENCES: dict[str, int] = {}


def room(name: str) -> str:
    """Return the room of a file: a crate, a folder of tests, or a folder at the top."""
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] in {"crates", "tests"} else parts[0]


def files() -> Iterator[tuple[str, Path]]:
    """Yield the name and the path of each file of the repository that is not left out, new ones included."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in sorted(names):
        if name not in LEFT_OUT and (ROOT / name).is_file():
            yield name, ROOT / name


def has_hashes(path: Path) -> bool:
    """Return true if `#` begins a comment in this file."""
    return path.suffix in HASHES or path.name in HASH_NAMES


def lines() -> Iterator[tuple[str, str, int, str]]:
    """Yield each line that breaks the rule: its room, file, number and text."""
    for name, path in files():
        if path.suffix not in {".rs", ".md"} and not has_hashes(path) and path.suffix not in SLASHES:
            continue
        openings = (OPENING,) if path.suffix == ".md" else (OPENING, CLAUSE)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if name in FIELD_WORDS:
                line = FIELD_WORDS[name].sub("", line)
            if any(rule.search(line) for rule in (WORD, PHRASE, *openings)):
                yield room(name), name, number, line.strip()


def short_docs() -> Iterator[tuple[str, str, int, str]]:
    """Yield each doc comment that is too short: its room, file, number of the line and text."""
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        text: list[str] = []
        for number, line in enumerate([*path.read_text().splitlines(), ""], 1):
            if match := re.match(r"\s*///(?!/)(.*)", line):
                text.append(match[1])
            elif text:
                words = " ".join(text).split()
                if len(words) < DOC_WORDS_MIN:
                    name = str(path.relative_to(ROOT))
                    yield room(name), name, number - len(text), " ".join(words)
                text = []


def unclear_docs() -> Iterator[tuple[str, str, int, str]]:
    """Yield each doc comment with an unclear first line: its room, file, number of the line and text."""
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        before = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r"\s*//[/!] ?(.*)", line)
            if match and not before.startswith(("///", "//!")) and FIRST.match(match[1]):
                name = str(path.relative_to(ROOT))
                yield room(name), name, number, match[1]
            before = line.strip()


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a page: of its paragraphs, list items and table cells."""
    page = re.sub(r"```.*?```|<!--.*?-->|^#.*?$", "\n\n", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"`[^`]*`", "code", page)
    # A line with a gap is one of a table: of commands and their meanings, for instance.
    page = re.sub(r"^.*\S {2,}\S.*$", "\n\n", page, flags=re.MULTILINE)
    page = re.sub(r"\]\([^)]*\)", "]", page)
    for block in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) |\||·", page):
        yield from re.split(r'(?<=[.!?])[*")]*\s+', " ".join(block.split()))


def too_long(texts: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield each sentence of these texts that is too long, with its number of words."""
    for text in texts:
        for sentence in sentences(text):
            words = sum(1 for word in sentence.split() if re.search(r"\w", word))
            if words > SENTENCE_WORDS_MAX:
                yield words, sentence


def clauses(sentence: str) -> int:
    """Return the number of clauses of a sentence that begin with *that*."""
    return len(re.findall(r"\bthat\b", POINTING.sub("", sentence), re.IGNORECASE))


def nested(texts: Iterable[str]) -> Iterator[str]:
    """Yield each sentence of these texts with too many clauses."""
    yield from (sentence for text in texts for sentence in sentences(text) if clauses(sentence) > CLAUSES_MAX)


def comments(source: str) -> Iterator[str]:
    """Yield the comments of a Rust source: neighbouring lines of one kind are one comment."""
    kind, text = "", ""
    for line in (*source.splitlines(), ""):
        match = re.match(r"\s*//([/!]?)(?!/) ?(.*)", line)
        this = match[1] or "/" if match else ""
        if text and this != kind:
            yield text
            text = ""
        kind = this
        text += f"{match[2]}\n" if match else ""


def hash_comments(source: str) -> Iterator[str]:
    """Yield the comments that begin with `#`: neighbouring lines are one comment."""
    for block in re.findall(r"(?:^[ \t]*#(?!!).*\n?)+", source, re.MULTILINE):
        yield re.sub(r"^[ \t]*# ?", "", block, flags=re.MULTILINE)


def slash_comments(source: str) -> Iterator[str]:
    """Yield the comments of a source in C, C++ or JavaScript."""
    for block in re.findall(r"/\*(.*?)\*/", source, re.DOTALL):
        yield re.sub(r"^[ \t]*\* ?", "", block, flags=re.MULTILINE)
    for block in re.findall(r"(?:^[ \t]*//.*\n?)+", source, re.MULTILINE):
        yield re.sub(r"^[ \t]*// ?", "", block, flags=re.MULTILINE)


def docstrings(source: str) -> Iterator[str]:
    """Yield the docstrings of a source in Python."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def texts(source: str) -> Iterator[str]:
    """Yield the texts in the code of a Rust source above its tests: of errors, of logs and below help."""
    source = source.split("#[cfg(test)]\nmod tests {")[0]
    for match in re.finditer(r"//[^\n]*|\"((?:[^\"\\]|\\.)*)\"|'(?:\\.|[^\\'])'", source, re.DOTALL):
        text = re.sub(r"\\\n\s*", "", match[1] or "").replace("\\n", "\n").replace('\\"', '"')
        # Files that the code writes are no sentences.
        if not re.search(r"^\s*(?:\[|\w+ = |#!|tc )", text, re.MULTILINE):
            yield text


def commented(path: Path) -> Iterator[str]:
    """Yield the comments, docstrings and texts of a file of code or of settings."""
    source = path.read_text() if path.suffix in {".rs", *SLASHES} or has_hashes(path) else ""
    if path.suffix == ".rs":
        yield from comments(source)
        yield from texts(source) if "src" in path.parts else ()
    elif path.suffix in SLASHES:
        yield from slash_comments(source)
    else:
        yield from hash_comments(source)
        yield from docstrings(source) if path.suffix == ".py" else ()


def long_comments() -> Iterator[tuple[str, str, int, str]]:
    """Yield each sentence of a comment or text that is too long: twice its file, its words and itself."""
    for name, path in files():
        for words, sentence in too_long(commented(path)):
            yield name, name, words, sentence


def nested_comments() -> Iterator[str]:
    """Yield each sentence of a comment or text with too many clauses, and its file."""
    for name, path in files():
        yield from (f"{name}: {sentence}" for sentence in nested(commented(path)))


def users_pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page for users."""
    docs = ROOT / "docs"
    folders = (docs, docs / "howto", docs / "notebooks")
    for path in (*(path for folder in folders for path in sorted(folder.glob("*.md"))), ROOT / "README.md"):
        name = str(path.relative_to(ROOT))
        if name not in LEFT_OUT:
            yield name, path.read_text()


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page, the engineering notes included."""
    yield from users_pages()
    for path in sorted((ROOT / "docs" / "engineering").glob("*.md")):
        yield str(path.relative_to(ROOT)), path.read_text()


def long_sentences() -> Iterator[tuple[str, str, int, str]]:
    """Yield each sentence of a page that is too long: twice its page, its words and itself."""
    for name, page in pages():
        for words, sentence in too_long([page]):
            yield name, name, words, sentence


def grown(found: Iterator[tuple[str, str, int, str]], known: dict[str, int]) -> list[str]:
    """Return what was found in each place with more than its known count."""
    by_place = defaultdict(list)
    for where, name, number, text in found:
        by_place[where].append(f"{name}:{number}: {text}")
    return [line for where, texts in by_place.items() if len(texts) > known.get(where, 0) for line in texts]


def test_words_are_plain() -> None:
    found = [f"{name}:{number}: {line}" for _, name, number, line in lines()]
    assert not found, "docs/style.md rules these out:\n" + "\n".join(found)


def test_doc_comments_say_what_the_item_is() -> None:
    found = [f"{name}:{number}: {text}" for _, name, number, text in short_docs()]
    assert not found, f"say in {DOC_WORDS_MIN} words or more what these are or do:\n" + "\n".join(found)


def test_doc_comments_begin_with_the_item() -> None:
    found = [f"{name}:{number}: {text}" for _, name, number, text in unclear_docs()]
    assert not found, "begin these with a noun or a verb that a tooltip shows:\n" + "\n".join(found)


def test_sentences_are_short() -> None:
    found = grown(long_sentences(), LONG_SENTENCES)
    assert not found, f"split these into sentences of at most {SENTENCE_WORDS_MAX} words:\n" + "\n".join(
        found
    )


def test_pages_for_users_hold_no_history() -> None:
    found = [
        f"{name}: {text}" for name, page in users_pages() for text in sentences(page) if HISTORY.search(text)
    ]
    assert not found, "say how it is, and move what it was to docs/engineering:\n" + "\n".join(found)


def test_sentences_of_comments_are_short() -> None:
    found = [f"{name}:{words}: {text}" for _, name, words, text in long_comments()]
    assert not found, f"split these into sentences of at most {SENTENCE_WORDS_MAX} words:\n" + "\n".join(
        found
    )


def test_sentences_have_one_clause_with_that() -> None:
    found = [f"{name}: {sentence}" for name, page in pages() for sentence in nested([page])]
    found += nested_comments()
    assert not found, f"say these with {CLAUSES_MAX} clause with `that`:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("sentence", "count"),
    [
        ("A frame that no rule names and that comes later waits.", 2),
        ("Checks that every host answers, and that no link is lost.", 2),
        ("A host that sends counts, so that the one of `that` is known.", 1),
        ("That is the rate of the link that leads to it, and after that of the next one.", 1),
        ("The load of the uplinks is that of the rack, and the least is that, too.", 0),
    ],
)
def test_clauses_with_that_are_counted(sentence: str, count: int) -> None:
    assert clauses(*sentences(sentence)) == count


def test_long_sentences_are_found(tmp_path: Path) -> None:
    words = " ".join(["word"] * (SENTENCE_WORDS_MAX + 1))
    source = f"/// Short.\n/// {words}.\n//\n// {words}. Short.\nfn it() {{}}\n//! {words[5:]}.\n"
    assert [count for count, _ in too_long(comments(source))] == [SENTENCE_WORDS_MAX + 1] * 2
    sources = {
        "a.py": f'"""Short.\n\n{words}."""\nit = 1\n# {words}.\n# Short.\n',
        "a.toml": f"# {words[:50]}\n# {words[50:]}.\n[it]\n# Short.\n",
        "a.sh": f"#!/bin/sh {words}\n# a  {words}\n# {words}.\n",
        "a.c": f"/*\n * {words}.\n */\nint it; // Short.\n// {words}.\n",
        "src/a.rs": f'let it = "{words[:50]}\\\n  {words[50:]}.";\n#[cfg(test)]\nmod tests {{ "{words}" }}\n',
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        expected = 2 if name in {"a.py", "a.c"} else 1
        assert len(list(too_long(commented(tmp_path / name)))) == expected, name


@pytest.mark.parametrize(
    "text",
    [
        "Fanin, before short segments were filled.",
        "A review had found 703 ms in a longer run, which was not repeated.",
        "Of this, 56 were measured before later rules.",
        "The script sets two variables now, and compares later.",
        "Three runs then grew by 0.6 %.",
        "This explains most of what differed before.",
        "Held answers would reach 1.043.",
        "The program of commit 5e5abbcd (27 November 2026) was upgraded.",
    ],
)
def test_history_is_found(text: str) -> None:
    assert HISTORY.search(text)


if __name__ == "__main__":
    for where, name, number, line in (
        *lines(),
        *short_docs(),
        *unclear_docs(),
        *long_sentences(),
        *long_comments(),
    ):
        if where in sys.argv[1:] or len(sys.argv) == 1:
            print(f"{name}:{number}: {line}")
