// What stamps cost by themselves: pairs of stamps with nothing, or a satisfied barrier wait, between. One warp.
//
// Role 0: events 0, 1 at once after each other. Role 1: an mbarrier wait that is satisfied long before. Each in a loop
// of its own; WSF_ROLES 2, WSF_EVENTS 2.
#include "wsformat_stamp.cuh"

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

extern "C" __global__ void __launch_bounds__(32) calibrate(unsigned trips WSF_PARAM) {
    WSF_BEGIN();
    WSF_WRITER(threadIdx.x == 0);
#pragma unroll 1
    for (unsigned k = 0; k < trips; ++k) {
        WSF_HOLD(0, 0, k);
        WSF_HOLD(0, 1, k);
        WSF_STORE(0, 0x3, k);
    }
    __shared__ alignas(8) unsigned long long barrier;
    const unsigned address = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address) : "memory");
        asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared::cta.b64 state, [%0];\n\t}" ::"r"(address)
                     : "memory");
    }
    __syncthreads();
#pragma unroll 1
    for (unsigned k = 0; k < trips; ++k) {
        WSF_HOLD(1, 0, k);
        asm volatile(
            "{\n\t.reg .pred p;\n"
            "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n\t@!p bra again;\n\t}" ::"r"(address)
            : "memory");
        WSF_HOLD(1, 1, k);
        WSF_STORE(1, 0x3, k);
    }
    WSF_END();
}
