// SPDX-License-Identifier: Apache-2.0
// What goes back on the wire for Ollama's routes: lines of JSON of which the last one has the
// statistics, or all of it in one object; and embeddings.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "server/turns/dialect.h"
namespace hearth {

// {"error": "..."}
Json OllamaError(const ApiError& error);
// What an empty request is told: nothing was said, and the model is loaded, or told to leave:
// `reason` is "load" or "unload".
Json OllamaLoaded(const std::string& model, bool is_chat, const char* reason);

// /api/chat and /api/generate, which differ in where the text stands.
class OllamaWriter : public ReplyWriter {
 public:
  enum class Form : unsigned char { kChat, kGenerate };
  // The reply repeats the model's name as the client wrote it.
  OllamaWriter(Form form, const TurnRequest& request, const ReplyFacts& facts);
  std::string Begin() override { return ""; }
  std::string Add(int choice, const Delta& delta) override;
  std::string EndChoice(int choice, const ChoiceEnd& end) override;
  std::string End(const TurnUsage& usage) override;
  std::string Fail(const ApiError& error) override;
  const char* stream_type() const override { return "application/x-ndjson"; }
  // A piece with nothing in it: lines of JSON have no comments.
  std::string Ping() const override;
  std::string Whole(const TurnUsage& usage) override;

 private:
  // A reply, or what is new of it.
  struct Piece {
    std::string content, thinking;
    std::vector<std::string> calls;  // JSON texts
    JsonArray logprobs;
  };
  struct Call {
    std::string name, arguments;
    bool is_told = false;
  };
  std::string AsText(const Piece& piece, const JsonObject& end) const;
  std::string Line(const Piece& piece) const;
  std::string TellCall(size_t index, const std::string& arguments);
  JsonObject EndOf(const TurnUsage& usage) const;

  const Form form_;
  const std::string model_, id_;
  const bool streams_, wants_logprobs_;
  Piece whole_;
  std::vector<Call> calls_;
  const char* done_reason_ = "stop";
};

// /api/embed, and /api/embeddings for one text.
class OllamaEmbeddingWriter : public ReplyWriter {
 public:
  OllamaEmbeddingWriter(const TurnRequest& request, bool is_single);
  void AddEmbedding(int choice, std::vector<float> embedding) override;
  std::string Whole(const TurnUsage& usage) override;
  // There is no stream of these.
  std::string Begin() override { return ""; }
  std::string Add(int, const Delta&) override { return ""; }
  std::string EndChoice(int, const ChoiceEnd&) override { return ""; }
  std::string End(const TurnUsage&) override { return ""; }
  std::string Fail(const ApiError&) override { return ""; }

 private:
  const std::string model_;
  const bool is_single_;
  std::vector<std::vector<float>> embeddings_;
};

}  // namespace hearth
