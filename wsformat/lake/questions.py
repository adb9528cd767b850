"""What a team asks of all its captures: SQL of ``schema/lake/``, over the tables, the derived views and the summaries.

The same text runs on DuckDB and on Spark. Its parameters are the one row of a table ``question``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wsformat.errors import BadRequest
from wsformat.tables import SQL_TYPES, read_schema_json

if TYPE_CHECKING:
    import duckdb

    from wsformat.bundle import Progress
    from wsformat.lake.home import Lake

VIEW_FILE = re.compile(r"^\d+_(?P<name>[a-z][a-z0-9_]*)\.sql$")


@cache
def described() -> dict[str, Any]:
    """``schema/lake/questions.json``: parameters, views and questions."""
    data: dict[str, Any] = read_schema_json("lake/questions.json")
    return data


@cache
def shared_views() -> dict[str, str]:
    """SQL of the views that questions share, in the order in which they are made."""
    found = {}
    for entry in sorted(files("wsformat.schema.lake").iterdir(), key=lambda e: e.name):
        if match := VIEW_FILE.match(entry.name):
            found[match["name"]] = entry.read_text(encoding="utf-8")
    return found


@cache
def question_sql(name: str) -> str:
    """SQL of one question.

    Raises:
        BadRequest: no such question.
    """
    if name not in described()["questions"]:
        raise BadRequest(f"no question {name!r}", f"Questions: {', '.join(described()['questions'])}.")
    return files("wsformat.schema.lake").joinpath(f"{name}.sql").read_text(encoding="utf-8")


def statements(name: str, values: Mapping[str, Any] | None = None) -> tuple[dict[str, str], str]:
    """Views to be made, in order, and the query of a question; the same on DuckDB and on Spark.

    Args:
        name: of the question.
        values: of parameters; the others have those of ``questions.json``.

    Raises:
        BadRequest: no such question or parameter, or a value that is no finite number.
    """
    sql = question_sql(name)
    given = dict(values or {})
    cells = []
    for parameter in described()["parameters"]:
        value = given.pop(parameter["name"], parameter["value"])
        kind = SQL_TYPES[parameter["type"]]
        if isinstance(value, float) and not math.isfinite(value):
            raise BadRequest(f"{parameter['name']} {value}: no finite number")
        cells.append(f"CAST({str(value).lower()} AS {kind}) AS {parameter['name']}")
    if given:
        raise BadRequest(f"no parameter {next(iter(given))!r}")
    made = {"question": f"SELECT {', '.join(cells)}"}
    made |= {view: shared_views()[view] for view in described()["questions"][name]["uses"]}
    return made, sql


def ask(
    lake: Lake,
    name: str,
    values: Mapping[str, Any] | None = None,
    *,
    where: str = "",
    live: bool = False,
    progress: Progress | None = None,
) -> pa.Table:
    """The answer to a question.

    Args:
        lake: the lake.
        name: trend, regressions, barriers, model_error or gaps; or a view that they share.
        values: of parameters, see ``questions.json``.
        where: SQL condition on ``captures`` that chooses captures.
        live: compute everything from the stamps; else summaries that are missing are computed first, and kept.
        progress: called as summaries are computed.

    Raises:
        BadRequest: no such question or parameter, or ``where`` is wrong.
    """
    from wsformat.derive import run

    if not live:
        lake.summarise(progress=progress)
    if name in shared_views():
        made, sql = statements("model_error", values)[0], f"SELECT * FROM {name}"
    else:
        made, sql = statements(name, values)
    with lake.duckdb("\n".join([*made.values(), sql]), where=where, summaries=not live) as connection:
        define(connection, made)
        return run(connection, sql)


def define(connection: duckdb.DuckDBPyConnection, made: Mapping[str, str]) -> None:
    """Make the views of a question on a connection."""
    for view, text in made.items():
        connection.execute(f'CREATE OR REPLACE TEMP VIEW "{view}" AS\n{text}')
