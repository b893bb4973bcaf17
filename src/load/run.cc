// SPDX-License-Identifier: Apache-2.0
#include "load/run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <random>

#include "base/spread.h"

namespace hearth {
namespace {

// No two chats are alike.
class Writer {
 public:
  Writer(uint64_t seed, int vocab_size) : random_(seed), vocab_size_(vocab_size) {}
  std::vector<Token> Tokens(int count) {
    std::vector<Token> out(static_cast<size_t>(count));
    for (Token& token : out)
      token = static_cast<Token>(random_() % static_cast<uint64_t>(vocab_size_));
    return out;
  }
  double Exponential(double mean) {
    const double share = static_cast<double>(random_() >> 11) * 0x1p-53;
    return -mean * std::log1p(-share);
  }
  uint64_t Next() { return random_(); }

 private:
  std::mt19937_64 random_;
  const int vocab_size_;
};

struct Chat {
  int number = 0;
  std::vector<Token> tokens;
  std::vector<LoadTurn> turns;  // the same tokens
  int preamble = 0;
  int turns_left = 0;
  double due_s = 0;                    // of its next turn
  std::shared_ptr<LoadStream> stream;  // of the turn under way
  bool is_first_turn = true;

  void Add(LoadTurn::Kind kind, const std::vector<Token>& said, const std::string& text = {}) {
    tokens.insert(tokens.end(), said.begin(), said.end());
    turns.push_back({kind, said, text});
  }
};

class Driver {
 public:
  Driver(LoadTarget& target, const LoadOptions& options, const LoadClock& clock, LoadBell& bell)
      : target_(target),
        options_(options),
        clock_(clock),
        bell_(bell),
        writer_(options.seed, target.vocab_size()),
        questions_(options.seed, EvenSpread::kGolden),
        answers_(options.seed, EvenSpread::kRootTwo) {
    for (int i = 0; i < options.apps; ++i) {
      preambles_.push_back(writer_.Tokens(questions_.Around(options.preamble_tokens)));
    }
  }

  LoadRecord Run() {
    const double start_s = clock_.now_s();
    next_arrival_s_ = start_s;
    while (true) {
      for (Chat& chat : chats_) Advance(chat);
      std::erase_if(chats_, [](const Chat& chat) { return !chat.stream && chat.turns_left == 0; });
      if (Arrive()) continue;  // who is new asks at once, also in the place of who just left
      if (chats_.empty() && num_started_ == options_.num_chats()) break;
      bell_.Wait(clock_.At(NextDue()));
    }
    record_.seconds = clock_.now_s() - start_s;
    return std::move(record_);
  }

 private:
  // Whether anybody came.
  bool Arrive() {
    const int before = num_started_;
    const auto may_start = [&] {
      if (num_started_ == options_.num_chats()) return false;
      if (options_.rate > 0) return next_arrival_s_ <= clock_.now_s();
      return static_cast<int>(chats_.size()) < options_.clients;
    };
    while (may_start()) {
      Chat chat;
      chat.number = num_started_;
      if (!preambles_.empty()) {
        chat.Add(LoadTurn::Kind::kPreamble, preambles_[writer_.Next() % preambles_.size()]);
      }
      chat.preamble = static_cast<int>(chat.tokens.size());
      chat.turns_left = options_.turns;
      chats_.push_back(std::move(chat));
      ++num_started_;
      if (options_.rate > 0) next_arrival_s_ += writer_.Exponential(1 / options_.rate);
    }
    return num_started_ > before;
  }

  void Advance(Chat& chat) {
    if (chat.stream && chat.stream->has_ended()) {
      LoadReply reply = chat.stream->reply();
      chat.stream.reset();
      reply.is_first_turn = chat.is_first_turn;
      reply.chat = chat.number;
      chat.is_first_turn = false;
      chat.Add(LoadTurn::Kind::kAnswer, reply.tokens, reply.text);
      chat.due_s =
          clock_.now_s() + (options_.think_s > 0 ? writer_.Exponential(options_.think_s) : 0);
      if (!reply.problem.empty()) chat.turns_left = 0;
      record_.replies.push_back(std::move(reply));
    }
    if (!chat.stream && chat.turns_left > 0 && chat.due_s <= clock_.now_s()) Ask(chat);
  }

  void Ask(Chat& chat) {
    chat.Add(LoadTurn::Kind::kQuestion, writer_.Tokens(questions_.Around(options_.user_tokens)));
    --chat.turns_left;
    LoadRequest request;
    request.prompt = chat.tokens;
    request.turns = chat.turns;
    if (chat.preamble > 0) request.checkpoints = {chat.preamble};
    request.max_tokens = answers_.Around(options_.answer_tokens);
    request.seed = writer_.Next();
    chat.stream = std::make_shared<LoadStream>(clock_, bell_, static_cast<int>(chat.tokens.size()));
    const Status status = target_.Send(std::move(request), chat.stream);
    if (status.ok()) return;
    chat.stream.reset();
    chat.turns_left = 0;
    ++record_.num_refused;
    record_.refusal = status.message();
  }

  double NextDue() const {
    double due_s = clock_.now_s() + 1;
    if (options_.rate > 0 && num_started_ < options_.num_chats()) {
      due_s = std::min(due_s, next_arrival_s_);
    }
    for (const Chat& chat : chats_) {
      if (!chat.stream) due_s = std::min(due_s, chat.due_s);
    }
    return due_s;
  }

  LoadTarget& target_;
  const LoadOptions& options_;
  const LoadClock& clock_;
  LoadBell& bell_;
  Writer writer_;
  EvenSpread questions_, answers_;  // their lengths
  std::vector<std::vector<Token>> preambles_;
  std::vector<Chat> chats_;
  int num_started_ = 0;
  double next_arrival_s_ = 0;
  LoadRecord record_;
};

}  // namespace

LoadRecord RunLoad(LoadTarget& target, const LoadOptions& options, const LoadClock& clock,
                   LoadBell& bell) {
  return Driver(target, options, clock, bell).Run();
}

int LongestSequence(const LoadOptions& options) {
  // EvenSpread::Around goes up to one and a half of the mean.
  const int turn = options.user_tokens + options.answer_tokens;
  return (options.preamble_tokens + options.turns * turn) * 3 / 2 + 2;
}

namespace {

// The streams and the prompts that come between them.
class LongPromptRun {
 public:
  LongPromptRun(LoadTarget& target, const LongPromptOptions& options, const LoadClock& clock,
                LoadBell& bell)
      : target_(target),
        options_(options),
        clock_(clock),
        bell_(bell),
        writer_(options.seed, target.vocab_size()),
        limit_s_(clock.now_s() + options.limit_s) {}

  Result<LongPromptRecord> Run() {
    for (int i = 0; i < options_.streams; ++i) {
      HEARTH_ASSIGN(std::shared_ptr<LoadStream> stream,
                    Send(options_.stream_prompt, options_.stream_tokens));
      streams_.push_back(std::move(stream));
    }
    WaitForLead();
    LongPromptRecord record;
    record.from_s = clock_.now_s();
    for (int i = 0; i < options_.prompts; ++i) {
      HEARTH_ASSIGN(std::shared_ptr<LoadStream> prompt, Send(options_.prompt_tokens, 8));
      prompts_.push_back(std::move(prompt));
    }
    AwaitFirstTokens(record.from_s);
    record.to_s = clock_.now_s();
    record.computed = NumComputed();
    WaitUntil([&] {
      return std::all_of(prompts_.begin(), prompts_.end(),
                         [](const auto& prompt) { return prompt->has_ended(); });
    });
    WaitForLead();
    End(streams_, record.streams);
    End(prompts_, record.prompts);
    return record;
  }

 private:
  // Tokens ring no bell; looking a hundred times a second costs nothing beside a step.
  static constexpr double kLook = 0.01, kTell = 5;

  Result<std::shared_ptr<LoadStream>> Send(int prompt, int answer) {
    LoadRequest request;
    request.prompt = writer_.Tokens(prompt);
    request.turns.push_back({LoadTurn::Kind::kQuestion, request.prompt, {}});
    request.max_tokens = answer;
    request.seed = writer_.Next();
    auto stream = std::make_shared<LoadStream>(clock_, bell_, prompt);
    HEARTH_TRY(target_.Send(std::move(request), stream));
    return stream;
  }
  template <typename Holds>
  void WaitUntil(const Holds& holds) {
    while (!holds() && clock_.now_s() < limit_s_) bell_.Wait(clock_.At(clock_.now_s() + kLook));
  }
  // Until every stream has said some more.
  void WaitForLead() {
    std::vector<size_t> wanted;
    for (const auto& stream : streams_) {
      wanted.push_back(stream->num_heard() + static_cast<size_t>(options_.lead_tokens));
    }
    WaitUntil([&] {
      for (size_t i = 0; i < streams_.size(); ++i) {
        if (streams_[i]->num_heard() < wanted[i] && !streams_[i]->has_ended()) return false;
      }
      return true;
    });
  }
  // Of all prompts; -1 when the target cannot say.
  int NumComputed() const {
    int sum = 0;
    for (const auto& prompt : prompts_) {
      const bool is_read = prompt->num_heard() > 0;
      const int computed = is_read ? options_.prompt_tokens : target_.num_computed(*prompt);
      if (computed < 0) return -1;
      sum += computed;
    }
    return sum;
  }
  void AwaitFirstTokens(double from_s) {
    double told_s = from_s;
    WaitUntil([&] {
      const double now_s = clock_.now_s();
      if (options_.on_progress && now_s - told_s >= kTell) {
        told_s = now_s;
        options_.on_progress(now_s - from_s, NumComputed());
      }
      return std::all_of(prompts_.begin(), prompts_.end(), [](const auto& prompt) {
        return prompt->num_heard() > 0 || prompt->has_ended();
      });
    });
  }
  void End(const std::vector<std::shared_ptr<LoadStream>>& streams, std::vector<LoadReply>& out) {
    for (const auto& stream : streams) target_.Cancel(*stream);
    for (const auto& stream : streams) {
      while (!stream->has_ended()) bell_.Wait(clock_.At(clock_.now_s() + kLook));
      out.push_back(stream->reply());
    }
  }

  LoadTarget& target_;
  const LongPromptOptions& options_;
  const LoadClock& clock_;
  LoadBell& bell_;
  Writer writer_;
  const double limit_s_;
  std::vector<std::shared_ptr<LoadStream>> streams_, prompts_;
};

}  // namespace

Result<LongPromptRecord> RunLongPrompt(LoadTarget& target, const LongPromptOptions& options,
                                       const LoadClock& clock, LoadBell& bell) {
  return LongPromptRun(target, options, clock, bell).Run();
}

}  // namespace hearth
