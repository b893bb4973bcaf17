// SPDX-License-Identifier: Apache-2.0
// hearth tokenize: JSON strings in, JSON arrays of tokens out, or the other way; a line for a line.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>

#include "app/commands.h"
#include "app/model_argument.h"
#include "app/open_tokenizer.h"
#include "base/json.h"
#include "base/terminal.h"
#include "text/utf8_stream.h"

namespace hearth {
namespace {

constexpr size_t kMaxLineBytes = size_t{64} << 20;
constexpr JsonLimits kLineLimits{
    .max_bytes = kMaxLineBytes, .max_depth = 2, .max_values = kMaxLineBytes};

struct TokenizeOptions {
  std::string model, tokenizer;
  bool decode = false;
};

// Appends the answer to one line, without a line end.
using LineWork = std::function<Status(std::string_view line, std::string& out)>;

Status EncodeLine(const Tokenizer& tokenizer, std::string_view line, std::string& out) {
  HEARTH_ASSIGN(const Json json,
                ParseJson(line, kLineLimits).Within("expected a JSON string such as \"hello\""));
  const std::string* text = json.string();
  if (text == nullptr) return Error(Code::kInvalid, "expected a JSON string such as \"hello\"");
  std::vector<Token> tokens;
  tokenizer.Encode(*text, tokens);
  out += '[';
  for (size_t i = 0; i < tokens.size(); ++i) {
    char digits[16];
    if (i > 0) out += ',';
    out.append(digits, std::to_chars(digits, digits + sizeof digits, tokens[i]).ptr);
  }
  out += ']';
  return Status();
}

Status DecodeLine(const Tokenizer& tokenizer, std::string_view line, std::string& out) {
  HEARTH_ASSIGN(const Json json, ParseJson(line, kLineLimits));
  const JsonArray* array = json.array();
  if (array == nullptr) return Error(Code::kInvalid, "expected a JSON array of token ids");
  std::string bytes, text;
  for (size_t i = 0; i < array->size(); ++i) {
    const std::optional<int64_t> token = (*array)[i].integer();
    if (!token || *token < 0 || *token >= tokenizer.vocab_size()) {
      return Error(Code::kInvalid,
                   "element %zu is not a token id: expected an integer of at least 0 and below %d",
                   i, tokenizer.vocab_size());
    }
    bytes += tokenizer.Bytes(static_cast<Token>(*token));
  }
  if (tokenizer.traits().space_in_front && bytes.starts_with(' ')) bytes.erase(0, 1);
  Utf8Stream stream;
  stream.Append(bytes, text);
  stream.Finish(text);
  out += JsonForTerminal(WriteJson(Json(std::move(text))));
  return Status();
}

Status WriteAll(std::string& out) {
  for (size_t done = 0; done < out.size();) {
    const ssize_t count = write(STDOUT_FILENO, out.data() + done, out.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return Error(Code::kIo, "cannot write to standard output: %s", std::strerror(errno));
    done += static_cast<size_t>(count);
  }
  out.clear();
  return Status();
}

// Answers every complete line of `input` and removes it. The last line may lack its end.
Status AnswerLines(const LineWork& work, bool is_last, size_t& num_lines, std::string& input,
                   std::string& out) {
  size_t begin = 0;
  while (begin < input.size()) {
    size_t end = input.find('\n', begin);
    if (end == std::string::npos) {
      if (!is_last) break;
      end = input.size();
    }
    ++num_lines;
    const Status status = work(std::string_view(input).substr(begin, end - begin), out);
    if (!status.ok()) {
      // What was answered before stands: each answer belongs to a line of its own.
      HEARTH_TRY(WriteAll(out));
      return Status(status).Within(Printf("line %zu", num_lines));
    }
    out += '\n';
    begin = end + 1;
  }
  input.erase(0, std::min(begin, input.size()));
  return Status();
}

// Answers go out whenever the input so far is used up, so a program may ask line by line.
Status AnswerStdin(const LineWork& work) {
  std::string input, out;
  std::vector<char> buffer(size_t{1} << 20);
  size_t num_lines = 0;
  for (;;) {
    const ssize_t count = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error(Code::kIo, "cannot read standard input: %s", std::strerror(errno));
    input.append(buffer.data(), static_cast<size_t>(count));
    HEARTH_TRY(AnswerLines(work, count == 0, num_lines, input, out));
    HEARTH_TRY(WriteAll(out));
    if (count == 0) return Status();
    if (input.size() > kMaxLineBytes) {
      return Error(Code::kInvalid, "line %zu: longer than %zu bytes", num_lines + 1, kMaxLineBytes);
    }
  }
}

Status Tokenize(const TokenizeOptions& options) {
  std::string path = options.tokenizer;
  if (path.empty()) {
    HEARTH_ASSIGN(path, ModelPath(options.model));
  }
  HEARTH_ASSIGN(const auto tokenizer, OpenTokenizer(path));
  const auto work = options.decode ? DecodeLine : EncodeLine;
  return AnswerStdin(
      [&](std::string_view line, std::string& out) { return work(*tokenizer, line, out); });
}

}  // namespace

void AddTokenize(CLI::App& app, Command& chosen) {
  CLI::App* sub = app.add_subcommand("tokenize", "Convert text to token ids, or token ids to text");
  sub->footer(
      "Reads one JSON string per line and writes one JSON array of token ids per line.\nText that "
      "spells a special token is not turned into that token.");
  auto options = std::make_shared<TokenizeOptions>();
  auto* source = sub->add_option_group("source");
  source->add_option(
      "--model", options->model,
      "Model file or directory, or a name that `hearth list` shows, whose tokenizer to use");
  source->add_option("--tokenizer", options->tokenizer,
                     "Tokenizer file: GGUF, tokenizer.json or .tiktoken");
  source->require_option(1);
  sub->add_flag("--decode", options->decode, "Read arrays of token ids and write strings");
  sub->callback([options, &chosen] { chosen = [options] { return Tokenize(*options); }; });
}

}  // namespace hearth
