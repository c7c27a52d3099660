"""Numbers that stand on several pages are equal, and those of a table follow from its rows."""

import re
from pathlib import Path

import pytest

SETS = ("validation.md", "validation-drawn.md", "validation-named.md")


def page(root: Path, name: str) -> str:
    """Return the text of a page, each paragraph in one line."""
    return re.sub(r"(?<=\S)\n(?=[^\s|\-#])", " ", (root / name).read_text())


def only(pattern: str, text: str) -> tuple[str, ...]:
    """Return the groups of the one match of a pattern."""
    matches = list(re.finditer(pattern, text))
    assert len(matches) == 1, f"{pattern}: {len(matches)} matches"
    return matches[0].groups()


def agreement(root: Path, name: str) -> tuple[str, str]:
    """Return how many cases of a validation page agree, and how many were measured."""
    found = only(
        r"(\d+) of (\d+) cases agree, \d+ differ as known, (\d+) were not", page(root, f"docs/{name}")
    )
    agree, cases, unmeasured = map(int, found)
    return str(agree), str(cases - unmeasured)


def test_cells_compared_with_ns3_are_counted_from_their_table(root: Path) -> None:
    text = page(root, "docs/simulator.md")
    (section,) = only(r"(?s)\n## Compared with ns-3\n(.*?)\n## ", text)
    verdicts = re.findall(r"^\| \d.* \| (yes|\*\*no\*\*) \|$", section, re.MULTILINE)
    counted = (str(verdicts.count("yes")), str(len(verdicts)))
    assert only(r"(\d+) of (\d+) cells agree", section) == counted
    assert only(r"(\d+) of (\d+) cells agree", page(root, "README.md")) == counted


@pytest.mark.parametrize("name", SETS)
def test_agreement_with_the_kernel_is_that_of_its_page(root: Path, name: str) -> None:
    incast = only(r"incast or not agrees in (\d+) of (\d+) cases", page(root, f"docs/{name}"))
    row = only(rf"\]\({name}\) \| (\d+) of (\d+) \| (\d+) of (\d+) \|", page(root, "docs/simulator.md"))
    assert row == agreement(root, name) + incast


def test_the_readme_has_the_agreement_of_each_set(root: Path) -> None:
    text = page(root, "README.md")
    (sentence,) = only(r"(\[This page\]\(docs/validation\.md\) .*?\.) \[", text)
    counted = [agreement(root, name) for name in SETS]
    assert re.findall(r"(\d+) of (\d+)", sentence) == counted
    assert only(r"as measured on Linux: (\d+) of (\d+) cases", text) == counted[0]
