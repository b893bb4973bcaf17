// SPDX-License-Identifier: Apache-2.0
// Llama 2 and 3 and what was published under their name, SmolLM among them.
#include "model/describe.h"
#include "model/family.h"
#include "model/read_config.h"
#include "model/read_gguf.h"

namespace hearth {
namespace {

constexpr std::string_view kGgufNames[] = {"llama"};

Status DescribeGguf(const GgufSource& source, ModelSpec& spec) {
  HEARTH_TRY(ReadGgufShape(source, spec));
  HEARTH_TRY(ReadGgufDense(source, spec));
  HEARTH_ASSIGN(spec.rope.n_dims,
                source.facts.IntOr("rope.dimension_count", 2, kMaxHead, spec.d_head));
  // The converter permutes q and k of llama files so that neighbours pair up.
  return ReadGgufRope(source, RopePairing::kNeighbours, spec);
}

}  // namespace

const ModelFamily kLlamaFamily = {
    .name = "llama",
    .gguf_names = kGgufNames,
    .config_name = "llama",
    .describe_gguf = DescribeGguf,
    .bind_gguf = BindGgufUsual,
    .describe_hugging_face = ReadConfigPlain,
    .bind_hugging_face = BindHuggingFaceDense,
};

}  // namespace hearth
