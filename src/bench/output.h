// SPDX-License-Identifier: Apache-2.0
// A benchmark's record as a table for the terminal, as JSON (docs/benchmarks.md has the schema) and
// as a page with pictures.
#pragma once
#include <string>

#include "base/json.h"
#include "bench/case.h"
namespace hearth {

std::string BenchTable(const BenchRecord& record);
Json BenchJson(const BenchRecord& record);
std::string BenchPage(const BenchRecord& record);

// "28.1 GB/s", "4.2 TOP/s": three digits and a prefix.
std::string WithPrefix(double value, const char* unit);

}  // namespace hearth
