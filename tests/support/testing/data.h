// SPDX-License-Identifier: Apache-2.0
// Where tests find their data. Data of the repository must be there; what ./dev model and ./dev
// synth make may be absent, and then a test skips loudly.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>
namespace hearth::testing {

inline std::string RepoPath(const std::string& relative) {
  return std::string(HEARTH_SOURCE_DIR) + "/" + relative;
}
// Large generated files: $HEARTH_WORK, by default ~/.cache/hearth.
inline std::string WorkPath(const std::string& relative) {
  if (const char* work = std::getenv("HEARTH_WORK")) return std::string(work) + "/" + relative;
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : ".") + "/.cache/hearth/" + relative;
}
// golden/X is a committed golden, models/X one that `./dev model X` makes.
inline std::string DataPath(const std::string& relative) {
  constexpr std::string_view kModels = "models/";
  if (relative.starts_with(kModels)) return WorkPath(relative.substr(kModels.size()));
  return RepoPath("tests/" + relative);
}

// All of a file as values of T; the file must exist.
template <class T>
std::vector<T> ReadArray(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << "missing test data: " << path;
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(values.size() * sizeof(T)),
            reinterpret_cast<char*>(values.data()));
  return values;
}

}  // namespace hearth::testing

#define HEARTH_SKIP_WITHOUT(path)     \
  if (!std::filesystem::exists(path)) \
  GTEST_SKIP() << "SKIPPED LOUDLY: ./dev model or ./dev synth makes " << (path)
