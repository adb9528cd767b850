"""A bundle as the parts of a trace, a bounded number of its lanes at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from wsformat import derive
from wsformat.bundle import Bundle
from wsformat.converters import trace_counters
from wsformat.converters import trace_queries as queries
from wsformat.converters.trace_arrows import Arrows
from wsformat.converters.trace_model import Array, Instants, Part, Slices, Texts, Trace, Track, report, save
from wsformat.converters.trace_options import Choice, chosen
from wsformat.converters.trace_overlaps import Open, split_overlaps
from wsformat.converters.trace_times import Axis, axis
from wsformat.converters.trace_tracks import Tree
from wsformat.errors import BadRequest, WsformatError

NO_PLACE = ("predictions", "metrics", "rules", "findings", "attributes")
BLOCK = 50_000
"""Rows that are in memory at a time."""
POINTS = 600_000
"""Points of the lanes that are paired at a time; more where one CTA has more: then DuckDB uses its temporary folder."""
MEMORY_LIMIT = "256MB"
"""Of DuckDB; the process takes some 250 MB more."""
MORE_MEMORY = ("600MB", "1200MB", derive.MEMORY_LIMIT)
"""What waits and arrows get when they do not fit: their views look at all waits of a capture at once."""
VIEWS = ("span", "state_interval", "signal", "wait", "clock_segment", "perturbation")
THREADS = 4
"""At most: every thread has buffers of its own."""


def export(
    bundle: Bundle, path: Path, options: Mapping[str, Any], encode: Callable[..., Iterable[bytes]]
) -> dict[str, Any]:
    """Write a bundle as a trace, atomically, and report what went in.

    Args:
        bundle: any bundle with stamps or spans, of any size: memory does not grow with it.
        path: the file; packed when its name ends in .gz.
        options: see :data:`wsformat.converters.trace_options.EXPORT_OPTIONS`.
        encode: from a trace to bytes, with the keyword ``arguments``.

    Raises:
        BadRequest: nothing to draw, or an option with a value that it does not have.
        WsformatError: a span would be lost; nothing is written.
    """
    choice = chosen(options)
    try:
        with opened(bundle, choice) as trace:
            save(path, _checked(trace, encode(trace, arguments=choice.full)))
            written: dict[str, Any] = report(trace, path)
            return written
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        raise WsformatError(f"{path}: not written: {error}", "Is there room in the temporary folder?") from error


def _checked(trace: Trace, parts: Iterable[bytes]) -> Iterator[bytes]:
    """The parts; before the file gets its name, whether every span went in."""
    yield from parts
    if trace.counts["slices"] != trace.spans_in:
        raise WsformatError(
            f"{trace.spans_in} spans, but {trace.counts['slices']} were drawn; nothing was written",
            "This should not happen: please report it with the bundle.",
        )


@contextmanager
def opened(bundle: Bundle, choice: Choice) -> Iterator[Trace]:
    """The trace of a bundle; its parts can be taken while the context is open.

    Raises:
        BadRequest: nothing to draw.
        WsformatError: stamps or spans of lanes, captures or clocks that the bundle does not define.
    """
    # Stamps and spans get other names here, so that views can be asked about some lanes only.
    hidden = {f"all__{name}": bundle.data[name] for name in ("events", "spans") if name in bundle.data}
    rest = {name: part for name, part in bundle.data.items() if name not in ("events", "spans")}
    threads = min(THREADS, os.cpu_count() or 1)
    held = Bundle({**rest, **hidden}, bundle.manifest, bundle.path)
    with derive.connect(held, only=VIEWS, threads=threads, memory_limit=MEMORY_LIMIT) as connection:
        for name in ("events", "spans"):
            connection.execute(f"ALTER TABLE {name} RENAME TO no__{name}")
            if f"all__{name}" not in hidden:
                connection.execute(f"CREATE VIEW all__{name} AS SELECT * FROM no__{name}")
        yield _Builder(bundle, connection, choice).trace


def _show(connection: duckdb.DuckDBPyConnection, which: str) -> None:
    """Let every view see these stamps and spans alone."""
    for name in ("events", "spans"):
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM all__{name} x WHERE {which}")


def _count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    ((value,),) = connection.execute(query).fetchall()
    return int(value)


@dataclass(frozen=True)
class _Chunk:
    """Lanes first to last by number (inclusive), all of one capture."""

    first: int
    last: int
    points: int


class _Builder:
    """Makes the parts of a trace."""

    def __init__(self, bundle: Bundle, connection: duckdb.DuckDBPyConnection, choice: Choice) -> None:
        self.connection, self.choice = connection, choice
        if choice.progress:
            choice.progress("lanes", 0, -1)
        self.asked = self._asked()
        _show(connection, self.asked)
        for statement in (queries.LANE_POINTS, queries.CAPTURES, queries.LANES):
            connection.execute(statement)
        lost = _count(connection, queries.LOST_POINTS)
        if lost:
            raise WsformatError(
                f"{lost} stamps or ends of spans are of a lane, capture or clock that the bundle does not define; "
                "nothing was written",
                "See `wsformat validate`.",
            )
        self.records = _count(connection, queries.RECORDS)
        found = connection.sql(queries.LANE_NUMBERS).to_arrow_table()
        self.lanes = {name: found.column(name).to_numpy().astype(np.int64) for name in found.column_names}
        if found.num_rows == 0:
            raise BadRequest(
                "nothing to draw: no spans and no stamps "
                + ("in the bundle" if self.asked == "TRUE" else "of what was asked for"),
                "" if self.asked == "TRUE" else "`wsformat info` lists captures and launches.",
            )
        self.axis: Axis = axis(connection, self.lanes)
        self.tree = Tree(found.num_rows)
        self.base = int(self.axis.place(np.arange(found.num_rows), self.lanes["t"]).min())
        names = Texts()
        # Results of the connection are read part by part, so arrows are asked for on another one.
        self.arrows = Arrows(connection.cursor(), self.axis, 0, self.tree.lane_track, names)
        self.judged = False
        if choice.flows != "none":
            self._judge()
            low = self.arrows.earliest()
            self.base = self.base if low is None else min(self.base, low)
        self.arrows.base = self.base
        counts = dict.fromkeys(("slices", "tracks", "instants", "flows", "counter_values", "clamped"), 0)
        self.trace = Trace(self.axis.unit, self.base, self._parts(), names, Texts(), Texts(), counts)
        self.trace.left_out = {table: rows for table in NO_PLACE if (rows := bundle.rows(table))}
        self.tiled = {
            nth
            for table in ("all__events", "all__spans")
            for (nth,) in connection.execute(queries.TILED.format(table=table)).fetchall()
        }
        self.has_series = choice.counters and _count(connection, queries.HAS_SERIES) > 0

    def _asked(self) -> str:
        """Which stamps and spans were asked for, as SQL about one of them, ``x``."""
        choice = self.choice
        if not choice.capture and choice.launch is None and choice.cta is None:
            return "TRUE"
        found = [row[0] for row in self.connection.execute(queries.ASKED_CAPTURE, [choice.capture]).fetchall()]
        if not found:
            there = [row[0] for row in self.connection.execute("SELECT capture_id FROM captures").fetchall()]
            raise BadRequest(f"capture={choice.capture}: there is none of that name", f"Captures: {', '.join(there)}.")
        self.connection.execute(queries.ASKED, [found, choice.launch, choice.cta])
        return queries.IS_ASKED

    def _judge(self) -> None:
        # A wait is judged by all of its capture, whatever is drawn.
        _show(self.connection, "TRUE")
        if self.choice.progress:
            self.choice.progress("arrows", 0, -1)
        self.connection.execute("DROP VIEW wait_edge")
        self._with_room(lambda: self.connection.execute(f"CREATE TABLE wait_edge AS {derive.views()['wait_edge']}"))
        self._with_room(lambda: self.arrows.prepare(self.connection, self.choice.flows, some=self.asked != "TRUE"))
        if self.choice.full:
            self._with_room(lambda: self.connection.execute(queries.JUDGED))
            self.judged = True
        self.connection.execute("DROP TABLE wait_edge")

    def _with_room(self, work: Callable[[], object]) -> None:
        """Do work that looks at the whole bundle at once, with more memory if it must be."""
        for limit in MORE_MEMORY:
            try:
                work()
                return
            except duckdb.OutOfMemoryException:
                self.connection.execute("SET memory_limit = ?", [limit])
        work()

    def _chunks(self) -> list[_Chunk]:
        """Runs of whole CTAs (outside CTAs of lanes) of one capture with at most POINTS points, or one CTA."""
        nth, launch, cta = (self.lanes[name] for name in ("nth", "launch", "cta"))
        keys = np.stack([nth, launch, np.where(cta >= 0, cta, -1 - np.arange(len(cta)))])
        starts = np.flatnonzero(np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)]))
        if len(starts) != np.unique(keys, axis=1).shape[1]:
            # Lanes of one CTA do not stand together: whole captures then.
            starts = np.flatnonzero(np.concatenate([[True], nth[1:] != nth[:-1]]))
        size = np.add.reduceat(self.lanes["points"], starts)
        capture = nth[starts]
        chunks: list[_Chunk] = []
        begin, points = 0, 0
        for index in range(len(starts)):
            if index > begin and (points + size[index] > POINTS or capture[index] != capture[begin]):
                chunks.append(_Chunk(int(starts[begin]), int(starts[index]) - 1, points))
                begin, points = index, 0
            points += int(size[index])
        chunks.append(_Chunk(int(starts[begin]), len(nth) - 1, points))
        return chunks

    def _parts(self) -> Iterator[Part]:
        counts = self.trace.counts
        for part in self._uncounted():
            if isinstance(part, list):
                counts["tracks"] += len(part)
            elif isinstance(part, Instants):
                counts["instants"] += len(part.t)
            elif isinstance(part, trace_counters.Counters):
                counts["counter_values"] += len(part.t)
            yield part
            counts["clamped"] = self.arrows.clamped

    def _uncounted(self) -> Iterator[Part]:
        trace, chunks, done, seen = self.trace, self._chunks(), 0, 0
        yield from self.tree.rows(self.connection, self._facts())
        if self.arrows.declared:
            for chunk in chunks:
                for tails in self.arrows.tails(chunk.first, chunk.last, BLOCK):
                    trace.counts["flows"] += len(tails.t)
                    yield tails
        yield from self._recorded_ends(before=True)
        total = int(self.lanes["points"].sum())
        for chunk in chunks:
            capture = self.lanes["nth"][chunk.first]
            lane = self.lanes["lane"]
            self.connection.execute(f"SET VARIABLE nth = {int(capture)}")
            _show(
                self.connection,
                "capture_id = (SELECT capture_id FROM numbered_capture WHERE nth = getvariable('nth')) "
                f"AND lane BETWEEN {int(lane[chunk.first])} AND {int(lane[chunk.last])} AND {self.asked}",
            )
            seen += _count(self.connection, queries.RECORDS)
            yield from self._chunk(int(capture))
            done += chunk.points
            if self.choice.progress:
                self.choice.progress("stamps", done, total)
        yield from self._recorded_ends(before=False)
        if seen != self.records:
            raise WsformatError(
                f"of {self.records} stamps and spans {seen} were found again; nothing was written",
                "Did somebody write to the bundle meanwhile?",
            )
        self._account()

    def _recorded_ends(self, *, before: bool) -> Iterator[Part]:
        for ends in self.arrows.recorded_ends(BLOCK, before=before):
            self.trace.counts["flows"] += len(ends.t) * ends.is_tail
            yield ends

    def _account(self) -> None:
        trace = self.trace
        trace.drop("arrow into a span that is not drawn", self.arrows.declared - self.arrows.into)
        trace.drop("recorded arrow that lost an end", self.arrows.dangling)
        hidden = _count(self.connection, queries.HIDDEN_PAYLOADS)
        trace.drop("text recorded with a stamp that begins or ends a span", hidden)

    def _chunk(self, nth: int) -> Iterator[Part]:
        state = Open()
        for batch in self.connection.sql(self._spans(nth)).to_arrow_reader(BLOCK):
            if batch.num_rows:
                yield from self._slices(pa.Table.from_batches([batch]), nth, state)
        for batch in self.connection.sql(queries.MARKERS).to_arrow_reader(BLOCK):
            if batch.num_rows:
                yield self._instants(pa.Table.from_batches([batch]), nth)
        if not self.choice.counters:
            return
        yield from trace_counters.states(
            self.connection, self.axis, self.base, self.tree.cta_track, self.tree.counter, BLOCK
        )
        if self.has_series:
            yield from trace_counters.series(
                self.connection, self.axis, self.base, self.tree.lane_track, self._lane_counter, BLOCK, self.trace.drop
            )

    def _lane_counter(self, parent: int, name: str, rank: int) -> Track:
        lane = int(np.flatnonzero(self.tree.lane_track == parent)[0])
        return self.tree.counter(parent, name, rank, self.tree.lane_name[lane])

    def _spans(self, nth: int) -> str:
        tiled = nth in self.tiled
        query: str = queries.SPANS.format(
            tile=queries.TILE if tiled else "-1",
            verdict=queries.VERDICT if self.judged else queries.NO_VERDICT,
            untracked=queries.UNTRACKED if self.choice.untracked else "",
            joins=(queries.TILES if tiled else "") + (queries.VERDICTS if self.judged else ""),
        )
        return query

    def _slices(self, found: pa.Table, nth: int, state: Open) -> Iterator[Part]:
        trace, tree = self.trace, self.tree
        trace.spans_in += found.num_rows
        if found.column("n").null_count:
            raise WsformatError("a span of a lane that the bundle does not define", "See `wsformat validate`.")
        n, tick0, tick1 = (found.column(name).to_numpy() for name in ("n", "t0", "t1"))
        t0, t1 = self.axis.place(n, tick0) - self.base, self.axis.place(n, tick1) - self.base
        backwards = t1 < t0
        trace.drop("length of a span that ends before it begins", int(backwards.sum()))
        t1 = np.where(backwards, t0, t1)
        order = np.lexsort((-t1, t0, n)) if _unsorted(n, t0, t1) else None
        if order is not None:
            found = found.take(pa.array(order))
            n, tick0, tick1, t0, t1 = (column[order] for column in (n, tick0, tick1, t0, t1))
        level = split_overlaps(n, t0, t1, state)
        track = tree.lane_track[n]
        extra = np.flatnonzero(level)
        if len(extra):
            made: list[Track] = []
            track[extra] = [tree.overlap(lane, at, made) for lane, at in np.stack([n, level]).T[extra].tolist()]
            if made:
                yield made
        name, iteration, span_id = trace.names.codes(found.column("name")), *_ints(found, "iteration", "span_id")
        keys = [n, tick0, name, iteration, span_id]
        columns, heads = [], None
        if self.choice.flows != "none":
            heads, columns = self.arrows.heads(keys, track, t0, t1)
            columns += self.arrows.recorded_into(keys)
            stored = extra[span_id[extra] >= 0]
            self.arrows.remember(nth, span_id[stored], track[stored])
        nothing = np.full(len(n), np.nan)
        error, wander = self.axis.bounds(n, tick0, tick1) if self.choice.full else (nothing, nothing)
        # Levels were split off, so order again by track; inside a track the order by (t0, -t1) holds.
        again = np.argsort(track, kind="stable") if len(extra) else slice(None)
        slices = Slices(
            track=track[again],
            t0=t0[again],
            t1=t1[again],
            name=name[again],
            category=trace.categories.codes(found.column("category"))[again],
            iteration=iteration[again],
            tile=found.column("tile").to_numpy()[again],
            tick0=tick0[again],
            tick1=tick1[again],
            clock=self.lanes["clock"][n][again],
            error_ns=error[again],
            wander_ns=wander[again],
            complete=found.column("complete").to_numpy()[again],
            verdict=trace.values.codes(found.column("verdict").cast(pa.string()))[again],
            blocked_ticks=_filled(found, "blocked_ticks")[again],
            producer=trace.values.codes(found.column("producer").cast(pa.string()))[again],
            producer_iteration=_filled(found, "producer_iteration")[again],
            arrows=[column[again] for column in columns],
        )
        yield slices
        if heads is not None and len(heads.t):
            yield heads

    def _instants(self, found: pa.Table, nth: int) -> Instants:
        n, t, iteration, tile = _ints(found, "n", "t", "iteration", "tile")
        return Instants(
            track=self.tree.lane_track[n],
            t=self.axis.place(n, t) - self.base,
            name=self.trace.names.codes(found.column("name")),
            iteration=iteration,
            tile=tile if nth in self.tiled else np.full(len(t), -1),
            payload=found.column("payload").combine_chunks(),
        )

    def _facts(self) -> dict[int, dict[str, str]]:
        facts: dict[int, dict[str, str]] = {}
        unit = "ns" if self.axis.unit == "ns" else "ticks; one tick is drawn as 1 ns; every CTA starts at its own zero"
        for row in self.connection.sql(queries.NOTES).to_arrow_table().to_pylist():
            mine = {name: str(row[name]) for name in row if name not in ("nth", "perturbation") and row[name]}
            share = row["perturbation"]
            mine["perturbation"] = "unknown: no clean launches" if share is None else f"{share:+.2%}"
            facts[row["nth"]] = {**mine, "axis": unit, "base": str(self.base)}
        return facts


def _ints(table: pa.Table, *names: str) -> list[Array]:
    return [table.column(name).to_numpy() for name in names]


def _filled(table: pa.Table, name: str) -> Array:
    """An integer column, -1 for null."""
    return table.column(name).cast(pa.int64()).fill_null(-1).to_numpy()


def _unsorted(n: Array, t0: Array, t1: Array) -> bool:
    """Whether rows are out of order: ticks that are told apart may be the same ns."""
    same, at_once = n[1:] == n[:-1], t0[1:] == t0[:-1]
    return bool((same & (t0[1:] < t0[:-1])).any() or (same & at_once & (t1[1:] > t1[:-1])).any())
