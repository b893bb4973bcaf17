// SPDX-License-Identifier: Apache-2.0
// What clients owe for models that were loaded for them while others needed the machine, or the
// room of the model that left for it. Time forgives.
#pragma once
#include <cstdint>
#include <map>
#include <string>
namespace hearth {

// Times are of one clock that does not go back. Thread: one at a time.
class LoadDebts {
 public:
  // A debt takes so many times as long to be forgiven as what it is for took: nobody costs others
  // more than that part of the time.
  static constexpr int64_t kForgiven = 16;

  // `client` owes `us` more, but no more than `most_us` by that.
  void Charge(const std::string& client, int64_t us, int64_t most_us, int64_t now_us);
  int64_t OwedUs(const std::string& client, int64_t now_us) const;
  // A load that it was charged for has ended. Forgotten with its debt.
  void Serve(const std::string& client, int64_t now_us);
  // -1: it owes nothing, or was not served.
  int64_t ServedUs(const std::string& client, int64_t now_us) const;
  int size() const { return static_cast<int>(debts_.size()); }

 private:
  struct Debt {
    int64_t us = 0, at_us = 0;  // so much, then
    int64_t served_us = -1;
    int64_t LeftUs(int64_t now_us) const;
  };
  std::map<std::string, Debt> debts_;
};

}  // namespace hearth
