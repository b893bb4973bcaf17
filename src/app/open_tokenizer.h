// SPDX-License-Identifier: Apache-2.0
// Where a tokenizer comes from: a model, or a vocabulary file alone.
#pragma once
#include <memory>
#include <string>

#include "app/text_source.h"
#include "base/result.h"
#include "text/tokenizer.h"
namespace hearth {

Result<std::unique_ptr<Tokenizer>> OpenTokenizer(const TextSource& source);

// `path` is a GGUF file, a packed file, a Hugging Face tokenizer.json, a .tiktoken rank file (told
// apart by their first bytes), or a model's directory that holds a tokenizer.json. Errors name the
// path.
Result<std::unique_ptr<Tokenizer>> OpenTokenizer(const std::string& path);

}  // namespace hearth
