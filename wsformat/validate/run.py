"""Running the checks: order, what to skip after what, and nothing that escapes as a traceback."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path

import duckdb

from wsformat.bundle import Bundle, Progress
from wsformat.errors import BadRequest, InvalidBundle, MalformedInput, WsformatError
from wsformat.tables import format_version
from wsformat.validate import columns, container, data, extensions, layout, manifest, scan
from wsformat.validate.database import Database, first_line
from wsformat.validate.report import Findings, Report, clip
from wsformat.validate.rules import Rule, rules
from wsformat.validate.subject import Subject, TableFile

MEMORY_LIMIT = "2GB"
MAX_ROWS = 2_000_000_000
SECONDS = 300.0
# What a newer minor version may add without this library knowing it.
UNKNOWABLE = ("E210", "W213", "E308", "E401", "W402")

Step = tuple[tuple[str, ...], Callable[[Subject, Findings], None]]

MANIFEST_STEPS: tuple[Step, ...] = (
    (("E101", "E112", "E201", "E202", "E203"), manifest.read),
    (("E205", "E206", "W207"), manifest.version),
)
FILE_STEPS: tuple[Step, ...] = (
    (("E204",), manifest.shape),
    (("E208",), manifest.table_entries),
    (("E102", "E103", "E104", "E106", "E108", "E112"), container.footers),
    (("E111", "W114", "E209", "E210", "W213", "E214"), manifest.names),
    (("E109", "W110", "I113"), container.directory),
    (("E301", "E302", "W304", "E305", "W306", "E307", "E308", "E309"), columns.check),
    (("W802", "E803", "W804", "W805", "W806", "W807", "W808", "W809"), layout.check),
    (("W901", "E902", "E903", "W904", "E905", "E906"), extensions.check),
)
ROW_STEPS: tuple[Step, ...] = ((("E105",), container.hashes), (("W801",), layout.order))
SCAN_CODES = ("E107", "E303", "E310", "E409")


def validate(
    source: str | os.PathLike[str] | Bundle,
    *,
    data: bool = True,
    ignore: Collection[str] = (),
    progress: Progress | None = None,
    max_rows: int = MAX_ROWS,
    memory_limit: str = MEMORY_LIMIT,
    seconds: float = SECONDS,
) -> Report:
    """Check a bundle against every rule of the standard.

    Args:
        source: directory of a bundle, or a :class:`Bundle`. One in memory has no files, so that the rules about
            files, manifest and layout are listed as not run.
        data: read the rows too; else only manifest and footers.
        ignore: codes that are left out of the report.
        progress: called with (code and word of the rule, rules done, rules to do).
        max_rows: a bundle that claims more rows than this is not read: a few bytes can claim any number.
        memory_limit: for the queries, such as '2GB'; what does not fit goes to a temporary folder.
        seconds: a single query that takes longer is stopped, and its rule listed as not run.

    Returns:
        All problems at once. ``report.ok`` says whether there is no error.

    Raises:
        MalformedInput: there is no such directory.
        BadRequest: ``ignore`` names a code that does not exist.
    """
    unknown = sorted(set(ignore) - set(rules()))
    if unknown:
        raise BadRequest(f"no rule {', '.join(unknown)}", "Codes are listed in schema/rules.json.")
    found = Findings(frozenset(ignore))
    subject = _subject(source)
    tell = _Progress(progress, sum(data or rule.mode == "metadata" for rule in rules().values()))
    if subject.root is not None:
        _files(subject, found, tell, rows=data)
    else:
        reason = "the bundle is in memory"
        for code, rule in rules().items():
            if rule.check in ("container", "manifest", "columns", "layout", "extensions"):
                found.cannot_run(code, reason)
    if data and not subject.fatal:
        _rows(subject, found, tell, max_rows=max_rows, memory_limit=memory_limit, seconds=seconds)
    for code, rule in rules().items():
        if subject.fatal and (data or rule.mode == "metadata") and not found.has(code):
            found.cannot_run(code, subject.fatal)
        elif subject.newer and code in UNKNOWABLE:
            found.cannot_run(code, f"version {subject.version} is newer than {format_version()}")
    return found.report(str(subject.root or ""), subject.version, data=data)


def require_valid(source: str | os.PathLike[str] | Bundle, *, data: bool = True) -> Report:
    """:func:`validate` for callers that want an exception.

    Raises:
        InvalidBundle: a rule of level E is broken; ``problems`` has all findings.
    """
    report = validate(source, data=data)
    if not report.ok:
        errors = [problem for problem in report.problems if problem.level == "E"]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InvalidBundle(f"{report.path or 'bundle'}: {errors[0].text()}{more}", report.problems)
    return report


def _subject(source: str | os.PathLike[str] | Bundle) -> Subject:
    if isinstance(source, Bundle):
        if source.path is not None:
            return Subject(source.path)
        held = {name: TableFile(name, data=part) for name, part in source.data.items()}
        return Subject(None, source.manifest.to_json(), held)
    root = Path(source)
    try:
        there, directory = root.exists(), root.is_dir()
    except (OSError, ValueError) as error:
        raise MalformedInput(f"{clip(str(root))}: {getattr(error, 'strerror', None) or error}") from error
    if not there:
        raise MalformedInput(f"{root}: no such bundle")
    if not directory:
        raise MalformedInput(
            f"{root}: a bundle is a directory (NAME.wsformat), this is a file",
            "Unpack a NAME.wsformat.zip with `wsformat unzip`; import a foreign file with `wsformat import`.",
        )
    return Subject(root)


class _Progress:
    """Counts rules for the caller's progress display."""

    def __init__(self, call: Progress | None, total: int) -> None:
        self.call, self.total, self.done = call, total, 0

    def __call__(self, codes: Collection[str]) -> None:
        self.done = min(self.done + len(codes), self.total)
        if self.call is not None and codes:
            code = next(iter(codes))
            self.call(f"{code} {rules()[code].word}", self.done, self.total)


def _files(subject: Subject, found: Findings, tell: _Progress, *, rows: bool) -> None:
    for steps in (MANIFEST_STEPS, FILE_STEPS, ROW_STEPS if rows else ()):
        for codes, step in steps:
            if subject.fatal:
                return
            tell(codes)
            try:
                step(subject, found)
            except Exception as error:  # A check that fails is a finding, never a traceback.
                _failed(found, codes, error)
                if steps is MANIFEST_STEPS:
                    subject.fatal = "the manifest could not be read"


def _rows(
    subject: Subject, found: Findings, tell: _Progress, *, max_rows: int, memory_limit: str, seconds: float
) -> None:
    todo = [rule for rule in rules().values() if rule.code in data.CHECKS]
    claimed = sum(file.footer.num_rows for file in subject.files.values() if file.footer is not None)
    if claimed > max_rows:
        for code in [*SCAN_CODES, *(rule.code for rule in todo)]:
            found.cannot_run(code, f"{claimed} rows, more than the limit of {max_rows}")
        return
    try:
        # The pass over stored rows may find tables broken, so the database of the rules is opened after it.
        with_nothing = Database(Subject(), memory_limit=memory_limit, seconds=seconds)
        tell(SCAN_CODES)
        try:
            scan.check(subject, found, with_nothing)
        except Exception as error:
            _failed(found, SCAN_CODES, error)
        finally:
            with_nothing.close()
        database = Database(subject, memory_limit=memory_limit, seconds=seconds)
    except Exception as error:
        _failed(found, [rule.code for rule in todo], error)
        return
    try:
        for rule in todo:
            tell((rule.code,))
            _rule(rule, subject, found, database)
    finally:
        database.close()


def _rule(rule: Rule, subject: Subject, found: Findings, database: Database) -> None:
    if subject.root is None and rule.code in ("I211", "E212"):
        found.cannot_run(rule.code, "the bundle is in memory")
        return
    if subject.newer and rule.code in UNKNOWABLE:
        return
    try:
        data.CHECKS[rule.code](subject, found, database, rule)
    except LookupError as error:
        found.cannot_run(rule.code, str(error.args[0]) if error.args else type(error).__name__)
        return
    except Exception as error:
        _failed(found, (rule.code,), error)
        return
    broken = [name for name, file in subject.files.items() if file.broken and (name in rule.tables or not rule.tables)]
    if broken:
        found.cannot_run(rule.code, f"table {broken[0]}: {subject.files[broken[0]].broken}")


def _failed(found: Findings, codes: Collection[str], error: Exception) -> None:
    if isinstance(error, WsformatError):
        text = error.message
    else:
        text = first_line(error) if isinstance(error, duckdb.Error) else f"{type(error).__name__}: {error}"
    for code in codes:
        found.cannot_run(code, clip(text, 160))
