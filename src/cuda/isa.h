// SPDX-License-Identifier: Apache-2.0
// Every machine operation that CUDA kernels use, each with its host twin. nvcc takes the first half
// of a function; any other compiler takes the second, and tests/cuda defines what stands in
// namespace `host`. Kernels name no PTX and no built-in variable themselves.
#pragma once
#include <cstdint>
#ifdef __CUDACC__
#define HEARTH_DEVICE __device__ __forceinline__
#else
#define HEARTH_DEVICE inline
#include "base/num.h"
#endif
namespace hearth::cuda {

#ifndef __CUDACC__
// What a thread asks of the machine that runs it. `site` is the line of the call: threads that meet
// in an operation must come from the same one.
namespace host {
struct Index {
  int thread, block_x, block_y, block_z;
};
const Index& Here();
uint8_t* SharedMemory();
void Barrier(int site);
uint32_t Shuffle(uint32_t value, int source_lane, int site);
void Mma(int32_t* sums, const uint32_t* a, const uint32_t* b, int site);
void MmaHalf(float* sums, const uint32_t* a, const uint32_t* b, int site);
void CopyAsync16(void* shared, const void* global);
void CopyCommit();
void CopyWait(int most_pending);
void SharedAdd(int32_t* at, int32_t value);
int32_t Arrive(int32_t* at);
}  // namespace host
#endif

constexpr int kWarp = 32;

HEARTH_DEVICE int Thread() {
#ifdef __CUDACC__
  return static_cast<int>(threadIdx.x);
#else
  return host::Here().thread;
#endif
}
HEARTH_DEVICE int BlockX() {
#ifdef __CUDACC__
  return static_cast<int>(blockIdx.x);
#else
  return host::Here().block_x;
#endif
}
HEARTH_DEVICE int BlockY() {
#ifdef __CUDACC__
  return static_cast<int>(blockIdx.y);
#else
  return host::Here().block_y;
#endif
}
HEARTH_DEVICE int BlockZ() {
#ifdef __CUDACC__
  return static_cast<int>(blockIdx.z);
#else
  return host::Here().block_z;
#endif
}

// The block's shared memory, as many bytes as the launch asked for, 16-byte aligned.
HEARTH_DEVICE uint8_t* SharedMemory() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) uint8_t hearth_shared[];
  return hearth_shared;
#else
  return host::SharedMemory();
#endif
}

// All threads of the block.
HEARTH_DEVICE void Barrier([[maybe_unused]] int site = __builtin_LINE()) {
#ifdef __CUDACC__
  __syncthreads();
#else
  host::Barrier(site);
#endif
}

// The value of lane `lane ^ mask`; all 32 lanes call it.
HEARTH_DEVICE uint32_t ShuffleXor(uint32_t value, int mask,
                                  [[maybe_unused]] int site = __builtin_LINE()) {
#ifdef __CUDACC__
  return __shfl_xor_sync(0xffffffffu, value, mask);
#else
  return host::Shuffle(value, (Thread() % kWarp) ^ mask, site);
#endif
}

// One product of tiles: sums[16 x 8] += a[16 x 32] * b[32 x 8], signed bytes, wrapping int32.
// With g = lane / 4 and t = lane % 4, a lane holds
//   a: rows g, g + 8, g, g + 8 of columns 4t, 4t, 16 + 4t, 16 + 4t (four bytes each)
//   b: rows 4t and 16 + 4t (four bytes each) of column g
//   sums: rows g, g, g + 8, g + 8 of columns 2t, 2t + 1, 2t, 2t + 1
// sm_75 has no such instruction; there it is four products of 8 x 16 by 16 x 8.
HEARTH_DEVICE void Mma(int32_t* sums, const uint32_t* a, const uint32_t* b,
                       [[maybe_unused]] int site = __builtin_LINE()) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif defined(__CUDACC__)
  for (int half = 0; half < 2; ++half) {
    for (int k = 0; k < 2; ++k) {
      asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
          : "+r"(sums[2 * half]), "+r"(sums[2 * half + 1])
          : "r"(a[2 * k + half]), "r"(b[k]));
    }
  }
#else
  host::Mma(sums, a, b, site);
#endif
}

// The same of halves: sums[16 x 8] += a[16 x 16] * b[16 x 8] in floats. How the sums inside are
// rounded is not specified. A lane holds, with two values a word,
//   a: rows g, g + 8, g, g + 8 of columns 2t, 2t, 8 + 2t, 8 + 2t
//   b: rows 2t and 8 + 2t of column g
//   sums: as above
// sm_75 takes half of the columns at a time.
HEARTH_DEVICE void MmaHalf(float* sums, const uint32_t* a, const uint32_t* b,
                           [[maybe_unused]] int site = __builtin_LINE()) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif defined(__CUDACC__)
  for (int k = 0; k < 2; ++k) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
  }
#else
  host::MmaHalf(sums, a, b, site);
#endif
}

// Sixteen bytes from global to shared memory, there once CopyWait says so; both 16-byte aligned.
// sm_75 copies at once.
HEARTH_DEVICE void CopyAsync16(void* shared, const void* global) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
#elif defined(__CUDACC__)
  *static_cast<int4*>(shared) = *static_cast<const int4*>(global);
#else
  host::CopyAsync16(shared, global);
#endif
}
// Ends a group of copies of this thread.
HEARTH_DEVICE void CopyCommit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#elif !defined(__CUDACC__)
  host::CopyCommit();
#endif
}
// Until at most kPending of this thread's groups are under way.
template <int kPending>
HEARTH_DEVICE void CopyWait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#elif !defined(__CUDACC__)
  host::CopyWait(kPending);
#endif
}

// Adds to a word of shared memory in one piece. Integers: whoever comes first, the sum is the same.
HEARTH_DEVICE void SharedAdd(int32_t* at, int32_t value) {
#ifdef __CUDACC__
  atomicAdd(at, value);
#else
  host::SharedAdd(at, value);
#endif
}

// Adds one to a word of global memory in one piece and returns what was there. Releases and
// acquires at the device: what a block wrote before a barrier and an arrival is seen by every block
// that arrives at the same word later, behind its next barrier.
HEARTH_DEVICE int32_t Arrive(int32_t* at) {
#ifdef __CUDACC__
  int32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(at) : "memory");
  return before;
#else
  return host::Arrive(at);
#endif
}

// Byte i of the result is the byte of (b, a) that nibble i of `selector` names, 0-3 in a and 4-7 in
// b; with the nibble's upper bit set it is that byte's sign, eight times.
HEARTH_DEVICE uint32_t Permute(uint32_t a, uint32_t b, uint32_t selector) {
#ifdef __CUDACC__
  uint32_t out;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(selector));
  return out;
#else
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t nibble = selector >> (4 * i) & 15u;
    auto byte = static_cast<uint32_t>(both >> (8 * (nibble & 7u)) & 255u);
    if ((nibble & 8u) != 0) byte = (byte & 128u) != 0 ? 255u : 0u;
    out |= byte << (8 * i);
  }
  return out;
#endif
}

// Rounded once. Everything else is + - * /, which nothing fuses: nvcc runs with -fmad=false.
HEARTH_DEVICE float Fma(float a, float b, float c) {
#ifdef __CUDACC__
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
HEARTH_DEVICE float Sqrt(float x) {
#ifdef __CUDACC__
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}
HEARTH_DEVICE float FloatOfHalf(uint16_t bits) {
#ifdef __CUDACC__
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(bits));
  return out;
#else
  return F32FromF16(bits);
#endif
}

HEARTH_DEVICE uint16_t HalfOfFloat(float x) {
#ifdef __CUDACC__
  uint16_t out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
  return out;
#else
  return F16FromF32(x);
#endif
}

// Eight bytes, aligned, of weights: read once, so they need not stay in L1.
struct alignas(8) Words2 {
  uint32_t x, y;
};
HEARTH_DEVICE Words2 LoadOnce(const uint8_t* at) {
#ifdef __CUDACC__
  Words2 out;
  asm("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(out.x), "=r"(out.y) : "l"(at));
  return out;
#else
  return *reinterpret_cast<const Words2*>(at);
#endif
}

// Sixteen, aligned, of a cache.
struct alignas(16) Words4 {
  uint32_t x, y, z, w;
};
HEARTH_DEVICE Words4 LoadOnce16(const uint16_t* at) {
#ifdef __CUDACC__
  Words4 out;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
      : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
      : "l"(at));
  return out;
#else
  return *reinterpret_cast<const Words4*>(at);
#endif
}

}  // namespace hearth::cuda
