// SPDX-License-Identifier: Apache-2.0
// hearth plan: runs a part of a model for some seconds, and the machine's rooflines beside it.
#pragma once
#include <string>

#include "app/open_backend.h"
#include "bench/work.h"
#include "model/model.h"
#include "plan/headline.h"
#include "plan/machine.h"
#include "plan/times.h"
namespace hearth {

struct PlanSample {
  ModelTimes times;  // of the whole model
  MachineRates rates;
  double clock_hz = 0;   // from the rate of VNNI; 0: unknown
  bool has_int8 = true;  // false: `rates.int8` is nominal, only good for comparing cores
  LoopCost loop;         // of the threads here
  int layers = 0;        // that ran
  double seconds = 0;    // that it took
  double others = 0;     // share of the machine that others used meanwhile
};

// The rooflines alone. The rate of arithmetic is that of the instruction set in `options`.
Result<PlanSample> SampleMachine(const BackendOptions& options);

// Needs memory for the part (docs/plan.md) and for the rooflines' buffer; kExhausted says so.
Result<PlanSample> SampleModel(const Model& model, const BackendOptions& options,
                               const WorkModel& work, const KvLayout& kv, int chunk);

}  // namespace hearth
