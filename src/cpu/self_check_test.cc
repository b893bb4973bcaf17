// SPDX-License-Identifier: Apache-2.0
#include "cpu/self_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <utility>

#include "cpu/kernel_choice.h"
#include "platform/isa.h"
#include "testing/rounds.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

TEST(SelfCheck, EveryTableHereEqualsTheScalarOne) {
  for (const Isa isa : SupportedIsas()) {
    EXPECT_EQ(FirstDifference(KernelsOf(isa)), "") << NameOf(isa);
  }
}

// The last bit of one result, wrong: each kernel in turn.
void FlipLastBit(float& value) { value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ 1); }

TEST(SelfCheck, OneWrongBitInAnyKernelIsFound) {
  KernelTable table = ScalarKernels();
  table.rms_norm = [](const float* x, const float* gain, float eps, int n, float* y) {
    ScalarKernels().rms_norm(x, gain, eps, n, y);
    FlipLastBit(y[n - 1]);
  };
  EXPECT_EQ(FirstDifference(table), "the norm");
  table = ScalarKernels();
  table.glu = [](const float* gate, const float* up, float alpha, float limit, int n, float* z) {
    ScalarKernels().glu(gate, up, alpha, limit, n, z);
    if (limit > 0) FlipLastBit(z[3]);
  };
  EXPECT_EQ(FirstDifference(table), "the activation");
  table = ScalarKernels();
  table.rope = [](float* head, const float* cos, const float* sin, int n_dims, bool neighbours) {
    ScalarKernels().rope(head, cos, sin, n_dims, neighbours);
    if (neighbours) FlipLastBit(head[1]);
  };
  EXPECT_EQ(FirstDifference(table), "the rotation");
  table = ScalarKernels();
  table.softmax = [](float* values, int n) {
    const bool ok = ScalarKernels().softmax(values, n);
    FlipLastBit(values[0]);
    return ok;
  };
  EXPECT_EQ(FirstDifference(table), "the softmax");
  table = ScalarKernels();
  table.add_scaled = [](const float* x, float factor, int n, float* y) {
    ScalarKernels().add_scaled(x, factor, n, y);
    FlipLastBit(y[n / 2]);
  };
  EXPECT_EQ(FirstDifference(table), "the sum");
  table = ScalarKernels();
  table.dot_rows = [](const float* w, const float* x, int64_t stride, int cols, int m, float* y) {
    ScalarKernels().dot_rows(w, x, stride, cols, m, y);
    FlipLastBit(y[0]);
  };
  EXPECT_EQ(FirstDifference(table), "the dot product");
  table = ScalarKernels();
  table.attend = [](const AttendArgs& args, int kv_begin, int kv_end) {
    ScalarKernels().attend(args, kv_begin, kv_end);
    if (args.window > 0) FlipLastBit(args.out[0]);
  };
  EXPECT_EQ(FirstDifference(table), "attention");
  table = ScalarKernels();
  table.attend_int8 = [](const AttendArgs& args, int kv_begin, int kv_end) {
    ScalarKernels().attend_int8(args, kv_begin, kv_end);
    if (args.window > 0) FlipLastBit(args.out[0]);
  };
  EXPECT_EQ(FirstDifference(table), "attention over int8");
  table = ScalarKernels();
  table.quantise = [](const float* values, const Activations& x, int row) {
    ScalarKernels().quantise(values, x, row);
    x.lo[x.stride * row] ^= 1;
  };
  EXPECT_THAT(FirstDifference(table), HasSubstr("the product of"));
}

TEST(SelfCheck, AWrongProductOfAnyFormatIsFound) {
  constexpr size_t kEach = Rounds(5) == 5 ? 1 : 5;  // sanitizers make the scalar table slow
  for (size_t kind = 0; kind < kNumPackKinds; kind += kEach) {
    if (ScalarKernels().matmul[kind] == nullptr) continue;
    KernelTable table = ScalarKernels();
    table.matmul[kind] = [](const MatmulArgs& args, int begin, int end) {
      ScalarKernels().matmul[static_cast<size_t>(args.w->kind)](args, begin, end);
      FlipLastBit(args.y[args.w->rows - 1]);
    };
    EXPECT_THAT(FirstDifference(table), HasSubstr("the product of")) << "kind " << kind;
    if (ScalarKernels().fast.matmul[kind] == nullptr) continue;
    std::swap(table.fast.matmul[kind], table.matmul[kind]);
    EXPECT_THAT(FirstDifference(table), HasSubstr("the fast product of")) << "kind " << kind;
  }
}

}  // namespace
}  // namespace hearth
