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
  HEARTH_TRY(CheckWeights(model).Within(path));
  return model;
}

}  // namespace hearth
