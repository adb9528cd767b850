"""The first lines of a report: who paces the kernel, how much is blocked, how sure that is."""

from __future__ import annotations

from typing import Any

from wsformat.viewers.report_capture import Seen, perturbed
from wsformat.viewers.report_model import Note, Number, Text, number, sentence

LARGE_CHANGE = 0.10
"""Stamps that change the loop by more than this change who waits for whom as well."""
SMALL_CHANGE = 0.02
SHARE = 0.2
"""So much of the path without stamps, or of the waits without a judgement, leaves the conclusion open."""

Doubt = tuple[int, Text]
"""How much it weighs (0 a remark, 1 or 2), and what it is."""


def headline(seen: Seen) -> list[Text]:
    """One to three sentences: who paces, who is blocked on what, and the speed of the loop."""
    if not seen.states.rows:
        return [sentence("Nothing with stamps was recorded in this launch.")]
    if not seen.judged:
        spans = sum(row["spans"] for row in seen.spans.rows)
        if not spans:
            return [sentence("Stamps were recorded, but they make no span: nothing can be said of work or of waits.")]
        return [
            sentence(
                _spans(seen), " spans in ", number(seen.facts, 0, "lanes", "int"), " lanes were recorded. None of them "
                "is declared as work or as a wait, so nothing is called a stall here.",
            )
        ]  # fmt: skip
    return [text for text in (_paces(seen), _blocked(seen), _speed(seen)) if text]


def _spans(seen: Seen) -> Number | str:
    return number(seen.facts, 0, "spans", "int") if seen.facts.rows[0]["spans"] else "Some"


def _paces(seen: Seen) -> Text:
    """Who the path lies on, and what it does there."""
    path = seen.path
    if path is None:
        return sentence(f"Who paces the kernel is unknown: {seen.path_missing}.")
    first = next(n for n, row in enumerate(path.rows) if row["level"] == "pace")
    row = path.rows[first]
    share = number(path, first, "share", "share")
    whose = f" of CTA {seen.cta}'s critical path" if seen.ctas > 1 else " of the critical path"
    if row["kind"]:
        return sentence(
            "Latency paces the kernel: ", share, f"{whose} is {row['role']} waiting on {row['barrier'] or row['span']} "
            f"after {row['producer_role']} has signalled.",
        )  # fmt: skip
    parts = [
        n for n, r in enumerate(path.rows)
        if r["level"] == "state" and r["role"] == row["role"] and r["kind"] != "latency"
    ]  # fmt: skip
    listed: list[str | Number] = []
    for n in parts[:3]:
        listed += [", " if listed else "", number(path, n, "share", "share"), f" {STATE_WORDS[path.rows[n]['kind']]}"]
    return sentence(f"{row['role']} paces the kernel: ", share, f"{whose} lies on its lanes (", listed, ").")


STATE_WORDS = {"active": "active", "untracked": "untracked", "stall": "waiting"}


def _blocked(seen: Seen) -> Text:
    """The role that is blocked most, on what and by whom."""
    known = [n for n, row in enumerate(seen.states.rows) if row["blocked_share"] is not None]
    if not known:
        return ()
    most = max(known, key=lambda n: seen.states.rows[n]["blocked_share"])
    row = seen.states.rows[most]
    if not row["blocked"]:
        judged = any(r["satisfied"] for r in seen.states.rows)
        return sentence("No role is blocked." if judged else "What roles waited for cannot be judged.")
    share = number(seen.states, most, "blocked_share", "share")
    wait = next((n for n, r in enumerate(seen.waits.rows) if r["role"] == row["role"] and r["blocked_ticks"]), None)
    on: list[str | Number] = []
    if wait is not None:
        cause = seen.waits.rows[wait]
        on = [f", most of it on {cause['barrier'] or cause['span']}"]
        on += [f", released by {cause['producer_role']}.{cause['producer_event']}"] if cause["producer_role"] else []
    others = [n for n in known if n != most]
    rest: list[str | Number] = []
    if others:
        second = max(others, key=lambda n: seen.states.rows[n]["blocked_share"])
        rest = [
            ", " + seen.states.rows[second]["role"] + " for ",
            number(seen.states, second, "blocked_share", "share"),
        ]
        rest += [", every other role for less"] if len(others) > 1 else []
    return sentence(
        f"{row['role']} is blocked for ", share, " of its time", on, "; " if rest else "", _after(rest), "."
    )


def _after(rest: list[str | Number]) -> list[str | Number]:
    """The list without the comma that it starts with."""
    return [str(rest[0]).removeprefix(", "), *rest[1:]] if rest else []


def _speed(seen: Seen) -> Text:
    """Ticks an iteration, the clean figure first."""
    slopes = {row["kind"]: n for n, row in reversed(list(enumerate(seen.slope.rows)))}
    own = next((n for n, row in enumerate(seen.slope.rows) if row["capture_id"] == seen.capture["capture_id"]
                and row["kind"] != "clean"), None)  # fmt: skip
    clean = slopes.get("clean")
    if clean is not None:
        unit = unit_of(seen.slope.rows[clean]["unit"])
        parts: list[str | Number] = [
            "Without stamps the loop takes ", number(seen.slope, clean, "slope_ticks", "mean"), f" {unit} an iteration"
        ]  # fmt: skip
        if own is not None:
            parts += [", with them ", number(seen.slope, own, "slope_ticks", "mean")]
        return sentence(parts, ".")
    if seen.iterations.rows:
        slowest = max(range(len(seen.iterations.rows)), key=lambda n: seen.iterations.rows[n]["mean_ticks"])
        mean = number(seen.iterations, slowest, "mean_ticks", "mean")
        return sentence("With stamps the loop takes ", mean, f" {seen.unit} an iteration; without them it is unknown.")
    return ()


def unit_of(unit: str) -> str:
    """'cycles', and 'ns' as it is."""
    return unit if unit == "ns" else f"{unit}s"


def doubts(seen: Seen) -> list[Doubt]:
    """What speaks against the headline, the heaviest first."""
    found: list[Doubt] = []
    state = seen.facts.rows[0]["completeness"] or "unknown"
    if state == "truncated":
        lanes = number(seen.facts, 0, "truncated", "int")
        found.append(
            (2, sentence("the record is truncated in ", lanes, " lanes: states hold for the recorded window only"))
        )
    elif state != "complete":
        found.append((1, sentence(f"completeness of the record is {state}")))
    if seen.judged:
        found += _path_doubts(seen)
        if not seen.perturbation.rows:
            found.append((1, sentence("what the recording did to the kernel is unknown")))
        else:
            change = abs(seen.perturbation.rows[0]["perturbation"])
            value = number(seen.perturbation, 0, "perturbation", "change")
            if change > LARGE_CHANGE:
                found.append(
                    (2, sentence("the stamps change the loop by ", value, ": shares are those of the disturbed kernel"))
                )
            elif change > SMALL_CHANGE:
                found.append((1, sentence("the stamps change the loop by ", value)))
        unjudged = [n for n, r in enumerate(seen.states.rows) if (r["unjudged_share"] or 0) > 0.02]
        if unjudged:
            most = max(unjudged, key=lambda n: seen.states.rows[n]["unjudged_share"])
            share = number(seen.states, most, "unjudged_share", "share")
            weight = 2 if seen.states.rows[most]["unjudged_share"] > SHARE else 1
            found.append(
                (weight, sentence(share, f" of {seen.states.rows[most]['role']}'s time are waits that no edge judges"))
            )
        hidden = [row["role"] for row in seen.states.rows if row["contains_wait"]]
        if hidden:
            found.append((0, sentence(f"active time of {', '.join(hidden)} hides a wait without stamps of its own")))
    return sorted(found, key=lambda doubt: -doubt[0])


def _path_doubts(seen: Seen) -> list[Doubt]:
    path, found = seen.path, []
    if path is None:
        return [(1, sentence("the critical path is unknown"))]
    whole = sum(row["ticks"] for row in path.rows if row["level"] == "pace")
    bare = [n for n, r in enumerate(path.rows) if r["level"] == "state" and r["kind"] == "untracked"]
    if bare:
        most = max(bare, key=lambda n: path.rows[n]["ticks"])
        if path.rows[most]["share"] > SHARE:
            text = sentence(
                number(path, most, "share", "share"), f" of the path is {path.rows[most]['role']} without stamps"
            )
            found.append((1, text))
    open_ = sum(r["ticks"] for r in path.rows if r["level"] == "span" and r["verdict"] in ("other", "unknown"))
    if whole and open_ > 0.02 * whole:
        found.append((1, sentence("waits on the path that no declared edge explains make it a lower bound")))
    return found


def sure(seen: Seen) -> tuple[str, list[Doubt]]:
    """High, medium or low, with the doubts. Not known to be disturbed and complete is not the same as sound."""
    found = doubts(seen)
    weight = sum(heavy for heavy, _ in found)
    return "high" if not weight else "medium" if weight == 1 else "low", found


def banner(seen: Seen) -> list[Note]:
    """Completeness, perturbation and confidence; what is unknown says so."""
    facts = seen.facts
    state = facts.rows[0]["completeness"] or "unknown"
    lost = facts.rows[0]["lost_events"]
    text: list[str | Number] = [state]
    if state == "truncated":
        text += [" in ", number(facts, 0, "truncated", "int"), " lanes: states hold for the recorded window only"]
    text += [", ", number(facts, 0, "lost_events", "int"), " records lost"] if lost > 0 else []
    text += [", losses unknown"] if lost < 0 else []
    notes = [Note("Record", sentence(text), "ok" if state == "complete" and lost <= 0 else "warn")]
    known = perturbed(seen)
    if known:
        change = abs(seen.perturbation.rows[0]["perturbation"])
        level = "ok" if change <= SMALL_CHANGE else "warn" if change <= LARGE_CHANGE else "bad"
        notes.append(Note("Perturbation", sentence(known), level))
    elif seen.judged or seen.slope.rows:
        notes.append(Note("Perturbation", sentence("unknown: no clean launches to compare with"), "warn"))
    else:
        notes.append(Note("Perturbation", sentence("unknown: nothing says what the recording cost"), "warn"))
    if seen.judged:
        grade, why = sure(seen)
        because = [part for n, (_, text_) in enumerate(why) for part in (*(["; "] if n else []), *text_)]
        said = sentence(grade, ": " if why else ": nothing in the record speaks against it", because)
        notes.append(Note("Confidence", said, {"high": "ok", "medium": "warn", "low": "bad"}[grade]))
    return notes


def lead(capture: dict[str, Any], seen: Seen | None = None) -> str:
    """Device, size and the like in one line; an unknown device is said."""
    facts = [
        capture["device"] or "device unknown",
        capture["arch"],
        capture["dtype"],
        capture["shape"],
        capture["version"],
    ]
    if seen is not None and seen.launch >= 0:
        facts.append(f"launch {seen.launch}" + (f" of {seen.launches} with stamps" if seen.launches > 1 else ""))
        facts.append(f"{seen.ctas:,} CTAs" if seen.ctas != 1 else "1 CTA")
    return " · ".join(str(fact) for fact in facts if fact)
