// SPDX-License-Identifier: Apache-2.0
#include "platform/cgroup.h"

#include <algorithm>
#include <charconv>

namespace hearth {
namespace {

// Cuts the text before the first `mark` off and returns it; all of it when there is no mark.
std::string_view CutAt(std::string_view& text, char mark) {
  const std::string_view head = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(text.size(), head.size() + 1));
  return head;
}

std::vector<std::string_view> Split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  while (!text.empty()) parts.push_back(CutAt(text, mark));
  return parts;
}

bool HasWord(std::string_view list, std::string_view word) {
  for (const std::string_view part : Split(list, ',')) {
    if (part == word) return true;
  }
  return false;
}

template <class T>
std::optional<T> Number(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// mountinfo writes space, tab, newline and backslash in paths as \ and three octal digits.
std::string Unescaped(std::string_view text) {
  std::string path;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) { return at < text.size() ? text[at] - '0' : -1; };
    const int code = digit(i + 1) * 64 + digit(i + 2) * 8 + digit(i + 3);
    if (text[i] == '\\' && i + 3 < text.size() && code > 0 && code < 128) {
      path += static_cast<char>(code);
      i += 3;
    } else {
      path += text[i];
    }
  }
  return path;
}

struct Membership {
  bool unified;
  std::string path;
};

// One line per hierarchy: "4:memory:/a/b", version 2's is "0::/a/b".
std::optional<Membership> FindMembership(std::string_view self, std::string_view controller) {
  std::optional<Membership> found;
  for (std::string_view line : Split(self, '\n')) {
    const std::string_view id = CutAt(line, ':');
    const std::string_view controllers = CutAt(line, ':');
    if (HasWord(controllers, controller)) return Membership{false, std::string(line)};
    if (id == "0" && controllers.empty()) found = Membership{true, std::string(line)};
  }
  return found;
}

struct Mount {
  std::string root;   // the group that shows at `point`; not "/" inside a container
  std::string point;  // where in the file system
};

// "35 31 0:32 /root /point opts [fields] - type source super,options"
std::optional<Mount> FindMount(std::string_view mounts, bool unified, std::string_view controller) {
  for (const std::string_view line : Split(mounts, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto front = Split(line.substr(0, dash), ' ');
    const auto back = Split(line.substr(dash + 3), ' ');
    if (front.size() < 5 || back.empty()) continue;
    const bool fits =
        unified ? back[0] == "cgroup2" : back[0] == "cgroup" && HasWord(back.back(), controller);
    if (fits) return Mount{Unescaped(front[3]), Unescaped(front[4])};
  }
  return std::nullopt;
}

std::optional<double> Ratio(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

std::optional<CgroupPlace> FindCgroup(std::string_view self, std::string_view mounts,
                                      std::string_view controller) {
  const auto membership = FindMembership(self, controller);
  if (!membership) return std::nullopt;
  const auto mount = FindMount(mounts, membership->unified, controller);
  if (!mount) return std::nullopt;
  // Without a cgroup namespace a container sees its full path but only its own part mounted.
  std::string below = membership->path;
  if (mount->root != "/" && below.starts_with(mount->root)) below.erase(0, mount->root.size());
  while (below.ends_with('/')) below.pop_back();
  CgroupPlace place;
  place.unified = membership->unified;
  // A path that climbs out of the mount point (a moved namespace) cannot be followed.
  if (below.find("/..") == std::string::npos) {
    for (; !below.empty(); below.erase(below.rfind('/'))) {
      place.folders.push_back(mount->point + below);
    }
  }
  place.folders.push_back(mount->point);
  return place;
}

std::optional<double> CpuQuotaV2(std::string_view cpu_max) {
  const auto quota = Number<int64_t>(CutAt(cpu_max, ' '));
  return Ratio(quota, Number<int64_t>(cpu_max));
}

std::optional<double> CpuQuotaV1(std::string_view quota, std::string_view period) {
  return Ratio(Number<int64_t>(quota), Number<int64_t>(period));
}

std::vector<std::string> MemoryLimitFiles(const CgroupPlace& memory) {
  std::vector<std::string> files;
  for (const std::string& folder : memory.folders) {
    if (memory.unified) {
      files.push_back(folder + "/memory.max");
      files.push_back(folder + "/memory.high");
    } else {
      files.push_back(folder + "/memory.limit_in_bytes");
    }
  }
  return files;
}

std::optional<uint64_t> MemoryLimit(std::string_view text) {
  const auto bytes = Number<uint64_t>(text);
  // Version 1's "none" is 2^63 rounded down to a page; no machine comes near 2^60.
  if (!bytes || *bytes >= uint64_t{1} << 60) return std::nullopt;
  return bytes;
}

}  // namespace hearth
