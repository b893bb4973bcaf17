// SPDX-License-Identifier: Apache-2.0
// Which conversation format a model wants.
#pragma once
#include <memory>
#include <string>

#include "app/text_source.h"
#include "base/result.h"
#include "grammar/text_mask.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"
namespace hearth {

// `name` forces a format ("harmony"); empty lets the model decide. A vocabulary with harmony's
// control tokens is gpt-oss, and then a template in the file is not looked at; for the others it is
// the GGUF's own, or the one beside a tokenizer.json; a packed file keeps either. `source` is the
// model or tokenizer it is for. `tokenizer` must outlive the result.
Result<std::unique_ptr<ChatFormat>> OpenChatFormat(const TextSource& source,
                                                   const std::string& name,
                                                   const Tokenizer& tokenizer);

// The chat template that comes with a model, whether or not it is used. kNotFound: there is none.
Result<std::string> ChatTemplateOf(const TextSource& source);

// How replies in a template's format are written, for the masks that hold models to it. Says
// nothing of harmony, which has masks of its own.
TextReplyStyle ReplyStyleOf(const ChatFormat& format, const Tokenizer& tokenizer);

}  // namespace hearth
