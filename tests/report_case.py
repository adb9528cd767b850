"""Bundles for the tests of report and diff, and a reader of their pages."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import cli_case
import timeline_case

from wsformat.budget import load
from wsformat.bundle import Bundle
from wsformat.converters.registry import import_files
from wsformat.merge import merged
from wsformat.prediction import predict
from wsformat.prediction_store import joined
from wsformat.samples import path as sample

SAMPLES = Path(__file__).parent.parent / "conformance" / "samples"
HOSTILE = "<script>alert(1)</script>\"'& \u202e\u05d0\u05d1 🧵 " + "x" * 10_000
TRIPS = {2048: 32, 4096: 64}


def gemm(stem: str = "balanced_r0", launches: str = "one", stamps: str = "global", label: str = "") -> Bundle:
    """One of the real captures that ship, with its clean and stamped launches."""
    options: dict[str, Any] = {
        "spec": sample("gemm_roles.json"),
        "meta": [sample(f"{stem}.meta")],
        "trip_count": 64,
        "allow_unwritten": True,
        "label": label or stem,
    }
    if launches:
        options["clean"] = [(sample(f"{launches}_{k}_clean.metas"), n) for k, n in TRIPS.items()]
        options["lifetimes"] = [(sample(f"{launches}_{k}_{stamps}.metas"), n) for k, n in TRIPS.items()]
    made: Bundle = import_files([sample(f"{stem}.i32")], options)
    return made


def budgeted(bundle: Bundle) -> Bundle:
    """With the prediction of its GEMM in the experiment of its stamped capture."""
    own = next(row["capture_id"] for row in bundle.table("captures").to_pylist() if row["kind"] == "stamped")
    return joined(bundle, [predict(load("hopper_gemm"))], own)


def scopes() -> Bundle:
    """A trace whose ranges nobody declared: recorded spans, and no state."""
    here = {"capture_id": "trace0000000000000000000001"}
    at = {**here, "launch": 0, "cta": 0, "warp": 0, "role": "", "clock": 0}
    return Bundle.from_tables(
        {
            "captures": [{**here, "kind": "traced", "kernel": "scoped", "completeness": "unknown", "lost_events": -1}],
            "launches": [{**here, "launch": 0, "kernel": "scoped", "kind": "traced", "tool": "proton"}],
            "clocks": [{**here, "clock": 0, "scope": "device", "unit": "ns", "step_ticks": 32}],
            "lanes": [{**at, "lane": 0, "kind": "warp", "name": "warp 0", "completeness": "unknown"}],
            "span_types": [{**here, "role": "", "span": "load", "state": "scope"}],
            "spans": [
                {**at, "span_id": n, "lane": 0, "end_lane": 0, "span": "load", "iteration": n, "tile": 0,
                 "t0": 100 * n, "t1": 100 * n + 64, "complete": True} for n in range(5)
            ],
        }
    )  # fmt: skip


def truncated() -> Bundle:
    """One role lost its later records."""
    data = cli_case.tables()
    data["captures"][0] |= {"completeness": "truncated", "lost_events": 12}
    data["lanes"][1] |= {"completeness": "truncated", "records_lost": 12}
    return Bundle.from_tables(data)


def hostile() -> Bundle:
    """Every name is a trap."""
    data = timeline_case.tables(trips=8, role=HOSTILE)
    data["captures"][0] |= dict.fromkeys(("kernel", "label", "device", "shape", "version"), HOSTILE)
    for row in data["span_types"]:
        row["barrier"] = HOSTILE
    for row in data["dependencies"]:
        row["barrier"] = HOSTILE
    return Bundle.from_tables(data)


@cache
def bundle(name: str) -> Bundle:
    """A bundle by its name; ``stamped`` has everything that one GEMM can have."""
    made: dict[str, Any] = {
        "stamped": lambda: budgeted(gemm()),
        "slow": lambda: budgeted(gemm("slowproducer_r0", "slow")),
        "alone": lambda: gemm(launches=""),
        "merged": lambda: merged([budgeted(gemm()), gemm("lowprobe_r0", "one", "branchfree"),
                                  Bundle.open(SAMPLES / "ncu_seed_metrics.wsformat")]),
        "counters": lambda: Bundle.open(SAMPLES / "ncu_seed_metrics.wsformat"),
        "grid": lambda: Bundle.open(SAMPLES / "gemm_grid.wsformat"),
        "ctas": lambda: timeline_case.bundle(ctas=132, trips=10),
        "scopes": scopes,
        "truncated": truncated,
        "hostile": hostile,
        "empty": lambda: Bundle.from_tables({}),
    }  # fmt: skip
    result: Bundle = made[name]()
    return result


NAMES = ("stamped", "slow", "alone", "merged", "counters", "grid", "ctas", "scopes", "truncated", "hostile", "empty")


@dataclass
class Page(HTMLParser):
    """What a page says: its text, its numbers with the query each names, the queries and the CSV of each table."""

    numbers: list[dict[str, str]] = field(default_factory=list)
    queries: dict[str, dict[str, str]] = field(default_factory=dict)
    csv: dict[str, list[list[str]]] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.inside: list[str] = []
        self.query = ""
        self.table = ""
        self.number: dict[str, str] | None = None
        self.raw = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found[name] for name in ("src", "href") if name in found]
        if tag == "a" and found.get("class") == "rep-n":
            self.number = {"query": found["href"].removeprefix("#sql-"), "row": found["data-row"],
                           "column": found["data-column"], "exact": found["title"].split(": column")[0],
                           "shown": ""}  # fmt: skip
        if tag == "details" and found.get("id", "").startswith("sql-"):
            self.query = found["id"].removeprefix("sql-")
            self.queries[self.query] = {"kind": "", "text": "", "more": ""}
        if tag == "figure":
            self.table = found.get("data-name", "") if "rep-table" in found.get("class", "") else ""
        if tag == "script" and "wsf-csv" in found.get("class", "") and self.table:
            self.inside.append("csv")
            self.raw = ""
        elif tag not in ("br", "meta", "link", "path", "img", "rect", "line", "use", "circle"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self.inside and self.inside[-1] == "csv":
            self.csv[self.table] = list(csv.reader(io.StringIO(json.loads(self.raw), newline="")))
        if tag == "a" and self.number is not None:
            self.numbers.append(self.number)
            self.number = None
        if tag == "details":
            self.query = ""
        if self.inside and (self.inside[-1] == tag or (self.inside[-1] == "csv" and tag == "script")):
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        place = self.inside[-1] if self.inside else ""
        if place == "csv":
            self.raw += data
        elif place not in ("script", "style"):
            self.text += data
        if self.number is not None:
            self.number["shown"] += data
        if self.query:
            part = {"summary": "kind", "pre": "text"}.get(place, "more")
            self.queries[self.query][part] += data


def read(page: str) -> Page:
    """A page as its parts."""
    made = Page()
    made.feed(page)
    made.close()
    return made
