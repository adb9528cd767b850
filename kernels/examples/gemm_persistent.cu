// Persistent Hopper GEMM: C[M,N] = A[M,K] B[N,K]^T, bf16, float accumulation and result, 128x128 tiles, sm_90a.
//
// The pipeline of gemm_hopper.cu, but each CTA does tile after tile: iterations, stages and phases run on from tile to
// tile, so the producer fills the ring for the next tile while the consumers store this one. With CLUSTER 2, CTAs come in
// pairs of neighbours that share the columns: each loads half of B and multicasts it to both, so a stage is full when the
// copies of both producers are there, and empty when the consumers of both CTAs are done with it. Consumers leave one group
// of wgmma in flight while they wait for the next stage, so a stage is free one iteration later than in gemm_hopper.cu.
//
// M a multiple of 128 * CLUSTER, N of 128, K of 64. Grid: any multiple of CLUSTER, 384 threads, dynamic shared memory
// STAGES * 32768 + 1024 bytes. Tensor maps: box 64 x 128, of B 64 x 128 / CLUSTER, 128-byte swizzle. C has rows of n floats
// and `rows` times CLUSTER tiles above each other; `count` pieces of work of CLUSTER tiles are there, numbered down the
// columns, so that the CTAs of a wave share as much of A and B as they can; `trips` copies make one tile.
#include "examples/hopper.cuh"
#include "wsformat_stamp.cuh"

#ifndef STAGES
#define STAGES 6
#endif
#ifndef CLUSTER
#define CLUSTER 1
#endif

constexpr unsigned TILE = 128, ROW_BYTES = 128, TILE_K = 64;
constexpr unsigned OPERAND_BYTES = TILE * ROW_BYTES;
constexpr unsigned STAGE_BYTES = 2 * OPERAND_BYTES;
constexpr unsigned WARPGROUP_ROWS = 64;

// A CTA's place: which of the cluster it is, its first piece of work and how far the next one is.
struct Share {
    unsigned rank, first, step;
};

__device__ __forceinline__ Share share() {
    return {blockIdx.x % CLUSTER, blockIdx.x / CLUSTER, gridDim.x / CLUSTER};
}

// All threads of the cluster.
__device__ __forceinline__ void synchronise() {
#if CLUSTER > 1
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#else
    __syncthreads();
#endif
}

// One arrival on the same barrier of every CTA of the cluster; by the first threads of a warpgroup. Without a release at
// cluster scope, which would wait for all writes of the thread (some 700 cycles each time): what the barrier guards was
// read by the tensor cores, and that is over.
__device__ __forceinline__ void arrive_everywhere(unsigned barrier, unsigned thread) {
#if CLUSTER > 1
    if (thread < CLUSTER)
        asm volatile(
            "{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
            "mbarrier.arrive.shared::cluster.b64 _, [there];\n\t}" ::"r"(barrier), "r"(thread) : "memory");
#else
    if (thread == 0) barrier_arrive(barrier);
#endif
}

// This CTA's part of B, to every CTA of the cluster.
__device__ __forceinline__ void copy_part(unsigned to, const TensorMap& map, unsigned barrier, int x, int y,
                                          unsigned rank) {
#if CLUSTER > 1
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%3, %4}], [%2], %5;"
        ::"r"(to + rank * (OPERAND_BYTES / CLUSTER)), "l"(&map), "r"(barrier), "r"(x),
          "r"(y + static_cast<int>(rank * (TILE / CLUSTER))), "h"(static_cast<unsigned short>((1 << CLUSTER) - 1))
        : "memory");
#else
    copy_tile(to, map, barrier, x, y);
#endif
}

template <int Role>
__device__ __forceinline__ void consume(unsigned tiles, unsigned full, unsigned empty, unsigned trips, float* c,
                                        unsigned n, unsigned rows, unsigned count WSF_INNER_PARAM) {
    const unsigned thread = threadIdx.x % 128;
    const unsigned long long a0 = matrix(tiles + (Role - 1) * WARPGROUP_ROWS * ROW_BYTES);
    const unsigned long long b0 = matrix(tiles + OPERAND_BYTES);
    const Share mine = share();
    unsigned stage = 0, phase = 0, k = 0, ordinal = 0;
#pragma unroll 1
    for (unsigned work = mine.first; work < count; work += mine.step, ++ordinal) {
        float d[64];
#pragma unroll
        for (int i = 0; i < 64; ++i) d[i] = 0;
        unsigned before = empty;  // the barrier to arrive on once the group in flight is done
#pragma unroll 1
        for (unsigned i = 0; i < trips; ++i, ++k) {
            WSF_HOLD(Role, 0, k);
            barrier_wait(full + stage * 8, phase);
            WSF_HOLD(Role, 1, k);
            const unsigned long long a = a0 + stage * (STAGE_BYTES >> 4), b = b0 + stage * (STAGE_BYTES >> 4);
            WSF_HOLD(Role, 2, k);
            wgmma_begin();
#pragma unroll
            for (unsigned j = 0; j < ROW_BYTES / 32; ++j) wgmma_64x128(d, a + 2 * j, b + 2 * j);
            wgmma_commit();
            // The tensor cores are at work now: what was read before is stored meanwhile. In the first iteration of a tile
            // no group is in flight, so what it reads behind the wait belongs to none and is not stored in the second.
            WSF_STORE(Role, 0x18, i > 1 ? k - 2 : ~0u);
            WSF_STORE(Role, 0x07, k);
            wgmma_wait<1>();
            WSF_HOLD(Role, 3, k - 1);
            arrive_everywhere(before, i > 0 ? thread : ~0u);
            WSF_HOLD(Role, 4, k - 1);
            before = empty + stage * 8;
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        }
        WSF_STORE(Role, 0x18, trips > 1 ? k - 2 : ~0u);
        wgmma_wait<0>();
        WSF_HOLD(Role, 3, k - 1);
        arrive_everywhere(before, thread);
        WSF_HOLD(Role, 4, k - 1);
        WSF_STORE(Role, 0x18, k - 1);
        WSF_STAMP(Role, 5, ordinal);
        const unsigned long long row = (work % rows * CLUSTER + mine.rank) * TILE + (Role - 1) * WARPGROUP_ROWS;
        store_64x128(d, c + row * n + work / rows * TILE, n);
        WSF_STAMP(Role, 6, ordinal);
    }
}

extern "C" __global__ void
#if CLUSTER > 1
__cluster_dims__(CLUSTER, 1, 1)
#endif
__launch_bounds__(384, 1)
    gemm_persistent(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, float* c,
                    unsigned n, unsigned rows, unsigned count, unsigned trips WSF_PARAM) {
    extern __shared__ unsigned char dynamic[];
    __shared__ alignas(8) unsigned long long barriers[2 * STAGES];
    const unsigned tiles = (shared_address(dynamic) + 1023) / 1024 * 1024;
    const unsigned full = shared_address(barriers), empty = full + STAGES * 8;
    WSF_BEGIN();
    WSF_WRITER(threadIdx.x % 128 == 0);
    if (threadIdx.x == 0) {
        for (unsigned s = 0; s < STAGES; ++s) {
            barrier_init(full + s * 8, 1);
            barrier_init(empty + s * 8, 2 * CLUSTER);
        }
        barriers_ready();
    }
    synchronise();
    const unsigned warpgroup = threadIdx.x / 128;
    if (warpgroup == 0) {
        if (threadIdx.x == 0) {
            const Share mine = share();
            unsigned stage = 0, phase = 1, k = 0, ordinal = 0;
#pragma unroll 1
            for (unsigned work = mine.first; work < count; work += mine.step, ++ordinal) {
                WSF_ANCHOR(ordinal);
                const int row = static_cast<int>((work % rows * CLUSTER + mine.rank) * TILE);
                const int column = static_cast<int>(work / rows * TILE);
#pragma unroll 1
                for (unsigned i = 0; i < trips; ++i, ++k) {
                    WSF_HOLD(0, 0, k);
                    barrier_wait(empty + stage * 8, phase);
                    WSF_HOLD(0, 1, k);
                    const unsigned to = tiles + stage * STAGE_BYTES;
                    WSF_HOLD(0, 2, k);
                    barrier_expect(full + stage * 8, STAGE_BYTES);
                    copy_tile(to, map_a, full + stage * 8, static_cast<int>(i * TILE_K), row);
                    copy_part(to + OPERAND_BYTES, map_b, full + stage * 8, static_cast<int>(i * TILE_K), column,
                              mine.rank);
                    WSF_HOLD(0, 3, k);
                    WSF_STORE(0, 0xf, k);
                    if (++stage == STAGES) {
                        stage = 0;
                        phase ^= 1;
                    }
                }
            }
            WSF_ANCHOR(ordinal);
        }
    } else if (warpgroup == 1) {
        consume<1>(tiles, full, empty, trips, c, n, rows, count WSF_INNER_ARG);
    } else {
        consume<2>(tiles, full, empty, trips, c, n, rows, count WSF_INNER_ARG);
    }
    // Nobody leaves while a CTA of the cluster may still copy into its memory or arrive on its barriers.
    synchronise();
    WSF_END();
}
