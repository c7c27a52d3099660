"""Tables: rows and columns without any package, and Arrow's buffers that readers take without a copy."""

import ctypes
from collections.abc import Iterator
from typing import Any

import pandas
import polars
import pyarrow
import pytest

import fanin


@pytest.fixture(scope="module")
def table() -> fanin.RecordTable:
    """Return the flows of a simulation: names, identifiers, quantities and what is absent."""
    scenario = fanin.Scenario.load("incast", {"run.duration": "60 ms", "workload.senders": 8})
    return scenario.simulate(seed=1, progress=False).flows


def test_rows_come_by_iteration_and_columns_by_name(table: fanin.RecordTable) -> None:
    rows = list(table)
    assert len(rows) == len(table) > 0
    assert rows == pyarrow.table(table).to_pylist()
    assert rows == list(table), "it can be read again"
    assert {name: [row[name] for row in rows] for name in table.columns} == {
        name: table[name] for name in table.columns
    }
    assert "flow" in table
    assert "colour" not in table
    assert 0 not in table
    one = iter(table)
    assert iter(one) is one
    assert next(one) == rows[0]


def test_an_unknown_column_and_a_number_say_what_there_is(table: fanin.RecordTable) -> None:
    with pytest.raises(KeyError, match=r"no column `colour`; the columns are flow, "):
        table["colour"]
    number: Any = 0
    with pytest.raises(TypeError, match="by its name; iterate over the table for its rows"):
        table[number]
    empty = fanin.RecordTable.of_columns({"a": []}, {})
    assert list(empty) == []


class _Array(ctypes.Structure):
    """Arrow's C array, as far as its buffers."""

    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("children", ctypes.POINTER(ctypes.c_void_p)),
        # The dictionary, the release function and private data.
        ("rest", ctypes.c_void_p * 3),
    )


class _Schema(ctypes.Structure):
    """Arrow's C schema, which nothing is read from here."""

    _fields_ = (("rest", ctypes.c_uint8 * 72),)


class _Stream(ctypes.Structure):
    """Arrow's C stream, as far as its first two functions."""

    _fields_ = (
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("rest", ctypes.c_void_p * 3),
    )


def exported(table: fanin.RecordTable) -> Iterator[tuple[list[int | None], pyarrow.RecordBatch]]:
    """Take batches from a table's stream: the addresses in it, and what pyarrow makes of the same batch."""
    capsule = table.__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    at = pointer(capsule, b"arrow_array_stream")
    stream = ctypes.cast(at, ctypes.POINTER(_Stream)).contents
    while True:
        array, schema = _Array(), _Schema()
        assert stream.get_next(at, ctypes.addressof(array)) == 0
        if array.n_children == 0:
            return
        assert stream.get_schema(at, ctypes.addressof(schema)) == 0
        columns = [
            ctypes.cast(array.children[place], ctypes.POINTER(_Array)).contents
            for place in range(array.n_children)
        ]
        addresses = [column.buffers[place] for column in columns for place in range(column.n_buffers)]
        imported = pyarrow.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))
        yield addresses, imported


def buffers(column: Any) -> list[int | None]:
    """Return the addresses of the buffers of an array of pyarrow."""
    return [None if buffer is None else buffer.address for buffer in column.buffers()]


def test_pyarrow_takes_the_very_buffers_of_the_stream(table: fanin.RecordTable) -> None:
    batches = list(exported(table))
    assert sum(batch.num_rows for _, batch in batches) == len(table)
    for addresses, batch in batches:
        assert [address for column in batch.columns for address in buffers(column)] == addresses
        assert len(set(addresses)) > len(batch.columns)


def test_pandas_copies_unless_it_keeps_arrow_columns(table: fanin.RecordTable) -> None:
    arrow = pyarrow.table(table)

    def of(frame: Any, name: str) -> list[int | None]:
        return [at for chunk in frame[name].array.__arrow_array__().chunks for at in buffers(chunk)]

    kept = arrow.to_pandas(types_mapper=pandas.ArrowDtype)
    assert all(isinstance(kind, pandas.ArrowDtype) for kind in kept.dtypes)
    for name in table.columns:
        assert of(kept, name) == [at for chunk in arrow[name].chunks for at in buffers(chunk)], name
    # pandas' own columns are NumPy's: copies, in which whole numbers with gaps become floats.
    copied = pandas.DataFrame.from_arrow(arrow)
    name = "segments"
    assert copied[name].tolist() == kept[name].tolist() == table[name]
    assert copied[name].to_numpy().ctypes.data not in {
        at for column in arrow.columns for chunk in column.chunks for at in buffers(chunk)
    }
    gaps = fanin.RecordTable.of_columns({"a": [2**53 + 1, None]}, {})
    assert pandas.DataFrame.from_arrow(gaps)["a"].tolist()[0] == 2**53
    assert pyarrow.table(gaps).to_pandas(types_mapper=pandas.ArrowDtype)["a"].tolist()[0] == 2**53 + 1


def test_polars_takes_numbers_without_a_copy(table: fanin.RecordTable) -> None:
    arrow = pyarrow.table(table)
    frame = polars.DataFrame(arrow)
    numbers = [field.name for field in arrow.schema if pyarrow.types.is_integer(field.type)]
    taken = [name for name in numbers if arrow[name].num_chunks == 1 and not arrow[name].null_count]
    assert len(taken) > 2
    for name in taken:
        (chunk,) = arrow[name].chunks
        # Refused where it would need a copy.
        assert frame[name].to_numpy(allow_copy=False).ctypes.data == buffers(chunk)[1], name
    assert polars.DataFrame(table).equals(frame)
