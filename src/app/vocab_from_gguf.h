// SPDX-License-Identifier: Apache-2.0
// The vocabulary in a GGUF file's metadata, as the text room wants it.
#pragma once
#include "base/result.h"
#include "text/vocab.h"
#include "weights/gguf.h"
namespace hearth {

// Copies everything it needs. Errors name the key at fault; a split rule or vocabulary model that
// Hearth does not know is refused by name.
Result<Vocab> VocabFromGguf(const GgufMetadata& metadata);

}  // namespace hearth
