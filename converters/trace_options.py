"""Options of trace writers: which there are, and which words each takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wsformat.errors import BadRequest

EXPORT_OPTIONS = {
    "flows": "export: arrows: all declared edges (all), binding ones only (binding), or none; default all",
    "arguments": "export: full: ticks, clock, bounds and verdicts with every slice; lean: only the iteration; "
    "default full",
    "untracked": "export: true: also draw intervals that are not instrumented; default false",
    "counters": "export: false: no counters of active and stalled lanes; default true",
    "capture": "export: only captures of this label, or whose id begins so; default all",
    "launch": "export: only lanes of this launch; its waits are judged over the whole capture still; default all",
    "cta": "export: only lanes of this CTA; default all",
    "progress": "function called with (what, done, total)",
}
"""Options that every trace writer has."""

WORDS = {"flows": ("all", "binding", "none"), "arguments": ("full", "lean")}
"""Words that an option takes, its default first."""
FLAGS = {"untracked": False, "counters": True}
TRUE, FALSE = ("true", "yes", "1"), ("false", "no", "0")


@dataclass(frozen=True)
class Choice:
    """What a trace shall hold."""

    flows: str = "all"
    full: bool = True
    untracked: bool = False
    counters: bool = True
    capture: str = ""
    launch: int | None = None
    cta: int | None = None
    progress: Callable[[str, int, int], None] | None = None


def chosen(options: Mapping[str, Any]) -> Choice:
    """Read the options of an export.

    Raises:
        BadRequest: an option that an export does not have, or a word that it does not take; the words are listed.
    """
    unknown = sorted(set(options) - set(EXPORT_OPTIONS))
    if unknown:
        known = [name for name in EXPORT_OPTIONS if name != "progress"]
        raise BadRequest(f"a trace export has no option {', '.join(unknown)}", f"Options: {', '.join(known)}.")
    words = {name: _word(name, options.get(name, allowed[0])) for name, allowed in WORDS.items()}
    flags = {name: as_flag(options.get(name, default), name) for name, default in FLAGS.items()}
    return Choice(
        words["flows"], words["arguments"] == "full", flags["untracked"], flags["counters"],
        str(options.get("capture", "")), _number(options, "launch"), _number(options, "cta"), options.get("progress"),
    )  # fmt: skip


def _number(options: Mapping[str, Any], name: str) -> int | None:
    if name not in options:
        return None
    try:
        number = int(options[name])
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{name}={options[name]}: not a whole number", f"Such as {name}=0.") from error
    if not 0 <= number < 2**31:
        raise BadRequest(f"{name}={number}: they are numbered from 0, in 32 bits", f"Such as {name}=0.")
    return number


def _word(name: str, value: object) -> str:
    allowed = WORDS[name]
    if value not in allowed:
        raise BadRequest(f"{name}={value}: no such choice", f"Choose one of: {', '.join(allowed)}.")
    return str(value)


def as_flag(value: object, name: str = "") -> bool:
    """An option that may come as text from the command line.

    Raises:
        BadRequest: neither true nor false.
    """
    text = str(value).lower()
    if text not in TRUE + FALSE:
        raise BadRequest(
            f"{name}{'=' if name else ''}{value}: neither true nor false",
            f"Choose one of: {', '.join(TRUE)}; or {', '.join(FALSE)}.",
        )
    return text in TRUE
