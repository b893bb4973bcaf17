// SPDX-License-Identifier: Apache-2.0
#include "app/open_text.h"

#include "app/open_format.h"
#include "app/open_sampling.h"
#include "app/open_tokenizer.h"
#include "app/text_source.h"

namespace hearth {

Result<ModelText> OpenModelText(const Model& model, const std::string& path) {
  const TextSource source = TextSource::Of(*model.file, path);
  ModelText text;
  HEARTH_ASSIGN(text.tokenizer, OpenTokenizer(source));
  if (text.tokenizer->vocab_size() > model.spec.vocab_size) {
    return Error(Code::kCorrupt, "%s: the tokenizer has %d tokens, but the model only %d",
                 path.c_str(), text.tokenizer->vocab_size(), model.spec.vocab_size);
  }
  HEARTH_ASSIGN(text.format, OpenChatFormat(source, "", *text.tokenizer));
  HEARTH_ASSIGN(text.sampling, OpenSamplingDefaults(source));
  return text;
}

}  // namespace hearth
