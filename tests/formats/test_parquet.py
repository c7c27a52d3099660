"""pyarrow, polars and DuckDB judge our Parquet tables, and write tables that we read."""

import csv
import json
import math
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy
import polars
import pyarrow
import pyarrow.parquet
import pytest
from strangers import Settings, fanin, simulate

# A rack with every table, losses and a warm-up.
RACK: Settings = {
    "readout.hosts": 8,
    "collectors.hosts_per_rack": 2,
    "run.warmup": "10 ms",
    "run.duration": "500 ms",
    "supervisor.rate": "400 Hz",
    "tor.buffer": "40 kB",
    "record.queues": ["tor->collector:*"],
    "record.windows": [0, 3],
    "record.events": [1, 2],
}
# Without a warm-up all rows count, and all outputs of the switch are sampled.
INCAST: Settings = {
    "workload.senders": 8,
    "run.duration": "300 ms",
    "record.queues": ["tor->collector:0", "tor->readout:*"],
}
TABLES = ("events", "queues", "flows", "io", "windows")
PS_PER_MS, PS_PER_S = 10**9, 10**12
# Rows that a row group holds at most.
GROUP_ROWS = 2**18

Reader = Callable[[Path], pyarrow.Table]


def by_polars(path: Path) -> pyarrow.Table:
    return polars.read_parquet(path).to_arrow()


def by_duckdb(path: Path) -> pyarrow.Table:
    with duckdb.connect() as database:
        return database.read_parquet(str(path)).to_arrow_table()


def ask(query: str, *values: object) -> list[Any]:
    """Return the rows that DuckDB answers a query with."""
    with duckdb.connect() as database:
        return database.execute(query, values).fetchall()


READERS: dict[str, Reader] = {"pyarrow": pyarrow.parquet.read_table, "polars": by_polars, "duckdb": by_duckdb}


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rack")
    simulate(folder, "thesis-a-1000hz", RACK, "--seed", "5")
    return folder


def summary(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return content


def types(schema: pyarrow.Schema) -> dict[str, str]:
    """Return the type of each column; readers may choose a text's width."""
    return {field.name: str(field.type).removeprefix("large_").removesuffix("_view") for field in schema}


@pytest.mark.parametrize("table", TABLES)
def test_all_readers_find_the_same(rack: Path, table: str) -> None:
    path = rack / f"{table}.parquet"
    written = pyarrow.parquet.read_schema(path)
    units = {
        key.decode().removeprefix("fanin.unit."): value.decode()
        for key, value in written.metadata.items()
        if key.startswith(b"fanin.unit.")
    }
    assert list(units) == written.names
    # The documents promise signed quantities, so that differences do not wrap, and unsigned identifiers.
    expected = {name: {"id": "uint64", "name": "string"}.get(unit, "int64") for name, unit in units.items()}
    rows = None
    for reader, read in READERS.items():
        found = read(path)
        assert types(found.schema) == expected, reader
        columns = found.to_pydict()
        rows = rows or columns
        assert columns == rows, reader
        assert found.num_rows > 0, reader
    # So is the file's own description.
    pairs = ask("SELECT key, value FROM parquet_kv_metadata(?)", str(path))
    described = {key.decode(): value.decode() for key, value in pairs if key.startswith(b"fanin.")}
    assert described == {"fanin.schema": f"fanin.{table}/1"} | {
        f"fanin.unit.{name}": unit for name, unit in units.items()
    }
    assert described.items() <= polars.read_parquet_metadata(path).items()
    for name, unit in units.items():
        for suffix in ("ps", "bytes"):
            assert (unit == suffix) == name.endswith(f"_{suffix}"), name


@pytest.mark.parametrize("table", TABLES)
def test_statistics_do_not_hide_rows(rack: Path, table: str) -> None:
    # Readers skip groups of rows whose least and largest value exclude them.
    path = rack / f"{table}.parquet"
    columns = pyarrow.parquet.read_table(path)
    for name, kind in types(columns.schema).items():
        values = [value for value in columns[name].to_pylist() if value is not None]
        group = pyarrow.parquet.read_metadata(path).row_group(0)
        statistics = group.column(columns.schema.names.index(name)).statistics
        assert statistics.null_count == columns.num_rows - len(values), name
        if not values:
            continue
        assert (statistics.min, statistics.max) == (min(values), max(values)), name
        bound = sorted(values)[len(values) // 2]
        wanted = sum(value >= bound for value in values)
        lazy = polars.scan_parquet(path).filter(polars.col(name) >= bound).select(polars.len()).collect()
        assert lazy.item() == wanted, name
        query = f'SELECT count(*) FROM read_parquet(?) WHERE "{name}" >= ?'
        assert ask(query, str(path), bound) == [(wanted,)], name
        assert kind in ("int64", "uint64", "string")


def test_a_table_of_several_groups_of_rows_is_whole(tmp_path: Path) -> None:
    simulate(tmp_path, "incast", {**INCAST, "run.duration": "40 ms", "record.queue_interval": "1 us"})
    path = tmp_path / "queues.parquet"
    metadata = pyarrow.parquet.read_metadata(path)
    groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert len(groups) > 1
    assert set(groups[:-1]) == {GROUP_ROWS}
    first, *others = [read(path) for read in READERS.values()]
    assert first.num_rows == sum(groups)
    for other in others:
        # Readers may choose a text's width.
        assert other.cast(first.schema).equals(first)


def test_figures_of_the_summary_follow_from_the_tables(rack: Path) -> None:
    figures = summary(rack)
    span = figures["measured_ps"]
    seconds = (span["until"] - span["from"]) / PS_PER_S
    within = f">= {span['from']} AND {{0}} < {span['until']}"
    rows = f"read_parquet('{rack}/events.parquet')"
    measured = f"(SELECT * FROM {rows} WHERE assigned_ps {within.format('assigned_ps')})"

    def one(values: str, source: str) -> Any:
        """Return the only row of an answer, or its only value."""
        (row,) = ask(f"SELECT {values} FROM {source}")
        return row[0] if len(row) == 1 else row

    events = figures["events"]
    assert one("count(*)", rows) > events["assigned"], "those of the warm-up are there"
    assert one("count(*), count(last_byte_ps)", measured) == (events["assigned"], events["collected"])
    outcomes = dict(ask(f"SELECT outcome, count(*) FROM {measured} GROUP BY ALL"))
    accepted = outcomes.get("accepted", 0) + outcomes.get("stored", 0)
    assert (accepted, outcomes.get("rejected", 0)) == (events["accepted"], events["rejected"])
    assert one("avg(timeouts)", measured) == pytest.approx(events["timeouts_mean"], rel=1e-12)

    done = f"{rows} WHERE last_byte_ps {within.format('last_byte_ps')}"
    assert one("count(*)", done) / seconds == pytest.approx(events["rate_hz"], rel=1e-12)
    goodput = figures["goodput_bps"]["total"]
    assert one("sum(size_bytes) * 8", done) / seconds == pytest.approx(goodput, rel=1e-12)

    times = figures["collection_time_ms"]
    assert one("count(collection_time_ps)", measured) > 20
    moments = one(
        ", ".join(f"{name}(collection_time_ps)" for name in ("avg", "stddev_pop", "min", "max")), measured
    )
    expected = [times[name] * PS_PER_MS for name in ("mean", "std", "min", "max")]
    assert list(moments) == pytest.approx(expected, rel=1e-9)
    ordered = polars.read_parquet(rack / "events.parquet").filter(
        polars.col("assigned_ps").is_between(span["from"], span["until"], closed="left")
    )["collection_time_ps"]
    shares = {"p01": 0.01, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    for name, share in shares.items():
        value = numpy.quantile(ordered.drop_nulls().to_numpy(), share, method="inverted_cdf")
        assert times[name] == pytest.approx(value / PS_PER_MS, rel=1e-12), name

    slowdown = figures["slowdown"]
    ratios = one("avg(collection_time_ps / ideal_ps), max(collection_time_ps / ideal_ps)", measured)
    assert list(ratios) == pytest.approx([slowdown["mean"], slowdown["max"]], rel=1e-12)


def test_counters_of_the_summary_are_sums_of_the_tables(tmp_path: Path) -> None:
    figures = simulate(tmp_path, "incast", INCAST)
    flows = polars.read_parquet(tmp_path / "flows.parquet")
    counters = ("segments", "retransmits", "timeouts", "fast_retransmits", "spurious_retransmits")
    assert {name: flows[name].sum() for name in counters} == {name: figures["tcp"][name] for name in counters}
    assert flows["retransmits"].sum() > 0
    queues = f"'{tmp_path}/queues.parquet'"
    ((drops, most),) = ask(
        f"SELECT sum(drops), max(most) FROM (SELECT max(drops) AS drops, max(queue_bytes) AS most"
        f" FROM {queues} GROUP BY queue)"
    )
    assert drops == figures["network"]["drops"] > 0
    assert 0 < most <= figures["network"]["queue_bytes_max"]


def test_a_sweep_is_the_same_table_in_every_form(tmp_path: Path) -> None:
    # A seed that no float holds.
    seed = 2**53 + 1
    sets = ["--set=run.duration=300 ms", f"--seed={seed}", "--sweep=workload.senders=4,8,16"]
    fanin("sim", "incast", *sets, "--quiet", "--out", tmp_path)
    rows = {name: read(tmp_path / "sweep.parquet").to_pylist() for name, read in READERS.items()}
    assert rows["pyarrow"] == rows["polars"] == rows["duckdb"]
    table = rows["polars"]
    assert [row["workload.senders"] for row in table] == ["4", "8", "16"]
    assert [row["seed"] for row in table] == [seed] * 3
    with (tmp_path / "sweep.csv").open(newline="") as file:
        text = list(csv.DictReader(file))
    assert len(text) == len(table)
    for number, (cells, row) in enumerate(zip(text, table, strict=True)):
        figures = summary(tmp_path / f"{number:03}")
        assert cells.keys() == row.keys()
        for name, value in row.items():
            same = cells[name] == value if isinstance(value, str) else float(cells[name]) == float(value)
            assert same, name
        assert row["goodput_bps"] == figures["goodput_bps"]["total"]
        assert row["drops"] == figures["network"]["drops"]
        assert math.isclose(row["time_ms_mean"], figures["requests"]["time_ms"]["mean"])


def write_pyarrow(frame: polars.DataFrame, path: Path) -> None:
    pyarrow.parquet.write_table(frame.to_arrow(), path)


def write_pyarrow_pages_2(frame: polars.DataFrame, path: Path) -> None:
    settings = {
        "data_page_version": "2.0",
        "use_dictionary": False,
        "compression": "none",
        "row_group_size": 7,
    }
    pyarrow.parquet.write_table(frame.to_arrow(), path, **settings)


def write_polars(frame: polars.DataFrame, path: Path) -> None:
    frame.write_parquet(path, compression="snappy", row_group_size=7)


def write_duckdb(frame: polars.DataFrame, path: Path) -> None:
    connection = duckdb.connect()
    connection.register("frame", frame.to_arrow())
    connection.execute(f"COPY frame TO '{path}' (FORMAT parquet, COMPRESSION snappy)")


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_a_compression_is_read_or_refused_by_its_name(compression: str, tmp_path: Path) -> None:
    rows = [(event, source, 1000 * event + source) for event in range(1, 6) for source in (10, 11, 12)]
    table = polars.DataFrame(rows, schema=["event", "source", "bytes"], orient="row").to_arrow()
    pyarrow.parquet.write_table(table, tmp_path / "sizes.parquet", compression=compression)
    (tmp_path / "own.toml").write_text(
        '[network]\ntopology = "star"\n[readout]\nhosts = 3\nfragments_per_host = 1\n'
        'fragment_size = { distribution = "file", path = "sizes.parquet" }\n'
    )
    command = [os.environ["FANIN_BIN"], "plan", str(tmp_path / "own.toml")]
    planned = subprocess.run(command, capture_output=True, text=True, check=False)
    if compression in {"none", "snappy"}:
        assert planned.returncode == 0, planned.stderr
    else:
        assert planned.returncode == 2
        assert f"compressed by {compression}" in planned.stderr
        assert "write it uncompressed or with Snappy" in planned.stderr


@pytest.mark.parametrize("write", [write_pyarrow, write_pyarrow_pages_2, write_polars, write_duckdb])
@pytest.mark.parametrize("kind", [polars.Int64, polars.UInt32])
def test_tables_of_sizes_that_others_write_are_read(
    write: Callable[[polars.DataFrame, Path], None], kind: type[polars.DataType], tmp_path: Path
) -> None:
    sizes = [(event, source, 1000 * event + source) for event in range(1, 6) for source in (10, 11, 12)]
    frame = polars.DataFrame(sizes, schema={"event": kind, "source": kind, "bytes": kind}, orient="row")
    write(frame, tmp_path / "sizes.parquet")
    settings = {
        "readout.hosts": 3,
        "readout.fragments_per_host": 1,
        "readout.fragment_size": {"distribution": "file", "path": str(tmp_path / "sizes.parquet")},
        "run.duration": "100 ms",
        "run.warmup": "0 s",
    }
    simulate(tmp_path / "out", "thesis-a-500hz", settings)
    expected = Counter[int]()
    for event, _, size in sizes:
        expected[event] += size
    found = polars.read_parquet(tmp_path / "out/events.parquet").sort("id")["size_bytes"].to_list()
    assert len(found) > 20
    assert found == [expected[1 + number % 5] for number in range(len(found))]
