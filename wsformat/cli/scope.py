"""What the analysis commands share: the bundle, the selectors, and the line that says what one looks at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsformat.cli.interrupt import interruptible
from wsformat.errors import BadRequest

if TYPE_CHECKING:
    import duckdb

    from wsformat.bundle import Bundle

BundlePath = Annotated[Path, typer.Argument(metavar="X.wsformat", help="the bundle", show_default=False)]
Capture = Annotated[str, typer.Option("--capture", metavar="ID", help="one capture: its label, or how its id begins")]
Launch = Annotated[int, typer.Option("--launch", metavar="N", help="one launch by number", show_default=False)]
Cta = Annotated[int, typer.Option("--cta", metavar="N", help="one CTA by its linear index", show_default=False)]
Role = Annotated[str, typer.Option("--role", metavar="NAME", help="one role")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Force = Annotated[bool, typer.Option("--force", help="replace an output that is there already")]

EVERY = -(2**63)
"""Value of --launch and --cta that selects all of them: none that a table can hold or anybody would ask for."""


@dataclass(frozen=True)
class Analysis:
    """An open bundle, its connection, and what was selected.

    Attributes:
        bundle: the bundle.
        connection: every table by name; views once they were asked for.
        captures: ids of the captures selected.
        launch, cta: number, or EVERY.
        role: name, or ''.
        made: views that are there; making all would take longer than most questions.
    """

    bundle: Bundle
    connection: duckdb.DuckDBPyConnection
    captures: tuple[str, ...]
    launch: int = EVERY
    cta: int = EVERY
    role: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)

    def need(self, text: str) -> None:
        """Make the views that a query, or just a list of names, mentions."""
        from wsformat.derive import make_views

        make_views(self.connection, text, self.made)

    def rows(self, sql: str, parameters: Iterable[Any] = ()) -> list[dict[str, Any]]:
        """Rows of a query as plain values."""
        from wsformat.cli.output import rows
        from wsformat.derive import run

        self.need(sql)
        return rows(run(self.connection, sql, list(parameters)))

    def where(self, *columns: str, alias: str = "") -> str:
        """SQL condition of the selection on those of capture_id, launch, cta, role that a relation has."""
        prefix = f"{alias}." if alias else ""
        tests = []
        for column in columns:
            if column == "capture_id":
                tests.append(f"{prefix}capture_id IN ({', '.join(quote(c) for c in self.captures)})")
            elif column == "launch" and self.launch != EVERY:
                tests.append(f"{prefix}launch = {self.launch}")
            elif column == "cta" and self.cta != EVERY:
                tests.append(f"{prefix}cta = {self.cta}")
            elif column == "role" and self.role:
                tests.append(f"{prefix}role = {quote(self.role)}")
        return " AND ".join(tests) or "TRUE"

    def name(self, capture: str) -> str:
        """What to call a capture: its label, else the bundle's name when it holds nothing else, else its id."""
        alone = self.bundle.path.stem if self.bundle.path is not None and len(self.captures) == 1 else ""
        return self.labels.get(capture) or alone or capture

    def one_capture(self) -> str:
        """The id of the capture selected.

        Raises:
            BadRequest: the bundle has several and none was named.
        """
        if len(self.captures) != 1:
            raise BadRequest(
                f"{self.bundle.path}: holds {len(self.captures)} captures, this command takes one",
                f"Choose with --capture: {names({i: self.labels[i] for i in self.captures})}.",
            )
        return self.captures[0]


def quote(text: str) -> str:
    """A string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def names(labels: dict[str, str], most: int = 12) -> str:
    """Captures as a user can name them."""
    known = list(labels.values())
    listed = [label if label and known.count(label) == 1 else capture for capture, label in labels.items()]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def open_bundle(path: Path) -> Bundle:
    """Open a bundle directory; says what to do with a zipped one."""
    from wsformat.bundle import Bundle

    refuse_zipped(path)
    return Bundle.open(path)


def refuse_zipped(path: Path) -> None:
    """Say what to do with a zipped bundle.

    Raises:
        BadRequest: it is one.
    """
    if path.is_file() and path.name.endswith(".zip"):
        raise BadRequest(f"{path}: a zipped bundle", f"Unpack it first: `wsformat unzip {path}`.")


def choose_captures(bundle: Bundle, wanted: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Labels of all captures by id, and the ids chosen: by label, by the start of an id, or all for ''.

    Captures of clean launches and predictions only accompany others: they are chosen when their id or label is named
    or nothing else is there.

    Raises:
        BadRequest: no such capture, or several.
    """
    captures = bundle.table("captures").select(["capture_id", "label", "kind"]).to_pylist()
    labels = {row["capture_id"]: row["label"] or "" for row in captures}
    if not labels:
        raise BadRequest(f"{bundle.path}: holds no capture")
    if not wanted:
        alone = ("clean", "predicted")
        return labels, tuple(row["capture_id"] for row in captures if row["kind"] not in alone) or tuple(labels)
    stamped = tuple(row["capture_id"] for row in captures if row["kind"] != "clean") or tuple(labels)
    chosen = tuple(i for i in stamped if labels[i] == wanted)
    chosen = chosen or tuple(i for i in labels if i.startswith(wanted))
    if len(chosen) != 1:
        what = "no capture" if not chosen else f"{len(chosen)} captures"
        raise BadRequest(f"{bundle.path}: {what} {wanted!r}", f"Captures: {names(labels)}.")
    return labels, chosen


@contextmanager
def analysis(
    path: Path,
    *,
    capture: str = "",
    launch: int = EVERY,
    cta: int = EVERY,
    role: str = "",
    materialise: Iterable[str] = (),
    only: Iterable[str] = (),
) -> Iterator[Analysis]:
    """Open a bundle for questions about a part of it.

    ``materialise`` as in :func:`wsformat.derive.connect`; ``only`` names views that are asked for other than by
    :meth:`Analysis.rows`.

    Raises:
        MalformedInput, UnsupportedVersion: no bundle that can be read.
        BadRequest: a selector that names nothing in it; the hint lists what there is.
    """
    bundle = open_bundle(path)
    labels, chosen = choose_captures(bundle, capture)
    from wsformat.derive import dependency_order, empty_views

    with bundle.duckdb(materialise=materialise, only=only) as connection, interruptible(connection):
        made = set(dependency_order([*only, *materialise], empty_views(connection)))
        found = Analysis(bundle, connection, chosen, launch, cta, role, labels, made)
        _check(found)
        yield found


def _check(scope: Analysis) -> None:
    wanted = [
        ("launch", "launches", "capture_id", scope.launch, scope.launch != EVERY),
        ("cta", "lanes", "capture_id, launch", scope.cta, scope.cta != EVERY),
        ("role", "roles", "capture_id", scope.role, bool(scope.role)),
    ]
    for column, table, selectors, value, asked in wanted:
        if not asked:
            continue
        where = scope.where(*selectors.split(", "))
        sql = f"SELECT DISTINCT {column} AS x FROM {table} WHERE {where} ORDER BY x"
        there = [row["x"] for row in scope.rows(sql) if row["x"] not in (-1, "")]
        if value not in there:
            listed = f"{there[0]} to {there[-1]}" if len(there) > 12 else ", ".join(map(str, there)) or "none"
            raise BadRequest(f"{scope.bundle.path}: no {column} {value!r}", f"There is {column} {listed}.")


def headline(scope: Analysis) -> list[str]:
    """What one looks at, for each capture: kernel, device, size, completeness and perturbation."""
    from wsformat.cli.output import clean, percent

    lines = []
    disturbed = perturbations(scope)
    for row in scope.rows(
        f"""
        SELECT c.*, (SELECT COUNT(*) FROM launches l WHERE l.capture_id = c.capture_id) AS launches,
               (SELECT COUNT(DISTINCT k.kernel) FROM launches k WHERE k.capture_id = c.capture_id) AS kernel_count,
               (SELECT MIN(k.kernel) FROM launches k WHERE k.capture_id = c.capture_id) AS kernels,
               (SELECT COUNT(DISTINCT n.cta) FROM lanes n WHERE n.capture_id = c.capture_id AND n.cta >= 0) AS ctas
        FROM captures c WHERE {scope.where("capture_id", alias="c")} ORDER BY c.capture_id
        """
    ):
        kernel = row["kernel"] or (row["kernels"] if row["kernel_count"] < 2 else f"{row['kernel_count']} kernels")
        facts = [
            f
            for f in (
                f"{kernel or 'a kernel without name'} on {row['device'] or 'an unknown device'}",
                row["shape"],
                row["dtype"],
            )
            if f
        ]
        facts += [count(row["launches"], "launch", "launches")]
        facts += [count(row["ctas"], "CTA")] if row["ctas"] else []
        lines.append(clean(f"{scope.name(row['capture_id'])}: {', '.join(facts)}"))
        note = f"completeness: {row['completeness'] or 'unknown'}"
        if row["completeness"] == "truncated":
            note += " (states hold for the recorded window only)"
        known = [p for p in disturbed if p["capture_id"] == row["capture_id"]]
        shown = [f"{percent(p['perturbation'], sign=True)} by {p['method']}" for p in known]
        lines.append(f"{note}; perturbation: {', '.join(shown) or 'unknown (no clean launches to compare with)'}")
    return lines


def count(number: int, one: str, many: str = "") -> str:
    """'1 CTA', '2 CTAs'."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def plural(unit: str) -> str:
    """'cycles', and 'ns' as it is."""
    return unit if unit.endswith("s") else f"{unit}s"


def perturbations(scope: Analysis) -> list[dict[str, Any]]:
    """What the stamps did to the kernel: the row to quote of each stamped kind, pass and grid of the selection."""
    where = scope.where("capture_id")
    return scope.rows(
        f"SELECT * FROM perturbation WHERE preference = 1 AND {where} ORDER BY capture_id, kind, pass, grid_ctas, slots"
    )


def units(scope: Analysis) -> list[str]:
    """Units of the clocks that lanes of the selection use, for headings."""
    where = scope.where("capture_id", "launch", "cta", "role", alias="l")
    sql = f"""SELECT DISTINCT c.unit FROM lanes l JOIN clocks c
              ON c.capture_id = l.capture_id AND c.clock = l.clock
              WHERE l.kind <> 'cta' AND {where} ORDER BY c.unit"""
    return sorted({row["unit"] for row in scope.rows(sql)})


def resolution_note(scope: Analysis) -> str:
    """A line for clocks whose step is coarser than one tick; '' when every tick counts."""
    where = scope.where("capture_id", "launch", "cta", "role", alias="l")
    sql = f"""SELECT c.unit, MAX(c.step_ticks) AS step FROM lanes l JOIN clocks c
              ON c.capture_id = l.capture_id AND c.clock = l.clock WHERE l.kind <> 'cta' AND {where}
              GROUP BY c.unit HAVING MAX(c.step_ticks) > 1 ORDER BY c.unit"""
    steps = [f"{row['step']} {row['unit']}" for row in scope.rows(sql)]
    if not steps:
        return ""
    return f"The clock steps by {' and '.join(steps)}: each length is known to one step at either end."
