// SPDX-License-Identifier: Apache-2.0
// The catalogue of known names as a table for people.
#pragma once
#include <cstdint>
#include <string>
namespace hearth {

// One line for each model: name, parameters, size, licence, whether it fits into that much memory.
std::string CatalogueTable(uint64_t usable_memory_bytes);
void PrintCatalogue(uint64_t usable_memory_bytes);

}  // namespace hearth
