// SPDX-License-Identifier: Apache-2.0
// Renders requests through chat templates, one JSON object per line in and out, for the Python
// comparisons beside it. The tokenizer is bytes plus the special tokens that the line names.
#include <iostream>
#include <map>
#include <memory>

#include "base/json.h"
#include "templates/jinja_format.h"
#include "testing/template_tokenizer.h"

namespace hearth {
namespace {

struct Loaded {
  std::unique_ptr<TestingTokenizer> tokenizer;
  std::unique_ptr<JinjaChatFormat> format;
};

std::string String(const Json& line, const char* name) {
  const Json* member = line.Find(name);
  return member != nullptr && member->string() != nullptr ? *member->string() : "";
}

Result<Loaded> Load(const Json& line) {
  std::vector<std::string> names;
  for (const Json& name : *line.Find("specials")->array()) names.push_back(*name.string());
  Loaded loaded;
  loaded.tokenizer = std::make_unique<TestingTokenizer>(std::move(names), String(line, "bos"),
                                                        String(line, "eos"));
  HEARTH_ASSIGN(loaded.format, JinjaChatFormat::Make(String(line, "template"), *loaded.tokenizer));
  return loaded;
}

Result<Json> Answer(const Json& line, std::map<std::string, Loaded>& formats) {
  const std::string key = String(line, "name");
  if (line.Find("template") != nullptr) {
    HEARTH_ASSIGN(formats[key], Load(line));
    return Json(JsonObject{{"loaded", key}});
  }
  if (formats[key].format == nullptr) return Error(Code::kNotFound, "no such template");
  const JinjaChatFormat& format = *formats[key].format;
  HEARTH_ASSIGN(const Conversation conversation, ParseConversation(*line.Find("request")));
  const RenderOptions options{.date = String(line, "date")};
  HEARTH_ASSIGN(const auto pieces, format.RenderPieces(conversation, options));
  const std::vector<Token> tokens = format.TokensOf(pieces);
  std::string text, from_tokens;
  JsonArray specials;
  for (const PromptPiece& piece : pieces) text += piece.text;
  for (const Token token : tokens) {
    from_tokens += formats[key].tokenizer->Bytes(token);
    if (token >= 256) specials.push_back(formats[key].tokenizer->Bytes(token));
  }
  if (text != from_tokens) return Error(Code::kCorrupt, "tokens do not spell the text");
  return Json(JsonObject{{"text", text}, {"specials", std::move(specials)}});
}

}  // namespace
}  // namespace hearth

int main() {
  std::map<std::string, hearth::Loaded> formats;
  for (std::string text; std::getline(std::cin, text);) {
    auto line = hearth::ParseJson(text);
    HEARTH_CHECK(line.ok());
    auto answer = hearth::Answer(*line, formats);
    if (!answer.ok()) {
      answer = hearth::Json(hearth::JsonObject{{"error", answer.status().message()}});
    }
    std::cout << hearth::WriteJson(*answer) << std::endl;
  }
  return 0;
}
