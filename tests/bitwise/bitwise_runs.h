// SPDX-License-Identifier: Apache-2.0
// Logits of a sequence, bit for bit: alone on the scalar kernels against any batch, slicing, block
// placement, thread count, number of memory nodes and instruction set.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>

#include "cpu/cpu_backend.h"
#include "model/model.h"
#include "testing/loaded_model.h"
#include "testing/step_logits.h"

namespace hearth::testing {

inline constexpr int kChunks[] = {1, 7, 16, 64, 512};
inline constexpr int kThreads[] = {1, 2, 3};
// Memory nodes that weights are placed on; more than the machine has are pretended.
inline constexpr int kNodes[] = {1, 2, 3};

struct Sequence {
  std::vector<Token> tokens;
  std::vector<float> logits;  // [tokens, vocab]: the definition's
};

struct Running {
  const Sequence* sequence;
  std::vector<BlockTable> tables;  // one per group
  int num_computed = 0;
  bool done() const { return num_computed == static_cast<int>(sequence->tokens.size()); }
};

class BitwiseRuns {
 public:
  BitwiseRuns(const std::string& path, int num_sequences, int max_tokens, uint32_t seed,
              KvCode kv_code, Numerics numerics = Numerics::kExact)
      : random_(seed), model_(LoadedModel(path)), kv_code_(kv_code), numerics_(numerics) {
    Define(num_sequences, max_tokens);
  }

  // One batch of `size` sequences, cut and placed at random. Returns how many were compared.
  int RunBatch(Isa isa, int num_threads, int num_nodes, int size) {
    Result<std::unique_ptr<Backend>> backend = Make(isa, num_threads, num_nodes, size);
    EXPECT_TRUE(backend.ok()) << backend.status().message();
    std::vector<Running> running = Place(size);
    const int chunk = kChunks[Pick(static_cast<int>(std::size(kChunks)))];
    while (!running.empty()) {
      Step(**backend, running, chunk, isa, num_threads);
      std::erase_if(running, [](const Running& r) { return r.done(); });
    }
    return size;
  }
  // From now on experts come from the model's packed file, into so much memory.
  void PageExperts(int64_t expert_bytes, std::shared_ptr<PagingMeter> meter) {
    expert_bytes_ = expert_bytes;
    meter_ = std::move(meter);
  }
  const Model& model() const { return model_; }
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

 private:
  int BlocksOf(const Sequence& s) const {
    return (static_cast<int>(s.tokens.size()) + kDefaultBlockTokens - 1) / kDefaultBlockTokens;
  }
  int MaxBlocks() const {
    int most = 0;
    for (const Sequence& s : sequences_) most = std::max(most, BlocksOf(s));
    return most;
  }
  Result<std::unique_ptr<Backend>> Make(Isa isa, int num_threads, int num_nodes, int size) const {
    CpuOptions options;
    options.isa = isa;
    options.num_threads = num_threads;
    options.numa_nodes = num_nodes;
    options.kv_blocks = {size * MaxBlocks()};
    options.kv_code = kv_code_;
    options.numerics = numerics_;
    options.max_step_tokens = 1 << 16;
    options.expert_bytes = expert_bytes_;
    options.paging = meter_;
    return MakeCpuBackend(model_, options);
  }

  void Define(int count, int max_tokens) {
    Result<std::unique_ptr<Backend>> backend = Make(Isa::kScalar, 2, 1, 1);
    for (int i = 0; i < count; ++i) {
      Sequence& s = sequences_.emplace_back();
      const int size = i == 0 ? max_tokens : 1 + Pick(max_tokens);
      for (int t = 0; t < size; ++t) s.tokens.push_back(Pick(model_.spec.vocab_size));
    }
    backend = Make(Isa::kScalar, 2, 1, 1);
    ASSERT_TRUE(backend.ok()) << backend.status().message();
    BlockTable table(static_cast<size_t>(MaxBlocks()));
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<BlockId>(i);
    const std::vector<BlockTable> tables((*backend)->kv_layout().groups.size(), table);
    for (Sequence& s : sequences_) {
      StepPlan plan;
      plan.tokens = s.tokens;
      SeqSlice slice;
      slice.count = slice.num_rows = plan.num_rows = static_cast<int>(s.tokens.size());
      slice.tables = tables;
      plan.slices.push_back(slice);
      s.logits = testing::LogitsOf(**backend, plan);
      ASSERT_EQ(s.logits.size(), s.tokens.size() * static_cast<size_t>(model_.spec.vocab_size));
      // Logits that are all NaN or all alike would be equal everywhere and show nothing.
      const auto [low, high] = std::minmax_element(s.logits.begin(), s.logits.end());
      ASSERT_TRUE(std::isfinite(*low) && std::isfinite(*high) && *low < *high);
    }
  }

  std::vector<Running> Place(int size) {
    std::vector<int> ids(static_cast<size_t>(size * MaxBlocks()));
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), random_);
    std::vector<Running> running;
    for (int i = 0; i < size; ++i) {
      Running& r = running.emplace_back();
      r.sequence = &sequences_[static_cast<size_t>(Pick(static_cast<int>(sequences_.size())))];
      BlockTable table;
      for (int b = 0; b < BlocksOf(*r.sequence); ++b) {
        table.push_back(static_cast<BlockId>(ids.back()));
        ids.pop_back();
      }
      r.tables.assign(CpuKvLayout(model_.spec).groups.size(), table);
    }
    return running;
  }

  // Blocks that no token from here on can see are given back, as a scheduler would.
  void ForgetOldBlocks(Running& r) const {
    const KvLayout layout = CpuKvLayout(model_.spec);
    for (size_t group = layout.has_full(); group < layout.groups.size(); ++group) {
      const int window = layout.groups[group].window;
      for (size_t b = 0; b < r.tables[group].size(); ++b) {
        const int last = static_cast<int>(b + 1) * kDefaultBlockTokens - 1;
        if (last < r.num_computed - window + 1) r.tables[group][b] = BlockId::kNone;
      }
    }
  }

  void Step(Backend& backend, std::vector<Running>& running, int chunk, Isa isa, int num_threads) {
    StepPlan plan;
    std::vector<Running*> chosen;
    for (Running& r : running) {
      if (running.size() > 1 && Pick(4) == 0) continue;  // sits this one out
      chosen.push_back(&r);
    }
    if (chosen.empty()) chosen.push_back(&running[0]);
    for (Running* r : chosen) {
      ForgetOldBlocks(*r);
      const int left = static_cast<int>(r->sequence->tokens.size()) - r->num_computed;
      SeqSlice slice;
      slice.first = static_cast<int>(plan.tokens.size());
      slice.count = std::min(left, 1 + Pick(chunk));
      slice.num_computed = r->num_computed;
      slice.tables = r->tables;
      slice.first_row = plan.num_rows;
      slice.num_rows = 1 + Pick(slice.count);
      plan.num_rows += slice.num_rows;
      const auto from = r->sequence->tokens.begin() + r->num_computed;
      plan.tokens.insert(plan.tokens.end(), from, from + slice.count);
      plan.slices.push_back(slice);
    }
    const auto vocab = static_cast<size_t>(model_.spec.vocab_size);
    const std::vector<float> logits = testing::LogitsOf(backend, plan);
    ASSERT_EQ(logits.size(), static_cast<size_t>(plan.num_rows) * vocab);
    for (size_t i = 0; i < chosen.size(); ++i) {
      const SeqSlice& slice = plan.slices[i];
      Running& r = *chosen[i];
      const size_t first =
          static_cast<size_t>(slice.num_computed + slice.count - slice.num_rows) * vocab;
      const size_t bytes = static_cast<size_t>(slice.num_rows) * vocab * sizeof(float);
      ASSERT_EQ(std::memcmp(&logits[static_cast<size_t>(slice.first_row) * vocab],
                            &r.sequence->logits[first], bytes),
                0)
          << "isa " << NameOf(isa) << ", " << num_threads << " threads, batch of " << running.size()
          << ", positions from " << slice.num_computed << ", " << slice.count << " tokens";
      r.num_computed += slice.count;
    }
  }

  std::mt19937 random_;
  Model model_;
  KvCode kv_code_;
  Numerics numerics_;
  int64_t expert_bytes_ = 0;
  std::shared_ptr<PagingMeter> meter_;
  std::vector<Sequence> sequences_;
};

// `cases` sequences over batches of up to `max_batch`, every instruction set, thread count and
// number of memory nodes.
inline void CompareBits(const std::string& path, int max_tokens, int max_batch, int cases,
                        KvCode kv_code = KvCode::kInt16, Numerics numerics = Numerics::kExact) {
  if (BestIsa() < Isa::kAmx) {
    std::printf("SKIPPED LOUDLY: this machine's best is %s, higher levels are not compared\n",
                NameOf(BestIsa()));
  }
  BitwiseRuns runs(path, 8, max_tokens, 20261115, kv_code, numerics);
  if (::testing::Test::HasFailure()) return;
  const std::vector<Isa> isas = SupportedIsas();
  int done = 0, round = 0;
  while (done < cases && !::testing::Test::HasFailure()) {
    const Isa isa = isas[static_cast<size_t>(round) % isas.size()];
    const int threads = kThreads[static_cast<size_t>(round / 2) % std::size(kThreads)];
    // The scalar level is slow; it takes part with small batches.
    const int most = isa == Isa::kScalar ? std::min(max_batch, 4) : max_batch;
    const int nodes = kNodes[static_cast<size_t>(round / 3) % std::size(kNodes)];
    done += runs.RunBatch(isa, threads, nodes, 1 + runs.Pick(most));
    ++round;
  }
  std::printf("%s, %s: %d sequences in %d batches, 0 differing bits\n",
              path.substr(path.rfind('/') + 1).c_str(), NumericsName(numerics, kv_code).c_str(),
              done, round);
}

}  // namespace hearth::testing
