// SPDX-License-Identifier: Apache-2.0
// A model with everything that serving it needs: opened at once and for good, or, where several
// share the memory, measured first and opened within what was measured.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/open_engine.h"
#include "backend/step_gate.h"
#include "base/result.h"
#include "server/models/model_host.h"
namespace hearth {

struct ServedSpec {
  std::string path;
  std::string name;                       // in the API
  std::vector<std::string> aliases = {};  // "*": any name
  std::string date = {};                  // what the model is told is today
  EngineFlags engine = {};
};

// A model that was opened alone.
Result<std::unique_ptr<LoadedModel>> OpenServed(const ServedSpec& spec);

// What a model that shares `budget` bytes with others will hold; reads no weights. Its KV cache is
// as large as --kv-memory says, else a quarter of its weights and at least 256 MiB, but never more
// than half of what they leave of the budget.
Result<MeasuredModel> MeasureServed(const ServedSpec& spec, int64_t budget);
// Opens what was measured, to take its steps through `gate`. Ids of its sequences begin at
// `first_id`. kExhausted when the file has changed and needs more than `bytes` now.
Result<std::unique_ptr<LoadedModel>> OpenServedWithin(const ServedSpec& spec, int64_t budget,
                                                      int64_t bytes, StepGate& gate,
                                                      uint64_t first_id);

}  // namespace hearth
