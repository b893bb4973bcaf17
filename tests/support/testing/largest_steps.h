// SPDX-License-Identifier: Apache-2.0
// The largest steps that a CPU backend is opened for, while the process gets no further memory.
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cpu/cpu_backend.h"
#include "model/model.h"
namespace hearth::testing {

// Sanitizers take address space as they like.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCanLimitMemory = false;
#else
inline constexpr bool kCanLimitMemory = true;
#endif

// Nothing but small change is left of the address space as long as one of these is there.
class NoMoreMemory {
 public:
  NoMoreMemory() {
    ::getrlimit(RLIMIT_AS, &before_);
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    constexpr uint64_t kChange = 512 << 10;  // less than any buffer of a step that grows
    limit.rlim_cur = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + kChange;
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~NoMoreMemory() { ::setrlimit(RLIMIT_AS, &before_); }
  NoMoreMemory(const NoMoreMemory&) = delete;
  NoMoreMemory& operator=(const NoMoreMemory&) = delete;

 private:
  rlimit before_{};
};

class LargestSteps {
 public:
  static constexpr int kTokens = 512, kRows = 200, kThreads = 3, kContext = 8192;

  explicit LargestSteps(const Model& model, Numerics numerics = Numerics::kExact)
      : model_(model), numerics_(numerics) {
    model_.spec.max_context = std::max(model_.spec.max_context, kContext);
  }

  // What went wrong, or an empty string: a step failed, or said something else than with memory
  // enough.
  std::string Wrong() {
    Result<std::unique_ptr<Backend>> ample = MakeCpuBackend(model_, options());
    Result<std::unique_ptr<Backend>> tight = MakeCpuBackend(model_, options());
    if (!ample.ok() || !tight.ok()) return ample.status().message() + tight.status().message();
    const std::vector<float> wanted = RunAll(**ample, nullptr);
    std::string failed;
    std::vector<float> found;
    found.reserve(wanted.size());
    {
      const NoMoreMemory limit;
      RunAll(**tight, &failed, &found);
    }
    if (!failed.empty()) return failed;
    return found == wanted && !wanted.empty() ? "" : "other bits than with memory enough";
  }

  CpuOptions options() const {
    CpuOptions options;
    options.isa = BestIsa();
    options.num_threads = kThreads;
    options.kv_blocks = {kShared + kBlocks + 2 * kPrompt};
    options.max_step_tokens = kTokens;
    options.max_rows = kRows;
    options.numerics = numerics_;
    return options;
  }

 private:
  static constexpr int kDepth = 6000, kDecoding = 3;
  static constexpr int kShared = kDepth / 16, kBlocks = kDecoding, kPrompt = kTokens / 16;

  struct Step {
    StepPlan plan;
    std::vector<std::vector<BlockTable>> tables;  // of each slice, by group
  };
  // A prompt, into blocks of its own.
  Step Prompt(const Backend& backend, int number) const {
    Step step;
    BlockTable table;
    for (int i = 0; i < kPrompt; ++i) {
      table.push_back(static_cast<BlockId>(kShared + kBlocks + number * kPrompt + i));
    }
    step.tables.emplace_back(backend.kv_layout().groups.size(), table);
    for (int i = 0; i < kTokens; ++i) {
      step.plan.tokens.push_back((7 * i + 3 * number) % model_.spec.vocab_size);
    }
    SeqSlice slice;
    slice.count = kTokens;
    slice.num_rows = step.plan.num_rows = kRows;
    slice.tables = step.tables[0];
    step.plan.slices.push_back(slice);
    return step;
  }
  // Long sequences that share all but their last block: attention cuts them between spans.
  Step Decode(const Backend& backend) const {
    Step step;
    for (int i = 0; i < kDecoding; ++i) {
      BlockTable table;
      for (int b = 0; b < kShared; ++b) table.push_back(static_cast<BlockId>(b));
      table.push_back(static_cast<BlockId>(kShared + i));
      step.tables.emplace_back(backend.kv_layout().groups.size(), table);
    }
    for (int i = 0; i < kDecoding; ++i) {
      step.plan.tokens.push_back(5 + i);
      SeqSlice slice;
      slice.first = slice.first_row = i;
      slice.count = slice.num_rows = 1;
      slice.num_computed = kDepth;
      slice.tables = step.tables[static_cast<size_t>(i)];
      step.plan.slices.push_back(slice);
    }
    step.plan.num_rows = kDecoding;
    return step;
  }

  std::vector<float> RunAll(Backend& backend, std::string* failed,
                            std::vector<float>* into = nullptr) const {
    std::vector<float> own;
    std::vector<float>& out = into != nullptr ? *into : own;
    const auto keep = [&](Result<std::span<const RowResult>> rows, const char* what) {
      if (!rows.ok()) {
        if (failed != nullptr) *failed = std::string(what) + ": " + rows.status().message();
        return;
      }
      for (const RowResult& row : *rows) {
        out.insert(out.end(), row.logits.begin(), row.logits.end());
      }
    };
    const Step first = Prompt(backend, 0), second = Prompt(backend, 1), decode = Decode(backend);
    keep(RunStep(backend, first.plan), "a prompt");
    keep(RunStep(backend, decode.plan), "streams");
    int layers = 0;
    keep(RunStep(
             backend, first.plan, [&] { return ++layers == 2; },
             [&] { keep(RunStep(backend, second.plan), "a prompt in a break"); }),
         "a prompt that was left");
    return own;
  }

  Model model_;
  Numerics numerics_;
};

}  // namespace hearth::testing
