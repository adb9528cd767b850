"""Readers of Python: how each opens a table file, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from readers_common import (
    BUNDLES,
    SAMPLES,
    V2,
    Answers,
    Cells,
    Found,
    ask_plain,
    ask_views,
    contract,
    digest,
    empty,
    files,
    ordered,
    stated,
    take,
)

from wsformat.derive import views
from wsformat.tables import tables

Frame = Any
ASKED = ("events", "lanes", "span_types")


def of_arrow(rows: pa.Table) -> Cells:
    return {name: (str(rows.schema.field(name).type), rows.column(name).to_pylist()) for name in rows.column_names}


def of_pandas(frame: Frame) -> Cells:
    return {str(name): (str(frame[name].dtype), frame[name].to_numpy()) for name in frame.columns}


def read_pyarrow(path: Path) -> Cells:
    return of_arrow(pq.read_table(path))


def read_pandas(path: Path) -> Cells:
    return of_pandas(pd.read_parquet(path))


def read_pandas_arrow(path: Path) -> Cells:
    frame = pd.read_parquet(path, dtype_backend="pyarrow")
    # As a list: to_numpy would turn nulls into NaN, which this back end is chosen to avoid.
    return {str(name): (str(frame[name].dtype), frame[name].tolist()) for name in frame.columns}


def read_polars(path: Path) -> Cells:
    frame = pl.read_parquet(path)
    return {name: (str(frame.schema[name]), frame[name].to_list()) for name in frame.columns}


def read_duckdb(path: Path) -> Cells:
    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(path))
        names, kinds, rows = relation.columns, relation.types, relation.fetchall()
    return {name: (str(kinds[i]), [row[i] for row in rows]) for i, name in enumerate(names)}


def read_fastparquet(path: Path) -> Cells:
    cells = of_pandas(load_fastparquet(path))
    # Which of the two it gives depends on the process and on the nulls of the file.
    return {
        name: ("object or str" if kind in ("object", "str") else kind, held) for name, (kind, held) in cells.items()
    }


def read_datafusion(path: Path) -> Cells:
    import datafusion

    return of_arrow(datafusion.SessionContext().read_parquet(str(path)).to_arrow_table())


# --- queries -----------------------------------------------------------------------------------------------------


def answers_of_frames(load: Callable[[Path], Frame]) -> Callable[[Path], Answers]:
    """The aggregates in pandas, over frames of any reader that gives them."""

    def answer(bundle: Path) -> Answers:
        held = {name: load(bundle / f"{name}.parquet") for name in ASKED if files([bundle], name)}
        stamps = spans = lanes = pd.DataFrame()
        if "events" in held:
            events = held["events"]
            stamps = events.groupby(["role", "event"])["t"].agg(["size", "min", "max"]).reset_index()
        if "events" in held and "span_types" in held:
            point = ["capture_id", "role", "event", "lane", "iteration", "t"]
            begin = held["span_types"][["capture_id", "role", "span", "begin_event", "end_event"]].merge(
                events[point].rename(columns={"event": "begin_event", "t": "t0"}),
                on=["capture_id", "role", "begin_event"],
            )
            both = begin.merge(
                events[point].rename(columns={"event": "end_event", "t": "t1"}),
                on=["capture_id", "role", "end_event", "lane", "iteration"],
            )
            both["ticks"] = both["t1"] - both["t0"]
            spans = both.groupby(["role", "span"])["ticks"].agg(["size", "sum"]).reset_index()
        if "lanes" in held:
            lanes = held["lanes"].groupby("role")["records_kept"].agg(["size", "sum"]).reset_index()
        frames = {"stamps": stamps, "spans": spans, "lanes": lanes}
        return {name: ordered(frame.itertuples(index=False)) for name, frame in frames.items()}

    return answer


def answer_pyarrow(bundle: Path) -> Answers:
    """The aggregates in pyarrow's own operations."""
    held = {name: pq.read_table(bundle / f"{name}.parquet") for name in ASKED if files([bundle], name)}
    result: Answers = {"stamps": [], "spans": [], "lanes": []}

    def listed(rows: pa.Table) -> list[list[Any]]:
        return ordered(zip(*rows.to_pydict().values(), strict=True))

    if "events" in held:
        events = held["events"]
        stamps = events.group_by(["role", "event"]).aggregate([([], "count_all"), ("t", "min"), ("t", "max")])
        result["stamps"] = listed(stamps.select(["role", "event", "count_all", "t_min", "t_max"]))
    if "events" in held and "span_types" in held:
        point = events.select(["capture_id", "role", "event", "lane", "iteration", "t"])
        both = (
            held["span_types"]
            .select(["capture_id", "role", "span", "begin_event", "end_event"])
            .join(
                point.rename_columns(["capture_id", "role", "begin_event", "lane", "iteration", "t0"]),
                ["capture_id", "role", "begin_event"],
                join_type="inner",
            )
            .join(
                point.rename_columns(["capture_id", "role", "end_event", "lane", "iteration", "t1"]),
                ["capture_id", "role", "end_event", "lane", "iteration"],
                join_type="inner",
            )
        )
        both = both.append_column("ticks", pc.subtract(both["t1"], both["t0"]))
        spans = both.group_by(["role", "span"]).aggregate([([], "count_all"), ("ticks", "sum")])
        result["spans"] = listed(spans.select(["role", "span", "count_all", "ticks_sum"]))
    if "lanes" in held:
        lanes = held["lanes"].group_by("role").aggregate([([], "count_all"), ("records_kept", "sum")])
        result["lanes"] = listed(lanes.select(["role", "count_all", "records_kept_sum"]))
    return result


def views_duckdb(bundles: tuple[Path, ...], wanted: list[str]) -> dict[str, pa.Table]:
    with duckdb.connect() as connection:
        for name in tables():
            paths = files(bundles, name)
            source = connection.read_parquet([str(p) for p in paths]) if paths else connection.from_arrow(empty(name))
            source.create_view(name)
        result = {}
        for name in wanted:
            connection.execute(f"CREATE TEMP TABLE {name} AS {views()[name]}")
            result[name] = connection.table(name).to_arrow_table()
    return result


def views_polars(bundles: tuple[Path, ...], wanted: list[str]) -> dict[str, pa.Table]:
    context = pl.SQLContext()
    for name in tables():
        paths = files(bundles, name)
        context.register(name, pl.scan_parquet(paths) if paths else pl.from_arrow(empty(name)))
    result = {}
    for name in wanted:
        frame = context.execute(views()[name], eager=True)
        context.register(name, frame)
        result[name] = plain_arrow(frame.to_arrow())
    return result


def views_datafusion(bundles: tuple[Path, ...], wanted: list[str]) -> dict[str, pa.Table]:
    import datafusion

    context = datafusion.SessionContext()

    def register(name: str, rows: pa.Table) -> None:
        nothing = pa.RecordBatch.from_pylist([], schema=rows.schema)
        context.register_record_batches(name, [rows.to_batches() or [nothing]])

    for name in tables():
        paths = files(bundles, name)
        if not paths:
            register(name, empty(name))
            continue
        frame = context.read_parquet(str(paths[0]))
        for path in paths[1:]:
            frame = frame.union(context.read_parquet(str(path)))
        context.register_view(name, frame)
    result = {}
    for name in wanted:
        rows = context.sql(views()[name]).to_arrow_table()
        register(name, rows)
        result[name] = plain_arrow(rows)
    return result


def plain_arrow(rows: pa.Table) -> pa.Table:
    """Text as string, whatever an engine calls it."""
    texts = (pa.large_string(), pa.string_view())
    return rows.cast(pa.schema([(f.name, pa.string() if f.type in texts else f.type) for f in rows.schema]))


def of_v2(found: Found, read: Callable[[Path], Cells]) -> None:
    """Reads the encoding that the standard forbids, and says what becomes of it."""
    table = stated(V2_TRUTH)["tables"]["events"]["digests"]["t"]
    want = (table["count"], int(table["sum"], 16), int(table["xor"], 16))
    try:
        _, values = read(V2 / "events.parquet")["t"]
        found.v2 = "right" if digest("INT64", values) == want else "wrong values, no error"
    except Exception:  # any refusal is an answer here
        found.v2 = "error"


V2_TRUTH = next(p for p in BUNDLES if p.name == "ring.wsformat")
"""The bundle of which V2 is a rewritten copy."""

READERS: dict[str, Callable[[Path], Cells]] = {
    "pyarrow": read_pyarrow,
    "pandas": read_pandas,
    "pandas (pyarrow back end)": read_pandas_arrow,
    "Polars": read_polars,
    "DuckDB": read_duckdb,
    "fastparquet": read_fastparquet,
    "DataFusion": read_datafusion,
}
VIEWS = {"Polars": views_polars, "DuckDB": views_duckdb, "DataFusion": views_datafusion}


def load_fastparquet(path: Path) -> Frame:
    import fastparquet

    # From memory: it does not close the files that it opens.
    return fastparquet.ParquetFile(BytesIO(path.read_bytes())).to_pandas()


ANSWERS: dict[str, Callable[[Path], Answers]] = {
    "pyarrow": answer_pyarrow,
    "pandas": answers_of_frames(pd.read_parquet),
    "pandas (pyarrow back end)": answers_of_frames(lambda path: pd.read_parquet(path, dtype_backend="pyarrow")),
    "fastparquet": answers_of_frames(load_fastparquet),
}


def examine(name: str) -> Found:
    """What one of these readers makes of the corpus."""
    found = Found()
    for bundle in BUNDLES:
        for table in contract(bundle):
            take(found, bundle, table, READERS[name](bundle / f"{table}.parquet"))
    if name in VIEWS:
        ask_views(found, VIEWS[name](tuple(SAMPLES), list(views())), tuple(SAMPLES))
    else:
        ask_plain(found, BUNDLES, ANSWERS[name])
    of_v2(found, READERS[name])
    return found
