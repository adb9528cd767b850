"""A lake on Spark: the tables and the same SQL, from the list of files; no Iceberg extension, no jar.

The cluster is the session's matter; the file system must be one that it reads (``s3a://`` for S3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from wsformat.derive import views
from wsformat.lake.index import gone_sql
from wsformat.lake.layout import INDEX, base_columns
from wsformat.lake.query import Snapshot, needed, snapshot
from wsformat.tables import tables

if TYPE_CHECKING:
    from wsformat.lake.home import Lake

SPARK_TYPES = {"INT32": "INT", "INT64": "BIGINT", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN", "STRING": "STRING"}


def register(spark: Any, lake: Lake, wanted: Iterable[str] = (), *, where: str = "") -> None:
    """Make the tables and derived views of a lake temporary views of a Spark session, all as of now.

    Args:
        spark: the session.
        lake: the lake.
        wanted: names of tables and views that are needed; by default all.
        where: SQL condition on ``captures`` that chooses captures.

    Raises:
        BadRequest: ``where`` is wrong.
    """
    held, derived = needed(set(wanted) or {*tables(), *views()})
    found = snapshot(lake, [name for name in tables() if name in held], where=where)
    for name in [*[n for n in tables() if n in held or n == INDEX]]:
        frame = _frame(spark, lake, found, name)
        frame.createOrReplaceTempView(name)
    for name in derived:
        # Each view is kept where it was computed: as one plan, views of views take Spark longer to analyse than
        # to run. Nothing is computed before it is asked for.
        spark.sql(views()[name]).localCheckpoint(eager=False).createOrReplaceTempView(name)


def _frame(spark: Any, lake: Lake, found: Snapshot, name: str) -> Any:
    files = found.index.files if name == INDEX else found.files.get(name, [])
    columns = {column: kind for column, (kind, _) in base_columns(name).items()}
    if not files:
        return spark.createDataFrame([], ", ".join(f"{c} {SPARK_TYPES[kind]}" for c, kind in columns.items()))
    frame = spark.read.option("mergeSchema", "true").parquet(*[_uri(lake.store.path(file.uri)) for file in files])
    condition = gone_sql(found.index)
    if name == INDEX:
        frame = frame.filter("NOT lake_removed")
    if condition:
        frame = frame.filter(condition)
    frame = frame.select(*columns)
    if found.captures is not None:
        chosen = spark.createDataFrame([(capture,) for capture in found.captures], "capture_id STRING")
        frame = frame.join(chosen, "capture_id", "left_semi").select(*columns)
    return frame


def _uri(path: str) -> str:
    return re.sub(r"^s3://", "s3a://", path)


def run(spark: Any, made: Mapping[str, str], sql: str) -> Any:
    """The answer to a question (see :func:`wsformat.lake.questions.statements`) as a Spark frame."""
    for name, text in made.items():
        spark.sql(text).createOrReplaceTempView(name)
    return spark.sql(sql)
