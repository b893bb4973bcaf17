// SPDX-License-Identifier: Apache-2.0
// The kernel's text files (/proc, /sys, cgroups), under a root that tests replace by a folder.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
namespace hearth {

class SystemFiles {
 public:
  explicit SystemFiles(std::string root = "") : root_(std::move(root)) {}

  // As it is; empty when the file is not there, cannot be read or is over 1 MiB.
  std::string Bytes(const std::string& path) const;
  // Without the white space at its ends.
  std::string Text(const std::string& path) const;
  std::optional<int64_t> Number(const std::string& path) const;
  // The value behind `key` in lines such as "MemTotal:  123 kB" or "nr_throttled 7".
  std::optional<int64_t> Field(const std::string& path, std::string_view key) const;
  // The whole rest of the line behind `key`.
  std::string Line(const std::string& path, std::string_view key) const;
  // Names in a folder that begin with `prefix` and end in a number, ascending by that number.
  std::vector<std::string> Numbered(const std::string& folder, std::string_view prefix) const;
  // A file of our cgroup (version 2) and of its parents, ours first; only those that exist.
  std::vector<std::string> CgroupTexts(std::string_view controller, const std::string& file) const;
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

// The first whole number in a text, if it begins with one.
std::optional<int64_t> LeadingNumber(std::string_view text);
// The same as Line and Field, of a text that was read before.
std::string LineOf(std::string_view text, std::string_view key);
std::optional<int64_t> FieldOf(std::string_view text, std::string_view key);
// How many processors "0-3,8" names; 0 for what is no list.
int CountOfList(std::string_view list);

}  // namespace hearth
