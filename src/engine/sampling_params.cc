// SPDX-License-Identifier: Apache-2.0
#include "engine/sampling_params.h"

namespace hearth {
namespace {

// Written so that NaN is outside every range.
Status InRange(const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return Status();
  return Error(Code::kInvalid, "%s: %g is not between %g and %g", field, value, low, high);
}

}  // namespace

Status Validate(const SamplingParams& params) {
  HEARTH_TRY(InRange("temperature", static_cast<double>(params.temperature), 0, 100));
  HEARTH_TRY(InRange("top_k", params.top_k, 0, 1 << 24));
  HEARTH_TRY(InRange("top_p", static_cast<double>(params.top_p), 0, 1));
  return InRange("min_p", static_cast<double>(params.min_p), 0, 1);
}

}  // namespace hearth
