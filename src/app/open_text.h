// SPDX-License-Identifier: Apache-2.0
// What a model needs to talk, from the file that holds its weights.
#pragma once
#include <memory>
#include <string>

#include "base/result.h"
#include "model/model.h"
#include "sampling/sampling_defaults.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"
namespace hearth {

struct ModelText {
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatFormat> format;  // refers to the tokenizer
  SamplingDefaults sampling;
};

// Reads the model's open file and parses no metadata again; `path` is where it was opened. A
// vocabulary larger than the model's is refused.
Result<ModelText> OpenModelText(const Model& model, const std::string& path);

}  // namespace hearth
