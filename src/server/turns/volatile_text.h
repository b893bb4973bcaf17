// SPDX-License-Identifier: Apache-2.0
// What clients put at the head of a system prompt although it is for their own transport: it
// changes with every request, says nothing to a model, and would make every prompt a new one for
// the cache. The one list of it, for all dialects. Pure.
#pragma once
#include <string>
#include <vector>

#include "text/conversation.h"
namespace hearth {

enum class Neutralise : unsigned char {
  kNone,     // every prompt as it was sent
  kHeaders,  // lines of transport: a billing header, ids of requests and traces
  kAll,      // also ids of sessions, and times of day down to the day; a model could want those
};

// Takes it out of the heads of system and developer messages, where a known form matches exactly:
// nothing else is touched, user's text never. A message of nothing else goes. The names of what was
// found, joined by ", "; empty: nothing was.
std::string NeutraliseVolatile(Neutralise what, Conversation& conversation);

// The list as Markdown, for docs/operate.md.
std::string VolatileAsMarkdown();

}  // namespace hearth
