// SPDX-License-Identifier: Apache-2.0
// The lines of a batch's input: one request each. Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
namespace hearth {

struct BatchLine {
  std::string custom_id;
  std::string body;  // JSON, asked for when nobody else wants anything
};

struct LineMistake {
  int line = 0;  // from 1; 0: of the whole file
  std::string code, param, message;
};

struct BatchLines {
  std::vector<BatchLine> lines;
  std::vector<LineMistake> mistakes;  // the first few; any, and nothing is run
};

// Every line that is not empty is {"custom_id", "method": "POST", "url": endpoint, "body": {…}},
// each custom_id once.
BatchLines ReadLines(std::string_view text, const std::string& endpoint, int max_lines);
// The endpoints whose requests can be run later.
bool IsBatchEndpoint(const std::string& endpoint);
// {"object": "list", "data": [{"code", "line", "message", "param"}]}
Json MistakesAsJson(const std::vector<LineMistake>& mistakes);

// A line of the output: what the request was answered with.
std::string ResultLine(const std::string& custom_id, const std::string& request_id, int status,
                       std::string body);
// One that was never run.
std::string UnrunLine(const std::string& custom_id, const std::string& request_id,
                      const std::string& code, const std::string& message);

}  // namespace hearth
