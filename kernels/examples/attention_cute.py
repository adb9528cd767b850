"""Hopper attention forward in the CuTe DSL: O = softmax(Q K^T * scale) V, bf16, head dim 128, float sums and result.

The same shape of kernel as ``attention_hopper.cu``: one TMA producer, two consumer warpgroups of 64 query rows with
softmax between two wgmma, rings of two stages of K and of V, roles and loop events of ``attention_hopper.json``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cutlass
from cutlass import cute, pipeline, utils
from cutlass.cute.experimental import iket
from cutlass.utils import hopper_helpers

from wsformat.kernels.cute_stamp import Stamps

TILE, DIM, STAGES, THREADS = 128, 128, 2, 384
TILE_BYTES = TILE * DIM * 2
LOWEST = -1e30
"""Below every score: the maximum of a row before its first tile."""


class Attention:
    """The kernel.

    Args:
        settings: of the stamps, None for none.
        ranges: IKET ranges around the waits and softmax, to compare with.
    """

    def __init__(self, settings: Any = None, ranges: bool = False) -> None:
        self.settings, self.ranges = settings, ranges

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        """An IKET range around what is traced inside, if they are wanted."""
        if self.ranges:
            iket.range_push(name)
        yield
        if self.ranges:
            iket.range_pop()

    @cute.jit
    def __call__(  # type: ignore[no-untyped-def]
        self,
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        out: cute.Tensor,
        scale: cutlass.Float32,
        trips: cutlass.Int32,
        heads: cutlass.Constexpr,
        slots,
        records,
    ):
        """Launch over the first ``trips`` tiles of keys; tensors are ``[head * length, 128]``, scale is for exp2."""
        kind = cutlass.BFloat16
        rows = utils.LayoutEnum.from_tensor(q)
        across = utils.LayoutEnum.COL_MAJOR
        turned = cute.make_tensor(v.iterator, cute.select(v.layout, mode=[1, 0]))
        major = rows.sm90_mma_major_mode()
        scores = hopper_helpers.make_trivial_tiled_mma(kind, kind, major, major, cutlass.Float32, (2, 1, 1), (64, TILE))
        values = hopper_helpers.make_trivial_tiled_mma(
            kind,
            kind,
            major,
            across.sm90_mma_major_mode(),
            cutlass.Float32,
            (2, 1, 1),
            (64, DIM),
            cute.nvgpu.warpgroup.OperandSource.RMEM,
        )
        smem_q = hopper_helpers.make_smem_layout_a(rows, (TILE, TILE, DIM), kind, 1)
        smem_k = hopper_helpers.make_smem_layout_b(rows, (TILE, TILE, DIM), kind, STAGES)
        smem_v = hopper_helpers.make_smem_layout_b(across, (TILE, DIM, TILE), kind, STAGES)
        load = cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp()
        tiled = cute.nvgpu.cpasync.make_tiled_tma_atom
        tma_q, source_q = tiled(load, q, cute.slice_(smem_q, (None, None, 0)), (TILE, DIM))
        tma_k, source_k = tiled(load, k, cute.slice_(smem_k, (None, None, 0)), (TILE, DIM))
        tma_v, source_v = tiled(load, turned, cute.slice_(smem_v, (None, None, 0)), (DIM, TILE))
        queries, _ = q.shape
        self.kernel(
            scores,
            values,
            tma_q,
            source_q,
            tma_k,
            source_k,
            tma_v,
            source_v,
            out,
            smem_q,
            smem_k,
            smem_v,
            scale,
            trips,
            slots,
            records,
        ).launch(grid=[queries // TILE // heads, heads, 1], block=[THREADS, 1, 1], min_blocks_per_mp=1)

    @cute.kernel
    def kernel(  # type: ignore[no-untyped-def]
        self,
        scores: cute.TiledMma,
        values: cute.TiledMma,
        tma_q: cute.CopyAtom,
        source_q: cute.Tensor,
        tma_k: cute.CopyAtom,
        source_k: cute.Tensor,
        tma_v: cute.CopyAtom,
        source_v: cute.Tensor,
        out: cute.Tensor,
        smem_q: cute.ComposedLayout,
        smem_k: cute.ComposedLayout,
        smem_v: cute.ComposedLayout,
        scale: cutlass.Float32,
        trips: cutlass.Int32,
        slots,
        records,
    ):
        """One tile of queries of a head."""
        thread, _, _ = cute.arch.thread_idx()
        column, head, _ = cute.arch.block_idx()
        columns, heads, _ = cute.arch.grid_dim()
        warpgroup = cute.arch.make_warp_uniform(thread // 128)
        stamps = Stamps(self.settings, slots, records)
        stamps.begin()
        # Both consumers run the same code, as role 1; the second is shifted to role 2.
        stamps.writer(
            thread % 128 == 0, role=1, shift=cutlass.select_(warpgroup == 2, cutlass.Int32(1), cutlass.Int32(0))
        )

        allocator = utils.SmemAllocator()
        kind = cutlass.BFloat16
        barriers = [allocator.allocate_array(cutlass.Int64, 2 * stages) for stages in (1, STAGES, STAGES)]
        held_q = allocator.allocate_tensor(kind, smem_q.outer, 1024, smem_q.inner)
        held_k = allocator.allocate_tensor(kind, smem_k.outer, 1024, smem_k.inner)
        held_v = allocator.allocate_tensor(kind, smem_v.outer, 1024, smem_v.inner)
        ring_q, ring_k, ring_v = (
            pipeline.PipelineTmaAsync.create(
                barrier_storage=storage,
                num_stages=stages,
                producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
                consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 8),  # one arrival a warp
                tx_count=TILE_BYTES,
                cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
            )
            for storage, stages in zip(barriers, (1, STAGES, STAGES), strict=True)
        )
        query = head * columns + column
        tiles_k = cute.local_tile(source_k, (TILE, DIM), (None, 0))
        tiles_v = cute.local_tile(source_v, (DIM, TILE), (0, None))
        first = head * (cute.size(tiles_k, mode=[2]) // heads)
        whole = cute.make_layout(1)
        part = cute.nvgpu.cpasync.tma_partition
        tile_q = cute.local_tile(source_q, (TILE, DIM), (None, 0))
        to_q, from_q = part(tma_q, 0, whole, cute.group_modes(held_q, 0, 2), cute.group_modes(tile_q, 0, 2))
        to_k, from_k = part(tma_k, 0, whole, cute.group_modes(held_k, 0, 2), cute.group_modes(tiles_k, 0, 2))
        to_v, from_v = part(tma_v, 0, whole, cute.group_modes(held_v, 0, 2), cute.group_modes(tiles_v, 0, 2))

        if warpgroup == 0:
            cute.arch.setmaxregister_decrease(40)
            if cute.arch.make_warp_uniform(thread // 32) == 0:
                once = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
                ring_q.producer_acquire(once)
                barrier = ring_q.producer_get_barrier(once)
                cute.copy(tma_q, from_q[(None, query)], to_q[(None, 0)], tma_bar_ptr=barrier)
                filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
                for n in cutlass.range(trips, unroll=1):
                    k_enter = stamps.read()
                    with self.range("k_acquire"):
                        ring_k.producer_acquire(filled)
                    k_leave = stamps.read()
                    barrier = ring_k.producer_get_barrier(filled)
                    cute.copy(tma_k, from_k[(None, first + n)], to_k[(None, filled.index)], tma_bar_ptr=barrier)
                    v_enter = stamps.read()
                    with self.range("v_acquire"):
                        ring_v.producer_acquire(filled)
                    v_leave = stamps.read()
                    barrier = ring_v.producer_get_barrier(filled)
                    cute.copy(tma_v, from_v[(None, first + n)], to_v[(None, filled.index)], tma_bar_ptr=barrier)
                    stamps.store(0, {0: k_enter, 1: k_leave, 2: v_enter, 3: v_leave, 4: stamps.read()}, n)
                    filled.advance()
        else:
            cute.arch.setmaxregister_increase(232)
            mine = scores.get_slice(thread - 128)
            fragment_q = scores.make_fragment_A(scores.get_slice((warpgroup - 1) * 128).partition_A(held_q))
            fragment_k = scores.make_fragment_B(scores.get_slice((warpgroup - 1) * 128).partition_B(held_k))
            fragment_v = values.make_fragment_B(values.get_slice((warpgroup - 1) * 128).partition_B(held_v))
            tile_out = cute.local_tile(out, (TILE, DIM), (query, 0))
            place = values.get_slice(thread - 128).partition_C(tile_out)
            s = cute.make_rmem_tensor(mine.partition_C(cute.make_identity_tensor((TILE, TILE))).shape, cutlass.Float32)
            o = cute.make_rmem_tensor(place.shape, cutlass.Float32)
            # A thread's results of 16 columns of S are its part of the operand P for the same 16 keys.
            p = cute.make_rmem_tensor(((2, 2, 2), 1, TILE // 16), kind)
            p_like_s = cute.make_tensor(p.iterator, s.layout)
            highest = cute.make_rmem_tensor((2,), cutlass.Float32)
            total = cute.make_rmem_tensor((2,), cutlass.Float32)
            highest.fill(LOWEST)
            total.fill(0.0)
            o.fill(0.0)
            values.set(cute.nvgpu.warpgroup.Field.ACCUMULATE, True)
            once = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
            ring_q.consumer_wait(once)
            ready = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
            pv_done = v_released = stamps.nothing()
            for n in cutlass.range(trips, unroll=1):
                k_enter = stamps.read()
                with self.range("k_wait"):
                    ring_k.consumer_wait(ready)
                k_leave = stamps.read()
                cute.nvgpu.warpgroup.fence()
                for block in cutlass.range_constexpr(DIM // 16):
                    scores.set(cute.nvgpu.warpgroup.Field.ACCUMULATE, block > 0)
                    cute.gemm(
                        scores,
                        s,
                        fragment_q[(None, None, block, 0)],
                        fragment_k[(None, None, block, ready.index)],
                        s,
                    )
                cute.nvgpu.warpgroup.commit_group()
                # The tensor cores are at work now: what this and the last iteration read is stored meanwhile.
                stamps.store(1, {6: pv_done, 8: v_released}, n - 1)
                stamps.store(1, {0: k_enter, 1: k_leave}, n)
                with self.range("qk_wait"):
                    cute.nvgpu.warpgroup.wait_group(0)
                qk_done = stamps.read()
                ring_k.consumer_release(ready)
                k_released = stamps.read()
                with self.range("softmax"):
                    self.softmax(s, o, highest, total, scale)
                    p_like_s.store(s.load().to(kind))
                softmax_end = stamps.read()
                with self.range("v_wait"):
                    ring_v.consumer_wait(ready)
                v_leave = stamps.read()
                cute.nvgpu.warpgroup.fence()
                for block in cutlass.range_constexpr(TILE // 16):
                    cute.gemm(values, o, p[(None, None, block)], fragment_v[(None, None, block, ready.index)], o)
                cute.nvgpu.warpgroup.commit_group()
                stamps.store(1, {2: qk_done, 7: k_released, 3: softmax_end, 5: v_leave}, n)
                with self.range("pv_wait"):
                    cute.nvgpu.warpgroup.wait_group(0)
                pv_done = stamps.read()
                ring_v.consumer_release(ready)
                v_released = stamps.read()
                ready.advance()
            stamps.store(1, {6: pv_done, 8: v_released}, trips - 1)
            for row in cutlass.range_constexpr(2):
                total[row] = 1.0 / over_row(total[row], plus)
            for i in cutlass.range_constexpr(cute.size(o)):
                o[i] = o[i] * total[i // 2 % 2]
            cute.autovec_copy(o, place)
        stamps.end()

    @cute.jit
    def softmax(self, s, o, highest, total, scale):  # type: ignore[no-untyped-def]
        """Scores to weights in place; rescales O and the row sums to the new row maxima. A thread has two rows."""
        shift = [None, None]
        shrink = [None, None]
        for row in cutlass.range_constexpr(2):
            top = highest[row]
            for i in cutlass.range_constexpr(cute.size(s)):
                if cutlass.const_expr(i // 2 % 2 == row):
                    top = cute.arch.fmax(top, s[i])
            top = over_row(top, cute.arch.fmax)
            shift[row] = top * scale
            shrink[row] = cute.arch.exp2(highest[row] * scale - shift[row])
            highest[row] = top
        for row in cutlass.range_constexpr(2):
            added = total[row] * shrink[row]
            for i in cutlass.range_constexpr(cute.size(s)):
                if cutlass.const_expr(i // 2 % 2 == row):
                    s[i] = cute.arch.exp2(s[i] * scale - shift[row])
                    added = added + s[i]
                    o[i] = o[i] * shrink[row]
            total[row] = added


def plus(a: Any, b: Any) -> Any:
    """Their sum."""
    return a + b


def over_row(x: Any, join: Any) -> Any:
    """A value over the four lanes that hold one row."""
    for offset in (1, 2):
        x = join(x, cute.arch.shuffle_sync_bfly(x, offset=offset))
    return x
