// SPDX-License-Identifier: Apache-2.0
// The step every command starts with: a path becomes a model.
#pragma once
#include <string>

#include "app/open_backend.h"
#include "base/result.h"
#include "model/model.h"
namespace hearth {

// Opens and binds; reads no weights.
Result<Model> OpenModel(const std::string& path);
// The same, and every weight checked to be a number. Reads the whole file once. Packed files are
// refused: they hold no weights that anything but their backend can read.
Result<Model> OpenCheckedModel(const std::string& path);
// What a command does before it computes: the reference wants its weights checked, the CPU backend
// checks them while it packs.
Result<Model> OpenModelFor(const std::string& path, const std::string& backend);

// The same with weights quantized on the way when the flags say so, which is said on stderr.
Result<Model> OpenModelFor(const std::string& path, const std::string& backend,
                           const BackendFlags& hardware);

// Tokens that one sequence may have: what --context asked for, or with 0 all that the model has.
// kInvalid when it asked for more than that.
Result<int> ContextOf(const ModelSpec& spec, int wanted);

}  // namespace hearth
