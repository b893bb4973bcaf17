// SPDX-License-Identifier: Apache-2.0
// Short names for well-known models: data, not code. Every one is of a family that Hearth runs.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
namespace hearth {

struct CatalogueEntry {
  std::string_view name;
  std::string_view repo;      // on the Hub
  std::string_view selector;  // as in OWNER/REPO:SELECTOR
  std::string_view parameters;
  std::string_view licence;
  // Of the download, rounded, as its publisher states it; 0 where we have not seen it stated. The
  // exact size is looked up when the model is pulled.
  uint64_t about_bytes;
};

std::span<const CatalogueEntry> Catalogue();

// Of the download by its parameters and format, within some 10 %: for choosing, not for checking.
uint64_t EstimatedBytes(const CatalogueEntry& entry);

// By name or by one of its other names ("qwen3:8b", "qwen3", "gpt-oss"); null when unknown.
const CatalogueEntry* FindInCatalogue(std::string_view name);

// Memory that a model of so many bytes should find: its weights, and an eighth for the KV cache of
// a chat and the work of a step.
constexpr uint64_t MemoryFor(uint64_t model_bytes) { return model_bytes + model_bytes / 8; }

}  // namespace hearth
