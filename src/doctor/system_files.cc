// SPDX-License-Identifier: Apache-2.0
#include "doctor/system_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "platform/cgroup.h"
#include "platform/file.h"

namespace hearth {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr std::string_view kSpace = " \t\r\n";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace

std::string LineOf(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.empty() || (line[0] != ':' && kSpace.find(line[0]) == kSpace.npos)) continue;
    line = Trimmed(line);
    if (line.starts_with(':')) line = Trimmed(line.substr(1));
    return std::string(line);
  }
  return "";
}

std::optional<int64_t> FieldOf(std::string_view text, std::string_view key) {
  return LeadingNumber(LineOf(text, key));
}

std::optional<int64_t> LeadingNumber(std::string_view text) {
  int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::nullopt;
  return value;
}

int CountOfList(std::string_view list) {
  int64_t count = 0;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    const std::optional<int64_t> first = LeadingNumber(part);
    const size_t dash = part.find('-');
    const std::optional<int64_t> last =
        dash == part.npos ? first : LeadingNumber(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > 1'000'000) return 0;
    count += *last - *first + 1;
  }
  return static_cast<int>(std::min<int64_t>(count, 1'000'000));
}

std::string SystemFiles::Bytes(const std::string& path) const {
  return ReadKernelText(root_ + path, kMaxBytes);
}

std::string SystemFiles::Text(const std::string& path) const {
  return std::string(Trimmed(Bytes(path)));
}

std::optional<int64_t> SystemFiles::Number(const std::string& path) const {
  return LeadingNumber(Text(path));
}

std::string SystemFiles::Line(const std::string& path, std::string_view key) const {
  return LineOf(Text(path), key);
}

std::optional<int64_t> SystemFiles::Field(const std::string& path, std::string_view key) const {
  return FieldOf(Text(path), key);
}

std::vector<std::string> SystemFiles::Numbered(const std::string& folder,
                                               std::string_view prefix) const {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root_ + folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(name).substr(prefix.size());
    if (rest.empty() || rest.find_first_not_of("0123456789") != rest.npos) continue;
    if (const auto number = LeadingNumber(rest)) found.emplace_back(*number, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& each : found) names.push_back(std::move(each.second));
  return names;
}

std::vector<std::string> SystemFiles::CgroupTexts(std::string_view controller,
                                                  const std::string& file) const {
  std::vector<std::string> texts;
  const std::optional<CgroupPlace> place =
      FindCgroup(Text("/proc/self/cgroup"), Text("/proc/self/mountinfo"), controller);
  if (!place || !place->unified) return texts;
  for (const std::string& folder : place->folders) {
    std::string text = Text(folder + "/" + file);
    if (!text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace hearth
