// SPDX-License-Identifier: Apache-2.0
// The promise of bits on real and tiny models.
#include <gtest/gtest.h>

#include "bitwise_runs.h"
#include "testing/data.h"
#include "testing/rounds.h"

namespace hearth {
namespace {

using ::hearth::testing::DataPath;
using ::hearth::testing::WorkPath;

void Compare(const std::string& path, int max_tokens, int max_batch, int cases,
             KvCode kv_code = KvCode::kInt16, Numerics numerics = Numerics::kExact) {
  HEARTH_SKIP_WITHOUT(path);
  testing::CompareBits(path, max_tokens, max_batch, QuickRounds(cases), kv_code, numerics);
}

TEST(Bitwise, TinyOssMxfp4) { Compare(DataPath("golden/tiny-oss-mxfp4.gguf"), 70, 64, 1500); }
TEST(Bitwise, TinyOssF32) { Compare(DataPath("golden/tiny-oss-f32.gguf"), 40, 64, 300); }
TEST(Bitwise, TinyOssLongContext) { Compare(DataPath("golden/tiny-oss-mxfp4.gguf"), 600, 8, 40); }
TEST(Bitwise, TinyOssInt8Kv) {
  Compare(DataPath("golden/tiny-oss-mxfp4.gguf"), 70, 64, 300, KvCode::kInt8);
}
TEST(Bitwise, TinyOssInt8KvLongContext) {
  Compare(DataPath("golden/tiny-oss-mxfp4.gguf"), 600, 8, 20, KvCode::kInt8);
}
TEST(Bitwise, TinyOssFast) {
  Compare(DataPath("golden/tiny-oss-mxfp4.gguf"), 70, 64, 600, KvCode::kInt16, Numerics::kFast);
}
TEST(Bitwise, TinyOssFastInt8Kv) {
  Compare(DataPath("golden/tiny-oss-mxfp4.gguf"), 70, 64, 200, KvCode::kInt8, Numerics::kFast);
}
TEST(Bitwise, SmolLm2Fast) {
  Compare(WorkPath("smollm2.gguf"), 12, 8, 24, KvCode::kInt16, Numerics::kFast);
}
TEST(Bitwise, Stories15MQ8) { Compare(DataPath("models/stories15M-q8_0.gguf"), 24, 16, 120); }
TEST(Bitwise, Stories15MMxfp4) { Compare(DataPath("models/stories15M-mxfp4.gguf"), 24, 16, 60); }
TEST(Bitwise, SmolLm2) { Compare(WorkPath("smollm2.gguf"), 12, 8, 24); }

}  // namespace
}  // namespace hearth
