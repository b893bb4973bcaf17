// SPDX-License-Identifier: Apache-2.0
// Qwen 2 and 2.5: llama with biases on q, k and v.
#include "model/family.h"
#include "model/read_config.h"
#include "model/read_gguf.h"

namespace hearth {
namespace {

constexpr std::string_view kGgufNames[] = {"qwen2"};

}  // namespace

const ModelFamily kQwen2Family = {
    .name = "qwen2",
    .gguf_names = kGgufNames,
    .config_name = "qwen2",
    .required = {.qkv_bias = true},
    .describe_gguf = ReadGgufPlain,
    .bind_gguf = BindGgufUsual,
    .describe_hugging_face = ReadConfigPlain,
    .bind_hugging_face = BindHuggingFaceDense,
};

}  // namespace hearth
