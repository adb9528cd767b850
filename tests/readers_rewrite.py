"""Table files written anew by the tools that people use, as they write by default."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl


def with_pandas(source: Path, target: Path) -> None:
    pd.read_parquet(source).to_parquet(target)


def with_pandas_arrow(source: Path, target: Path) -> None:
    pd.read_parquet(source, dtype_backend="pyarrow").to_parquet(target)


def with_polars(source: Path, target: Path) -> None:
    pl.read_parquet(source).write_parquet(target)


def with_duckdb(source: Path, target: Path) -> None:
    with duckdb.connect() as connection:
        connection.read_parquet(str(source)).write_parquet(str(target))


WRITERS: dict[str, Callable[[Path, Path], None]] = {
    "pandas": with_pandas,
    "pandas (pyarrow back end)": with_pandas_arrow,
    "Polars": with_polars,
    "DuckDB": with_duckdb,
}


def rewrite(writer: str, bundle: Path, target: Path) -> None:
    """A copy of the bundle whose table files a tool has read and written; the manifest stays as it was."""
    target.mkdir()
    shutil.copy(bundle / "manifest.json", target)
    for path in sorted(bundle.glob("*.parquet")):
        WRITERS[writer](path, target / path.name)
