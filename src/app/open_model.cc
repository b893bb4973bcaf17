// SPDX-License-Identifier: Apache-2.0
#include "app/open_model.h"

#include "model/costs.h"

namespace hearth {

Result<Model> OpenModel(const std::string& path) {
  HEARTH_ASSIGN(std::unique_ptr<WeightFile> file, WeightFile::Open(path));
  return LoadModel(std::move(file)).Within(path);
}

Result<Model> OpenCheckedModel(const std::string& path) {
  HEARTH_ASSIGN(Model model, OpenModel(path));
  if (model.file->packed() != nullptr) {
    return Error(Code::kUnsupported,
                 "%s: a packed file runs on the CPU backend only; the reference needs the original",
                 path.c_str());
  }
  HEARTH_TRY(CheckWeights(model).Within(path));
  return model;
}

Result<Model> OpenModelFor(const std::string& path, const std::string& backend) {
  return backend == "reference" ? OpenCheckedModel(path) : OpenModel(path);
}

}  // namespace hearth
