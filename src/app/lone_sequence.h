// SPDX-License-Identifier: Apache-2.0
// One sequence on a backend of its own, for commands that want logits rather than tokens.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/open_backend.h"
#include "backend/backend.h"
#include "base/result.h"
#include "model/model.h"
namespace hearth {

// Holds its blocks in order; the whole context is there from the start (memory is taken as it is
// touched). Thread: one.
class LoneSequence {
 public:
  // Copies the weights; shows progress on a terminal when that takes long.
  static Result<LoneSequence> Make(const Model& model, const BackendFlags& flags, int max_tokens);

  using Emit = std::function<void(std::span<const float> logits)>;
  // Computes `tokens` in slices of at most `chunk`; gives the logits of the last one, or of all.
  Status Append(std::span<const Token> tokens, int chunk, bool every_row, const Emit& emit);
  int num_computed() const { return num_computed_; }
  // Forgets everything after the first `count` tokens.
  int Rewind(int count) {
    num_computed_ = std::min(count, num_computed_);
    return num_computed_;
  }
  Backend& backend() { return *backend_; }

 private:
  LoneSequence(std::unique_ptr<Backend> backend, std::vector<BlockTable> tables)
      : backend_(std::move(backend)), tables_(std::move(tables)) {}
  std::unique_ptr<Backend> backend_;
  std::vector<BlockTable> tables_;
  int num_computed_ = 0;
};

}  // namespace hearth
