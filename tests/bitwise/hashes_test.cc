// SPDX-License-Identifier: Apache-2.0
// Logits stay what they were: their hashes, for every golden model and weight format, are kept in
// hashes.txt. They change with the numerics version only; HEARTH_WRITE_HASHES=FILE writes them
// anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include "cpu/cpu_backend.h"
#include "format_models.h"
#include "model/model.h"
#include "testing/data.h"
#include "testing/loaded_model.h"
#include "testing/step_logits.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using Hashes = std::map<std::string, std::vector<uint64_t>>;  // by model, one for each sequence

constexpr int kSequences = 13;
constexpr int kLengths[kSequences] = {1, 2, 3, 5, 8, 13, 15, 16, 17, 31, 33, 47, 150};

std::vector<std::vector<Token>> TokensOf(const ModelSpec& spec) {
  std::mt19937 random(20261116);
  std::vector<std::vector<Token>> sequences;
  for (const int length : kLengths) {
    auto& tokens = sequences.emplace_back();
    for (int i = 0; i < std::min(length, spec.max_context); ++i) {
      tokens.push_back(static_cast<Token>(random() % static_cast<uint32_t>(spec.vocab_size)));
    }
  }
  return sequences;
}

uint64_t HashOf(std::span<const float> values) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over 32-bit words
  for (const float value : values) hash = (hash ^ std::bit_cast<uint32_t>(value)) * 0x100000001b3u;
  return hash;
}

// All sequences in one step, each with all its logits.
std::vector<uint64_t> Compute(const Model& model, Isa isa) {
  const auto sequences = TokensOf(model.spec);
  std::vector<std::vector<BlockTable>> tables;  // by sequence and group
  const size_t num_groups = CpuKvLayout(model.spec).groups.size();
  int num_blocks = 0;
  StepPlan plan;
  for (const auto& tokens : sequences) {
    BlockTable table;
    for (size_t at = 0; at < tokens.size(); at += kDefaultBlockTokens) {
      table.push_back(static_cast<BlockId>(num_blocks++));
    }
    tables.emplace_back(num_groups, table);
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    SeqSlice slice;
    slice.first = slice.first_row = plan.num_rows;
    slice.count = slice.num_rows = static_cast<int>(sequences[i].size());
    slice.tables = tables[i];
    plan.num_rows += slice.count;
    plan.tokens.insert(plan.tokens.end(), sequences[i].begin(), sequences[i].end());
    plan.slices.push_back(slice);
  }
  CpuOptions options;
  options.isa = isa;
  options.num_threads = 2;
  options.kv_blocks = {num_blocks};
  Result<std::unique_ptr<Backend>> backend = MakeCpuBackend(model, options);
  EXPECT_TRUE(backend.ok()) << backend.status().message();
  if (!backend.ok()) return {};
  const auto vocab = static_cast<size_t>(model.spec.vocab_size);
  const std::vector<float> logits = testing::LogitsOf(**backend, plan);
  std::vector<uint64_t> hashes;
  for (const SeqSlice& slice : plan.slices) {
    hashes.push_back(HashOf(std::span(logits).subspan(static_cast<size_t>(slice.first_row) * vocab,
                                                      static_cast<size_t>(slice.count) * vocab)));
  }
  return hashes;
}

Hashes ReadHashes() {
  std::ifstream in(testing::RepoPath("tests/bitwise/hashes.txt"));
  Hashes hashes;
  std::string model;
  for (uint64_t hash; in >> model >> std::hex >> hash;) hashes[model].push_back(hash);
  return hashes;
}

class LogitHashes : public ::testing::Test {
 protected:
  void Compare(const std::string& name, const std::string& path) {
    const Model model = testing::LoadedModel(path);
    if (const char* out = std::getenv("HEARTH_WRITE_HASHES")) {
      std::ofstream text(out, std::ios::app);
      for (const uint64_t hash : Compute(model, Isa::kScalar)) {
        text << name << ' ' << std::hex << hash << '\n';
      }
      return;
    }
    static const Hashes known = ReadHashes();
    ASSERT_TRUE(known.contains(name)) << "tests/bitwise/hashes.txt lacks " << name;
    ASSERT_EQ(known.at(name).size(), static_cast<size_t>(kSequences));
    for (const Isa isa : SupportedIsas()) {
      EXPECT_EQ(Compute(model, isa), known.at(name)) << name << " on " << NameOf(isa);
      compared_ += kSequences;
    }
  }
  void TearDown() override {
    if (compared_ == 0) return;
    std::printf("%d sequences on %zu instruction sets have the hashes kept\n", compared_,
                SupportedIsas().size());
    if (BestIsa() < Isa::kAmx)
      std::printf("SKIPPED LOUDLY: no level above %s\n", NameOf(BestIsa()));
  }

 private:
  int compared_ = 0;
};

TEST_F(LogitHashes, OfModelFamilies) {
  const std::string families = testing::RepoPath("tests/fixtures/families");
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(families)) {
    const std::string name = entry.path().filename();
    Compare(name + "/hf", entry.path() / "hf");
    if (std::filesystem::exists(entry.path() / "model.gguf")) {
      Compare(name + "/gguf", entry.path() / "model.gguf");
    }
    ++seen;
  }
  EXPECT_GE(seen, 10);
}

TEST_F(LogitHashes, OfWeightFormats) {
  const testing::TempDir dir;
  for (const DType dtype : testing::kFastFormats) {
    for (const char* arch : {"llama", "qwen3moe"}) {
      const std::string name = std::string(arch) + "-" + NameOf(dtype);
      const std::string path = dir.Path(name + ".gguf");
      std::ofstream(path, std::ios::binary) << testing::FormatModel::Build(arch, dtype, 7);
      Compare(name, path);
    }
  }
}

class SharedModels : public LogitHashes, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Golden, SharedModels,
                         ::testing::Values("golden/tiny-oss-mxfp4", "golden/tiny-oss-f32",
                                           "models/stories15M-q8_0", "models/stories15M-mxfp4"));

TEST_P(SharedModels, HaveTheirHashes) {
  const std::string path = testing::DataPath(std::string(GetParam()) + ".gguf");
  HEARTH_SKIP_WITHOUT(path);
  Compare(GetParam(), path);
}

}  // namespace
}  // namespace hearth
