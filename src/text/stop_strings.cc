// SPDX-License-Identifier: Apache-2.0
#include "text/stop_strings.h"

namespace hearth {

Result<StopStrings> StopStrings::Make(const std::vector<std::string>& stops) {
  if (stops.size() > kMaxStrings) {
    return Error(Code::kInvalid, "stop: %zu strings; the limit is %zu", stops.size(), kMaxStrings);
  }
  StopStrings made;
  for (const std::string& stop : stops) {
    if (stop.empty()) return Error(Code::kInvalid, "stop: a string is empty");
    if (stop.size() > kMaxBytes) {
      return Error(Code::kInvalid, "stop: a string of %zu bytes; the limit is %zu", stop.size(),
                   kMaxBytes);
    }
    made.Insert(stop, static_cast<int>(made.stop_bytes_.size()));
    made.stop_bytes_.push_back(static_cast<int>(stop.size()));
  }
  made.LinkShorter();
  return made;
}

// A node has at most kMaxStrings children, so walking them is no slower than a table.
int StopStrings::Child(int node, unsigned char byte) const {
  int child = nodes_[static_cast<size_t>(node)].first_child;
  while (child >= 0 && nodes_[static_cast<size_t>(child)].byte != byte) {
    child = nodes_[static_cast<size_t>(child)].next_sibling;
  }
  return child;
}

// Each be preempted undoes an earlier step forward: over a text there are at most as many.
int StopStrings::Next(int node, unsigned char byte) const {
  for (;;) {
    const int child = Child(node, byte);
    if (child >= 0) return child;
    if (node == 0) return 0;
    node = nodes_[static_cast<size_t>(node)].shorter;
  }
}

void StopStrings::Insert(const std::string& stop, int index) {
  int node = 0;
  for (const char c : stop) {
    const auto byte = static_cast<unsigned char>(c);
    int child = Child(node, byte);
    if (child < 0) {
      child = static_cast<int>(nodes_.size());
      Node& parent = nodes_[static_cast<size_t>(node)];
      const Node made = {-1, parent.first_child, 0, -1, parent.depth + 1, byte};
      parent.first_child = child;
      nodes_.push_back(made);
    }
    node = child;
  }
  int& here = nodes_[static_cast<size_t>(node)].stop;
  if (here < 0) here = index;  // given twice: the first counts
}

void StopStrings::LinkShorter() {
  std::vector<int> breadth_first = {0};
  for (size_t i = 0; i < breadth_first.size(); ++i) {
    const int parent = breadth_first[i];
    int child = nodes_[static_cast<size_t>(parent)].first_child;
    for (; child >= 0; child = nodes_[static_cast<size_t>(child)].next_sibling) {
      breadth_first.push_back(child);
      Node& node = nodes_[static_cast<size_t>(child)];
      const int behind = nodes_[static_cast<size_t>(parent)].shorter;
      node.shorter = parent == 0 ? 0 : Next(behind, node.byte);
      if (node.stop < 0) node.stop = nodes_[static_cast<size_t>(node.shorter)].stop;
    }
  }
}

bool StopStrings::Append(std::string_view text, std::string& out) {
  if (found_ >= 0) return true;
  for (const char c : text) {
    node_ = Next(node_, static_cast<unsigned char>(c));
    held_ += c;
    const Node& node = nodes_[static_cast<size_t>(node_)];
    size_t keeps = static_cast<size_t>(node.depth);
    if (node.stop >= 0) {
      found_ = node.stop;
      keeps = static_cast<size_t>(stop_bytes_[static_cast<size_t>(found_)]);
    }
    out.append(held_, 0, held_.size() - keeps);
    held_.erase(0, held_.size() - keeps);
    if (found_ < 0) continue;
    held_.clear();
    return true;
  }
  return false;
}

void StopStrings::Finish(std::string& out) {
  out += held_;
  held_.clear();
  node_ = 0;
}

void StopStrings::Reset() {
  held_.clear();
  node_ = 0;
  found_ = -1;
}

}  // namespace hearth
