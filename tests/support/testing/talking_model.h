// SPDX-License-Identifier: Apache-2.0
// The smallest model file that can be talked to: weights, vocabulary and chat template.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "testing/tiny_models.h"
namespace hearth::testing {

inline constexpr int kTalkingTokens = 300;

// A model with its vocabulary and template: control tokens, all bytes, and a few letters.
inline std::string TalkingModel() {
  GgufBuilder b = TinyModel("llama");
  SetShape(b, "token_embd.weight", {32, kTalkingTokens});
  SetShape(b, "output.weight", {32, kTalkingTokens});
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::string types, scores;
  for (int i = 0; i < kTalkingTokens; ++i) {
    const int byte = i - 3;
    if (i >= 3) tokens.push_back(byte < 256 ? Printf("<0x%02X>", byte) : Printf("word%d", byte));
    types += Raw(int32_t{i == 0 ? 2 : i < 3 ? 3 : byte < 256 ? 6 : 1});
    scores += Raw(-1.0f * static_cast<float>(i));
  }
  b.AddString("tokenizer.ggml.model", "llama").AddStrings("tokenizer.ggml.tokens", tokens);
  b.AddRaw("tokenizer.ggml.token_type", GgufType::kArray,
           RawArray(GgufType::kI32, kTalkingTokens, types));
  b.AddRaw("tokenizer.ggml.scores", GgufType::kArray,
           RawArray(GgufType::kF32, kTalkingTokens, scores));
  AddNumber(b, "tokenizer.ggml.bos_token_id", 1);
  AddNumber(b, "tokenizer.ggml.eos_token_id", 2);
  b.AddString("tokenizer.chat_template", "{% for m in messages %}{{ m.content }}</s>{% endfor %}");
  return b.Build();
}

}  // namespace hearth::testing
