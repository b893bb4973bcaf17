// SPDX-License-Identifier: Apache-2.0
// Everything that is compiled for GPUs, under the names by which the driver finds it. nvcc alone
// reads this file (cmake/cuda.cmake).
#include "cuda/attend.h"
#include "cuda/blocks.h"
#include "cuda/decode.h"
#include "cuda/experts.h"
#include "cuda/flash.h"
#include "cuda/floats.h"
#include "cuda/matmul.h"
#include "cuda/rope.h"
#include "cuda/route.h"
#include "cuda/rows.h"
#include "cuda/supers.h"
#include "cuda/top.h"

using namespace hearth::cuda;

extern "C" {

__global__ void __launch_bounds__(kRowThreads) hearth_norm(const __grid_constant__ NormArgs args) {
  NormKernel(args);
}
__global__ void __launch_bounds__(kRowThreads) hearth_glu(const __grid_constant__ GluArgs args) {
  GluKernel(args);
}
__global__ void __launch_bounds__(kWarp) hearth_rope(const __grid_constant__ RopeArgs args) {
  RopeKernel(args);
}
__global__ void __launch_bounds__(kAttendThreads)
    hearth_attend(const __grid_constant__ AttendArgs args) {
  AttendKernel(args);
}
__global__ void __launch_bounds__(kWarp) hearth_combine(const __grid_constant__ CombineArgs args) {
  CombineKernel(args);
}
__global__ void __launch_bounds__(kWarp) hearth_route(const __grid_constant__ RouteArgs args) {
  RouteKernel(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_mxfp4_few(const __grid_constant__ MatmulArgs args) {
  MatmulKernel<Mxfp4, 1>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_mxfp4_many(const __grid_constant__ MatmulArgs args) {
  MatmulKernel<Mxfp4, 4>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q8_few(const __grid_constant__ MatmulArgs args) {
  MatmulKernel<Q8, 1>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q8_many(const __grid_constant__ MatmulArgs args) {
  MatmulKernel<Q8, 4>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q40(const __grid_constant__ MatmulArgs args) {
  BlockMatmulKernel<WeightKind::kQ4_0>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q41(const __grid_constant__ MatmulArgs args) {
  BlockMatmulKernel<WeightKind::kQ4_1>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q50(const __grid_constant__ MatmulArgs args) {
  BlockMatmulKernel<WeightKind::kQ5_0>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q51(const __grid_constant__ MatmulArgs args) {
  BlockMatmulKernel<WeightKind::kQ5_1>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_iq4nl(const __grid_constant__ MatmulArgs args) {
  BlockMatmulKernel<WeightKind::kIq4Nl>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q2k(const __grid_constant__ MatmulArgs args) {
  SuperMatmulKernel<WeightKind::kQ2K, 1>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q3k_few(const __grid_constant__ MatmulArgs args) {
  SuperMatmulKernel<WeightKind::kQ3K, 1>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q3k_many(const __grid_constant__ MatmulArgs args) {
  SuperMatmulKernel<WeightKind::kQ3K, 4>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q4k(const __grid_constant__ MatmulArgs args) {
  SuperMatmulKernel<WeightKind::kQ4K, 1>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q5k(const __grid_constant__ MatmulArgs args) {
  SuperMatmulKernel<WeightKind::kQ5K, 1>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q6k_few(const __grid_constant__ MatmulArgs args) {
  SuperMatmulKernel<WeightKind::kQ6K, 1>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_q6k_many(const __grid_constant__ MatmulArgs args) {
  SuperMatmulKernel<WeightKind::kQ6K, 4>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_iq4xs_few(const __grid_constant__ MatmulArgs args) {
  SuperMatmulKernel<WeightKind::kIq4Xs, 1>(args);
}
__global__ void __launch_bounds__(kMatmulThreads)
    hearth_iq4xs_many(const __grid_constant__ MatmulArgs args) {
  SuperMatmulKernel<WeightKind::kIq4Xs, 4>(args);
}
__global__ void __launch_bounds__(kFloatThreads)
    hearth_f32(const __grid_constant__ FloatMatmulArgs args) {
  FloatMatmulKernel<WeightKind::kF32>(args);
}
__global__ void __launch_bounds__(kFloatThreads)
    hearth_f16(const __grid_constant__ FloatMatmulArgs args) {
  FloatMatmulKernel<WeightKind::kF16>(args);
}
__global__ void __launch_bounds__(kFloatThreads)
    hearth_bf16(const __grid_constant__ FloatMatmulArgs args) {
  FloatMatmulKernel<WeightKind::kBf16>(args);
}
__global__ void __launch_bounds__(kRowThreads)
    hearth_embed(const __grid_constant__ EmbedArgs args) {
  EmbedKernel(args);
}
__global__ void __launch_bounds__(kRowThreads) hearth_sort(const __grid_constant__ SortArgs args) {
  SortKernel(args);
}
__global__ void __launch_bounds__(kRowThreads)
    hearth_gather(const __grid_constant__ GatherArgs args) {
  GatherKernel(args);
}
__global__ void __launch_bounds__(kTopThreads) hearth_top(const __grid_constant__ TopArgs args) {
  TopKernel(args);
}
// Without a number of blocks ptxas spills on sm_80 to make room for more.
__global__ void __launch_bounds__(kRowThreads, 2)
    hearth_norm_route(const __grid_constant__ NormRouteArgs args) {
  NormRouteKernel(args);
}
// Without a number of blocks ptxas spills on sm_90 to make room for an eighth.
__global__ void __launch_bounds__(kAttendThreads, 6)
    hearth_decode(const __grid_constant__ DecodeArgs args) {
  DecodeKernel(args);
}
// Without a number of blocks ptxas spills on sm_120 to make room for a fifth.
__global__ void __launch_bounds__(kFlashThreads, 4)
    hearth_flash_64(const __grid_constant__ FlashArgs args) {
  FlashKernel<64>(args);
}
__global__ void __launch_bounds__(kFlashThreads, 2)
    hearth_flash_128(const __grid_constant__ FlashArgs args) {
  FlashKernel<128>(args);
}
__global__ void __launch_bounds__(kWarp)
    hearth_flash_reduce(const __grid_constant__ FlashArgs args) {
  FlashReduceKernel(args);
}

}  // extern "C"
