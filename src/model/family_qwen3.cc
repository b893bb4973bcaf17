// SPDX-License-Identifier: Apache-2.0
// Qwen 3, dense: each head of q and k is normalised before rope.
#include "model/family.h"
#include "model/read_config.h"
#include "model/read_gguf.h"

namespace hearth {
namespace {

constexpr std::string_view kGgufNames[] = {"qwen3"};

}  // namespace

const ModelFamily kQwen3Family = {
    .name = "qwen3",
    .gguf_names = kGgufNames,
    .config_name = "qwen3",
    .required = {.qk_norm = true},
    .describe_gguf = ReadGgufPlain,
    .bind_gguf = BindGgufUsual,
    .describe_hugging_face = ReadConfigPlain,
    .bind_hugging_face = BindHuggingFaceDense,
};

}  // namespace hearth
