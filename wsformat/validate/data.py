"""Rules over rows that follow from the schema: vocabularies, ranges, patterns, keys, references."""

from __future__ import annotations

from collections.abc import Iterator

from wsformat.derive import parquet_source
from wsformat.tables import Column, Table, tables, vocabularies
from wsformat.validate.database import Database
from wsformat.validate.report import Findings
from wsformat.validate.rules import Rule, rules
from wsformat.validate.scan import minimum
from wsformat.validate.subject import Subject

# events are checked by STAMP_DUPLICATE, which says the same in the words of the field.
KEY_CHECKED_ELSEWHERE = ("events",)


def sound(subject: Subject) -> list[Table]:
    """Tables of the standard in the bundle whose rows can be judged."""
    return [table for name, table in tables().items() if name in subject.files and not subject.files[name].broken]


def place(table: Table, alias: str = "") -> str:
    """SQL text that names a row by its key (by its sort columns when it has no key)."""
    dot = f"{alias}." if alias else ""
    names = table.key or table.sort
    parts = [
        f"'{'capture' if n == 'capture_id' else n} ' || COALESCE(CAST({dot}{n} AS VARCHAR), 'null')" for n in names
    ]
    return " || ', ' || ".join(parts)


def _offences(
    found: Findings, database: Database, code: str, table: Table, column: str, where: str, detail: str
) -> None:
    query = f"SELECT {place(table)} AS row, {detail} AS detail FROM {table.name} WHERE {where}"
    count, row, text = database.offences(query)
    if count:
        found.add(code, text, table=table.name, row=row, column=column, count=count)


def vocabulary(subject: Subject, found: Findings, database: Database, rule: Rule) -> None:
    """E401 for closed vocabularies, W402 for open ones."""
    for table in sound(subject):
        for column in table.columns:
            if not column.vocabulary or vocabularies()[column.vocabulary]["closed"] != (rule.code == "E401"):
                continue
            values = ", ".join("'" + v.replace("'", "''") + "'" for v in vocabularies()[column.vocabulary]["values"])
            where = f"{column.name} NOT IN ({values})"
            if rule.code == "W402":
                where += f" AND NOT contains({column.name}, '__')"
            detail = f"'''' || {column.name}[:60] || ''' is not in the vocabulary {column.vocabulary}'"
            _offences(found, database, rule.code, table, column.name, where, detail)


def too_small(subject: Subject, found: Findings, database: Database, rule: Rule) -> None:
    """E404."""
    for table in sound(subject):
        for column in table.columns:
            least = minimum(table.name, column)
            if least is not None and subject.files[table.name].least.get(column.name, least - 1) < least:
                detail = f"{column.name} || ', the least allowed is {least}'"
                _offences(found, database, rule.code, table, column.name, f"{column.name} < {least}", detail)


def out_of_range(subject: Subject, found: Findings, database: Database, rule: Rule) -> None:
    """E405."""
    for table, column, bounds in _listed(subject, rule, "range"):
        low, high = bounds
        tests = [f"{column} < {low}"] * (low is not None) + [f"{column} > {high}"] * (high is not None)
        text = f"{'' if low is None else low} to {'' if high is None else high}"
        where = f"({' OR '.join(tests)}) AND isfinite({column})"
        _offences(found, database, rule.code, table, column, where, f"printf('%.9g is outside {text}', {column})")


def pattern(subject: Subject, found: Findings, database: Database, rule: Rule) -> None:
    """E406, W408: text of a given form. E407: text that must not be empty."""
    for table, column, _ in _listed(subject, rule, "columns"):
        form = str(rule.more.get("pattern", ".+")).strip("^$")
        where = f"NOT regexp_full_match(COALESCE({column}, ''), '{form}')"
        detail = f"'''' || COALESCE({column}, '')[:60] || ''''"
        _offences(found, database, rule.code, table, column, where, detail)


def _listed(subject: Subject, rule: Rule, key: str) -> Iterator[tuple[Table, str, tuple[float | None, float | None]]]:
    present = {table.name: table for table in sound(subject)}
    listed = rule.more[key]
    for qualified in listed:
        table, column = qualified.split(".")
        if table in present:
            bounds = tuple(listed[qualified]) if isinstance(listed, dict) else (None, None)
            yield present[table], column, (bounds[0], bounds[1])


def keys(subject: Subject, found: Findings, database: Database, rule: Rule) -> None:
    """E501."""
    for table in sound(subject):
        if not table.key or table.name in KEY_CHECKED_ELSEWHERE:
            continue
        names = ", ".join(table.key)
        query = f"""SELECT {place(table)} AS row, COUNT(*) || ' rows' AS detail
                    FROM {table.name} GROUP BY {names} HAVING COUNT(*) > 1"""
        count, row, detail = database.offences(query)
        if count:
            found.add(rule.code, detail, table=table.name, row=row, column=names, count=count)


def references(subject: Subject, found: Findings, database: Database, rule: Rule) -> None:
    """E502 to E508 and E601: every reference of ``schema/tables.json`` with that target."""
    target = str(rule.more["target"])
    target_table, target_column = target.split(".")
    if target_table in subject.files and subject.files[target_table].broken:
        raise LookupError(f"table {target_table}: {subject.files[target_table].broken}")
    for table in sound(subject):
        for column in table.columns:
            if column.references == target:
                _reference(found, database, rule, table, column, target_table, target_column)
    if target == "captures.capture_id" and target_table in subject.files:
        _extension_captures(subject, found, database, rule)


def _extension_captures(subject: Subject, found: Findings, database: Database, rule: Rule) -> None:
    """E502 of tables of extensions: the capture is all that they share with the standard's."""
    for file in subject.files.values():
        if file.name in tables() or file.broken or file.path is None or file.types.get("capture_id") != "STRING":
            continue
        missing = f"""SELECT capture_id, COUNT(*) AS n FROM {parquet_source(file.path)}
                      WHERE capture_id NOT IN (SELECT capture_id FROM captures) GROUP BY capture_id"""
        count, row, detail = database.offences(
            "SELECT 'capture ' || capture_id AS row, n || ' rows name it, captures has no such row' AS detail "
            f"FROM ({missing})"
        )
        if count:
            total = database.rows(f"SELECT SUM(n) FROM ({missing})")[0][0]
            found.add(rule.code, detail, table=file.name, row=row, column="capture_id", count=int(total))


def _reference(
    found: Findings, database: Database, rule: Rule, table: Table, column: Column, target_table: str, target_column: str
) -> None:
    # Distinct values first: ten million stamps name a few hundred lanes.
    names = ["capture_id"] if column.name != "capture_id" else []
    if target_table in ("event_types", "span_types"):
        names.append("role")
    own, theirs = ", ".join([*names, column.name]), ", ".join([*names, target_column])
    where = "TRUE"
    if column.not_applicable is not None:
        where = f"{column.name} <> " + (
            f"'{column.not_applicable}'" if column.type == "STRING" else str(column.not_applicable)
        )
    # An undefined capture is one problem (E502), not one more for each reference within it.
    if column.name != "capture_id":
        where += " AND capture_id IN (SELECT capture_id FROM captures)"
    if "role" in names:
        where += " AND (capture_id, role) IN (SELECT (capture_id, role) FROM roles)"
    missing = f"""SELECT {own}, n FROM (SELECT {own}, COUNT(*) AS n FROM {table.name} WHERE {where} GROUP BY {own})
                  WHERE ({own}) NOT IN (SELECT ({theirs}) FROM {target_table})"""
    if own == column.name:
        missing = missing.replace(f"({own}) NOT IN (SELECT ({theirs})", f"{own} NOT IN (SELECT {theirs}")
    named = " || ', ' || ".join(f"'{'capture' if n == 'capture_id' else n} ' || {n}" for n in own.split(", "))
    count, row, detail = database.offences(
        f"SELECT {named} AS row, n || ' rows name it, {target_table} has no such row' AS detail FROM ({missing})"
    )
    if count:
        total = database.rows(f"SELECT SUM(n) FROM ({missing})")[0][0]
        found.add(rule.code, detail, table=table.name, row=row, column=column.name, count=int(total))


def sql(subject: Subject, found: Findings, database: Database, rule: Rule) -> None:
    """A rule that is a query of its own."""
    for name in rule.tables:
        if name in subject.files and subject.files[name].broken:
            raise LookupError(f"table {name}: {subject.files[name].broken}")
    if not any(name in subject.files for name in rule.tables):
        return
    count, row, detail = database.offences(rule.sql)
    if count:
        found.add(rule.code, detail, table=rule.table, row=row, column=rule.column, count=count)


CHECKS = {
    "E401": vocabulary,
    "W402": vocabulary,
    "E404": too_small,
    "E405": out_of_range,
    "E406": pattern,
    "E407": pattern,
    "W408": pattern,
    "E501": keys,
    **{code: references for code, rule in rules().items() if rule.check == "references"},
    **{code: sql for code, rule in rules().items() if rule.check == "sql"},
}
"""The check of each rule over rows, by code."""
