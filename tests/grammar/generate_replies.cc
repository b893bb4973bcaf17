// SPDX-License-Identifier: Apache-2.0
// generate_replies VOCABULARY: for each line of standard input, a request of the Python tests, one
// line with the reply that noise under that request's mask wrote, and how our reader reads it.
// generate_replies MODEL --weights: the same written by a model's weights, through the engine.
#include <algorithm>
#include <ctime>
#include <deque>
#include <fstream>
#include <iostream>
#include <string>

#include "app/open_tokenizer.h"
#include "base/json.h"
#include "engine_model.h"
#include "grammar/compiler.h"
#include "grammar/grammar_mask.h"
#include "grammar/harmony_mask.h"
#include "grammar/text_mask.h"
#include "testing/random_reply.h"
#include "text/harmony_parse.h"

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int64_t StatusKib(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == name && status >> kib) return kib;
  }
  return 0;
}
// The memory now, and from now on the peak: how much a request took can be told.
int64_t ForgetPeak() {
  std::ofstream("/proc/self/clear_refs") << "5";
  return StatusKib("VmRSS:");
}

std::string Text(const Json& request, const char* name, const char* otherwise = "") {
  const Json* member = request.Find(name);
  return member != nullptr && member->string() != nullptr ? *member->string() : otherwise;
}
int Number(const Json& request, const char* name, int otherwise) {
  const Json* member = request.Find(name);
  const auto value = member != nullptr ? member->integer() : std::nullopt;
  return value ? static_cast<int>(*value) : otherwise;
}

ReplyRules RulesOf(const Json& request) {
  ReplyRules rules;
  const std::string choice = Text(request, "tool_choice", "auto");
  rules.tool_choice = choice == "auto"       ? ToolChoice::kAuto
                      : choice == "none"     ? ToolChoice::kNone
                      : choice == "required" ? ToolChoice::kRequired
                                             : ToolChoice::kNamed;
  if (rules.tool_choice == ToolChoice::kNamed) rules.named_tool = choice;
  const Json* parallel = request.Find("parallel");
  rules.parallel_calls =
      parallel == nullptr || parallel->boolean() == nullptr || *parallel->boolean();
  rules.answer_schema = request.Find("answer");
  if (request.Find("reasoning_tokens") != nullptr) {
    rules.reasoning_tokens = Number(request, "reasoning_tokens", 0);
  }
  return rules;
}

class Generator {
 public:
  Generator(const Tokenizer& tokenizer, std::shared_ptr<const GrammarVocabulary> vocabulary)
      : tokenizer_(tokenizer),
        end_(vocabulary->end()),
        compiler_(std::move(vocabulary)),
        model_(tokenizer, StopsOf(tokenizer)) {
    if (auto masks = HarmonyMasks::Make(tokenizer, compiler_); masks.ok()) {
      harmony_ = *std::move(masks);
    }
  }

  Json Answer(const Json& request) {
    JsonObject out;
    const bool is_measured = request.Find("measure") != nullptr;
    const int64_t memory = is_measured ? ForgetPeak() : 0;
    const double before = CpuSeconds();
    auto mask = NewMask(request);
    out.push_back({"compile_ms", (CpuSeconds() - before) * 1e3});
    if (is_measured)
      out.push_back({"peak_kib", std::max<int64_t>(0, StatusKib("VmHWM:") - memory)});
    if (!mask.ok()) {
      out.push_back({"refused", mask.status().message()});
      return out;
    }
    if (request.Find("only_compile") != nullptr) return out;
    if (const Json* texts = request.Find("accepts"); texts != nullptr) {
      JsonArray accepted;
      for (const Json& text : *texts->array()) {
        accepted.push_back(Accepts(*(*mask)->Clone(), *text.string()));
      }
      out.push_back({"accepts", std::move(accepted)});
      return out;
    }
    const double start = CpuSeconds();
    const auto reply = model_.Run(**mask, static_cast<uint64_t>(Number(request, "seed", 1)),
                                  Number(request, "soft", 60), Number(request, "hard", 6000));
    if (is_measured) out.push_back({"mask_ms", (CpuSeconds() - start) * 1e3});
    Tell(request, reply, out);
    return out;
  }

  // Many at a time through the engine; answers in the order of the requests.
  void AnswerAll(testing::EngineModel& model, const std::vector<Json>& requests) {
    struct Underway {
      const Json* request;
      testing::EngineModel::Pending pending;
      std::string refused;
    };
    std::deque<Underway> underway;
    size_t next = 0;
    while (next < requests.size() || !underway.empty()) {
      while (next < requests.size() && underway.size() < testing::EngineModel::kInFlight) {
        const Json& request = requests[next++];
        auto mask = NewMask(request);
        if (!mask.ok()) {
          underway.push_back({&request, {}, mask.status().message()});
          continue;
        }
        const int seed = Number(request, "seed", 1), soft = Number(request, "soft", 60);
        const auto haste = static_cast<float>(23 + soft % 10);
        auto pending = model.Begin(*std::move(mask), static_cast<uint64_t>(seed), haste,
                                   Number(request, "hard", 400));
        underway.push_back({&request, std::move(pending), ""});
      }
      Underway first = std::move(underway.front());
      underway.pop_front();
      JsonObject out;
      if (!first.refused.empty()) {
        out.push_back({"refused", first.refused});
      } else {
        Tell(*first.request, model.End(std::move(first.pending)), out);
      }
      std::cout << WriteJson(out) << "\n";
    }
  }

  static std::vector<Token> StopsOf(const Tokenizer& tokenizer) {
    std::vector<Token> stops;
    for (const char* name : {"<|return|>", "<|call|>", "<|end|>", "<|im_end|>"}) {
      if (const auto token = tokenizer.Special(name)) stops.push_back(*token);
    }
    return stops;
  }

 private:
  void Tell(const Json& request, const testing::RandomReply& reply, JsonObject& out) const {
    out.push_back({"finished", reply.is_finished});
    if (!reply.error.empty()) out.push_back({"error", reply.error});
    out.push_back({"tokens", static_cast<int64_t>(reply.tokens.size())});
    Read(Text(request, "kind"), reply.tokens, out);
  }

  static ToolCallStyle StyleOf(const std::string& kind) {
    if (kind == "chatml") return ToolCallStyle::kChatMl;
    if (kind == "llama3") return ToolCallStyle::kLlama3;
    return kind == "generic" ? ToolCallStyle::kGeneric : ToolCallStyle::kNone;
  }

  // Whether the mask lets this text pass, written as the tokenizer writes it, and end.
  bool Accepts(TokenMask& mask, const std::string& text) const {
    std::vector<Token> tokens;
    tokenizer_.Encode(text, tokens);
    for (const Token token : tokens) {
      if (!mask.Accept(token)) return false;
    }
    return mask.Accept(end_);
  }

  Result<std::unique_ptr<TokenMask>> NewMask(const Json& request) {
    const std::string kind = Text(request, "kind");
    if (kind == "harmony") {
      HEARTH_ASSIGN(const Conversation conversation, ParseConversation(request));
      if (harmony_ == nullptr) return Error(Code::kUnsupported, "no harmony in this vocabulary");
      return harmony_->New(conversation.tools, RulesOf(request));
    }
    if (StyleOf(kind) != ToolCallStyle::kNone) {
      HEARTH_ASSIGN(const Conversation conversation, ParseConversation(request));
      const TextReplyStyle style = {
          // A template without calls gets the generic ones by itself.
          .calls = kind == "generic" ? ToolCallStyle::kNone : StyleOf(kind),
          .begins_in_reasoning = request.Find("begins_in_reasoning") != nullptr,
          .may_reason = request.Find("may_reason") != nullptr};
      return NewTextMask(conversation.tools, RulesOf(request), style, tokenizer_, {end_},
                         compiler_);
    }
    HEARTH_ASSIGN(auto grammar, Compile(kind, request));
    return MakeGrammarMask(std::move(grammar), {end_});
  }

  Result<std::shared_ptr<const Grammar>> Compile(const std::string& kind, const Json& request) {
    if (kind == "regex") return compiler_.Regex(Text(request, "text"));
    if (kind == "lark") return compiler_.Lark(Text(request, "text"));
    if (kind == "schema_text") return compiler_.SchemaText(Text(request, "text"));
    if (kind == "choice") {
      std::vector<std::string> choices;
      for (const Json& choice : *request.Find("choices")->array()) {
        choices.push_back(*choice.string());
      }
      return compiler_.Choice(choices);
    }
    return compiler_.Schema(*request.Find("schema"));
  }

  void Read(const std::string& kind, const std::vector<Token>& tokens, JsonObject& out) const {
    std::string text;
    for (const Token token : tokens) {
      const std::string_view bytes = tokenizer_.Bytes(token);
      const bool is_tag = bytes.ends_with("tool_call>") || bytes.ends_with("think>");
      if (kind == "harmony" || is_tag || !tokenizer_.IsSpecial(token)) text += bytes;
    }
    out.push_back({"text", text});
    std::vector<ReplyEvent> events;
    if (kind == "harmony") {
      ReadHarmony(tokens, events, out);
    } else if (const ToolCallStyle style = StyleOf(kind); style != ToolCallStyle::kNone) {
      ToolCallParser whole(style), cut(style);
      whole.Feed(text, events);
      whole.Finish(events);
      std::vector<ReplyEvent> pieces;
      for (const char c : text) cut.Feed(std::string_view(&c, 1), pieces);
      cut.Finish(pieces);
      out.push_back({"same_streamed", Summary(events) == Summary(pieces)});
    }
    out.push_back({"events", Summary(events)});
  }

  // Streamed: each token's events taken away at once, as the server sends them. Whole: the parser
  // is given all tokens, and its messages are read by their channels and recipients alone.
  void ReadHarmony(const std::vector<Token>& tokens, std::vector<ReplyEvent>& events,
                   JsonObject& out) const {
    auto format = MakeHarmonyFormat(tokenizer_);
    auto reader = (*format)->NewReader();
    for (const Token token : tokens) {
      std::vector<ReplyEvent> piece;
      reader->Feed(token, piece);
      events.insert(events.end(), piece.begin(), piece.end());
    }
    reader->Finish(events);
    HarmonyParser parser(tokenizer_, *HarmonyTokens::Find(tokenizer_));
    std::vector<HarmonyEvent> messages;
    parser.Feed(tokens, messages);
    parser.Finish(messages);
    out.push_back({"repairs", parser.repairs().total()});
    std::vector<ReplyEvent> whole;
    int64_t reasoning = 0;
    Kind kind = Kind::kContent;
    for (const HarmonyEvent& event : messages) {
      if (event.kind == HarmonyEvent::Kind::kStart) {
        const bool is_analysis = event.header.channel == HarmonyChannel::kAnalysis;
        const bool is_call = event.header.recipient.starts_with("functions.");
        kind = is_call ? Kind::kToolArguments : is_analysis ? Kind::kReasoning : Kind::kContent;
        if (is_call) whole.push_back({Kind::kToolCall, event.header.recipient.substr(10)});
      } else if (event.kind == HarmonyEvent::Kind::kContent) {
        whole.push_back({kind, event.bytes});
        reasoning += kind == Kind::kReasoning ? 1 : 0;
      }
    }
    out.push_back({"same_streamed", Summary(events) == Summary(whole)});
    out.push_back({"thoughts", reasoning});
  }

  // [["content", text], ["call", name, arguments], ...]: events of a kind that follow each other
  // are one.
  static Json Summary(const std::vector<ReplyEvent>& events) {
    JsonArray out;
    Kind last = Kind::kToolCallEnd;
    for (const ReplyEvent& event : events) {
      if (event.kind == Kind::kToolCall) {
        out.push_back(JsonArray{"call", event.text, ""});
      } else if (event.kind == Kind::kToolArguments) {
        Json& arguments = (*out.back().array())[2];
        arguments = *arguments.string() + event.text;
      } else if (event.kind != Kind::kToolCallEnd) {
        const char* name = event.kind == Kind::kReasoning ? "reasoning" : "content";
        if (event.kind == last) {
          Json& text = (*out.back().array())[1];
          text = *text.string() + event.text;
        } else {
          out.push_back(JsonArray{name, event.text});
        }
      }
      last = event.kind;
    }
    return out;
  }

  const Tokenizer& tokenizer_;
  const Token end_;
  GrammarCompiler compiler_;
  std::unique_ptr<HarmonyMasks> harmony_;
  testing::RandomModel model_;
};

int Fail(const Status& status) {
  std::cerr << status.message() << "\n";
  return 1;
}

int Main(int argc, char** argv) {
  const bool has_weights = argc == 3 && std::string_view(argv[2]) == "--weights";
  if (argc != 2 && !has_weights) {
    std::cerr << "usage: generate_replies VOCABULARY | generate_replies MODEL --weights\n";
    return 2;
  }
  auto tokenizer = OpenTokenizer(argv[1]);
  if (!tokenizer.ok()) return Fail(tokenizer.status());
  auto vocabulary = GrammarVocabulary::Make(**tokenizer);
  if (!vocabulary.ok()) return Fail(vocabulary.status());
  Generator generator(**tokenizer, *vocabulary);
  std::vector<Json> requests;
  for (std::string line; std::getline(std::cin, line);) {
    auto request = ParseJson(line);
    if (!request.ok()) return Fail(request.status());
    if (has_weights) {
      requests.push_back(*std::move(request));
    } else {
      std::cout << WriteJson(generator.Answer(*request)) << std::endl;
    }
  }
  if (!has_weights) return 0;
  auto model = testing::EngineModel::Open(argv[1], **tokenizer, Generator::StopsOf(**tokenizer));
  if (!model.ok()) return Fail(model.status());
  generator.AnswerAll(**model, requests);
  const MaskTotals masks = (*model)->snapshot()->masks;
  std::fprintf(stderr, "masks: %lld steps, %lld fills, median %lld us, %lld steps waited %.1f ms\n",
               static_cast<long long>(masks.num_steps), static_cast<long long>(masks.num_fills),
               static_cast<long long>(masks.median_fill_us),
               static_cast<long long>(masks.num_delayed),
               static_cast<double>(masks.delayed_us) * 1e-3);
  return 0;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) { return hearth::Main(argc, argv); }
