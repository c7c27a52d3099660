"""The check of the site finds each kind of fault, and pictures show the numbers that are kept."""

from pathlib import Path

import pictures
import website

NAVIGATION = '<nav><a href="index.html">a</a><a href="sub/b.html">b</a></nav>'


def site(folder: Path, pages: dict[str, str]) -> set[Path]:
    """Write a site, and return the pages that it must have."""
    for name, text in pages.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return {Path("README.md"), Path("sub/b.md")}


def test_a_sound_site_has_no_faults(tmp_path: Path) -> None:
    page = '<article><h2 id="x y">x</h2><a href="../index.html">a</a><a href="#x%20y">x</a></article>'
    sources = site(tmp_path, {"index.html": NAVIGATION, "sub/b.html": page})
    assert website.faults(tmp_path, sources) == []


def test_every_kind_of_fault_is_found(tmp_path: Path) -> None:
    page = """<article><p>A list:
    - not a list</p><a href="none.html">a</a><img src="none.png"/>
    <a href="../index.html#none">b</a><script src="https://example.org/a.js"></script></article>"""
    sources = site(tmp_path, {"index.html": '<a href="sub/b.html">outside of nav</a>', "sub/b.html": page})
    found = website.faults(tmp_path, sources | {Path("c.md")})
    assert sorted(found) == [
        "docs/README.md: no navigation reaches it; add it to `nav` of zensical.toml",
        "docs/c.md: the site has no such page",
        "docs/sub/b.md: no navigation reaches it; add it to `nav` of zensical.toml",
        "sub/b.html: link to ../index.html#none: the page has no such anchor",
        "sub/b.html: link to none.html: there is no such file",
        "sub/b.html: link to none.png: there is no such file",
        "sub/b.html: loads https://example.org/a.js from elsewhere",
        "sub/b.html: not a list or a table on the site: '-not a list'",
    ]


def test_the_cliff_is_drawn_from_its_table() -> None:
    rows = pictures.read_cliff()
    seeds = {(row["curve"], row["senders"], row["seed"]) for row in rows}
    assert len(seeds) == len(rows) == len(pictures.CURVES) * 24 * pictures.SEEDS
    kept = (pictures.PICTURES / "cliff.svg").read_text()
    assert pictures.draw_cliff(rows) == kept, "run `python scripts/pictures.py cliff`"


def test_the_recording_is_drawn_from_its_text() -> None:
    text = (pictures.PICTURES / "recording.txt").read_text()
    kept = (pictures.PICTURES / "recording.svg").read_text()
    assert pictures.draw_recording(text) == kept, "run `python scripts/pictures.py recording`"
    assert kept.count('class="command ') == len(pictures.SESSION)


def test_badges_say_what_the_repository_says() -> None:
    readme = (pictures.ROOT / "README.md").read_text()
    for name, (label, message) in pictures.badge_texts().items():
        kept = (pictures.PICTURES / f"badge-{name}.svg").read_text()
        assert pictures.draw_badge(label, message) == kept, "run `python scripts/pictures.py badges`"
        assert f"[![{label}: {message}](docs/pictures/badge-{name}.svg)](" in readme
