// SPDX-License-Identifier: Apache-2.0
// Figures of a suite for docs/reliability.md, written to the folder that HEARTH_RESULTS names, and
// nowhere without one. results.py is the same for Python.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hearth::testing {

using Figures = std::vector<std::pair<std::string, int64_t>>;

// `version`: of what is tested. `size`: how much was done. False when the file could not be
// written.
inline bool WriteResults(const std::string& suite, const char* version, int64_t size,
                         const Figures& figures) {
  const char* folder = std::getenv("HEARTH_RESULTS");
  if (folder == nullptr || *folder == '\0') return true;
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  const std::string path = std::string(folder) + "/" + suite + ".json";
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  std::fprintf(file,
               "{\"suite\": \"%s\", \"date\": \"%s\", \"version\": \"%s\", \"size\": %lld, "
               "\"figures\": {",
               suite.c_str(), date, version, static_cast<long long>(size));
  const char* comma = "";
  for (const auto& [name, value] : figures) {
    std::fprintf(file, "%s\"%s\": %lld", comma, name.c_str(), static_cast<long long>(value));
    comma = ", ";
  }
  std::fprintf(file, "}}\n");
  return std::fclose(file) == 0;
}

}  // namespace hearth::testing
