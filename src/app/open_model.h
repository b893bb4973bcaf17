// SPDX-License-Identifier: Apache-2.0
// The step every command starts with: a path becomes a model.
#pragma once
#include <string>

#include "base/result.h"
#include "model/model.h"
namespace hearth {

// Opens and binds; reads no weights.
Result<Model> OpenModel(const std::string& path);
// The same, and every weight checked to be a number. Reads the whole file once.
Result<Model> OpenCheckedModel(const std::string& path);

}  // namespace hearth
