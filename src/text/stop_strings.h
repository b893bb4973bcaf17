// SPDX-License-Identifier: Apache-2.0
// Ends a reply where one of the client's stop strings begins, however the text was cut on its way.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
namespace hearth {

// Passes text through and holds back an end that may become a stop string, so that no byte of one
// is ever shown. The first stop string to be complete ends the text; of several that end with the
// same byte, the longest counts. What comes out does not depend on how the text was cut. Fed whole
// code points, as Utf8Stream gives them, it gives whole code points.
//
// An Aho-Corasick automaton over bytes: time is linear in the text for any set of stop strings.
// Thread: one at a time. Copies start where the original is.
class StopStrings {
 public:
  static constexpr size_t kMaxStrings = 16, kMaxBytes = 256;  // each

  // kInvalid for an empty string, one of more than kMaxBytes, or more than kMaxStrings.
  static Result<StopStrings> Make(const std::vector<std::string>& stops);

  // Adds to `out` what may be shown. True once a stop string is complete: the text has ended, and
  // further calls add nothing.
  bool Append(std::string_view text, std::string& out);
  // No more text follows: what was held back was no stop string after all.
  void Finish(std::string& out);
  // Ready for another text.
  void Reset();

  // Which of the strings given to Make was found; -1 while none was.
  int found() const { return found_; }
  size_t held_bytes() const { return held_.size(); }

 private:
  struct Node {
    int first_child = -1, next_sibling = -1;
    int shorter = 0;         // node of the longest proper end of this one that begins a stop string
    int stop = -1;           // the longest stop string that ends here
    int depth = 0;           // bytes from the root
    unsigned char byte = 0;  // that leads here
  };

  StopStrings() : nodes_(1) {}
  int Child(int node, unsigned char byte) const;
  int Next(int node, unsigned char byte) const;
  void Insert(const std::string& stop, int index);
  void LinkShorter();

  std::vector<Node> nodes_;      // 0 is the root
  std::vector<int> stop_bytes_;  // lengths of the stop strings
  int node_ = 0;                 // held_ spells the way here
  int found_ = -1;
  std::string held_;
};

}  // namespace hearth
