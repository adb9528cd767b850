"""views.json says what the views are; the SQL keeps to the subset that other engines run as it stands."""

from __future__ import annotations

import math
import re
import sqlite3
from typing import Any

import duckdb
import pytest
from reference_captures import random_lifetimes, random_tables

from wsformat.bundle import Bundle
from wsformat.derive import dependency_order, describe, empty_views, make_views, mentioned, run, views
from wsformat.errors import BadRequest
from wsformat.tables import SQL_TYPES, read_schema_json, tables

DESCRIBED: dict[str, Any] = read_schema_json("views.json")["views"]
RESERVED = set(
    """
    all analyse analyze and anti any array as asc asymmetric authorization between binary both case cast check
    collate collation column concurrently constraint create cross current_catalog current_date current_role
    current_schema current_time current_timestamp current_user default deferrable desc distinct do else end escape
    except exists false fetch filter for foreign freeze from full function global grant group having ilike in
    initially inner intersect into is isnull join lateral leading left like limit localtime localtimestamp minus
    natural not notnull null offset on only or order outer overlaps partition placing primary references returning
    right row rows select semi session_user similar some sql symmetric table tablesample then time to trailing
    true truncate union unique unknown user using values variadic verbose when where window with
    """.split()  # noqa: SIM905
)
FORBIDDEN = (
    r"\bFILTER\s*\(", r"\bQUALIFY\b", r"\b(GREATEST|LEAST)\s*\(", r"\b(MEDIAN|QUANTILE\w*|PERCENTILE\w*|MODE)\s*\(",
    r"\bROUND\s*\(", r"\bCONCAT\w*\s*\(", r"\bMOD\s*\(",
    r"\b(ARG_?MAX|ARG_?MIN|MAX_BY|MIN_BY|ANY_VALUE|FIRST|LAST|FIRST_VALUE|LAST_VALUE|LIST)\s*\(", r"::",
    r"\bIFNULL\b", r"\bNVL\b", r"\bIIF?\s*\(", r"\bASOF\b", r"\bLATERAL\b", r"\bUNNEST\b", r"\bEXPLODE\b",
    r"\bEXCLUDE\b", r"\bSELECT\s+\*", r"\bNATURAL\b", r"\bUSING\s*\(", r"\bRANGE\s+BETWEEN\b", r"\bGROUPS\b",
    r"\bGROUP BY ALL\b", r"\bORDER BY ALL\b", r"\bNULLS\b", r"\bDISTINCT ON\b", r"\bIS (NOT )?DISTINCT FROM\b", r"//",
    r"(?<![\w.])\d+\.\d+(?!E|\d)", r"\bPIVOT\b", r"\bFULL\b", r"\bRIGHT\b", r"\bLIMIT\b", r"\bRECURSIVE\b",
)  # fmt: skip


def code(sql: str) -> str:
    """The statement without its comments and the contents of its strings."""
    return re.sub(r"'[^']*'", "''", re.sub(r"--[^\n]*", "", sql))


def test_every_view_is_described_and_nothing_else() -> None:
    assert list(DESCRIBED) == list(views())
    assert not set(views()) & set(tables())


@pytest.mark.parametrize("view", sorted(views()))
def test_columns_and_types_are_those_described(view: str) -> None:
    with Bundle.from_tables({}).duckdb() as connection:
        found = [(row[0], row[1]) for row in connection.execute(f'DESCRIBE "{view}"').fetchall()]
    described = DESCRIBED[view]
    assert found == [(column["name"], SQL_TYPES[column["type"]]) for column in described["columns"]]
    assert described["about"]
    assert described["row"]
    assert all(column["meaning"] and column["since"] for column in described["columns"])
    assert set(described["key"]) <= {column["name"] for column in described["columns"]}


def test_keys_are_unique() -> None:
    """On captures whose stamps are unique (a stamp that occurs twice breaks the key of events, and so of point)."""
    checked = 0
    for seed in range(6):
        made = random_tables(seed, 2, 5)
        made["events"] = list(
            {(e["capture_id"], e["lane"], e["event"], e["iteration"]): e for e in made["events"]}.values()
        )
        made["spans"] = []
        made["clock_anchors"] = list(
            {
                (a["capture_id"], a["launch"], a["clock"], a["t"], a["reference_clock"]): a
                for a in made["clock_anchors"]
            }.values()
        )
        with Bundle.from_tables(made).duckdb(materialise=views()) as connection:
            for view, described in DESCRIBED.items():
                if described["key"]:
                    key = ", ".join(f'"{name}"' for name in described["key"])
                    twice = connection.execute(
                        f"SELECT {key}, COUNT(*) FROM {view} GROUP BY {key} HAVING COUNT(*) > 1"
                    ).fetchall()
                    assert not twice, (view, seed, twice[:3])
                    checked += connection.execute(f"SELECT COUNT(*) FROM {view}").fetchall()[0][0]
    assert checked > 5000


@pytest.mark.parametrize("view", sorted(views()))
def test_portable_subset(view: str) -> None:
    sql = code(views()[view])
    for pattern in FORBIDDEN:
        found = re.search(pattern, sql, re.IGNORECASE)
        assert not found, f"{view}: {found.group(0)!r} is not in the portable subset" if found else ""
    for condition in re.findall(
        r"\bON\b(.*?)(?=\b(?:LEFT|JOIN|CROSS|WHERE|GROUP|ORDER|UNION|HAVING)\b|\)\s*,|\)\s*SELECT|$)", sql, re.DOTALL
    ):
        assert not re.search(
            r"[<>]|\bOR\b|\bBETWEEN\b|\bNOT\b", condition.replace(">= 0", "").replace("m.launch", "")
        ), f"{view}: range join: {condition}"
        assert "=" in condition
    for partition in re.findall(r"PARTITION BY ([\w.]+)", sql):
        if partition.rsplit(".", 1)[-1] != "capture_id":
            assert view == "perturbation", f"{view}: a window that is not of one capture: {partition}"


def test_no_reserved_words() -> None:
    with duckdb.connect() as connection:
        reserved = RESERVED | {
            row[0]
            for row in connection.execute(
                "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
            ).fetchall()
        }
    for view, sql in views().items():
        names = {
            view,
            *(column["name"] for column in DESCRIBED[view]["columns"]),
            *re.findall(r"(\w+) AS \(", code(sql)),
            *re.findall(r"\bAS (\w+)", code(sql)),
        }
        types = {"BIGINT", "INT", "DOUBLE"}
        assert not {name.lower() for name in names - types} & reserved, view


def test_views_come_in_an_order_in_which_each_needs_only_earlier_ones() -> None:
    order = list(views())
    for view in order:
        assert set(dependency_order([view])) - {view} <= set(order[: order.index(view)])
    needed = dependency_order(["wait"])
    assert [v for v in needed if v in ("point", "span", "wait_kind", "wait_edge")] == [
        "point",
        "span",
        "wait_kind",
        "wait_edge",
    ]
    assert needed[-1] == "wait"
    assert "overlap" not in needed
    assert dependency_order(["role_state", "wait"])[-1] == "wait"


def test_describe_lists_tables_and_views() -> None:
    listed = {row["name"]: row for row in describe()}
    assert set(listed) == set(tables()) | set(views())
    assert listed["wait"]["kind"] == "view"
    assert listed["events"]["kind"] == "table"
    assert "verdict" in listed["wait"]["columns"]


def plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def as_text(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in an order that small differences of a float cannot change."""
    return sorted(
        ({k: plain(v) for k, v in row.items()} for row in rows),
        key=lambda row: str([(k, f"{v:.6g}" if isinstance(v, float) else v) for k, v in row.items()]),
    )


@pytest.mark.parametrize("seed", range(4))
def test_another_engine_gives_the_same_rows(seed: int) -> None:
    """The same files, unchanged, on SQLite: another implementation of SQL, written by other people."""
    sqlite = sqlite3.connect(":memory:")
    try:
        sqlite.execute("SELECT FLOOR(1.5)")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no FLOOR")
    bundle = Bundle.from_tables(random_lifetimes(seed, 2, 8) if seed == 3 else random_tables(seed, 2, 6))
    for name in tables():
        table = bundle.table(name)
        quoted = ", ".join('"' + column + '"' for column in table.column_names)
        sqlite.execute(f"CREATE TABLE {name} ({quoted})")
        marks = ", ".join("?" * table.num_columns)
        sqlite.executemany(f"INSERT INTO {name} VALUES ({marks})", [tuple(row.values()) for row in table.to_pylist()])
    with bundle.duckdb(materialise=views()) as connection:
        for view, sql in views().items():
            sqlite.execute(f"CREATE TABLE {view} AS {sql}")
            cursor = sqlite.execute(f"SELECT * FROM {view}")
            other = as_text([dict(zip([c[0] for c in cursor.description], row, strict=True)) for row in cursor])
            ours = as_text(run(connection, f"SELECT * FROM {view}").to_pylist())
            assert len(ours) == len(other), view
            for a, b in zip(ours, other, strict=True):
                for name in a:
                    alike = a[name] == b[name] or (
                        isinstance(a[name], float)
                        and b[name] is not None
                        and math.isclose(a[name], b[name], rel_tol=1e-9, abs_tol=1e-9)
                    )
                    assert alike, f"{view}.{name}: DuckDB {a[name]!r}, SQLite {b[name]!r} in {a}"
    sqlite.close()


def test_a_query_makes_the_views_that_it_names_and_no_others() -> None:
    assert mentioned('SELECT * FROM Wait JOIN main."role_state" USING (lane)') == ["role_state", "wait"]
    assert mentioned("SELECT COUNT(*) FROM events") == []
    assert mentioned("SHOW TABLES") is None
    assert mentioned("SELECT view_name FROM duckdb_views()") is None
    made = Bundle.from_tables({"captures": []})
    assert made.sql("SELECT COUNT(*) AS n FROM overlap").to_pylist() == [{"n": 0}]
    listed = made.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").column(0).to_pylist()
    assert set(views()) <= set(listed)
    with pytest.raises(BadRequest, match="no_such_view"):
        made.sql("SELECT * FROM no_such_view")


def test_a_view_that_is_empty_by_what_is_declared_is_made_empty() -> None:
    """The same columns and rows as by its own SQL, and nothing it is made of need be there."""
    folded = [name for name, view in DESCRIBED.items() if "only_with" in view]
    assert folded == ["cross_signal"]
    edge = {"capture_id": "a", "producer_role": "p", "producer_event": "e", "consumer_role": "c", "consumer_event": "f"}
    for scope, is_folded in (("cta", True), ("cluster", False), ("device", False)):
        bundle = Bundle.from_tables({"dependencies": [edge | {"scope": scope}]})
        with bundle.duckdb(only=["wait"]) as connection, bundle.duckdb() as every:
            assert list(empty_views(connection)) == (folded if is_folded else [])
            made = {
                row[0]
                for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
            }
            assert ("clock_segment" in made) == (not is_folded)
            before = every.execute("DESCRIBE cross_signal").fetchall()
            every.execute("DROP VIEW cross_signal")
            every.execute(f"CREATE VIEW cross_signal AS {views()['cross_signal']}")
            assert every.execute("DESCRIBE cross_signal").fetchall() == before
            assert every.execute("SELECT COUNT(*) FROM cross_signal").fetchall() == [(0,)]


def test_queries_one_after_the_other_find_the_views_they_name() -> None:
    with Bundle.from_tables({}).duckdb(only=["wait"]) as connection:
        made = set(dependency_order(["wait"], empty_views(connection)))
        for name in ("wait", "cross_signal", "clock_segment", "timeline_ns"):
            make_views(connection, f"SELECT * FROM {name}", made)
            assert connection.execute(f"SELECT COUNT(*) FROM {name}").fetchall() == [(0,)]
