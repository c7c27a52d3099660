"""The page in a real browser: on a desk, on a phone, in the dark and in print.

The results come from `fanin sim`; a measurement is a simulation of another seed that says it is one.
"""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from browser import ANSWER_SECONDS_MAX, MODES, Browser

# Script that reads the page's state after layout.
LOOK = """(() => {
  const seen = node => { const box = node.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
  const drawn = svg => [...svg.querySelectorAll("path.line")].some(path => path.getTotalLength() > 20);
  const figures = [...document.querySelectorAll("figure[data-chart]")].map(figure => ({
    id: figure.dataset.chart,
    visible: [...figure.querySelectorAll(":scope > svg")].filter(seen).length,
    drawn: [...figure.querySelectorAll(":scope > svg")].filter(seen).every(drawn),
  }));
  const light = text => {
    const [red, green, blue] = text.match(/[0-9.]+/g).slice(0, 3).map(Number)
      .map(part => part / 255).map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const contrast = (node, key) => {
    const ink = light(getComputedStyle(node)[key]);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  };
  const worst = (nodes, key) => Math.min(...[...nodes].map(node => contrast(node, key)), 21);
  return {
    figures,
    attached: Number(document.documentElement.dataset.charts),
    over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    text: worst(document.querySelectorAll("p, th, td, dd, dt, li, strong, small, summary, a"), "color"),
    lines: worst(document.querySelectorAll("path.line"), "stroke"),
    paper,
    values: [...document.querySelectorAll("data")]
      .map(node => [node.dataset.key, node.dataset.over ?? null, node.value]),
    words: document.body.innerText,
  };
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    running = Browser(tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


def fanin(*words: object) -> None:
    binary = os.environ.get("FANIN_BIN")
    assert binary, "set FANIN_BIN to the fanin binary"
    command = [binary, *map(str, words)]
    subprocess.run(command, check=True, timeout=ANSWER_SECONDS_MAX, stdin=subprocess.DEVNULL)


def simulate(out: Path, scenario: str, *sets: str, seed: int = 1) -> Path:
    words = [word for text in sets for word in ("--set", text)]
    fanin("sim", scenario, *words, "--seed", seed, "--quiet", "--out", out)
    return out


def as_measurement(result: Path, **techniques: object) -> Path:
    """Let a simulation pass for a measurement."""
    path = result / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"kind": "run"} | techniques))
    return result


def labels(page: Path) -> list[str]:
    """Return the names of the results on a page."""
    data = page.read_text().split('id="fanin-data">')[1].split("</script>")[0]
    return [result["label"] for result in json.loads(data)["results"]]


def folder_of(label: str) -> str:
    """Return the folder of a result that a command named."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in label)


TECHNIQUES = "none,deep-buffers,static,diatcp,dctcp,ecn-red,red-drop,m21tcp,rto,sird"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[Path]]]:
    """Make pages of every kind, each with the results that are on it."""
    folder = tmp_path_factory.mktemp("pages")
    watch = ['record.queues=["tor->collector:0"]', "record.windows=[1]", "run.duration=2 s"]
    event = ["record.events=[30]", 'record.queues=["tor->collector:0"]', "run.duration=500 ms"]
    router = "icc15-router"
    points = folder / "sweep"
    sweep = "shaping.credits=60,120,240,480,840,1200,1600"
    fanin("sim", router, "--set", "run.duration=300 ms", "--sweep", sweep, "--quiet", "--out", points)
    invalid = {"machine": {"valid": False, "reason": "the switch's core was busy 99 % of the time"}}
    results = {
        "barrier": [
            simulate(folder / "barrier/simulated", "incast", *watch),
            as_measurement(simulate(folder / "barrier/measured", "incast", *watch, seed=2)),
        ],
        "events": [
            simulate(folder / "events/simulated", router, *event),
            as_measurement(simulate(folder / "events/measured", router, *event, seed=2), **invalid),
            simulate(folder / "events/credits", router, *event, "shaping.credits=421"),
        ],
        "sweep": sorted(path for path in points.iterdir() if path.is_dir()),
    }
    arguments: dict[str, Sequence[Path]] = {**results, "sweep": [points]}
    made = {}
    for name, found in results.items():
        page = folder / f"{name}.html"
        fanin("report", *arguments[name], "--out", page)
        made[name] = (page, found)
    # Commands that make a page of many results by themselves.
    fanin(
        "compare",
        "incast",
        "--techniques",
        TECHNIQUES,
        "--duration",
        "1 s",
        "--quiet",
        "--out",
        folder / "techniques",
    )
    fanin("reproduce", "I00", "I01", "--duration", "1 s", "--quiet", "--out", folder / "claims")
    short = ("--repeat", 3, "--set", "run.duration=1 s", "--quiet", "--out")
    two = ("--sweep", "workload.senders=4,16", "--sweep", "workload.request_size=64 kB,256 kB")
    fanin("sim", "incast", *two, *short, folder / "seeds")
    for name in ("techniques", "claims"):
        page = folder / f"{name}.html"
        shutil.copy(folder / name / "index.html", page)
        made[name] = (page, [folder / name / folder_of(label) for label in labels(page)])
    seeds = sorted(path for path in (folder / "seeds").iterdir() if path.is_dir())
    made["seeds"] = (folder / "seeds" / "index.html", seeds)
    for page, _ in made.values():
        assert page.stat().st_size < 3_000_000
    # FANIN_PAGES=DIR keeps them to be looked at.
    if keep := os.environ.get("FANIN_PAGES"):
        for page, _ in made.values():
            shutil.copy(page, keep)
    return made


CHARTS = {
    "barrier": {
        *("timeline-0", "timeline-1", "collection-time-cdf", "collection-time-histogram"),
        *("queue-depth", "congestion-window"),
    },
    "events": {"timeline-0", "collection-time-cdf", "queue-depth", "io-to-collector", "io-from-collector"},
    "sweep": {"time-against-setting", "goodput-against-setting", "collection-time-cdf"},
    "techniques": {"collection-time-cdf", "collection-time-histogram"},
    "claims": {"collection-time-cdf", "collection-time-histogram"},
    "seeds": set(),
}
WORDS = {
    "barrier": ["Is it as predicted?", "Incast", "simulated", "measured", "goal: ±25.0", "source by source"],
    "events": ["Invalid.", "busy 99 % of the time", "Small: the difference"],
    "sweep": ["Collection time against credits", "shaping.credits=840", "6 of 7 results."],
    "techniques": ["Techniques on incast", "4 of 10 results: deep-buffers, static, m21tcp, sird."],
    "claims": ["Claims of the papers", "The paper says", "I010"],
    "seeds": ["Over the seeds", "each the same", "12 of 12 results."],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CHARTS)
def test_a_page_is_whole(
    browser: Browser, pages: dict[str, tuple[Path, list[Path]]], name: str, mode: str
) -> None:
    page, results = pages[name]
    browser.show(page, mode)
    look = browser.evaluate(LOOK)
    if keep := os.environ.get("FANIN_PAGES"):
        whole = browser.call("Page.captureScreenshot", captureBeyondViewport=True)
        Path(keep, f"{name}-{mode}.png").write_bytes(base64.b64decode(whole["data"]))
    assert browser.complaints() == []
    assert browser.requested() == [page.as_uri()], "nothing is fetched"

    drawn = {figure["id"] for figure in look["figures"] if figure["drawn"] and figure["visible"] == 1}
    assert drawn == {figure["id"] for figure in look["figures"]}, "every chart is drawn once"
    assert drawn >= CHARTS[name]
    assert look["attached"] == len(drawn)
    assert look["over"] == 0, "nothing sticks out"
    # WCAG 2.1, 1.4.3 and 1.4.11.
    assert look["text"] >= 4.5
    assert look["lines"] >= 3
    assert (look["paper"] < 0.1) == (MODES[mode][2] == "dark" and MODES[mode][1] == "screen")

    summaries = [json.loads((result / "summary.json").read_text()) for result in results]
    compared = 0
    for key, over, value in look["values"]:
        part = key.split("/")
        if part[1] == "results" and part[3] == "summary" and over is None:
            compared += 1
            assert value == plain(pointed(summaries[int(part[2])], part[4:])), key
    assert compared > 20
    words = " ".join(look["words"].split())
    for text in WORDS[name]:
        # Headings of tables on narrow pages wrap; spaces that do not break are spaces here.
        assert text in words.replace("\u00a0", " "), text


@pytest.mark.parametrize("width", [800, 1000, 1200, 1600, 2560])
@pytest.mark.parametrize("name", CHARTS)
def test_text_in_pictures_has_the_size_of_text(
    browser: Browser, pages: dict[str, tuple[Path, list[Path]]], name: str, width: int
) -> None:
    browser.show(pages[name][0], "desk")
    metrics = {"height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", width=width, **metrics)
    sizes = browser.evaluate("""[...document.querySelectorAll("figure > svg")]
      .filter(svg => svg.getBoundingClientRect().width > 0)
      .flatMap(svg => {
        const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
        const size = text => scale * parseFloat(getComputedStyle(text).fontSize);
        return [...svg.querySelectorAll("text")].map(size);
      })""")
    assert sizes
    # Rows of a late event lie close to one another on narrow pages.
    assert min(sizes) > 9, min(sizes)
    assert max(sizes) < 13, max(sizes)
    assert (
        browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    )


# A window of another size has been laid out.
SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


@pytest.mark.parametrize("width", [1440, 1920, 2560])
def test_pictures_use_a_wide_window(
    browser: Browser, pages: dict[str, tuple[Path, list[Path]]], width: int
) -> None:
    shown = {"run": pages["barrier"][1][0] / "report.html"} | {
        name: page for name, (page, _) in pages.items()
    }
    for name, page in shown.items():
        browser.show(page, "desk")
        metrics = {"height": 1000, "deviceScaleFactor": 1, "mobile": False}
        browser.call("Emulation.setDeviceMetricsOverride", width=width, **metrics)
        browser.evaluate(SETTLED)
        look = browser.evaluate("""(() => {
          const svgs = [...document.querySelectorAll("figure > svg.wide[data-plot]")];
          const right = part => part.getBoundingClientRect().right;
          const inside = svgs.map(svg => {
            const box = svg.getBoundingClientRect();
            const ends = [...svg.querySelectorAll("text, rect, path.base")].map(right);
            return [box.width, svg.parentNode.clientWidth, Math.max(...ends) - box.right, box.height];
          });
          const texts = [...document.querySelectorAll("main p:not(footer p)")].map(text => {
            const range = document.createRange();
            range.selectNodeContents(text);
            return range.getBoundingClientRect().width;
          });
          const main = document.querySelector("main"), style = getComputedStyle(main);
          return {
            inside,
            text: Math.max(...texts),
            main: main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight),
          };
        })()""")
        if keep := os.environ.get("FANIN_PAGES"):
            whole = browser.call("Page.captureScreenshot", captureBeyondViewport=True)
            Path(keep, f"{name}-{width}.png").write_bytes(base64.b64decode(whole["data"]))
        assert look["main"] > 0.93 * width, name
        assert look["text"] <= 1200, name
        assert look["inside"], name
        for drawn, room, beyond, height in look["inside"]:
            assert abs(drawn - room) < 1, (name, drawn, room)
            assert abs(beyond) < 20, (name, beyond)
            assert height < 900, (name, height)
        assert browser.complaints() == []
    # A picture that was drawn again is read and zoomed as before, and a narrow window takes it back.
    browser.show(shown["run"], "desk")
    browser.call("Emulation.setDeviceMetricsOverride", width=width, **metrics)
    browser.evaluate(SETTLED)
    browser.evaluate("document.querySelector('figure[data-chart] > svg.wide').focus()")
    browser.press("End", 35)
    read = "document.querySelector('figure[data-chart] output').textContent"
    assert "queue in" in browser.evaluate(read)
    browser.press("+", 107)
    zoomed = "document.querySelectorAll('figure[data-chart] > svg.zoomed').length"
    assert browser.evaluate(zoomed) == 1
    browser.press("0", 48)
    assert browser.evaluate(zoomed) == 0
    # The width of the drawing as it stands in the file.
    units = "document.querySelector('figure[data-chart] > svg.wide').viewBox.baseVal.width"
    assert (browser.evaluate(units) > 860) == (width > 2000)
    browser.call("Emulation.setDeviceMetricsOverride", width=900, **metrics)
    browser.evaluate(SETTLED)
    assert browser.evaluate(units) == 860


def pointed(tree: Any, parts: list[str]) -> Any:
    for part in parts:
        tree = tree[part.replace("~1", "/").replace("~0", "~")]
    return tree


def plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("name", ["techniques", "claims"])
def test_the_keyboard_reads_pages_of_many_results(
    browser: Browser, pages: dict[str, tuple[Path, list[Path]]], name: str
) -> None:
    browser.show(pages[name][0], "desk")
    reached = set()
    for _ in range(120):
        browser.press("Tab", 9)
        if not browser.evaluate("document.activeElement.matches('figure[data-chart] > svg')"):
            continue
        figure = "document.activeElement.closest('figure')"
        browser.press("End", 35)
        said = browser.evaluate(f"{figure}.querySelector('output').textContent")
        # A reading names each line of the legend.
        lines = browser.evaluate(
            f"[...{figure}.querySelectorAll('.legend bdi')].map(line => line.textContent)"
        )
        assert len(lines) > 5, lines
        assert all(line in said for line in lines), said
        reached.add(browser.evaluate(f"{figure}.dataset.chart"))
    assert reached == CHARTS[name]
    assert browser.evaluate("[...document.querySelectorAll('.scroll')].every(node => node.tabIndex === 0)")


def test_the_keyboard_reaches_charts_and_tables(
    browser: Browser, pages: dict[str, tuple[Path, list[Path]]]
) -> None:
    browser.show(pages["barrier"][0], "desk")
    focus = "document.activeElement.closest('figure')?.dataset.chart ?? ''"
    reached = set()
    for _ in range(120):
        browser.press("Tab", 9)
        chart = browser.evaluate(focus)
        is_chart = browser.evaluate("document.activeElement.tagName.toLowerCase() === 'svg'")
        # The drawing of a slow event has one value, the time.
        if not is_chart or not chart:
            continue
        reached.add(chart)
        browser.press("ArrowRight", 39)
        said = browser.evaluate(
            "document.activeElement.closest('figure').querySelector('output').textContent"
        )
        expected = ("queue in", "drops") if chart.startswith("timeline") else ("simulated", "measured")
        assert all(words in said for words in expected), chart
        browser.press("Escape", 27)
        said = browser.evaluate(
            "document.activeElement.closest('figure').querySelector('output').textContent"
        )
        assert said == "", chart
    assert reached >= CHARTS["barrier"]
    # Tables that may scroll sideways can be scrolled without a pointer, and folded parts unfolded.
    assert browser.evaluate("[...document.querySelectorAll('.scroll')].every(node => node.tabIndex === 0)")
    browser.evaluate("document.querySelector('summary').focus()")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", text="\r", windowsVirtualKeyCode=13)
    assert browser.evaluate("document.querySelector('details').open")


def test_it_can_be_printed(browser: Browser, pages: dict[str, tuple[Path, list[Path]]]) -> None:
    browser.show(pages["barrier"][0], "desk")
    printed = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert printed.startswith(b"%PDF")
    sheets = printed.count(b"/Type /Page\n") or printed.count(b"/Type /Page ")
    assert 1 <= sheets <= 12, f"{sheets} sheets"


def test_a_phone_shows_the_limits_of_ports(browser: Browser, tmp_path: Path) -> None:
    page = simulate(tmp_path / "one", "incast", "run.duration=300 ms") / "report.html"
    browser.show(page, "phone")
    cells = """[...document.querySelectorAll('table.where td')].map(cell => {
      const box = cell.getBoundingClientRect();
      return [cell.dataset.label, box.width > 20 && box.left >= 0 && box.right <= innerWidth, cell.innerText];
    })"""
    found = browser.evaluate(cells)
    assert [name for name, *_ in found] == ["Dropped", "Deepest", "Limit", "Used"]
    assert all(is_seen for _, is_seen, _ in found), found
    assert found[2][2].replace("\u202f", " ").replace("\u00a0", " ").startswith("64"), found


def test_a_drag_over_a_chart_selects_nothing(browser: Browser, tmp_path: Path) -> None:
    page = simulate(tmp_path / "one", "incast", "run.duration=300 ms") / "report.html"
    browser.show(page, "desk")
    place = """(() => {
      const svg = [...document.querySelectorAll('figure[data-chart] > svg.wide[data-plot]')].pop();
      svg.scrollIntoView();
      const box = svg.getBoundingClientRect();
      return [box.left, box.top, box.width, box.height];
    })()"""
    left, top, width, height = browser.evaluate(place)
    steps = [("mousePressed", 0.3, 0.4), ("mouseMoved", 0.5, 0.95), ("mouseReleased", 0.7, 0.95)]
    for kind, x, y in steps:
        at = {"x": left + x * width, "y": top + y * height}
        browser.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **at)
    assert browser.evaluate("getSelection().toString()") == ""
    zoomed = "[...document.querySelectorAll('figure[data-chart] > svg.wide[data-plot]')].pop().classList"
    assert browser.evaluate(f"{zoomed}.contains('zoomed')")
