"""Time stamps inside a kernel of the CuTe DSL, in the slot layout of wsformat: the twin of ``wsformat_stamp.cuh``.

    @cute.kernel
    def kernel(..., slots: cute.Pointer | None, records: cute.Pointer | None, settings: cutlass.Constexpr):
        stamps = Stamps(settings, slots, records)
        stamps.begin()                               # all threads of the CTA
        stamps.writer(thread % 128 == 0)             # the one thread of each role that writes
        for k in range(trips):
            stamps.stamp(0, 2, k)                    # role, event: Python integers. Iteration: a value of the kernel
            before = stamps.read()                   # or read now and store while the warp waits anyway
            ...
            stamps.store(0, {3: before}, k)
        stamps.end()                                 # all threads of the CTA

With ``None`` for settings or slots nothing is left of these lines: the kernel compiles to the machine code of a source
without them, without the parameters too. The class lives while the kernel is traced, so a stamp that a pass does not
make costs nothing either.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wsformat.errors import BadRequest, MissingDependency
from wsformat.iteration_window import WHOLE, IterationWindow
from wsformat.kernels.passes import StampPass, from_environment
from wsformat.rolespec import Layout

try:
    import cutlass
    from cutlass import cute
    from cutlass._mlir.dialects import llvm
    from cutlass.cutlass_dsl import T, dsl_user_op
except ImportError as error:
    raise MissingDependency("stamps in the CuTe DSL need nvidia-cutlass-dsl", "pip install 'wsformat[gpu]'") from error

WORD = 4
RECORD_BYTES = 40
CLOCK = "mov.u32 $0, %clock;"
CLOCK64 = "mov.u64 $0, %clock64;"
GLOBALTIMER = "mov.u64 $0, %globaltimer;"
COUNT_THREADS = "{ .reg .pred p; setp.eq.u32 p, 0, 0; bar.red.popc.u32 $0, 0, p; }"
"""A barrier of the whole CTA with a result."""
SMID = "mov.u32 $0, %smid;"


@dataclass(frozen=True)
class Settings:
    """What a build records; known when the kernel is compiled. 32-bit clock.

    Attributes:
        layout: of a CTA's buffer.
        masks: events of each role, bit e for event e; all zero: start and end records only.
        threads: of a CTA.
        window: iterations that the slots hold.
        shared: store to shared memory and copy at the end, else to the buffer at once.
        first_cta, cta_step, ctas: which CTAs are recorded, by linear index.
    """

    layout: Layout
    masks: tuple[int, ...]
    threads: int
    window: IterationWindow = WHOLE
    shared: bool = True
    first_cta: int = 0
    cta_step: int = 1
    ctas: int = 1

    @staticmethod
    def of(layout: Layout, stamp_pass: StampPass, threads: int, **more: Any) -> Settings:
        """The settings of one pass of a recorder.

        Args:
            layout: of a CTA's buffer.
            stamp_pass: which events of each role are stamped, and the window.
            threads: of a CTA.
            more: other attributes by name.
        """
        masks = tuple(stamp_pass.events.get(r, 0) for r in range(layout.roles))
        return Settings(layout, masks, threads, **{"window": _window(stamp_pass.macros), **more})

    @staticmethod
    def from_environment(layout: Layout, threads: int, **more: Any) -> Settings | None:
        """The settings that the environment asks for, as the stamp header's macros: None unless ``WSF_STAMPS`` is 1.

        ``WSF_EVENT_MASK`` is one number for all roles here; ``WSF_SINK`` 0 or 1.

        Args:
            layout: of a CTA's buffer.
            threads: of a CTA.
            more: attributes by name that the environment does not say.

        Raises:
            BadRequest: a value that is no such number.
        """
        given = from_environment()
        try:
            if not int(given.get("WSF_STAMPS", "0"), 0):
                return None
            mask = int(given.get("WSF_EVENT_MASK", "-1").lower().rstrip("ul"), 0) & (1 << layout.events) - 1
            shared = {0: False, 1: True}[int(given.get("WSF_SINK", "1"), 0)]
            window = _window({name: int(given.get(name, n), 0) for name, n in (("WSF_FROM", "0"), ("WSF_STRIDE", "1"))})
        except (KeyError, ValueError) as error:
            raise BadRequest(
                f"settings of the stamps in the environment: {error}",
                "WSF_STAMPS and WSF_SINK are 0 or 1, WSF_EVENT_MASK one number such as 0x1b.",
            ) from error
        return Settings(layout, (mask,) * layout.roles, threads, **{"window": window, "shared": shared, **more})

    def rows(self) -> list[tuple[int, int]]:
        """Role and event of the stamps that this build makes, in the order of shared memory."""
        return [(r, e) for r, mask in enumerate(self.masks) for e in range(self.layout.events) if mask >> e & 1]


def _window(macros: Mapping[str, Any]) -> IterationWindow:
    first, stride = int(macros.get("WSF_FROM", 0)), int(macros.get("WSF_STRIDE", 1))
    if first < 0 or stride < 1:
        raise BadRequest(f"stamps from iteration {first} in steps of {stride}", "The stride is 1 or more.")
    return IterationWindow(first, stride)


def _slot_of(window: IterationWindow) -> str:
    """PTX: the slot of an iteration; beyond every buffer where the window leaves it out."""
    if window.stride == 1:
        return f"sub.u32 $0, $1, {window.first};"
    return (
        "{ .reg .pred p; .reg .b32 d, q, r; "
        f"sub.u32 d, $1, {window.first}; div.u32 q, d, {window.stride}; mul.lo.u32 r, q, {window.stride}; "
        "setp.eq.u32 p, r, d; selp.b32 $0, q, 0xffffffff, p; }"
    )


def _inline(text: str, result: Any, operands: list[Any], constraints: str, *, loc: Any = None, ip: Any = None) -> Any:
    """Inline PTX that is kept in order with the memory accesses around it."""
    values = [o.ir_value(loc=loc, ip=ip) if hasattr(o, "ir_value") else o for o in operands]
    return llvm.inline_asm(
        result,
        values,
        text,
        constraints + ("," if constraints else "") + "~{memory}",
        has_side_effects=True,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
        loc=loc,
        ip=ip,
    )


_asm: Any = dsl_user_op(_inline)


class Stamps:
    """The stamps of one kernel, while it is traced.

    Args:
        settings: of this build, None for none.
        slots: where the launch's slots are, in global memory; None for none.
        records: one 40-byte record a recorded CTA.
    """

    def __init__(self, settings: Settings | None, slots: Any, records: Any) -> None:
        self.settings = settings if slots is not None else None
        if self.settings is None:
            return
        assert settings is not None
        self.rows = {point: n for n, point in enumerate(settings.rows())}
        self.row_words = settings.layout.iterations + (1 if settings.shared else 0)  # shared: a spare slot
        self.shared = settings.shared and bool(self.rows)
        x, y, z = cute.arch.block_idx()
        gx, gy, _ = cute.arch.grid_dim()
        tx, ty, tz = cute.arch.thread_idx()
        bx, by, _ = cute.arch.block_dim()
        self.thread = cutlass.Int32(tx + bx * (ty + by * tz))
        cta = cutlass.Int32(x + gx * (y + gy * z)) - settings.first_cta
        number = cta // settings.cta_step
        self.recorded = (cta >= 0) & (cta % settings.cta_step == 0) & (number < settings.ctas)
        number = cutlass.Int64(cutlass.select_(self.recorded, number, cutlass.Int32(0)))
        whole = settings.layout.roles * settings.layout.events * settings.layout.iterations * WORD
        self.slots = self.origin = slots.toint() + number * whole
        self.record = records.toint() + number * RECORD_BYTES
        self.bits = cutlass.Int32(0)
        self.base = self.buffer = cutlass.Int32(0)

    def __extract_mlir_values__(self) -> list[Any]:
        # The DSL's protocol for values that live through a dynamic loop.
        return [v for name in self._dynamic() for v in cutlass.extract_mlir_values(getattr(self, name))]

    def __new_from_mlir_values__(self, values: list[Any]) -> Stamps:
        twin = copy.copy(self)
        for name, value in zip(self._dynamic(), values, strict=True):
            setattr(twin, name, cutlass.new_from_mlir_values(getattr(self, name), [value]))
        return twin

    def _dynamic(self) -> tuple[str, ...]:
        """Attributes that are values of the kernel."""
        if self.settings is None:
            return ()
        return ("thread", "recorded", "origin", "slots", "record", "bits", "buffer", "base")

    def begin(self) -> None:
        """All threads, at the top of the kernel: reads the clocks and empties the shared buffer."""
        settings = self.settings
        if settings is None:
            return
        first = self.recorded & (self.thread == 0)
        self._record(first, 0, GLOBALTIMER)
        self._record(first, 8, CLOCK64)
        sm = cutlass.Int32(_asm(SMID, T.i32(), [], "=r"))
        self._store("global.u32", first, self.record + 32, 0, sm, "l", "r")
        self._store("global.u32", first, self.record + 36, 0, cutlass.Int32(0), "l", "r")
        if self.shared:
            words = len(self.rows) * self.row_words
            # Static shared memory: what the kernel itself takes from dynamic shared memory stays where it is.
            self.base = self.buffer = cute.arch.alloc_smem(cutlass.Int32, words, alignment=WORD).toint()
            for start in range(0, words, settings.threads):
                at = self.thread + start
                self._store("shared.u32", at < words, self.base + at * WORD, 0, cutlass.Int32(0), "r", "r")
        if self.rows:
            cute.arch.sync_threads()

    def writer(self, elected: Any, role: int = 0, shift: Any = None) -> None:
        """Whether this thread writes; at the top of the kernel, before the roles part.

        Args:
            elected: true in one thread of each role.
            role: with ``shift``, the first of several roles that run one piece of code.
            shift: how far behind ``role`` this thread's role is: its stamps as ``role`` become those of that role.

        Raises:
            BadRequest: a pass that stamps other events in roles that share their code.
        """
        settings = self.settings
        if settings is None:
            return
        one = cutlass.Int32(cutlass.select_(elected & self.recorded, cutlass.Int32(1), cutlass.Int32(0)))
        # All bits or none, in a way that the compiler does not see through: every store gets a predicate of its own,
        # because stores under one predicate become a branch.
        self.bits = cutlass.Int32(_asm("sub.s32 $0, 0, $1;", T.i32(), [one], "=r,r"))
        if shift is None:
            return
        if len(set(settings.masks[role:])) > 1:
            raise BadRequest(f"roles from {role} on share their code, so a pass must stamp the same events in all")
        if self.shared:
            self.base += cutlass.Int32(shift) * (settings.masks[role].bit_count() * self.row_words * WORD)
        else:
            whole = settings.layout.events * settings.layout.iterations * WORD
            self.slots += cutlass.Int64(cutlass.Int32(shift) * whole)

    def read(self) -> Any:
        """The clock now, to be stored later; 0 when off."""
        return cutlass.Int32(0) if self.settings is None else cutlass.Int32(_asm(CLOCK, T.i32(), [], "=r"))

    def nothing(self) -> Any:
        """First value of what one iteration reads and the next one stores, as ``k - 1``; iteration -1 is dropped."""
        return cutlass.Int32(0)

    def stamp(self, role: int, event: int, iteration: Any) -> None:
        """Read the clock and store it.

        Args:
            role, event: Python integers: the slot is fixed when the kernel is compiled.
            iteration: a value of the kernel, from 0; beyond the buffer nothing is stored.
        """
        if self._made(role, event):
            self.store(role, {event: self.read()}, iteration)

    def store(self, role: int, held: Mapping[int, Any], iteration: Any) -> None:
        """Store what :meth:`read` gave; nothing for iterations out of range.

        Args:
            role: a Python integer.
            held: what was read, 32 bits of the SM's cycle counter, by event.
            iteration: a value of the kernel: the stamps become those of that iteration.
        """
        settings = self.settings
        if settings is None:
            return
        mine = {event: value for event, value in held.items() if self._made(role, event)}
        if not mine:
            return
        last = settings.layout.iterations
        at = cutlass.Int32(iteration)
        if not settings.window.whole:
            at = cutlass.Int32(_asm(_slot_of(settings.window), T.i32(), [at], "=r,r"))
        slot = cutlass.Int32(_asm("min.u32 $0, $1, $2;", T.i32(), [at, cutlass.Int32(last)], "=r,r,r"))
        for event, value in mine.items():
            if self.shared:
                offset = self.rows[role, event] * self.row_words * WORD
                self._store_bit("shared.u32", event, self.base + slot * WORD, offset, value, "r")
            else:
                offset = (role * settings.layout.events + event) * last * WORD
                fits = (self.bits != 0) & (slot < last)
                self._store("global.u32", fits, self.slots + cutlass.Int64(slot * WORD), offset, value, "l", "r")

    def end(self) -> None:
        """All threads, after the last stamp: reads the clocks, then copies the shared buffer."""
        settings = self.settings
        if settings is None:
            return
        # A warp may run on past a barrier until something needs it: the clock is read only once the count is there.
        here = cutlass.Int32(_asm(COUNT_THREADS, T.i32(), [], "=r"))
        first = self.recorded & (self.thread == 0)
        self._record(first, 24, CLOCK64, here)
        self._record(first, 16, GLOBALTIMER, here)
        if not self.shared:
            return
        layout = settings.layout
        for (role, event), row in self.rows.items():
            for start in range(0, layout.iterations, settings.threads):
                at = self.thread + start
                mine = self.recorded & (at < layout.iterations)
                to = self.origin + cutlass.Int64(at * WORD)
                offset = (role * layout.events + event) * layout.iterations * WORD
                value = cutlass.Int32(
                    _asm(
                        "{ .reg .pred p; setp.ne.s32 p, $2, 0; mov.u32 $0, 0; "
                        f"@p ld.shared.u32 $0, [$1 + {row * self.row_words * WORD}]; }}",
                        T.i32(),
                        [self.buffer + at * WORD, _flag(mine)],
                        "=&r,r,r",
                    )
                )
                self._store("global.u32", mine, to, offset, value, "l", "r")

    def _made(self, role: int, event: int) -> bool:
        if self.settings is None:
            return False
        layout = self.settings.layout
        if not (0 <= role < layout.roles and 0 <= event < layout.events):
            raise BadRequest(f"stamp of role {role}, event {event}: outside of the layout {layout}")
        return (role, event) in self.rows

    def _record(self, condition: Any, offset: int, read: str, after: Any = None) -> None:
        if after is None:
            value = cutlass.Int64(_asm(read, T.i64(), [], "=l"))
        else:
            text = f"{{ .reg .pred p; setp.ne.s32 p, $1, 0; mov.u64 $0, 0; @p {read} }}"
            value = cutlass.Int64(_asm(text, T.i64(), [after], "=l,r"))
        self._store("global.u64", condition, self.record, offset, value, "l", "l")

    @staticmethod
    def _store(space: str, condition: Any, to: Any, offset: int, value: Any, address: str, word: str) -> None:
        _asm(
            f"{{ .reg .pred p; setp.ne.s32 p, $2, 0; @p st.{space} [$0 + {offset}], $1; }}",
            None,
            [to, value, _flag(condition)],
            f"{address},{word},r",
        )

    def _store_bit(self, space: str, event: int, to: Any, offset: int, value: Any, address: str) -> None:
        bit = 1 << event % 31
        _asm(
            f"{{ .reg .pred p; .reg .b32 b; and.b32 b, $2, {bit}; setp.ne.u32 p, b, 0; "
            f"@p st.{space} [$0 + {offset}], $1; }}",
            None,
            [to, value, self.bits],
            f"{address},r,r",
        )


def _flag(condition: Any) -> Any:
    return cutlass.Int32(cutlass.select_(condition, cutlass.Int32(1), cutlass.Int32(0)))
