// SPDX-License-Identifier: Apache-2.0
// Headers are a tree of token sequences, each leaf a kind of message; which kinds may come next
// prunes the tree. Bodies are any text, or a grammar's. Words of headers are written with the
// tokens the renderer uses and no others: a model knows no other spelling.
#include "grammar/harmony_mask.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "grammar/bits.h"

namespace hearth {
namespace {

using Words = HarmonyMasks::Words;

// Kinds of messages, as bits of a set.
enum Kind : unsigned { kAnalysis = 1, kPreamble = 2, kFinal = 4, kCall = 8 };

// All headers that this reply may have, the author's name between messages included.
class HeaderTree {
 public:
  struct Node {
    std::vector<std::pair<Token, int>> next;
    unsigned kinds = 0;  // of the leaves below
    int tool = -1;       // leaf of a call
  };
  static constexpr int kBetween = 0;  // before <|start|>
  int header() const { return header_; }
  const Node& node(int i) const { return nodes_[static_cast<size_t>(i)]; }

  HeaderTree(const Words& words, unsigned kinds) : words_(words) {
    nodes_.emplace_back();
    header_ = Walk(Walk(kBetween, {words.tokens.start}, kinds), words.assistant, kinds);
  }
  void AddPlain(const std::vector<Token>& channel, Kind kind) {
    Leaf({Channel(), channel, Message()}, kind, -1);
  }
  // Recipients stand before the channel, as the renderer writes them, or after it, as models do.
  void AddCall(const std::vector<Token>& recipient, int tool) {
    for (const auto& space : {words_.space, std::vector<Token>()}) {
      Leaf({recipient, Channel(), words_.commentary, space, Json(), Message()}, kCall, tool);
      Leaf({Channel(), words_.commentary, recipient, space, Json(), Message()}, kCall, tool);
    }
  }
  void AddJsonAnswer() {
    Leaf({Channel(), words_.final, words_.space, Json(), Message()}, kFinal, -1);
  }

 private:
  using Part = std::vector<Token>;
  Part Channel() const { return {words_.tokens.channel}; }
  Part Message() const { return {words_.tokens.message}; }
  Part Json() const {
    Part part = {words_.tokens.constrain};
    part.insert(part.end(), words_.json.begin(), words_.json.end());
    return part;
  }
  void Leaf(const std::vector<Part>& parts, Kind kind, int tool) {
    int at = header_;
    nodes_[static_cast<size_t>(at)].kinds |= kind;
    for (const Part& part : parts) at = Walk(at, part, kind);
    nodes_[static_cast<size_t>(at)].tool = tool;
  }
  int Walk(int at, const Part& part, unsigned kinds) {
    for (const Token token : part) {
      nodes_[static_cast<size_t>(at)].kinds |= kinds;
      const auto& next = nodes_[static_cast<size_t>(at)].next;
      const auto found = std::find_if(next.begin(), next.end(),
                                      [&](const auto& edge) { return edge.first == token; });
      if (found != next.end()) {
        at = found->second;
      } else {
        const int made = static_cast<int>(nodes_.size());
        nodes_[static_cast<size_t>(at)].next.emplace_back(token, made);
        nodes_.emplace_back();
        at = made;
      }
    }
    nodes_[static_cast<size_t>(at)].kinds |= kinds;
    return at;
  }

  const Words& words_;
  std::vector<Node> nodes_;
  int header_ = 0;
};

struct Plan {
  HeaderTree tree;
  std::vector<std::shared_ptr<const Grammar>> arguments;  // by tool
  std::shared_ptr<const Grammar> answer;                  // null: any text
  unsigned kinds = 0;                                     // that this reply may have at all
  bool parallel_calls = false;
  std::optional<int> reasoning_tokens;
};

class HarmonyMask : public TokenMask {
 public:
  HarmonyMask(const Words& words, std::shared_ptr<const Plan> plan)
      : words_(words), plan_(std::move(plan)), node_(plan_->tree.header()) {
    if (plan_->reasoning_tokens) reasoning_left_ = *plan_->reasoning_tokens;
  }

  Status Fill(std::span<uint32_t> bits) override {
    std::fill(bits.begin(), bits.end(), 0);
    switch (state_) {
      case State::kHeader:
        for (const auto& [token, next] : plan_->tree.node(node_).next) {
          if ((plan_->tree.node(next).kinds & AllowedKinds()) != 0) Allow(bits, token);
        }
        return {};
      case State::kBody:
        return FillBody(bits);
      case State::kFinished:
        break;
    }
    return {};
  }

  bool Accept(Token token) override {
    switch (state_) {
      case State::kHeader:
        return AcceptHeader(token);
      case State::kBody:
        return AcceptBody(token);
      case State::kFinished:
        break;
    }
    return false;
  }

  bool is_finished() const override { return state_ == State::kFinished; }
  std::unique_ptr<TokenMask> Clone() const override { return std::make_unique<HarmonyMask>(*this); }

 private:
  enum class State : unsigned char { kHeader, kBody, kFinished };

  unsigned AllowedKinds() const {
    unsigned kinds = plan_->kinds;
    if (reasoning_left_ && *reasoning_left_ <= 0) kinds &= ~unsigned{kAnalysis};
    if (last_ == kPreamble) kinds &= ~unsigned{kPreamble};
    // Once a call was made, the turn ends in calls: an answer would not have seen their results.
    if (has_called_) kinds &= ~unsigned{kFinal | kPreamble};
    return kinds;
  }

  bool AcceptHeader(Token token) {
    for (const auto& [edge, next] : plan_->tree.node(node_).next) {
      if (edge != token || (plan_->tree.node(next).kinds & AllowedKinds()) == 0) continue;
      node_ = next;
      if (token == words_.tokens.message) EnterBody();
      return true;
    }
    return false;
  }

  void EnterBody() {
    const HeaderTree::Node& leaf = plan_->tree.node(node_);
    last_ = static_cast<Kind>(leaf.kinds);
    state_ = State::kBody;
    if (last_ == kCall) body_.emplace(plan_->arguments[static_cast<size_t>(leaf.tool)]);
    if (last_ == kFinal && plan_->answer) body_.emplace(plan_->answer);
    if (last_ == kAnalysis && reasoning_left_) --*reasoning_left_;
  }

  Status FillBody(std::span<uint32_t> bits) {
    const bool is_spent = last_ == kAnalysis && reasoning_left_ && *reasoning_left_ <= 0;
    if (body_) {
      HEARTH_TRY(body_->Fill(bits));
      const Token end = body_->vocabulary().end();
      const bool may_end = IsAllowed(bits, end);
      Forbid(bits, end);
      if (!may_end) return {};
    } else if (!is_spent) {
      std::copy_n(words_.text.begin(), std::min(words_.text.size(), bits.size()), bits.begin());
    }
    for (const Token token : Ends()) Allow(bits, token);
    return {};
  }

  // Which tokens end a body of this kind.
  std::vector<Token> Ends() const {
    const HarmonyTokens& t = words_.tokens;
    switch (last_) {
      case kFinal:
        return {t.finish};
      case kCall:
        return plan_->parallel_calls ? std::vector{t.call, t.end} : std::vector{t.call};
      case kAnalysis:
      case kPreamble:
        break;
    }
    return {t.end};
  }

  bool AcceptBody(Token token) {
    const std::vector<Token> ends = Ends();
    if (std::find(ends.begin(), ends.end(), token) == ends.end()) return AcceptText(token);
    if (body_ && !body_->is_accepting()) return false;
    body_.reset();
    if (last_ == kCall) has_called_ = true;
    state_ = token == words_.tokens.end ? State::kHeader : State::kFinished;
    node_ = HeaderTree::kBetween;
    return true;
  }

  bool AcceptText(Token token) {
    const bool is_text = token >= 0 && static_cast<size_t>(token) / 32 < words_.text.size() &&
                         IsAllowed(words_.text, token);
    if (!is_text || (body_ && !body_->Accept(token))) return false;
    if (last_ == kAnalysis && reasoning_left_) {
      if (*reasoning_left_ <= 0) return false;
      --*reasoning_left_;
    }
    return true;
  }

  const Words& words_;
  std::shared_ptr<const Plan> plan_;
  State state_ = State::kHeader;
  int node_;                            // kHeader: where in the tree
  Kind last_ = kAnalysis;               // kBody: of this message; else of the one before
  std::optional<GrammarMatcher> body_;  // kBody with a grammar
  std::optional<int> reasoning_left_;   // tokens
  bool has_called_ = false;
};

std::vector<Token> Encoded(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<Token> tokens;
  tokenizer.Encode(text, tokens);
  return tokens;
}

}  // namespace

Result<std::unique_ptr<HarmonyMasks>> HarmonyMasks::Make(const Tokenizer& tokenizer,
                                                         GrammarCompiler& compiler) {
  HEARTH_ASSIGN(const HarmonyTokens tokens, HarmonyTokens::Find(tokenizer));
  Words words = {.tokens = tokens,
                 .assistant = Encoded(tokenizer, "assistant"),
                 .analysis = Encoded(tokenizer, "analysis"),
                 .commentary = Encoded(tokenizer, "commentary"),
                 .final = Encoded(tokenizer, "final"),
                 .space = Encoded(tokenizer, " "),
                 .json = Encoded(tokenizer, "json"),
                 .text = std::vector<uint32_t>(MaskWords(tokenizer.vocab_size()))};
  for (Token token = 0; token < tokenizer.vocab_size(); ++token) {
    if (!tokenizer.IsSpecial(token) && !tokenizer.Bytes(token).empty()) Allow(words.text, token);
  }
  return std::unique_ptr<HarmonyMasks>(new HarmonyMasks(tokenizer, compiler, std::move(words)));
}

Result<std::unique_ptr<TokenMask>> HarmonyMasks::New(const std::vector<ToolDefinition>& tools,
                                                     const ReplyRules& rules) const {
  HEARTH_ASSIGN(const auto callable, CallableTools(tools, rules));
  const bool must_call =
      rules.tool_choice == ToolChoice::kRequired || rules.tool_choice == ToolChoice::kNamed;
  const bool has_answer_grammar = rules.answer_schema != nullptr || rules.answer_grammar != nullptr;
  unsigned kinds = kAnalysis;
  if (!must_call) kinds |= kFinal;
  if (!callable.empty()) kinds |= kCall;
  // Words before a call are content for the client, which must be the answer's schema alone.
  if (!callable.empty() && !has_answer_grammar) kinds |= kPreamble;

  auto plan = std::make_shared<Plan>(Plan{.tree = HeaderTree(words_, kinds),
                                          .arguments = {},
                                          .answer = rules.answer_grammar,
                                          .kinds = kinds,
                                          .parallel_calls = rules.parallel_calls,
                                          .reasoning_tokens = rules.reasoning_tokens});
  plan->tree.AddPlain(words_.analysis, kAnalysis);
  if ((kinds & kPreamble) != 0) plan->tree.AddPlain(words_.commentary, kPreamble);
  if ((kinds & kFinal) != 0) plan->tree.AddPlain(words_.final, kFinal);
  if (rules.answer_schema != nullptr) {
    auto answer = compiler_.Schema(*rules.answer_schema, rules.owner).Within("response_format");
    if (!answer.ok()) return answer.status();
    plan->answer = *answer;
    if ((kinds & kFinal) != 0) plan->tree.AddJsonAnswer();
  }
  for (const ToolDefinition* tool : callable) {
    auto arguments =
        compiler_.Schema(ArgumentsSchema(*tool), rules.owner).Within("tool " + Quoted(tool->name));
    if (!arguments.ok()) return arguments.status();
    plan->tree.AddCall(Encoded(tokenizer_, " to=functions." + tool->name),
                       static_cast<int>(plan->arguments.size()));
    plan->arguments.push_back(*arguments);
  }
  return std::unique_ptr<TokenMask>(std::make_unique<HarmonyMask>(words_, std::move(plan)));
}

}  // namespace hearth
