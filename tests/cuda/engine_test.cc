// SPDX-License-Identifier: Apache-2.0
// The real engine on the CUDA backend and the mock driver: what requests hear among neighbours,
// with chunked prompts, prefix hits, preemption, cancels, drafts and grammars, is what they heard
// alone on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "backend_rig.h"
#include "bits_cases.h"
#include "grammar/compiler.h"
#include "grammar/grammar_mask.h"
#include "super_models.h"
#include "testing/byte_tokenizer.h"
#include "testing/data.h"
#include "testing/temp_dir.h"

namespace hearth::cuda {
namespace {

using testing::BitsTest;
using testing::World;

bool IsSlow() { return std::getenv("HEARTH_CUDA_FULL") != nullptr; }

World OnGpu(World world) {
  world.open = [](const Model& model, const World& wanted) {
    RigOptions rig;
    rig.max_step_tokens = wanted.max_step_tokens;
    rig.max_rows = 16;
    rig.blocks = wanted.full_blocks;
    return OpenMocked(model, rig);
  };
  return world;
}

// A grammar over bytes for models whose tokens are others: those that are no bytes are never
// allowed.
class ByteMask final : public TokenMask {
 public:
  explicit ByteMask(std::unique_ptr<TokenMask> bytes) : bytes_(std::move(bytes)) {}
  Status Fill(std::span<uint32_t> bits) override {
    std::vector<uint32_t> bytes(MaskWords(Bytes().vocab_size()));
    HEARTH_TRY(bytes_->Fill(bytes));
    std::fill(bits.begin(), bits.end(), 0u);
    std::copy_n(bytes.begin(), std::min(bits.size(), bytes.size()), bits.begin());
    return Status();
  }
  bool Accept(Token token) override {
    return token < Bytes().vocab_size() && bytes_->Accept(token);
  }
  bool is_finished() const override { return bytes_->is_finished(); }
  std::unique_ptr<TokenMask> Clone() const override {
    return std::make_unique<ByteMask>(bytes_->Clone());
  }
  static const testing::ByteTokenizer& Bytes() {
    static const testing::ByteTokenizer tokenizer;
    return tokenizer;
  }

 private:
  std::unique_ptr<TokenMask> bytes_;
};

// JSON of a schema, a regular expression, a choice; with a vocabulary that has not all bytes, words
// of punctuation without end.
std::vector<BitsTest::NewMask> Masks(int vocab_size) {
  static const auto vocabulary = *GrammarVocabulary::Make(ByteMask::Bytes());
  static GrammarCompiler compiler(vocabulary);
  std::vector<BitsTest::NewMask> masks;
  const bool is_small = vocab_size < ByteMask::Bytes().vocab_size();
  Result<std::shared_ptr<const Grammar>> small[] = {compiler.Regex("[!-/]+"),
                                                    compiler.Regex("([!-/] )+")};
  Result<std::shared_ptr<const Grammar>> grammars[] = {
      compiler.SchemaText(R"({"type":"object","properties":{"a":{"type":"integer"}}})"),
      compiler.Regex("[a-f0-9]{2,20}"), compiler.Choice({"yes", "no", "perhaps"})};
  using Made = std::span<Result<std::shared_ptr<const Grammar>>>;
  for (auto& made : is_small ? Made(small) : Made(grammars)) {
    EXPECT_TRUE(made.ok()) << made.status().message();
    masks.push_back([grammar = *made] {
      return std::make_shared<ByteMask>(MakeGrammarMask(grammar, {vocabulary->end()}));
    });
  }
  return masks;
}

void Compare(const char* name, BitsTest& test, int cases, int requests, int per_world, int ample) {
  test.UseMasks(Masks(test.vocab_size()));
  test.RepeatPhrases();
  test.Define(cases);
  int compared = 0;
  for (int step_tokens = 33; compared < requests && !::testing::Test::HasFailure();) {
    World world;
    world.full_blocks = world.window_blocks = step_tokens == 33 ? ample / 4 : ample;
    world.max_step_tokens = step_tokens;
    world.max_sequences = 8;
    world.fixed_draft = 2;
    compared += test.Compare(per_world, OnGpu(world));
    step_tokens = step_tokens == 33 ? 64 : 33;
  }
  test.Tell(name, compared);
  EXPECT_GT(test.num_hits(), 0);
  EXPECT_GT(test.num_masked(), 0);
  EXPECT_GT(test.num_drafted(), 0);
  if (IsSlow()) {
    EXPECT_GT(test.num_preempted(), 0);  // that needs many requests
  }
}

TEST(CudaEngine, TinyOssHearsTheCpusTokens) {
  BitsTest test(TinyOss(), 1, IsSlow() ? 40 : 24, IsSlow() ? 8 : 3);
  if (IsSlow()) {
    Compare("tiny-oss", test, 60, 600, 150, 48);
  } else {
    Compare("tiny-oss", test, 8, 10, 10, 12);
  }
}

TEST(CudaEngine, Stories15MHearsTheCpusTokens) {
  const std::string path = testing::DataPath("models/stories15M-q8_0.gguf");
  HEARTH_SKIP_WITHOUT(path);
  BitsTest test(path, 2, 24, 3);
  if (!IsSlow()) GTEST_SKIP() << "only in slow.cuda.backend";
  Compare("stories15M q8_0", test, 40, 500, 100, 24);
}

TEST(CudaEngine, Stories15MInMxfp4HearsTheCpusTokens) {
  const std::string path = testing::WorkPath("stories15M-mxfp4.gguf");
  HEARTH_SKIP_WITHOUT(path);
  BitsTest test(path, 3, 24, 3);
  if (!IsSlow()) GTEST_SKIP() << "only in slow.cuda.backend";
  Compare("stories15M mxfp4", test, 40, 500, 100, 24);
}

TEST(CudaEngine, KQuantsHearTheCpusTokens) {
  if (!IsSlow()) GTEST_SKIP() << "only in slow.cuda.backend";
  const testing::TempDir dir;
  dir.Write("supers.gguf", RandomSupers(WideModel("llama", kMixedQ4K), 6));
  BitsTest test(dir.Path("supers.gguf"), 4, 40, 8);
  Compare("a llama of Q4_K and Q6_K", test, 60, 500, 100, 48);
}

}  // namespace
}  // namespace hearth::cuda
