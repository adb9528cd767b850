"""Hopper bf16 GEMM in the CuTe DSL: C[M,N] = A[M,K] B[N,K]^T, float result, one 128x128 tile a CTA.

The same shape of kernel as ``gemm_hopper.cu``: one TMA producer, two wgmma consumer warpgroups of 64 rows, a ring of
four stages of 64 along K, roles and events of ``gemm_hopper.json`` (without the epilogue stamps).
"""

from __future__ import annotations

from typing import Any

import cutlass
from cutlass import cute, pipeline, utils
from cutlass.cute.experimental import iket
from cutlass.utils import hopper_helpers

from wsformat.kernels.cute_stamp import Stamps

TILE, TILE_K, STAGES, THREADS = 128, 64, 4, 384
TILER = (TILE, TILE, TILE_K)


class Gemm:
    """The kernel.

    Args:
        settings: of the stamps, None for none.
        ranges: IKET ranges around the waits, to compare with.
        in_flight: six stages, and the consumers leave one group of wgmma running while they wait for the next stage.
    """

    def __init__(self, settings: Any = None, ranges: bool = False, in_flight: bool = False) -> None:
        self.settings, self.ranges, self.in_flight = settings, ranges, in_flight
        self.stages = 6 if in_flight else STAGES

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, trips: cutlass.Int32, slots, records):  # type: ignore[no-untyped-def]
        """Launch over the first ``trips`` tiles of K."""
        kind = cutlass.BFloat16
        layout_a, layout_b = utils.LayoutEnum.from_tensor(a), utils.LayoutEnum.from_tensor(b)
        mma = hopper_helpers.make_trivial_tiled_mma(
            kind,
            kind,
            layout_a.sm90_mma_major_mode(),
            layout_b.sm90_mma_major_mode(),
            cutlass.Float32,
            (2, 1, 1),
            (64, TILE),
        )
        smem_a = hopper_helpers.make_smem_layout_a(layout_a, TILER, kind, self.stages)
        smem_b = hopper_helpers.make_smem_layout_b(layout_b, TILER, kind, self.stages)
        load = cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp()
        one_a, one_b = cute.slice_(smem_a, (None, None, 0)), cute.slice_(smem_b, (None, None, 0))
        tma_a, source_a = cute.nvgpu.cpasync.make_tiled_tma_atom(load, a, one_a, (TILE, TILE_K))
        tma_b, source_b = cute.nvgpu.cpasync.make_tiled_tma_atom(load, b, one_b, (TILE, TILE_K))
        rows, columns = c.shape
        self.kernel(mma, tma_a, source_a, tma_b, source_b, c, smem_a, smem_b, trips, slots, records).launch(
            grid=[columns // TILE, rows // TILE, 1], block=[THREADS, 1, 1], min_blocks_per_mp=1
        )

    @cute.kernel
    def kernel(  # type: ignore[no-untyped-def]
        self,
        mma: cute.TiledMma,
        tma_a: cute.CopyAtom,
        source_a: cute.Tensor,
        tma_b: cute.CopyAtom,
        source_b: cute.Tensor,
        c: cute.Tensor,
        smem_a: cute.ComposedLayout,
        smem_b: cute.ComposedLayout,
        trips: cutlass.Int32,
        slots,
        records,
    ):
        """One tile of C."""
        thread, _, _ = cute.arch.thread_idx()
        column, row, _ = cute.arch.block_idx()
        warpgroup = cute.arch.make_warp_uniform(thread // 128)
        stamps = Stamps(self.settings, slots, records)
        stamps.begin()
        # Both consumers run the same code, as role 1; the second is shifted to role 2.
        stamps.writer(
            thread % 128 == 0, role=1, shift=cutlass.select_(warpgroup == 2, cutlass.Int32(1), cutlass.Int32(0))
        )

        allocator = utils.SmemAllocator()
        barriers = allocator.allocate_array(cutlass.Int64, 2 * self.stages)
        held_a = allocator.allocate_tensor(cutlass.BFloat16, smem_a.outer, 1024, smem_a.inner)
        held_b = allocator.allocate_tensor(cutlass.BFloat16, smem_b.outer, 1024, smem_b.inner)
        ring = pipeline.PipelineTmaAsync.create(
            barrier_storage=barriers,
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 8),  # one arrival a warp
            tx_count=2 * TILE * TILE_K * 2,
            cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
        )
        tiles_a = cute.local_tile(source_a, (TILE, TILE_K), (row, None))
        tiles_b = cute.local_tile(source_b, (TILE, TILE_K), (column, None))
        tile_c = cute.local_tile(c, (TILE, TILE), (row, column))
        whole = cute.make_layout(1)
        to_a, from_a = cute.nvgpu.cpasync.tma_partition(
            tma_a, 0, whole, cute.group_modes(held_a, 0, 2), cute.group_modes(tiles_a, 0, 2)
        )
        to_b, from_b = cute.nvgpu.cpasync.tma_partition(
            tma_b, 0, whole, cute.group_modes(held_b, 0, 2), cute.group_modes(tiles_b, 0, 2)
        )

        if warpgroup == 0:
            if cute.arch.make_warp_uniform(thread // 32) == 0:
                filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
                for k in cutlass.range(trips, unroll=1):
                    enter = stamps.read()
                    if cutlass.const_expr(self.ranges):
                        iket.range_push("acquire")
                    ring.producer_acquire(filled)
                    if cutlass.const_expr(self.ranges):
                        iket.range_pop()
                    leave = stamps.read()
                    barrier = ring.producer_get_barrier(filled)
                    cute.copy(tma_a, from_a[(None, k)], to_a[(None, filled.index)], tma_bar_ptr=barrier)
                    cute.copy(tma_b, from_b[(None, k)], to_b[(None, filled.index)], tma_bar_ptr=barrier)
                    ring.producer_commit(filled)
                    stamps.store(0, {0: enter, 1: leave, 2: leave, 3: stamps.read()}, k)
                    filled.advance()
        else:
            part = mma.get_slice(thread - 128)
            group = mma.get_slice((warpgroup - 1) * 128)
            fragment_a = mma.make_fragment_A(group.partition_A(held_a))
            fragment_b = mma.make_fragment_B(group.partition_B(held_b))
            out = part.partition_C(tile_c)
            sums = cute.make_rmem_tensor(out.shape, cutlass.Float32)
            sums.fill(0.0)
            mma.set(cute.nvgpu.warpgroup.Field.ACCUMULATE, True)
            ready = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            behind = 1 if self.in_flight else 0
            done_with = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            done = freed = stamps.nothing()
            for k in cutlass.range(trips, unroll=1):
                enter = stamps.read()
                if cutlass.const_expr(self.ranges):
                    iket.range_push("full_wait")
                ring.consumer_wait(ready)
                if cutlass.const_expr(self.ranges):
                    iket.range_pop()
                leave = stamps.read()
                cute.nvgpu.warpgroup.fence()
                for block in cutlass.range_constexpr(cute.size(fragment_a, mode=[2])):
                    at = (None, None, block, ready.index)
                    cute.gemm(mma, sums, fragment_a[at], fragment_b[at], sums)
                cute.nvgpu.warpgroup.commit_group()
                # The tensor cores are at work now: what this and the last iteration read is stored meanwhile.
                stamps.store(1, {3: done, 4: freed}, k - 1 - behind)
                stamps.store(1, {0: enter, 1: leave, 2: leave}, k)
                if cutlass.const_expr(self.ranges):
                    iket.range_push("mma_wait")
                cute.nvgpu.warpgroup.wait_group(behind)
                if cutlass.const_expr(self.ranges):
                    iket.range_pop()
                done = stamps.read()
                if cutlass.const_expr(self.in_flight):
                    if k > 0:
                        ring.consumer_release(done_with)
                        done_with.advance()
                else:
                    ring.consumer_release(ready)
                freed = stamps.read()
                ready.advance()
            if cutlass.const_expr(self.in_flight):
                stamps.store(1, {3: done, 4: freed}, trips - 2)
                cute.nvgpu.warpgroup.wait_group(0)
                done = freed = stamps.read()
            stamps.store(1, {3: done, 4: freed}, trips - 1)
            cute.autovec_copy(sums, out)
        stamps.end()
