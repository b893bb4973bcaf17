// SPDX-License-Identifier: Apache-2.0
// A backend whose logits are a hash of what it reads back through the block tables. A wrong table,
// a stale block or a lost token changes the output; the expected output needs no backend at all.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "backend/immediate_backend.h"
#include "base/result.h"
namespace hearth::testing {

struct FakeOptions {
  int full_blocks = 64, window_blocks = 64;
  int window = 24;  // 0: no layers with a window
  int vocab_size = 64;
  int max_step_tokens = 2048;
  Token nan_token = -1;                                 // whoever sees it gets a row of NaN
  std::function<Status(const StepPlan&)> before_run{};  // may advance a clock, wait, or fail
  // A step may be left between any two of its layers; `in_layer` may advance a clock, or submit.
  int layers = 1;
  std::function<void(const StepPlan&, int layer)> in_layer{};
};

class FakeBackend : public ImmediateBackend {
 public:
  explicit FakeBackend(FakeOptions options)
      : options_(std::move(options)),
        full_(Slots(options_.full_blocks), kPoison),
        window_(Slots(options_.window > 0 ? options_.window_blocks : 0), kPoison) {}

  std::string_view name() const override { return "fake"; }
  int vocab_size() const override { return options_.vocab_size; }
  KvLayout kv_layout() const override {
    KvLayout layout;
    layout.groups = {{0, 64, options_.full_blocks}};
    if (options_.window > 0) {
      layout.groups.push_back({options_.window, 64, options_.window_blocks});
    }
    return layout;
  }

  Result<bool> ComputeLayers(const StepPlan& plan, const WantsBreak& wants_break) override {
    if (under_way_.empty() || under_way_.back().first != &plan) under_way_.push_back({&plan, 0});
    int& layer = under_way_.back().second;
    while (layer < options_.layers) {
      if (options_.in_layer) options_.in_layer(plan, layer);
      if (++layer < options_.layers && under_way_.size() == 1 && wants_break()) return false;
    }
    under_way_.pop_back();
    return true;
  }

  Status Compute(const StepPlan& plan, std::span<float> logits) override {
    if (options_.before_run) HEARTH_TRY(options_.before_run(plan));
    if (static_cast<int>(plan.tokens.size()) > options_.max_step_tokens) {
      return Error(Code::kInvalid, "%zu tokens in a step", plan.tokens.size());
    }
    for (const SeqSlice& slice : plan.slices) {
      for (int i = 0; i < slice.count; ++i) {
        const int position = slice.num_computed + i;
        const Token token = plan.tokens[static_cast<size_t>(slice.first + i)];
        HEARTH_TRY(Store(full_, slice.tables[0], position, token));
        if (options_.window > 0) HEARTH_TRY(Store(window_, slice.tables[1], position, token));
      }
    }
    for (const SeqSlice& slice : plan.slices) {
      for (int i = 0; i < slice.num_rows; ++i) {
        const int end = slice.num_computed + slice.count - slice.num_rows + i + 1;
        const size_t row = static_cast<size_t>(slice.first_row + i);
        HEARTH_TRY(Row(slice, end,
                       logits.subspan(row * static_cast<size_t>(vocab_size()),
                                      static_cast<size_t>(vocab_size()))));
      }
    }
    num_tokens_ += static_cast<int64_t>(plan.tokens.size());
    ++num_steps_;
    return Status();
  }
  // The bytes of a block are its tokens.
  Status Copy(const BlockCopy& copy) override {
    std::vector<Token>& memory = copy.group == 0 ? full_ : window_;
    Token* block = &memory[Slots(static_cast<int>(copy.block))];
    if (!copy.to_host.empty()) std::memcpy(copy.to_host.data(), block, copy.to_host.size());
    if (!copy.from_host.empty()) std::memcpy(block, copy.from_host.data(), copy.from_host.size());
    return Status();
  }

  // What a step must answer after exactly these tokens.
  std::vector<float> LogitsAfter(std::span<const Token> tokens) const {
    std::vector<float> row(static_cast<size_t>(vocab_size()));
    const size_t seen = tokens.size() < Window() ? tokens.size() : Window();
    Fill(tokens, options_.window > 0 ? tokens.last(seen) : std::span<const Token>(), row);
    return row;
  }

  // The same token for the same seed and index.
  static Token RandomToken(uint64_t seed, int index, int vocab_size) {
    const uint64_t bits = Mix(Mix(seed + 1) + static_cast<uint64_t>(index));
    return static_cast<Token>(bits % static_cast<uint64_t>(vocab_size));
  }
  FakeOptions& options() { return options_; }
  int64_t num_tokens() const { return num_tokens_; }
  int64_t num_steps() const { return num_steps_; }

 private:
  static constexpr Token kPoison = -77;
  static size_t Slots(int blocks) { return static_cast<size_t>(blocks) * kDefaultBlockTokens; }
  size_t Window() const { return static_cast<size_t>(options_.window); }

  static Result<size_t> SlotOf(const std::vector<Token>& memory, std::span<const BlockId> table,
                               int position) {
    const auto entry = static_cast<size_t>(position / kDefaultBlockTokens);
    const int id = entry < table.size() ? static_cast<int>(table[entry]) : -1;
    const auto slot =
        static_cast<size_t>(id * kDefaultBlockTokens + position % kDefaultBlockTokens);
    if (id >= 0 && slot < memory.size()) return slot;
    return Error(Code::kInvalid, "position %d has block %d", position, id);
  }
  static Status Store(std::vector<Token>& memory, std::span<const BlockId> table, int position,
                      Token token) {
    HEARTH_ASSIGN(const size_t slot, SlotOf(memory, table, position));
    memory[slot] = token;
    return Status();
  }
  static Status Load(const std::vector<Token>& memory, std::span<const BlockId> table, int begin,
                     int end, std::vector<Token>& out) {
    out.clear();
    for (int position = begin; position < end; ++position) {
      HEARTH_ASSIGN(const size_t slot, SlotOf(memory, table, position));
      out.push_back(memory[slot]);
    }
    return Status();
  }

  Status Row(const SeqSlice& slice, int end, std::span<float> row) {
    HEARTH_TRY(Load(full_, slice.tables[0], 0, end, seen_full_));
    seen_window_.clear();
    if (options_.window > 0) {
      const int begin = end > options_.window ? end - options_.window : 0;
      HEARTH_TRY(Load(window_, slice.tables[1], begin, end, seen_window_));
    }
    Fill(seen_full_, seen_window_, row);
    return Status();
  }

  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
  }
  void Fill(std::span<const Token> full, std::span<const Token> window,
            std::span<float> row) const {
    uint64_t state = 1;
    bool is_bad = false;
    for (const Token token : full) {
      state = Mix(state + static_cast<uint64_t>(token));
      is_bad = is_bad || token == options_.nan_token;
    }
    for (const Token token : window) state = Mix(state + static_cast<uint64_t>(token));
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = is_bad ? std::numeric_limits<float>::quiet_NaN()
                      : static_cast<float>(Mix(state + i) >> 40) * 0x1p-21f;
    }
  }

  FakeOptions options_;
  std::vector<std::pair<const StepPlan*, int>> under_way_;  // with the next layer of each
  std::vector<Token> full_, window_;
  std::vector<Token> seen_full_, seen_window_;
  int64_t num_tokens_ = 0, num_steps_ = 0;
};

}  // namespace hearth::testing
