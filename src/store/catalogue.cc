// SPDX-License-Identifier: Apache-2.0
#include "store/catalogue.h"

#include <array>
#include <string>
#include <utility>

#include "store/reference.h"

namespace hearth {
namespace {

constexpr uint64_t Gb(double gigabytes) { return static_cast<uint64_t>(gigabytes * 1e9); }

constexpr std::array kEntries = {
    CatalogueEntry{"gpt-oss-20b", "ggml-org/gpt-oss-20b-GGUF", "MXFP4", "21B, 3.6B active",
                   "Apache-2.0", Gb(12.1)},
    CatalogueEntry{"gpt-oss-120b", "ggml-org/gpt-oss-120b-GGUF", "MXFP4", "117B, 5.1B active",
                   "Apache-2.0", 0},
    CatalogueEntry{"smollm2-135m", "bartowski/SmolLM2-135M-Instruct-GGUF", "Q8_0", "135M",
                   "Apache-2.0", 0},
    CatalogueEntry{"smollm2-360m", "bartowski/SmolLM2-360M-Instruct-GGUF", "Q8_0", "362M",
                   "Apache-2.0", 0},
    CatalogueEntry{"smollm2-1.7b", "bartowski/SmolLM2-1.7B-Instruct-GGUF", "Q4_K_M", "1.7B",
                   "Apache-2.0", 0},
    CatalogueEntry{"qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B-Instruct-GGUF", "Q4_K_M", "0.5B",
                   "Apache-2.0", 0},
    CatalogueEntry{"qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B-Instruct-GGUF", "Q4_K_M", "1.5B",
                   "Apache-2.0", 0},
    CatalogueEntry{"qwen2.5-7b", "bartowski/Qwen2.5-7B-Instruct-GGUF", "Q4_K_M", "7.6B",
                   "Apache-2.0", 0},
    CatalogueEntry{"qwen2.5-coder-7b", "bartowski/Qwen2.5-Coder-7B-Instruct-GGUF", "Q4_K_M", "7.6B",
                   "Apache-2.0", 0},
    CatalogueEntry{"qwen3-0.6b", "Qwen/Qwen3-0.6B-GGUF", "Q8_0", "0.6B", "Apache-2.0", 0},
    CatalogueEntry{"qwen3-1.7b", "Qwen/Qwen3-1.7B-GGUF", "Q8_0", "1.7B", "Apache-2.0", 0},
    CatalogueEntry{"qwen3-4b", "bartowski/Qwen_Qwen3-4B-GGUF", "Q4_K_M", "4.0B", "Apache-2.0",
                   Gb(2.50)},
    CatalogueEntry{"qwen3-8b", "Qwen/Qwen3-8B-GGUF", "Q4_K_M", "8.2B", "Apache-2.0", 0},
    CatalogueEntry{"qwen3-14b", "Qwen/Qwen3-14B-GGUF", "Q4_K_M", "14.8B", "Apache-2.0", 0},
    CatalogueEntry{"qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B-GGUF", "Q4_K_M", "30.5B, 3.3B active",
                   "Apache-2.0", 0},
    CatalogueEntry{"llama3.2-1b", "bartowski/Llama-3.2-1B-Instruct-GGUF", "Q4_K_M", "1.2B",
                   "Llama 3.2 Community", Gb(0.81)},
    CatalogueEntry{"llama3.2-3b", "bartowski/Llama-3.2-3B-Instruct-GGUF", "Q4_K_M", "3.2B",
                   "Llama 3.2 Community", 0},
    CatalogueEntry{"llama3.1-8b", "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF", "Q4_K_M", "8.0B",
                   "Llama 3.1 Community", 0},
    CatalogueEntry{"llama3.3-70b", "bartowski/Llama-3.3-70B-Instruct-GGUF", "Q4_K_M", "70.6B",
                   "Llama 3.3 Community", 0},
};

// A family's plain name means the size that most machines run well.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kOtherNames = {{
    {"gpt-oss", "gpt-oss-20b"},
    {"smollm2", "smollm2-1.7b"},
    {"qwen2.5", "qwen2.5-7b"},
    {"qwen2.5-coder", "qwen2.5-coder-7b"},
    {"qwen3", "qwen3-8b"},
    {"llama3.1", "llama3.1-8b"},
    {"llama3.2", "llama3.2-3b"},
    {"llama3.3", "llama3.3-70b"},
}};

}  // namespace

std::span<const CatalogueEntry> Catalogue() { return kEntries; }

uint64_t EstimatedBytes(const CatalogueEntry& entry) {
  // Bits of a weight, the larger formats of embedding and head included: 4.97 for Qwen3 4B and 5.2
  // for Llama 3.2 1B in Q4_K_M, 4.6 for gpt-oss-20b; Q8_0 has one format throughout.
  const double bits = entry.selector == "Q8_0" ? 8.5 : entry.selector == "MXFP4" ? 4.6 : 5.0;
  // "1.7B" or "21B, 3.6B active": the first number and its letter.
  double number = 0, place = 0;
  for (const char letter : entry.parameters) {
    if (letter == 'B') return static_cast<uint64_t>(number * 1e9 * bits / 8);
    if (letter == 'M') break;
    if (letter == '.') {
      place = 0.1;
    } else if (place > 0) {
      number += (letter - '0') * place;
      place /= 10;
    } else {
      number = 10 * number + (letter - '0');
    }
  }
  return static_cast<uint64_t>(number * 1e6 * bits / 8);
}

const CatalogueEntry* FindInCatalogue(std::string_view name) {
  std::string plain = PlainForm(name);
  for (const auto& [other, entry] : kOtherNames) {
    if (plain == other) plain = entry;
  }
  for (const CatalogueEntry& entry : kEntries) {
    if (plain == entry.name) return &entry;
  }
  return nullptr;
}

}  // namespace hearth
