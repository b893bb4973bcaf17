// SPDX-License-Identifier: Apache-2.0
#include "app/redact.h"

#include <unistd.h>

#include <algorithm>
#include <climits>

#include "platform/user_folders.h"

namespace hearth {
namespace {

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

std::vector<PrivateWord> PrivateWords() {
  const Environment environment = ProcessEnvironment();
  std::vector<PrivateWord> words = {{environment("HOME"), "~"}, {environment("USER"), "USER"}};
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof host - 1) == 0) words.push_back({host, "HOST"});
  return words;
}

std::string Redacted(std::string text, std::vector<PrivateWord> words) {
  std::erase_if(words, [](const PrivateWord& each) { return each.word.size() < 3; });
  std::sort(words.begin(), words.end(), [](const PrivateWord& a, const PrivateWord& b) {
    return a.word.size() > b.word.size();
  });
  for (const PrivateWord& each : words) {
    for (size_t at = 0; (at = text.find(each.word, at)) != std::string::npos;) {
      const size_t end = at + each.word.size();
      const bool is_whole = (at == 0 || !IsWordByte(text[at - 1]) || !IsWordByte(each.word[0])) &&
                            (end == text.size() || !IsWordByte(text[end]));
      if (is_whole) text.replace(at, each.word.size(), each.instead);
      at += is_whole ? each.instead.size() : 1;
    }
  }
  return text;
}

}  // namespace hearth
