// SPDX-License-Identifier: Apache-2.0
#include "quantize/choose.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

Target To(const char* word, Profile profile = Profile::kAll) {
  auto target = ParseTarget(word);
  EXPECT_TRUE(target.ok());
  target->profile = profile;
  return *target;
}

DType Chosen(const char* name, int64_t cols, DType from, const Target& target, int rank = 2) {
  return ChooseFormat({name, from, rank, cols}, target).dtype;
}

TEST(Choose, GivesMatricesTheTarget) {
  EXPECT_EQ(Chosen("blk.0.attn_q.weight", 512, DType::kF16, To("int4")), DType::kQ4_K);
  EXPECT_EQ(Chosen("blk.0.attn_q.weight", 512, DType::kF16, To("Q5_K")), DType::kQ5_K);
  EXPECT_EQ(Chosen("blk.0.ffn_up_exps.weight", 512, DType::kF16, To("mxfp4"), 3), DType::kMxfp4);
  EXPECT_EQ(Chosen("blk.0.attn_q.weight", 512, DType::kF16, To("keep")), DType::kF16);
}

TEST(Choose, LeavesWhatIsSmallOrPicks) {
  for (const char* name : {"blk.0.ffn_gate_inp.weight", "blk.0.attn_norm.weight",
                           "blk.0.ffn_up_exps.bias", "rope_freqs.weight", "blk.0.attn_sinks"}) {
    EXPECT_EQ(Chosen(name, 512, DType::kF32, To("int4")), DType::kF32) << name;
  }
  EXPECT_EQ(Chosen("output_b.weight", 512, DType::kF32, To("int4"), 1), DType::kF32);
}

TEST(Choose, NeverAddsBits) {
  EXPECT_EQ(Chosen("blk.0.ffn_up_exps.weight", 2880, DType::kMxfp4, To("int8")), DType::kMxfp4);
  EXPECT_EQ(Chosen("blk.0.attn_q.weight", 512, DType::kQ4_0, To("int4")), DType::kQ4_0);
  EXPECT_EQ(Chosen("blk.0.attn_q.weight", 512, DType::kF16, To("f32")), DType::kF16);
}

TEST(Choose, KeepsSixBitsForTheVocabulary) {
  EXPECT_EQ(Chosen("token_embd.weight", 512, DType::kF16, To("int4")), DType::kQ6_K);
  EXPECT_EQ(Chosen("output.weight", 512, DType::kF16, To("int8")), DType::kQ8_0);
  EXPECT_EQ(Chosen("output.weight", 576, DType::kF16, To("q5_1")), DType::kQ8_0);
}

TEST(Choose, FallsBackWhereRowsDoNotFit) {
  EXPECT_EQ(Chosen("blk.0.attn_q.weight", 576, DType::kF16, To("int4")), DType::kQ4_1);
  EXPECT_EQ(Chosen("blk.0.attn_q.weight", 576, DType::kF16, To("q5_k")), DType::kQ5_1);
  EXPECT_EQ(Chosen("blk.0.attn_q.weight", 576, DType::kF16, To("q6_k")), DType::kQ8_0);
  EXPECT_EQ(Chosen("blk.0.attn_q.weight", 40, DType::kF32, To("int4")), DType::kF16);
}

TEST(Choose, SmallLeavesTheExperts) {
  const Target small = To("int4", Profile::kSmall);
  EXPECT_EQ(Chosen("blk.0.ffn_up_exps.weight", 2880, DType::kF16, small, 3), DType::kF16);
  EXPECT_EQ(Chosen("blk.0.attn_q.weight", 2880, DType::kQ8_0, small), DType::kQ4_1);
  EXPECT_EQ(Chosen("output.weight", 2880, DType::kQ8_0, small), DType::kQ4_1);
}

TEST(Choose, RaisesThoseThatLoseMost) {
  std::vector<TensorShape> tensors(5, {"blk.0.attn_q.weight", DType::kF16, 2, 512});
  std::vector<Choice> choices(5, {DType::kQ4_K, ""});
  std::vector<std::optional<double>> errors{0.07, 0.07, 0.071, 0.1, std::nullopt};
  EXPECT_EQ(RaiseWorst(tensors, errors, choices), 1);
  EXPECT_EQ(choices[3].dtype, DType::kQ5_K);
  EXPECT_EQ(choices[0].dtype, DType::kQ4_K);
  // Not beyond what the tensor had.
  tensors[0].dtype = DType::kQ5_0;
  choices[0] = choices[3] = {DType::kQ4_K, ""};
  errors[0] = 0.2;
  EXPECT_EQ(RaiseWorst(tensors, errors, choices), 0);
  EXPECT_EQ(choices[0].dtype, DType::kQ4_K);
}

TEST(Choose, NamesWhatThereIs) {
  const auto wrong = ParseTarget("int3");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("int4"), std::string::npos);
}

}  // namespace
}  // namespace hearth
