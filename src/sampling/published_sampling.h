// SPDX-License-Identifier: Apache-2.0
// The sampling that publishers document for their models, for files that carry no recommendation of
// their own. Most GGUF files do not, and small models ramble at temperature 1.
#pragma once
#include <string_view>

#include "sampling/sampling_defaults.h"
namespace hearth {

// By the name that a file gives itself ("Qwen2.5 7B Instruct", GGUF's general.name). Every word of
// it must be the publisher's own: a fine-tune of somebody else and a base model have none, whatever
// they were made from. Empty with an empty source when the name is not known.
SamplingDefaults PublishedSampling(std::string_view model_name);

}  // namespace hearth
