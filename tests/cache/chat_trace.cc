// SPDX-License-Identifier: Apache-2.0
#include "cache/chat_trace.h"

#include <algorithm>
#include <cmath>
#include <random>
namespace hearth::testing {
namespace {

// Lengths in tokens as (median, spread of the logarithm, limits). People write short and models
// write long; half of the apps run a reasoning model whose thoughts leave the history after a turn.
struct Length {
  double median, spread;
  int min, max;
};
constexpr Length kSystem = {700, 0.9, 80, 6000};
constexpr Length kMessage = {70, 1.0, 4, 3000};
constexpr Length kThoughts = {180, 0.8, 10, 2000};
constexpr Length kAnswer = {220, 0.8, 5, 1500};

class TraceMaker {
 public:
  explicit TraceMaker(const ChatTraceOptions& options) : options_(options), rng_(options.seed) {
    for (int i = 0; i < options.num_apps; ++i) systems_.push_back(Text(kSystem));
  }

  std::vector<ChatRequest> Make() {
    std::vector<Chat> open;
    for (int started = 0; started < options_.num_chats || !open.empty();) {
      if (static_cast<int>(open.size()) < options_.num_open && started < options_.num_chats) {
        open.push_back(Start(started++));
        continue;
      }
      const size_t i = rng_() % open.size();
      Turn(open[i]);
      if (--open[i].turns_left <= 0) open.erase(open.begin() + static_cast<ptrdiff_t>(i));
    }
    return std::move(requests_);
  }

 private:
  struct Chat {
    int id = 0, app = 0;
    int turns_left = 0;
    std::vector<std::vector<Token>> messages;  // user, assistant, user, ... without thoughts
  };

  bool Chance(int percent) { return static_cast<int>(rng_() % 100) < percent; }
  std::vector<Token> Text(const Length& length) {
    std::normal_distribution<double> normal(std::log(length.median), length.spread);
    const double size = std::exp(normal(rng_));
    std::vector<Token> text(
        static_cast<size_t>(std::clamp(size, double(length.min), double(length.max))));
    for (Token& token : text) token = static_cast<Token>(rng_() % 200000);
    return text;
  }

  Chat Start(int id) {
    Chat chat;
    chat.id = id;
    // Some apps are far busier than others.
    const double u = std::uniform_real_distribution<double>(0, 1)(rng_);
    chat.app = static_cast<int>(u * u * options_.num_apps);
    chat.turns_left = 1 + std::geometric_distribution<int>(1.0 / options_.mean_turns)(rng_);
    return chat;
  }

  // What a turn asks depends on what happened before it.
  void Turn(Chat& chat) {
    const int num_messages = static_cast<int>(chat.messages.size());
    if (num_messages >= 2 && Chance(options_.regenerate_percent)) {
      chat.messages.pop_back();
    } else if (num_messages >= 2 && Chance(options_.edit_percent)) {
      Edit(chat);
    } else {
      chat.messages.push_back(Text(kMessage));
    }
    Ask(chat);
  }

  // Goes back to one of the user's messages and changes it from somewhere on.
  void Edit(Chat& chat) {
    const size_t which = rng_() % (chat.messages.size() / 2) * 2;
    chat.messages.resize(which + 1);
    std::vector<Token>& message = chat.messages.back();
    message.resize(rng_() % message.size());
    for (const Token token : Text(kMessage)) message.push_back(token);
  }

  void Ask(Chat& chat) {
    ChatRequest request;
    request.tenant = static_cast<uint32_t>(chat.app);
    request.chat = chat.id;
    request.prompt = systems_[static_cast<size_t>(chat.app)];
    for (const auto& message : chat.messages) {
      request.prompt.push_back(200001);  // whose turn it is
      request.prompt.insert(request.prompt.end(), message.begin(), message.end());
    }
    request.prompt.push_back(200002);
    const std::vector<Token> answer = Text(kAnswer);
    if (chat.app % 2 == 0) request.reply = Text(kThoughts);
    request.reply.insert(request.reply.end(), answer.begin(), answer.end());
    chat.messages.push_back(answer);
    if (Chance(options_.abort_percent)) {
      const size_t prompt = request.prompt.size(), reply = request.reply.size();
      const bool while_prefilling = Chance(50);
      const size_t at = while_prefilling ? rng_() % prompt : prompt + rng_() % reply;
      request.num_computed_at_abort = static_cast<int>(at);
      requests_.push_back(request);
      // The client asks again, and lets it finish this time.
      request.num_computed_at_abort = -1;
    }
    requests_.push_back(std::move(request));
  }

  ChatTraceOptions options_;
  std::mt19937_64 rng_;
  std::vector<std::vector<Token>> systems_;
  std::vector<ChatRequest> requests_;
};

}  // namespace

std::vector<ChatRequest> MakeChatTrace(const ChatTraceOptions& options) {
  return TraceMaker(options).Make();
}

}  // namespace hearth::testing
