"""Invalid bundles whose files or manifest break a rule: each takes a good bundle on disk and damages it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import bundles
import pyarrow as pa
import pyarrow.parquet as pq
from bundles import A, Row, Rows

from wsformat.digests import ColumnDigest, add_table, digestible
from wsformat.tables import format_version
from wsformat.writer import file_sha256, parquet_options

MANIFEST = "manifest.json"
VERSION = format_version()


class FileCase(NamedTuple):
    """One invalid bundle: a good one, and what is done to its directory."""

    code: str
    note: str
    base: Callable[[], Rows]
    damage: Callable[[Path], Any]


def read(root: Path) -> Row:
    data: Row = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
    return data


def save(root: Path, data: Any) -> None:
    (root / MANIFEST).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def edit(*path: str | int, value: Any) -> Callable[[Path], None]:
    """Set one place of the manifest."""

    def change(root: Path) -> None:
        data = read(root)
        place: Any = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        save(root, data)

    return change


def text(old: str, new: str) -> Callable[[Path], None]:
    """Replace text of the manifest, once."""

    def change(root: Path) -> None:
        content = (root / MANIFEST).read_text(encoding="utf-8")
        assert old in content
        (root / MANIFEST).write_text(content.replace(old, new, 1), encoding="utf-8")

    return change


def whole_table(path: Path) -> pa.Table:
    """All rows, also of a file with two columns of one name."""
    with pq.ParquetFile(path) as file:
        return file.read()


def stamp_entry(root: Path, name: str) -> None:
    """Make the manifest's entry of a table true again."""
    data = read(root)
    path = root / data["tables"].get(name, {}).get("file", f"{name}.parquet")
    rows = whole_table(path)
    whole = [c for c in digestible(rows.schema) if not rows.column(c).null_count]
    digests = add_table({c: ColumnDigest() for c in whole}, rows.select(whole))
    columns = {c: digest.to_json() for c, digest in digests.items()}
    for missing in set(digestible(rows.schema)) - set(whole):
        # No digest is defined over nulls; one that is well-formed keeps the case to its one fault.
        columns[missing] = ColumnDigest().to_json()
    data["tables"][name] = {
        "file": path.name,
        "rows": rows.num_rows,
        "bytes": path.stat().st_size,
        "sha256": file_sha256(path),
        "columns": columns,
    }
    save(root, data)


def rewrite(name: str, change: Callable[[pa.Table], pa.Table] = lambda t: t, **options: Any) -> Callable[[Path], None]:
    """Write a table file anew, changed, with the layout of the standard but for ``options``; the manifest follows."""

    def damage(root: Path) -> None:
        path = root / f"{name}.parquet"
        rows = change(whole_table(path))
        known = {**parquet_options(name, rows.schema), **options}
        pq.write_table(rows, path, **known)
        stamp_entry(root, name)

    return damage


def swap(column: str, kind: pa.DataType, values: Any = None) -> Callable[[pa.Table], pa.Table]:
    """Give a column another type, and if need be other values."""

    def change(rows: pa.Table) -> pa.Table:
        held = rows.column(column).cast(kind) if values is None else pa.array(values, kind)
        return rows.set_column(rows.column_names.index(column), pa.field(column, kind), held)

    return change


def rename(column: str, name: str) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.rename_columns([name if c == column else c for c in rows.column_names])


def append(name: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.append_column(name, pa.array([value] * rows.num_rows))


def new_table(name: str, rows: pa.Table, **more: Any) -> Callable[[Path], None]:
    """Add a table file and its entry."""

    def damage(root: Path) -> None:
        pq.write_table(rows, root / f"{name}.parquet", **parquet_options(name, rows.schema))
        stamp_entry(root, name)
        save(root, {**read(root), **more})

    return damage


def extension(name: str = "acme.heat", **more: Any) -> Row:
    return {"name": name, "version": "1", "must_understand": False, **more}


def link(name: str) -> Callable[[Path], None]:
    """Turn a file into a link to a copy of itself outside the bundle."""

    def damage(root: Path) -> None:
        kept = root.parent / f"{root.name}.linked"
        os.replace(root / name, kept)
        os.symlink(os.path.join("..", kept.name), root / name)

    return damage


def truncate(name: str) -> Callable[[Path], None]:
    """Cut a table file in half; the manifest knows its new size."""

    def damage(root: Path) -> None:
        path = root / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        data = read(root)
        data["tables"][path.stem].update(bytes=path.stat().st_size, sha256=file_sha256(path))
        save(root, data)

    return damage


def listed_twice(root: Path) -> None:
    data = read(root)
    data["tables"]["acme__twin"] = dict(data["tables"]["captures"])
    data["extensions"] = [extension(tables=["acme__twin"])]
    save(root, data)


def renamed(root: Path) -> None:
    os.replace(root / "captures.parquet", root / "c.parquet")
    edit("tables", "captures", "file", value="c.parquet")(root)


def no_captures(root: Path) -> None:
    data = read(root)
    del data["tables"]["captures"]
    data["sources"] = []
    save(root, data)
    (root / "captures.parquet").unlink()


def no_digest(root: Path) -> None:
    data = read(root)
    del data["tables"]["captures"]["columns"]["sm_count"]
    save(root, data)


def reordered(rows: pa.Table) -> pa.Table:
    return rows.select([*rows.column_names[1:], rows.column_names[0]])


def twice(rows: pa.Table) -> pa.Table:
    return pa.Table.from_arrays([*rows.columns, rows.column("label")], names=[*rows.column_names, "label"])


def field_ids(rows: pa.Table) -> pa.Table:
    fields = [f.with_metadata({b"PARQUET:field_id": str(i + 1).encode()}) for i, f in enumerate(rows.schema)]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))


def with_nulls(rows: pa.Table) -> pa.Table:
    fields = [pa.field(f.name, f.type, nullable=True) for f in rows.schema]
    nulled = [pa.array([None] * rows.num_rows, f.type) if f.name == "sm_count" else rows.column(f.name) for f in fields]
    return pa.Table.from_arrays(nulled, schema=pa.schema(fields))


def old_version(root: Path) -> None:
    """A version before the first one: its tables did not exist."""
    edit("version", value="0.0")(root)


def heat(n: int = 1) -> pa.Table:
    return pa.table({"capture_id": [A] * n, "celsius": pa.array([55.5] * n, pa.float64())})


def delta_v2(root: Path) -> None:
    rewrite("events", data_page_version="2.0")(root)


minimal, ring = bundles.minimal, bundles.ring

CASES: tuple[FileCase, ...] = (
    FileCase("E101", "a directory with tables and no manifest", minimal, lambda root: (root / MANIFEST).unlink()),
    FileCase(
        "E102", "captures.parquet is listed and not there", minimal, lambda root: (root / "captures.parquet").unlink()
    ),
    FileCase("E103", "captures.parquet is cut in half", minimal, truncate("captures.parquet")),
    FileCase(
        "E104",
        "the manifest states one byte too few",
        minimal,
        lambda root: edit("tables", "captures", "bytes", value=(root / "captures.parquet").stat().st_size - 1)(root),
    ),
    FileCase(
        "E105", "the manifest states another sha256", minimal, edit("tables", "captures", "sha256", value="0" * 64)
    ),
    FileCase(
        "E106", "the manifest states 2 rows, the file has 1", minimal, edit("tables", "captures", "rows", value=2)
    ),
    FileCase(
        "E107",
        "the manifest states another sum of a column",
        minimal,
        edit("tables", "captures", "columns", "sm_count", "sum", value="00000000000000ff"),
    ),
    FileCase("E108", "the manifest has no digest of sm_count", minimal, no_digest),
    FileCase(
        "E109",
        "a table file that the manifest does not list",
        minimal,
        lambda root: pq.write_table(heat(), root / "acme__heat.parquet"),
    ),
    FileCase(
        "W110",
        "a file that is neither manifest nor table",
        minimal,
        lambda root: (root / "notes.txt").write_text("remember the milk\n"),
    ),
    FileCase("E111", "two tables with one file", minimal, listed_twice),
    FileCase("E112", "captures.parquet is a link", minimal, link("captures.parquet")),
    FileCase("I113", "the directory is not called NAME.wsformat", minimal, lambda root: None),
    FileCase("W114", "the file of captures is called c.parquet", minimal, renamed),
    FileCase(
        "E201",
        "the manifest ends in the middle",
        minimal,
        lambda root: (root / MANIFEST).write_text((root / MANIFEST).read_text()[:100]),
    ),
    FileCase(
        "E202",
        "the key version occurs twice",
        minimal,
        text(f'"version": "{VERSION}",', f'"version": "{VERSION}",\n "version": "{VERSION}",'),
    ),
    FileCase("E203", "a number of bytes beyond 64 bits", minimal, edit("tables", "captures", "bytes", value=10**30)),
    FileCase("E204", "writer has no name", minimal, edit("writer", value={"version": "1"})),
    FileCase("E205", "version '0.1-dev' is not MAJOR.MINOR", minimal, edit("version", value="0.1-dev")),
    FileCase("E206", "major version 99", minimal, edit("version", value="99.0")),
    FileCase("W207", "minor version 999", minimal, edit("version", value="0.999")),
    FileCase(
        "E208",
        "a table file outside the bundle",
        minimal,
        lambda root: edit(
            "tables", "acme__heat", value={**read(root)["tables"]["captures"], "file": "../captures.parquet"}
        )(root),
    ),
    FileCase("E209", "no table captures", minimal, no_captures),
    FileCase("E210", "a table 'heat' that the standard does not have", minimal, new_table("heat", heat())),
    FileCase("W213", "a manifest key 'colour' that the standard does not have", minimal, edit("colour", value="blue")),
    FileCase("E214", "a bundle of version 0.0 with a table that came with 0.1", minimal, old_version),
    FileCase(
        "E301", "captures has no column label", minimal, rewrite("captures", lambda rows: rows.drop_columns(["label"]))
    ),
    FileCase("E302", "sm_count is unsigned", minimal, rewrite("captures", swap("sm_count", pa.uint32(), [132]))),
    FileCase("E303", "sm_count is null", minimal, rewrite("captures", with_nulls)),
    FileCase("W304", "sm_count is stored as INT64", minimal, rewrite("captures", swap("sm_count", pa.int64()))),
    FileCase("E305", "sm_count is text", minimal, rewrite("captures", swap("sm_count", pa.string()))),
    FileCase("W306", "capture_id is the last column", minimal, rewrite("captures", reordered)),
    FileCase(
        "E307",
        "an extension column 'acme__Heat' with a capital letter",
        minimal,
        lambda root: (
            rewrite("captures", append("acme__Heat", 1.5))(root),
            edit("extensions", value=[extension(columns=["captures.acme__Heat"])])(root),
        ),
    ),
    FileCase(
        "E308", "a column 'heat' that the standard does not have", minimal, rewrite("captures", append("heat", 1.5))
    ),
    FileCase("E309", "two columns 'label'", minimal, rewrite("captures", twice)),
    FileCase(
        "E310",
        "sm_count 2^40 in a column widened to INT64",
        minimal,
        rewrite("captures", swap("sm_count", pa.int64(), [2**40])),
    ),
    FileCase(
        "W801", "stamps in the order of time over both lanes", ring, rewrite("events", lambda rows: rows.sort_by("t"))
    ),
    FileCase("W802", "several row groups of four rows", ring, rewrite("events", row_group_size=4)),
    FileCase("E803", "DELTA_BINARY_PACKED INT64 in v2 data pages", ring, delta_v2),
    FileCase("W804", "ARROW:schema in the footer", minimal, rewrite("captures", store_schema=True)),
    FileCase(
        "W805",
        "a bloom filter",
        minimal,
        rewrite("captures", bloom_filter_options={"capture_id": {"ndv": 1, "fpp": 0.1}}),
    ),
    FileCase(
        "W806", "compressed with SNAPPY", minimal, rewrite("captures", compression="snappy", compression_level=None)
    ),
    FileCase(
        "W807",
        "t with a dictionary",
        ring,
        rewrite("events", use_dictionary=["t"], column_encoding={"iteration": "DELTA_BINARY_PACKED"}),
    ),
    FileCase("W808", "a page index for one row", minimal, rewrite("captures", write_page_index=True)),
    FileCase("W809", "Parquet field ids", minimal, rewrite("captures", field_ids)),
    FileCase("W901", "an extension table that no extension declares", minimal, new_table("acme__heat", heat())),
    FileCase(
        "E902",
        "an extension that must be understood and that nobody knows",
        minimal,
        new_table("acme__heat", heat(), extensions=[extension(tables=["acme__heat"], must_understand=True)]),
    ),
    FileCase(
        "E903",
        "an extension of vendor acme with a table of vendor other",
        minimal,
        new_table("other__heat", heat(), extensions=[extension(tables=["other__heat"])]),
    ),
    FileCase(
        "W904",
        "an extension declares a table that is not there",
        minimal,
        edit("extensions", value=[extension(tables=["acme__heat"])]),
    ),
    FileCase(
        "E905",
        "an extension table without capture_id",
        minimal,
        new_table("acme__heat", heat().drop_columns(["capture_id"]), extensions=[extension(tables=["acme__heat"])]),
    ),
    FileCase(
        "E906",
        "two extensions of one name",
        minimal,
        new_table("acme__heat", heat(), extensions=[extension(tables=["acme__heat"]), extension(version="2")]),
    ),
)
