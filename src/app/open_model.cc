// SPDX-License-Identifier: Apache-2.0
#include "app/open_model.h"

#include "model/costs.h"

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
