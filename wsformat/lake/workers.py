"""Several processes that add to one lake: each takes whole batches, as several writers may at any time.

Python's lock lets one process use little more than one core for an addition. A helper is this module in another
process: it is told the lake, then shares of the bundles, and answers what it added. Both ways are lines of JSON through
pipes, so that no user's script is run a second time, as it would be with :mod:`multiprocessing`.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from wsformat import errors
from wsformat.errors import WsformatError

if TYPE_CHECKING:
    from wsformat.lake.add import Added
    from wsformat.lake.home import Lake

LEAST = 250
"""Bundles of a share at least; a helper takes a second to begin, in which one process adds about a hundred."""
MOST = 1000
"""Bundles of a share at most."""
PROCESSES = 4
"""Processes that are used unless somebody asks for more; each holds a gigabyte when it is busy."""
REPORT = 0.2
"""Seconds between two looks at whether a helper is done."""
PATIENCE = 5.0
"""Seconds that a killed helper may take to be gone."""
READY = {"ready": True}
START = (
    "import sys, json; sys.path[:] = json.loads(sys.stdin.readline()); from wsformat.lake.workers import main; main()"
)


def processes(bundles: int, wanted: int | None) -> int:
    """How many processes an addition of so many bundles is worth, this one included."""
    if not sys.executable or getattr(sys, "frozen", False):
        return 1  # Python is a part of another program, which would be what is started
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    most = min(cores, PROCESSES) if wanted is None else wanted
    return max(1, min(most, bundles // LEAST))


def shares(bundles: Sequence[str], count: int) -> list[list[str]]:
    """Bundles in equal shares: as many as there are processes, or a multiple, so that none waits long at the end."""
    turns = -(-len(bundles) // (MOST * count))
    size = max(LEAST, -(-len(bundles) // (turns * count)))
    return [list(bundles[start : start + size]) for start in range(0, len(bundles), size)]


def add_with_helpers(
    lake: Lake, bundles: Sequence[str], count: int, batch: int, told: Callable[[Sequence[Added]], None]
) -> list[Added]:
    """Add bundles by several processes.

    Args:
        lake: where to.
        bundles: their directories.
        count: of processes, this one included.
        batch: most bundles in one batch.
        told: called in this thread with what has been done so far.

    Returns:
        What each share did.

    Raises:
        WsformatError: the first that any of them met. Shares that were begun are done by then, the others untouched.
    """
    from wsformat.lake.add import add_here

    waiting: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    for share in shares(bundles, count):
        waiting.put(share)
    done: list[Added] = []
    failed: list[WsformatError] = []
    helpers = [_Helper(lake, batch, waiting, done, failed) for _ in range(count - 1)]

    def work_here() -> None:
        while not failed and (share := _next(waiting)) is not None:
            done.append(add_here(lake, share, batch, alone=False, told=lambda part: told([*done, part])))

    try:
        for helper in helpers:
            helper.start()
        work_here()
        for helper in helpers:
            while helper.at_work(REPORT):
                told(done)
            # What it died over is done here; captures that it had added by then are passed over.
            helper.stop()
            work_here()
    except WsformatError as error:
        failed.insert(0, error)
        for helper in helpers:
            while helper.at_work(REPORT):
                pass
    finally:
        for helper in helpers:
            helper.stop()
    if failed:
        raise failed[0]
    told(done)
    for kind, text in dict.fromkeys(remark for helper in helpers for remark in helper.remarks):
        warnings.warn(text, getattr(errors, kind, UserWarning), stacklevel=2)
    return done


def _next(waiting: queue.SimpleQueue[list[str]]) -> list[str] | None:
    try:
        return waiting.get_nowait()
    except queue.Empty:
        return None


class _Helper:
    """A process that adds, and the thread that tells it what."""

    def __init__(
        self,
        lake: Lake,
        batch: int,
        waiting: queue.SimpleQueue[list[str]],
        done: list[Added],
        failed: list[WsformatError],
    ) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.share: list[str] | None = None
        self.ready = self.stopped = False
        self.remarks: list[tuple[str, str]] = []
        self.lake, self.batch, self.waiting, self.done, self.failed = lake, batch, waiting, done, failed
        self.thread = threading.Thread(target=self._work, name="wsformat-lake-helper", daemon=True)

    def start(self) -> None:
        """Begin; where there can be no more threads, nothing happens."""
        with suppress(RuntimeError):
            self.thread.start()

    def at_work(self, seconds: float) -> bool:
        """Whether it is still at work after so long; one that is not ready by now is not waited for."""
        if self.ready:
            self.thread.join(seconds)
        return self.ready and self.thread.is_alive()

    def stop(self) -> None:
        """End the process; one that is at work, as after Ctrl-C, is killed, which a lake stands."""
        self.stopped = True
        if self.process is not None:
            self.process.kill()
        if self.thread.is_alive():
            self.thread.join(PATIENCE)
        self._give_back()

    def _give_back(self) -> None:
        share, self.share = self.share, None
        if share is not None:
            self.waiting.put(share)

    def _work(self) -> None:
        try:
            self._start()
            self.ready = True
            while not self.failed and not self.stopped:
                self.share = _next(self.waiting)
                if self.share is None:
                    break
                self._say(self.share)
                self._take(self._hear())
                self.share = None
        except Exception:
            pass  # it could not be started, or was killed: whoever asked does what is left, and meets what is wrong
        finally:
            self._give_back()
            self._end()

    def _start(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            # A process has the mask of the thread that starts it: at Ctrl-C it is for us to say what happens.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        # As this one was started, and without the working directory, where a file may be called json.py.
        flags = ["-I" if sys.flags.isolated else "-EP" if sys.flags.ignore_environment else "-P"]
        flags += ["-X", "utf8"] if sys.flags.utf8_mode else []
        self.process = subprocess.Popen(
            [sys.executable, *flags, "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # It has nothing to say there; and where ours is closed, a data file would take its number.
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        self._say([str(place) for place in sys.path])
        store = self.lake.store
        self._say({"lake": store.uri, "properties": dict(store.properties), "batch": self.batch})
        assert self.process.stdout is not None
        while not self.stopped and (line := self.process.stdout.readline()) != json.dumps(READY) + "\n":
            if not line:
                raise ChildProcessError("a helper ended at once")  # what else it prints is a start-up file's of Python

    def _take(self, answer: dict[str, Any]) -> None:
        from wsformat.lake.add import Added

        if "error" in answer:
            self.failed.append(_error(answer))
        else:
            self.remarks += [(kind, text) for kind, text in answer.pop("warnings")]
            self.done.append(Added(**answer))

    def _say(self, what: Any) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def _hear(self) -> Any:
        assert self.process is not None
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                assert pipe is not None
                with suppress(OSError):
                    pipe.close()


def _error(answer: dict[str, Any]) -> WsformatError:
    kind = getattr(errors, str(answer["error"]), WsformatError)
    return (
        kind(answer["message"], answer["hint"])
        if kind is not errors.InvalidBundle
        else WsformatError(answer["message"])
    )


def main() -> NoReturn:
    """A helper's work: a lake, then shares of bundles, a line each, until there are no more."""
    try:
        answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # what a library prints is no answer
        questions: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(sys.stdin, questions), daemon=True).start()
        _serve(questions, answers)
    finally:
        # Also after a fault of ours: he who asked does the same, and shows it.
        os._exit(1)


def _listen(stream: TextIO, questions: queue.SimpleQueue[str]) -> NoReturn:
    for line in stream:
        questions.put(line)
    os._exit(0)  # whoever asked has gone, perhaps in the middle of our work


def _serve(questions: queue.SimpleQueue[str], answers: TextIO) -> None:
    from wsformat.lake.add import add_here
    from wsformat.lake.home import Lake

    def say(what: Any) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    try:
        asked = json.loads(questions.get())
        lake = Lake.open(asked["lake"], properties=asked["properties"])
        say(READY)
        while True:
            line = questions.get()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("default", UserWarning)
                done = add_here(lake, json.loads(line), asked["batch"], alone=False)
            remarks = [
                (type(w.message).__name__, str(w.message)) for w in caught if issubclass(w.category, UserWarning)
            ]
            say({**asdict(done), "warnings": remarks})
    except WsformatError as error:
        say({"error": type(error).__name__, "message": error.message, "hint": error.hint})
