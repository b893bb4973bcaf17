// SPDX-License-Identifier: Apache-2.0
// Sampling the slow way: double precision, the C library's exp, every list sorted in full, every
// count taken anew. Written from docs/sampling.md and sharing no code with engine/sampler.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sampling/sampling_params.h"
namespace hearth::testing {

struct OracleInput {
  std::vector<float> logits;
  SamplingParams params = {};
  std::vector<Token> prompt = {}, output = {};
  std::vector<uint32_t> allowed = {};  // empty: all
  bool drops_top = false;              // whether XTC acts in this step
};

class SamplingOracle {
 public:
  explicit SamplingOracle(const OracleInput& input)
      : in_(input), logits_(input.logits.begin(), input.logits.end()) {
    text_ = in_.prompt;
    text_.insert(text_.end(), in_.output.begin(), in_.output.end());
    Mask();
    Ban();
    for (const LogitBias& bias : in_.params.logit_bias) {
      logits_[Index(bias.token)] += static_cast<double>(bias.bias);
    }
    Penalise();
    Dry();
    Shape();
  }

  // By token; 0 = cannot come out. All 0: nothing can.
  const std::vector<double>& probabilities() const { return probabilities_; }
  // Smallest distance of a sum of probabilities, or of a ratio, to the border it was compared
  // with: below about 1e-5 a float32 implementation may rightly decide differently.
  double closest_call() const { return closest_call_; }

 private:
  static constexpr double kNever = -std::numeric_limits<double>::infinity();
  static size_t Index(Token token) { return static_cast<size_t>(token); }

  void Mask() {
    for (size_t i = 0; i < logits_.size(); ++i) {
      const bool is_allowed = in_.allowed.empty() || (in_.allowed[i / 32] >> (i % 32) & 1) != 0;
      if (std::isnan(logits_[i]) || !is_allowed) logits_[i] = kNever;
    }
  }

  void Ban() {
    for (const std::vector<Token>& word : in_.params.bad_words) {
      std::vector<Token> said = text_;
      said.push_back(word.back());
      if (said.size() >= word.size() && std::equal(word.rbegin(), word.rend(), said.rbegin())) {
        logits_[Index(word.back())] = kNever;
      }
    }
    if (static_cast<int>(in_.output.size()) >= in_.params.min_tokens) return;
    for (const Token token : in_.params.stop_tokens) logits_[Index(token)] = kNever;
    if (in_.params.ignores_eos) return;
    for (const Token token : in_.params.eos_tokens) logits_[Index(token)] = kNever;
  }

  void Penalise() {
    const int size = static_cast<int>(text_.size());
    const int window = in_.params.penalty_window;
    const int first = window == 0 ? 0 : std::max(0, size - window);
    for (size_t token = 0; token < logits_.size(); ++token) {
      int anywhere = 0, counted = 0;
      for (int i = first; i < size; ++i) {
        if (Index(text_[Index(i)]) != token) continue;
        ++anywhere;
        counted += in_.params.prompt_counts || Index(i) >= in_.prompt.size() ? 1 : 0;
      }
      double& logit = logits_[token];
      const auto repetition = static_cast<double>(in_.params.repetition_penalty);
      if (anywhere > 0) logit = logit > 0 ? logit / repetition : logit * repetition;
      if (counted > 0) {
        logit -= static_cast<double>(in_.params.frequency_penalty) * counted +
                 static_cast<double>(in_.params.presence_penalty);
      }
    }
  }

  void Dry() {
    if (in_.params.dry_multiplier == 0) return;
    const auto is_breaker = [this](Token token) {
      return std::count(in_.params.dry_breakers.begin(), in_.params.dry_breakers.end(), token) > 0;
    };
    std::vector<Token> window = text_;
    if (window.size() > static_cast<size_t>(in_.params.dry_window)) {
      window.erase(window.begin(), window.end() - in_.params.dry_window);
    }
    const int size = static_cast<int>(window.size());
    std::vector<int> longest(logits_.size(), 0);
    for (int i = 1; i < size; ++i) {  // would saying window[i] again prolong a repeat?
      int length = 0;
      while (length < i && window[Index(i - 1 - length)] == window[Index(size - 1 - length)] &&
             !is_breaker(window[Index(size - 1 - length)])) {
        ++length;
      }
      int& best = longest[Index(window[Index(i)])];
      if (!is_breaker(window[Index(i)])) best = std::max(best, length);
    }
    for (size_t token = 0; token < logits_.size(); ++token) {
      if (longest[token] < in_.params.dry_allowed_length) continue;
      const double power = std::pow(static_cast<double>(in_.params.dry_base),
                                    longest[token] - in_.params.dry_allowed_length);
      logits_[token] -= std::min(1e30, static_cast<double>(in_.params.dry_multiplier) * power);
    }
  }

  double Total(const std::vector<size_t>& tokens) const {
    double total = 0;
    for (const size_t token : tokens) total += probabilities_[token];
    return total;
  }

  void KeepShare(std::vector<size_t>& sorted, double share) {
    const double total = Total(sorted);
    double reached = 0;
    size_t count = 0;
    while (count < sorted.size() && (count == 0 || reached < share * total)) {
      reached += probabilities_[sorted[count++]];
      closest_call_ = std::min(closest_call_, std::abs(reached / total - share));
    }
    sorted.resize(count);
  }

  void KeepTypical(std::vector<size_t>& kept) {
    const double total = Total(kept);
    double entropy = 0;
    for (const size_t token : kept) {
      const double p = probabilities_[token] / total;
      if (p > 0) entropy -= p * std::log(p);
    }
    const auto oddity = [&](size_t token) {
      return std::abs(-std::log(probabilities_[token] / total) - entropy);
    };
    std::stable_sort(kept.begin(), kept.end(),
                     [&](size_t a, size_t b) { return oddity(a) < oddity(b); });
    for (size_t i = 1; i < kept.size(); ++i) {
      const bool is_tie = logits_[kept[i]] == logits_[kept[i - 1]];
      const double gap = oddity(kept[i]) - oddity(kept[i - 1]);
      if (!is_tie) closest_call_ = std::min(closest_call_, gap);
    }
    KeepShare(kept, static_cast<double>(in_.params.typical_p));
  }

  void Shape() {
    const SamplingParams& params = in_.params;
    probabilities_.assign(logits_.size(), 0);
    std::vector<size_t> kept;
    for (size_t i = 0; i < logits_.size(); ++i) {
      if (logits_[i] != kNever) kept.push_back(i);
    }
    if (kept.empty()) return;
    const auto likelier = [this](size_t a, size_t b) { return logits_[a] > logits_[b]; };
    std::stable_sort(kept.begin(), kept.end(), likelier);
    size_t count = params.top_k > 0 ? Index(params.top_k) : kept.size();
    if (params.temperature == 0) count = 1;
    while (kept.size() > count) kept.pop_back();
    const double top = logits_[kept[0]];
    for (const size_t token : kept) {
      const double x = (logits_[token] - top) / static_cast<double>(params.temperature);
      probabilities_[token] = token == kept[0] ? 1 : std::exp(x);
    }
    if (params.typical_p < 1) {
      std::sort(kept.begin(), kept.end());
      KeepTypical(kept);
      std::sort(kept.begin(), kept.end());
      std::stable_sort(kept.begin(), kept.end(), likelier);
    }
    if (params.top_p < 1) KeepShare(kept, static_cast<double>(params.top_p));
    const double most = probabilities_[kept[0]];
    std::erase_if(kept, [&](size_t token) {
      const double share = probabilities_[token] / most;
      closest_call_ = std::min(closest_call_, share == 1 ? 1 : std::abs(share - MinP()));
      return share < MinP();
    });
    if (in_.drops_top) DropTop(kept);
    const double total = Total(kept);
    std::vector<double> final(logits_.size(), 0);
    for (const size_t token : kept) final[token] = probabilities_[token] / total;
    probabilities_ = final;
  }

  double MinP() const { return static_cast<double>(in_.params.min_p); }

  void DropTop(std::vector<size_t>& sorted) {
    const double total = Total(sorted);
    size_t num_top = 0;
    for (const size_t token : sorted) {
      const double p = probabilities_[token] / total;
      const auto threshold = static_cast<double>(in_.params.xtc_threshold);
      closest_call_ = std::min(closest_call_, std::abs(p - threshold));
      num_top += p >= threshold ? 1 : 0;
    }
    if (num_top > 1) sorted.erase(sorted.begin(), sorted.begin() + static_cast<long>(num_top) - 1);
  }

  const OracleInput& in_;
  std::vector<double> logits_, probabilities_;
  std::vector<Token> text_;
  double closest_call_ = 1;
};

}  // namespace hearth::testing
