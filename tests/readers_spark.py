"""Spark in local mode: one session for all, set up for tables of a few rows."""

from __future__ import annotations

import shutil
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
from readers_common import BUNDLES, SAMPLES, Found, ask_views, contract, files, take
from readers_python import of_v2
from trace_clients import need

from wsformat.derive import views
from wsformat.tables import tables

VIEW_SAMPLES = tuple(
    p for p in SAMPLES if p.stem in ("cute_pipeline", "gemm_balanced", "gemm_cluster", "gemm_perturbation")
)
"""Samples over which Spark computes the views; they share no capture."""
SQL_TYPES = {"INT32": "INT", "INT64": "BIGINT", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN", "STRING": "STRING"}
# One thread, one partition, no code generation: with a few rows, planning and compiling are nearly all of the time.
OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.memory": "1g",
}


@contextmanager
def session() -> Iterator[Any]:
    """A Spark session; its warnings are about pandas, which is not used here."""
    need(shutil.which("java") is not None, "a JDK")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            need(found=False, what="pyspark")
        builder = SparkSession.builder.master("local[1]").appName("wsformat")
        for name, value in OPTIONS.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark
        finally:
            spark.stop()


def examine() -> Found:
    """What Spark makes of the corpus."""
    found = Found()
    with session() as spark:
        # Files of one table and the same columns are read in one go: a job a file would take minutes.
        alike: dict[tuple[str, tuple[str, ...]], list[Path]] = defaultdict(list)
        for bundle in BUNDLES:
            for table, columns in contract(bundle).items():
                alike[table, tuple(columns.items())].append(bundle)
        for (table, _), bundles in alike.items():
            read_alike(spark, found, table, bundles)
        ask_views(found, derive(spark), VIEW_SAMPLES)
        of_v2(found, lambda path: cells(spark.read.parquet(str(path)).toArrow(), {}))
    return found


def read_alike(spark: Any, found: Found, table: str, bundles: list[Path]) -> None:
    frame = spark.read.parquet(*[str(bundle / f"{table}.parquet") for bundle in bundles])
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    rows = frame.selectExpr("*", "_metadata.file_path AS the_file").toArrow()
    path = pc.cast(rows.column("the_file"), pa.string())
    places = {Path(unquote(urlparse(name).path)): name for name in pc.unique(path).to_pylist()}
    for bundle in bundles:
        name = places.get(bundle / f"{table}.parquet", "")
        part = rows.filter(pc.equal(path, name)).drop_columns(["the_file"])
        take(found, bundle, table, cells(part, kinds))


def cells(rows: pa.Table, kinds: dict[str, str]) -> dict[str, tuple[str, list[Any]]]:
    return {name: (kinds.get(name, ""), rows.column(name).to_pylist()) for name in rows.column_names}


def derive(spark: Any) -> dict[str, pa.Table]:
    """Every view of the standard, each over the rows of those before it."""
    for name, table in tables().items():
        paths = files(VIEW_SAMPLES, name)
        columns = ", ".join(f"{column.name} {SQL_TYPES[column.type]}" for column in table.columns)
        frame = spark.read.parquet(*map(str, paths)) if paths else spark.createDataFrame([], columns)
        frame.coalesce(1).createOrReplaceTempView(name)
    result = {}
    for name, sql in views().items():
        frame = spark.sql(sql)
        rows = frame.toArrow()
        spark.createDataFrame(rows.to_pylist(), frame.schema).coalesce(1).createOrReplaceTempView(name)
        result[name] = rows
    return result
