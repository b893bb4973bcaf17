// SPDX-License-Identifier: Apache-2.0
#include "backend/row_results.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hearth {
namespace {

bool ComesFirst(const TokenLogit& a, const TokenLogit& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// Fills `top` with the largest of a row. A row that is no number stays one.
void FindTop(std::span<const float> logits, std::span<TokenLogit> top) {
  if (std::isnan(logits[0])) {
    std::fill(top.begin(), top.end(), TokenLogit{-1, std::numeric_limits<float>::quiet_NaN()});
    return;
  }
  size_t count = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const TokenLogit one{static_cast<Token>(i), logits[i]};
    if (count == top.size() && !ComesFirst(one, top.back())) continue;
    if (count < top.size()) ++count;
    size_t place = count - 1;
    for (; place > 0 && ComesFirst(one, top[place - 1]); --place) top[place] = top[place - 1];
    top[place] = one;
  }
}

}  // namespace

Status CheckAsks(const StepPlan& plan, int vocab_size) {
  if (!plan.asks.empty() && static_cast<int>(plan.asks.size()) != plan.num_rows) {
    return Error(Code::kInvalid, "%zu asks for %d rows", plan.asks.size(), plan.num_rows);
  }
  for (const RowAsk& ask : plan.asks) {
    if (ask.kind != RowAsk::Kind::kTop || (ask.top > 0 && ask.top <= vocab_size)) continue;
    return Error(Code::kInvalid, "the %d largest of %d logits", ask.top, vocab_size);
  }
  return Status();
}

std::span<const RowResult> RowResults::Fill(const StepPlan& plan, std::span<const float> logits,
                                            size_t vocab) {
  rows_.assign(static_cast<size_t>(plan.num_rows), RowResult());
  size_t num_top = 0;
  for (const RowAsk& ask : plan.asks) num_top += static_cast<size_t>(std::max(0, ask.top));
  top_.clear();
  top_.reserve(num_top);  // rows point into it
  for (size_t row = 0; row < rows_.size(); ++row) {
    FillRow(plan.AskOf(static_cast<int>(row)), logits.subspan(row * vocab, vocab), rows_[row]);
  }
  return rows_;
}

void RowResults::FillRow(const RowAsk& ask, std::span<const float> logits, RowResult& result) {
  if (ask.kind == RowAsk::Kind::kLogits) {
    result.logits = logits;
    return;
  }
  const size_t count = ask.kind == RowAsk::Kind::kToken ? 1 : static_cast<size_t>(ask.top);
  TokenLogit one;
  std::span<TokenLogit> top(&one, 1);
  if (ask.kind == RowAsk::Kind::kTop) {
    top_.resize(top_.size() + count);
    top = std::span(top_).last(count);
  }
  FindTop(logits, top);
  if (ask.kind == RowAsk::Kind::kTop) {
    result.top = top;
  } else {
    result.token = top[0].token;
  }
}

}  // namespace hearth
