// SPDX-License-Identifier: Apache-2.0
// Runs benchmark cases on a backend: sequences of random tokens, each with blocks of its own.
#pragma once
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "app/open_backend.h"
#include "bench/case.h"
namespace hearth {

// Thread: one.
class BenchRunner {
 public:
  // Opens a backend with blocks for the largest case, and more for each case with a context, whose
  // blocks nobody else writes. `chunk` bounds the tokens of a step.
  static Result<BenchRunner> Make(const Model& model, BackendOptions options,
                                  std::span<const BenchCase> cases, int chunk);

  // Puts a case's context in place: computed when it has at most kMaxComputed tokens, else its
  // first tokens are computed and the rest of the blocks copied from theirs. Returns whether
  // anything was copied.
  static constexpr int kMaxComputed = 2048;
  Result<bool> Fill(int index);
  // Runs a case and returns its seconds; `most_steps` cuts it short, for warming up; a step of
  // prefill is a chunk.
  Result<double> Run(int index, int most_steps = 1 << 30);
  Backend& backend() { return *backend_; }

 private:
  using Tables = std::vector<BlockTable>;  // one per group
  struct Place {
    BenchCase what;
    std::vector<int> blocks;  // of each sequence, by group; used in turn in one with a window
    std::vector<Tables> sequences;
  };
  BenchRunner(std::unique_ptr<Backend> backend, std::vector<Place> places, int chunk)
      : backend_(std::move(backend)), places_(std::move(places)), chunk_(chunk) {}
  Token RandomToken();
  // Computes tokens [first, first + count) of a sequence, logits of the last if wanted.
  Status Prefill(const Tables& tables, int first, int count, bool wants_logits);
  Status DecodeStep(const Place& place, int position);
  // Copies blocks of each group, as (from, to), through host memory.
  struct BlockPair {
    int group;
    BlockId from, to;
  };
  Status CopyAll(std::span<const BlockPair> pairs);

  std::unique_ptr<Backend> backend_;
  std::vector<Place> places_;
  int chunk_;
  std::mt19937 random_{20261115};
};

}  // namespace hearth
