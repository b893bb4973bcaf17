// SPDX-License-Identifier: Apache-2.0
#include "app/open_format.h"

#include "text/harmony.h"

namespace hearth {

Result<std::unique_ptr<ChatFormat>> OpenChatFormat(const std::string& path, const std::string& name,
                                                   const Tokenizer& tokenizer) {
  if (!name.empty() && name != "harmony") {
    return Error(Code::kInvalid, "no format is called %s; known: \"harmony\"",
                 Quoted(name).c_str());
  }
  if (name == "harmony" || HarmonyTokens::Find(tokenizer).ok()) return MakeHarmonyFormat(tokenizer);
  return Error(Code::kUnsupported, "%s: not a harmony model, and it brings no chat template",
               path.c_str());
}

}  // namespace hearth
