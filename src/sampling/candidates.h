// SPDX-License-Identifier: Apache-2.0
// The tokens that may still be drawn, and the settings that narrow them down. Likelier means the
// larger logit, and the lower token among equals; the list itself stays in token order throughout,
// and long lists are never sorted: a share of the weight is found by counting into buckets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
namespace hearth {

struct Candidate {
  Token token;
  float logit;
  float weight;  // in proportion to the probability; more than 0
};

// Each Keep leaves at least one candidate if there was one. Thread: one at a time.
class Candidates {
 public:
  void clear() { size_ = 0; }
  size_t size() const { return size_; }
  std::span<const Candidate> list() const { return std::span(memory_).first(size_); }
  // Room for `count` more behind the last, of which Add then takes the first few. Tokens ascend.
  Candidate* Reserve(size_t count) {
    if (memory_.size() < size_ + count) memory_.resize((size_ + count) * 2);
    return &memory_[size_];
  }
  void Add(size_t count) { size_ += count; }
  // weight = e^((logit - top) * inverse_temperature); what comes out as 0 is dropped.
  void Weigh(float top, float inverse_temperature);
  double TotalWeight() const;

  // The `count` likeliest.
  void KeepTopK(size_t count);
  // Those whose surprise, -ln p, is nearest to the expected one, until their weight reaches
  // `share` of the whole.
  void KeepTypical(float share, float inverse_temperature);
  // The same when it is known: until their weight reaches `wanted`; with x for
  // (logit - top) * inverse_temperature, the expected x is `expected`. The list may lack what
  // LeastTypical says is too light.
  void KeepTypical(double wanted, float top, float inverse_temperature, double expected);
  // The likeliest, until their weight reaches `wanted`.
  void KeepTopWeight(double wanted);
  // Those with at least `share` of the likeliest one's weight.
  void KeepMinP(float share);
  // Exclude top choices: of the candidates with a probability of `threshold` or more, only the
  // least likely stays.
  void DropTopChoices(float threshold);

  // The candidate at `u`, from [0, 1), when all stand in a row as wide as their weights.
  Token Draw(double u) const;

 private:
  std::span<Candidate> mine() { return std::span(memory_).first(size_); }
  // The first by key, then token, until their weight reaches `wanted`. keys_ is beside the list.
  void KeepFirstByKey(double wanted);
  void KeepFirstOfFew(double wanted);
  void KeepFirstOfMany(double wanted);
  template <class Predicate>
  void KeepIf(Predicate stays);

  std::vector<Candidate> memory_;  // never shrinks, so that gathering clears nothing
  size_t size_ = 0;
  std::vector<uint32_t> keys_;
  struct KeyAndWeight {
    uint32_t key;
    float weight;
  };
  std::vector<KeyAndWeight> tied_;
  std::vector<uint64_t> order_;
};

}  // namespace hearth
