"""h5py, and so the HDF5 library itself, judges the files that we write without it."""

import json
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import awkward
import h5py
import numpy
import pytest
from strangers import fanin

# The table of docs/events.md.
DTYPES = {
    "l1_id": "<u8",
    "run": "<u4",
    "bc_id": "<u4",
    "fragment_start": "<u8",
    "source": "<u4",
    "status": "<u4",
    "byte_start": "<u8",
    "bytes": "|u1",
}
CONTAINER, EVENT = b"DAQFRAG1", 0x45565431

Event = tuple[int, list[tuple[int, bytes]]]


def events_of(path: Path) -> list[Event]:
    """Return the events of a plain container, which docs/events.md describes."""
    data = path.read_bytes()
    assert data.startswith(CONTAINER)
    at, events = len(CONTAINER), []
    while at < len(data):
        marker, count, number = struct.unpack_from("<IIQ", data, at)
        assert marker == EVENT
        table = struct.unpack_from(f"<{2 * count}I", data, at + 16)
        at += 16 + 8 * count
        fragments = []
        for source, size in zip(table[::2], table[1::2], strict=True):
            fragments.append((source, data[at : at + size]))
            at += size
        events.append((number, fragments))
    return events


def container(events: Sequence[Event]) -> bytes:
    """Return events as a plain container."""
    out = CONTAINER
    for number, fragments in events:
        table = b"".join(struct.pack("<II", source, len(data)) for source, data in fragments)
        out += struct.pack("<IIQ", EVENT, len(fragments), number) + table
        out += b"".join(data for _, data in fragments)
    return out


def columns(path: Path) -> dict[str, Any]:
    """Return the datasets of a file, of the types that the documents promise."""
    with h5py.File(path) as file:
        found = {}
        for name, dataset in file.items():
            assert isinstance(dataset, h5py.Dataset), name
            assert dataset.dtype == numpy.dtype(DTYPES[name]), name
            # One block of numbers, which other programs can map.
            assert (dataset.ndim, dataset.chunks, dataset.compression, dataset.maxshape) == (
                1,
                None,
                None,
                dataset.shape,
            )
            if dataset.size:
                start = dataset.id.get_offset()
                written = path.read_bytes()[start : start + dataset.nbytes]
                assert written == dataset[:].tobytes(), name
            found[name] = dataset[:]
    return found


def check(path: Path, events: Sequence[Event]) -> dict[str, Any]:
    """Compare a file with the events that it was made of."""
    found = columns(path)
    assert set(DTYPES) - {"run", "bc_id"} <= set(found)
    assert found["l1_id"].tolist() == [number for number, _ in events]
    fragments = [fragment for _, event in events for fragment in event]
    counts = [len(event) for _, event in events]
    assert found["fragment_start"].tolist() == [0, *numpy.cumsum(counts, dtype="u8").tolist()]
    assert found["source"].tolist() == [source for source, _ in fragments]
    assert len(found["status"]) == len(fragments)
    sizes = [len(data) for _, data in fragments]
    assert found["byte_start"].tolist() == [0, *numpy.cumsum(sizes, dtype="u8").tolist()]
    assert found["bytes"].tobytes() == b"".join(data for _, data in fragments)
    return found


@pytest.mark.parametrize("sample", ["km3net", "bes3"])
def test_h5py_reads_what_is_in_a_sample(sample: str, tmp_path: Path) -> None:
    file, plain = tmp_path / "sample.h5", tmp_path / "sample.frag"
    fanin("events", "convert", sample, file)
    fanin("events", "convert", sample, plain)
    found = check(file, events_of(plain))
    described = json.loads(fanin("events", "info", sample, "--json", "-"))
    assert (len(found["l1_id"]), len(found["bytes"])) == (
        described["events"],
        described["fragment_bytes"]["total"],
    )
    assert sorted(set(found["source"].tolist())) == [row["source"] for row in described["sources"]]
    # The run stands in ATLAS files alone.
    assert ("run" in found) == (sample == "bes3")
    # Nothing lies behind the last column.
    assert file.read_bytes().endswith(found["bytes"].tobytes())


@pytest.mark.parametrize(
    "events",
    [
        [],
        [(7, [])],
        [(7, [(1, b"")]), (8, []), (2**64 - 1, [(2**32 - 1, b"abc"), (0, b"")])],
        [(number, [(source, bytes([source]) * number) for source in range(200)]) for number in range(9)],
    ],
    ids=["no event", "no fragment", "empty fragments and largest numbers", "many"],
)
def test_h5py_reads_events_of_any_shape(events: list[Event], tmp_path: Path) -> None:
    source, file = tmp_path / "events.frag", tmp_path / "events.h5"
    source.write_bytes(container(events))
    fanin("events", "convert", source, file)
    check(file, events)


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cut.h5"
    fanin("events", "convert", "bes3", file)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(OSError, match="truncated file"):
        h5py.File(file)


def test_the_example_of_the_documents_gives_the_fragments(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (root / "docs/events.md").read_text()
    (example,) = [code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "h5py" in code]
    monkeypatch.chdir(tmp_path)
    fanin("events", "convert", "bes3", "slices.h5")
    fanin("events", "convert", "bes3", "slices.frag")
    names: dict[str, Any] = {}
    exec(compile(example, "docs/events.md", "exec"), names)
    events = events_of(tmp_path / "slices.frag")
    assert len(names["events"]) == len(events)
    for found, (_, fragments) in zip(names["events"], events, strict=True):
        assert [bytes(awkward.to_numpy(data)) for data in found] == [data for _, data in fragments]
