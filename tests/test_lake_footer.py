"""Which Parquet files have the same columns, told by the bytes of their footers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wsformat.lake.footer import footer, same_columns, schema_end

WIDE = pa.schema([(f"c{n}", pa.int64() if n % 2 else pa.string()) for n in range(40)])
MIXED = pa.schema([("a", pa.int32()), ("b", pa.float64()), ("c", pa.string()), ("d", pa.bool_())])


def write(path: Path, schema: pa.Schema, rows: int, **options: object) -> Path:
    table = pa.table([pa.array([None] * rows, field.type) for field in schema], schema=schema)
    pq.write_table(table, path, store_schema=False, **options)
    return path


@pytest.mark.parametrize("schema", [MIXED, WIDE], ids=["few", "many"])
def test_rows_and_layout_do_not_matter(tmp_path: Path, schema: pa.Schema) -> None:
    paths = [
        write(tmp_path / "a.parquet", schema, 3),
        write(tmp_path / "b.parquet", schema, 4000, compression="zstd", row_group_size=10),
        write(tmp_path / "c.parquet", schema, 0, use_dictionary=False),
    ]
    assert same_columns(paths)
    assert len(footer(paths[1])) > 16_384, "a footer that does not fit the first read"
    assert schema_end(footer(paths[0])) < len(footer(paths[0]))


@pytest.mark.parametrize(
    "other",
    [
        MIXED.append(pa.field("e", pa.string())),
        MIXED.remove(3),
        MIXED.set(0, pa.field("a", pa.int64())),
        MIXED.set(0, pa.field("a", pa.int32(), nullable=False)),
        MIXED.set(2, pa.field("x", pa.string())),
        pa.schema([MIXED.field(n) for n in (1, 0, 2, 3)]),
    ],
    ids=["more", "fewer", "type", "required", "name", "order"],
)
def test_another_column_is_seen(tmp_path: Path, other: pa.Schema) -> None:
    rows = 0 if not all(field.nullable for field in other) else 2
    one, two = write(tmp_path / "a.parquet", MIXED, 2), write(tmp_path / "b.parquet", other, rows)
    assert not same_columns([one, two])
    assert not same_columns([two, one])
    assert same_columns([two, two])


def test_damage_and_other_files_are_not_the_same(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.parquet", MIXED, 2)
    data = whole.read_bytes()
    for name, content in {
        "cut": data[:-20],
        "empty": b"",
        "text": b"not a Parquet file at all",
        "length": data[:-8] + b"\xff\xff\xff\x7fPAR1",
        "zeros": data[:4] + bytes(len(data) - 12) + data[-8:],
    }.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert not same_columns([path, whole]), name
        assert not same_columns([whole, path]), name
    assert not same_columns([whole, tmp_path / "missing"])
    assert same_columns([])
