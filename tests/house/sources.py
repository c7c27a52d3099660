"""Rust sources, read as far as the tests of the whole house need it."""

import re

NOISE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^\\'])'""", re.DOTALL
)
TEST_ITEM = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")


def without_noise(text: str) -> str:
    """Return the source without comments, strings and test modules."""
    text = NOISE.sub(lambda match: " " if match[0].startswith("/") else '""', text)
    while match := TEST_ITEM.search(text):
        end = text.find(";", match.end())
        brace = text.find("{", match.end())
        if brace != -1 and (end == -1 or brace < end):
            depth, end = 1, brace
            while depth and end + 1 < len(text):
                end += 1
                depth += {"{": 1, "}": -1}.get(text[end], 0)
        text = text[: match.start()] + text[end + 1 :]
    return text
