// SPDX-License-Identifier: Apache-2.0
// What the server tells of a model, taken from its file and from how it talks.
#pragma once
#include <string>

#include "model/model.h"
#include "server/turns/model_facts.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"
namespace hearth {

// `path` is where the model was opened. What the file does not say stays empty.
ModelFacts FactsOf(const Model& model, const std::string& path, const ChatFormat& format,
                   const Tokenizer& tokenizer);

}  // namespace hearth
