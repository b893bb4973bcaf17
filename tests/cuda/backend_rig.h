// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on the mock driver, beside the CPU's.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "cpu/cpu_backend.h"
#include "gpu/cuda_backend.h"
#include "mock_machines.h"
#include "testing/loaded_model.h"
#include "testing/step_logits.h"
namespace hearth::cuda {

// The mock driver stands where this program's RUNPATH leads.
inline const BackendFactory& MockedBackends() {
  static const std::unique_ptr<BackendFactory> factory =
      CudaBackendsWith(std::as_bytes(std::span(kSourceImage)));
  return *factory;
}

struct RigOptions {
  int max_step_tokens = 64, max_rows = 8, blocks = 16;
};
inline BackendOptions OptionsOf(const RigOptions& rig) {
  BackendOptions options;
  options.device = "cuda:0";
  options.num_threads = 1;
  options.max_step_tokens = rig.max_step_tokens;
  options.max_rows = rig.max_rows;
  return options;
}
inline Result<std::unique_ptr<Backend>> OpenMocked(const Model& model, const RigOptions& rig) {
  HEARTH_ASSIGN(BackendPlan plan, MockedBackends().Plan(model, OptionsOf(rig)));
  SetBlocks(plan.kv, rig.blocks);
  return MockedBackends().Open(model, plan);
}
inline Result<std::unique_ptr<Backend>> OpenCpu(const Model& model, const RigOptions& rig) {
  CpuOptions options;
  options.isa = Isa::kScalar;
  options.num_threads = 1;
  options.kv_blocks = {rig.blocks};
  options.max_step_tokens = rig.max_step_tokens;
  return MakeCpuBackend(model, options);
}

// Faults of the contexts that are made while it lives.
class MockSettings {
 public:
  explicit MockSettings(const std::string& text) { setenv("HEARTH_MOCK", text.c_str(), 1); }
  ~MockSettings() { unsetenv("HEARTH_MOCK"); }
  MockSettings(const MockSettings&) = delete;
  MockSettings& operator=(const MockSettings&) = delete;
};

inline std::string TinyOss() {
  return std::string(HEARTH_SOURCE_DIR) + "/tests/golden/tiny-oss-mxfp4.gguf";
}

}  // namespace hearth::cuda
