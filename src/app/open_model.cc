// SPDX-License-Identifier: Apache-2.0
#include "app/open_model.h"

#include <cstdio>

#include "base/terminal.h"
#include "model/costs.h"
#include "platform/thread_pool.h"
#include "quantize/quantize.h"

namespace hearth {

Result<Model> OpenModel(const std::string& path) {
  HEARTH_ASSIGN(std::unique_ptr<WeightFile> file, WeightFile::Open(path));
  return LoadModel(std::move(file), BuiltInFamilies()).Within(path);
}

Result<Model> OpenCheckedModel(const std::string& path) {
  HEARTH_ASSIGN(Model model, OpenModel(path));
  if (model.file->packed() != nullptr) {
    return Error(Code::kUnsupported,
                 "%s is a packed file, which only the CPU backend can run; give the reference "
                 "backend the original model",
                 path.c_str());
  }
  HEARTH_TRY(CheckWeights(model).Within(path));
  return model;
}

Result<Model> OpenModelFor(const std::string& path, const std::string& backend) {
  return backend == "reference" ? OpenCheckedModel(path) : OpenModel(path);
}

Result<Model> OpenModelFor(const std::string& path, const std::string& backend,
                           const BackendFlags& hardware) {
  if (hardware.weights.empty()) return OpenModelFor(path, backend);
  HEARTH_ASSIGN(const std::unique_ptr<WeightFile> file, WeightFile::Open(path));
  HEARTH_ASSIGN(const Target target, ParseTarget(hardware.weights));
  HEARTH_ASSIGN(const BackendOptions options, OptionsFrom(hardware));
  ThreadPool pool(options.num_threads);
  HEARTH_ASSIGN(QuantizedModel quantized,
                QuantizeToMemory(*file, target, pool, nullptr).Within("--weights").Within(path));
  uint64_t before = 0, after = 0;
  for (const TensorOutcome& each : quantized.outcomes) {
    before += each.bytes_before;
    after += each.bytes_after;
  }
  PrintError(
      "weights: quantized to %s while loading, %.2f GiB instead of %.2f: replies are not "
      "those of the file; `hearth quantize` shows what is lost\n",
      hardware.weights.c_str(), InGib(static_cast<int64_t>(after)),
      InGib(static_cast<int64_t>(before)));
  return LoadModel(std::move(quantized.file), BuiltInFamilies()).Within(path);
}

Result<int> ContextOf(const ModelSpec& spec, int wanted) {
  if (wanted > spec.max_context) {
    return Error(
        Code::kInvalid,
        "--context %d is more than the model's maximum of %d tokens; lower it, or leave it out",
        wanted, spec.max_context);
  }
  return wanted > 0 ? wanted : spec.max_context;
}

}  // namespace hearth
