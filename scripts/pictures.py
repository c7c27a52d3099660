"""Makes the pictures of the documentation from real runs; arguments name some of them.

The command is taken from $FANIN_BIN. `cliff.csv` keeps the numbers of `cliff.svg`, `recording.txt` the
lines that the commands of `recording.svg` printed.
"""

import csv
import html
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as pyplot

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
# Each curve of the cliff: its name, colour, line and settings.
NETWORK = ("workload.request_size=32 kB", "tor.buffer=256 kB")
CURVES = {
    "TCP NewReno, as in ns-3": ("#cf222e", "-", ()),
    "TCP of Linux 6 (CUBIC)": ("#bf8700", "--", ("transport.profile=linux-6",)),
    "window of 4 packets": (
        *("#0969da", "-."),
        (
            *("transport.profile=linux-6", "transport.congestion_control=static"),
            "transport.static_window=4 packets",
        ),
    ),
}
SWEEP = "workload.senders=1..24:1"
SEEDS = 5
COLUMNS = ("curve", "senders", "seed", "goodput_bps", "drops", "timeouts")
# The session of the recording; a line of output is shown as it was printed.
SESSION = (
    "fanin plan rack.toml | head -4",
    "fanin sim rack.toml --out rack | grep -E 'requests|time |goodput|network'",
    "fanin sim rack.toml --sweep tor.buffer=192..384:64kB",
)
SECONDS = 20
# The whole session is shown first, for programs that show one frame of a picture.
SECONDS_WHOLE = 1.5
SECONDS_A_LETTER = 0.045
WIDTH_LETTERS = 100


def binary() -> Path:
    """Return the command that is pictured."""
    path = os.environ.get("FANIN_BIN")
    if not path:
        sys.exit("set FANIN_BIN to the fanin binary")
    return Path(path).resolve()


def tutorial_scenario() -> str:
    """Return the scenario of the tutorial."""
    return (ROOT / "docs" / "tutorial.md").read_text().split("```toml\n")[1].split("```")[0]


def sweep(
    settings: tuple[str, ...], folder: Path, values: str = SWEEP, seeds: int = SEEDS
) -> list[list[str]]:
    """Simulate one curve of the cliff, and return its rows: senders, seed, goodput, drops, timeouts."""
    sets = [word for setting in (*NETWORK, *settings) for word in ("--set", setting)]
    command: list[str | Path] = [binary(), "sim", "incast", "--sweep", values, "--repeat", str(seeds), *sets]
    subprocess.run([*command, "--out", folder, "--quiet"], check=True)
    with (folder / "sweep.csv").open(newline="") as file:
        keys = ("workload.senders", "seed", "goodput_bps", "drops", "timeouts")
        return [[row[key] for key in keys] for row in csv.DictReader(file)]


def draw_cliff(rows: list[dict[str, str]]) -> str:
    """Draw goodput against the number of senders, with bands from the least seed to the largest."""
    points: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        points[row["curve"]][int(row["senders"])].append(float(row["goodput_bps"]) / 1e6)
    pyplot.rcParams["svg.fonttype"] = "none"
    pyplot.rcParams["svg.hashsalt"] = "cliff"
    pyplot.rcParams["font.family"] = "DejaVu Sans"
    pyplot.rcParams["font.size"] = 11
    figure, axes = pyplot.subplots(figsize=(8, 4))
    for curve, (colour, line, _) in CURVES.items():
        senders = sorted(points[curve])
        means = [sum(points[curve][n]) / len(points[curve][n]) for n in senders]
        axes.plot(senders, means, line, color=colour, linewidth=2, label=curve)
        low, high = ([pick(points[curve][n]) for n in senders] for pick in (min, max))
        axes.fill_between(senders, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("senders that answer at once, 32 kB each")
    axes.set_ylabel("goodput, Mb/s")
    axes.set_xlim(1, 24)
    axes.set_ylim(0, 1000)
    axes.set_xticks([1, 4, 8, 12, 16, 20, 24])
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center right", frameon=False, bbox_to_anchor=(0.94, 0.46))
    axes.set_title(
        "Links of 1 Gb/s, 256 kB of buffer a port (fanin sim, five seeds)", fontsize=11, loc="left"
    )
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
    return text.getvalue()


def read_cliff() -> list[dict[str, str]]:
    """Return the kept numbers of the cliff."""
    with (PICTURES / "cliff.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def cliff() -> None:
    """Simulate the cliff and draw it."""
    with (PICTURES / "cliff.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for curve, (_, _, settings) in CURVES.items():
            with tempfile.TemporaryDirectory() as folder:
                writer.writerows([curve, *row] for row in sweep(settings, Path(folder) / "out"))
    (PICTURES / "cliff.svg").write_text(draw_cliff(read_cliff()))


def play() -> str:
    """Run the session, and return commands and output as a terminal shows them."""
    shown = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rack.toml").write_text(tutorial_scenario())
        path = f"{binary().parent}:{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "COLUMNS": str(WIDTH_LETTERS)}
        for command in SESSION:
            run = subprocess.run(
                *(["bash", "-c", command],),
                cwd=folder,
                env=environment,
                check=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            shown.append(f"$ {command}\n{run.stdout.rstrip()}\n")
    return "\n".join(shown)


def draw_recording(text: str) -> str:
    """Draw a terminal in which the lines appear one after another, and the whole begins again at the end."""
    lines = text.splitlines()
    letter, line_height, margin = 7.85, 19, 18
    width, height = round(WIDTH_LETTERS * letter) + 2 * margin, len(lines) * line_height + 2 * margin + 22
    # A command takes as long as its letters; its output comes at once, and is read for a while.
    commands = [line for line in lines if line.startswith("$ ")]
    typing = sum(len(command) for command in commands) * SECONDS_A_LETTER
    reading = (SECONDS - typing - SECONDS_WHOLE) / len(commands)
    styles, texts, now = [], [], SECONDS_WHOLE + 0.3
    whole = 100 * SECONDS_WHOLE / SECONDS
    for number, line in enumerate(lines):
        y = margin + 22 + (number + 1) * line_height - 5
        kind = "command" if line.startswith("$ ") else "output"
        if kind == "command" and number:
            now += reading - 0.3
        if kind == "command":
            now += len(line) * SECONDS_A_LETTER
        share = 100 * now / SECONDS
        styles.append(
            f"@keyframes l{number}{{0%,{whole:.2f}%{{opacity:1}}{whole + 0.01:.2f}%,{share:.2f}%{{opacity:0}}"
            f"{share + 0.01:.2f}%,100%{{opacity:1}}}}"
            f".l{number}{{animation:l{number} {SECONDS}s infinite}}"
        )
        texts.append(
            f'<text class="{kind} l{number}" x="{margin}" y="{y}" xml:space="preserve">'
            f"{html.escape(line)}</text>"
        )
    label = html.escape("Recording of: " + "; ".join(SESSION))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            f' aria-label="{label}">',
            "<style>text{font:13px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#d0d7de}"
            ".command{fill:#7ee787;font-weight:bold}",
            *styles,
            "@media (prefers-reduced-motion:reduce){text{animation:none!important}}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
            *(
                f'<circle cx="{margin + 4 + 18 * at}" cy="20" r="5.5" fill="{colour}"/>'
                for at, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
            ),
            *texts,
            "</svg>\n",
        ]
    )


def recording() -> None:
    """Run the session and draw its recording."""
    text = play()
    (PICTURES / "recording.txt").write_text(text)
    (PICTURES / "recording.svg").write_text(draw_recording(text))


def shoot(page: Path, picture: str, profile: Path) -> None:
    """Take a picture of the first screen of a page."""
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1440,680")
    subprocess.run(
        [
            "chromium",
            *flags,
            f"--user-data-dir={profile}",
            f"--screenshot={PICTURES / picture}",
            page.as_uri(),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def report() -> None:
    """Take pictures of the page of the README's first run, and of that of the tutorial's."""
    lines = (ROOT / "README.md").read_text().splitlines()
    first = next(line for line in lines if line.startswith("$ fanin sim") and line.endswith("--out ten"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rack.toml").write_text(tutorial_scenario())
        runs: list[tuple[list[str], str]] = [
            (shlex.split(first)[2:], "first-run.png"),
            (["sim", "rack.toml", "--out", "rack"], "report.png"),
        ]
        for words, picture in runs:
            subprocess.run([binary(), *words, "--quiet"], cwd=folder, check=True)
            shoot(folder / words[-1] / "report.html", picture, folder / "profile")


def badge_texts() -> dict[str, tuple[str, str]]:
    """Return the label and the message of each badge, as the repository's own files have them."""
    package = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    agree = re.search(r"(\d+ of \d+) cases agree", (ROOT / "docs" / "validation.md").read_text())
    assert agree, "docs/validation.md does not say how many cases agree"
    return {
        "licence": ("licence", package["license"]),
        "rust": ("Rust", f"{package['rust-version']} or later"),
        "python": ("Python", f"{python.removeprefix('>=')} or later"),
        "platform": ("runs on", "Linux x86-64"),
        "linux": ("as measured on Linux", f"{agree[1]} cases"),
    }


def draw_badge(label: str, message: str) -> str:
    """Draw a badge: a label on grey, a message on blue."""
    widths = [round(6.4 * len(text)) + 12 for text in (label, message)]
    total = sum(widths)
    texts = "".join(
        f'<text x="{left + width / 2:g}" y="14" textLength="{width - 12}" text-anchor="middle">{text}</text>'
        for text, left, width in ((label, 0, widths[0]), (message, widths[0], widths[1]))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="20" role="img" '
        f'aria-label="{label}: {message}"><title>{label}: {message}</title>'
        f'<rect width="{total}" height="20" rx="3" fill="#0a5fa8"/>'
        f'<path fill="#444c56" d="M3 0H{widths[0]}V20H3a3 3 0 0 1 -3 -3V3a3 3 0 0 1 3 -3Z"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{texts}</g></svg>\n"
    )


def badges() -> None:
    """Draw the badges of the README."""
    for name, (label, message) in badge_texts().items():
        (PICTURES / f"badge-{name}.svg").write_text(draw_badge(label, message))


MAKERS: dict[str, Callable[[], None]] = {
    "cliff": cliff,
    "recording": recording,
    "report": report,
    "badges": badges,
}


if __name__ == "__main__":
    for name in sys.argv[1:] or MAKERS:
        MAKERS[name]()
        print(f"made {name}")
