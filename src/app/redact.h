// SPDX-License-Identifier: Apache-2.0
// Text that leaves this machine, in a bug report: without what names its owner.
#pragma once
#include <string>
#include <vector>
namespace hearth {

struct PrivateWord {
  std::string word, instead;
};

// What names this machine's user: the home folder, the login and the host. Only words of three
// letters or more, so that a user "a" does not empty the report.
std::vector<PrivateWord> PrivateWords();
// Every private word replaced, the longest first.
std::string Redacted(std::string text, std::vector<PrivateWord> words);

}  // namespace hearth
