// SPDX-License-Identifier: Apache-2.0
#include "load/window.h"

#include <algorithm>
#include <map>

namespace hearth {

std::optional<LoadWindow> SteadyWindow(const std::vector<LoadReply>& replies, int clients,
                                       int num_chats) {
  std::map<int, double> first_s, end_s;  // per chat: its first token, its last end
  for (const LoadReply& reply : replies) {
    if (reply.heard_s.empty()) continue;
    const auto [first, is_new] = first_s.try_emplace(reply.chat, reply.heard_s.front());
    if (!is_new) first->second = std::min(first->second, reply.heard_s.front());
    double& end = end_s[reply.chat];
    end = std::max(end, reply.ended_s);
  }
  if (clients < 1 || num_chats < clients || static_cast<int>(end_s.size()) != num_chats) {
    return std::nullopt;
  }
  LoadWindow window;
  for (int chat = 0; chat < clients; ++chat) {
    const auto found = first_s.find(chat);
    if (found == first_s.end()) return std::nullopt;
    window.from_s = std::max(window.from_s, found->second);
  }
  // A client goes on as long as there are chats to begin: the one that ends when fewer than
  // `clients` are left leaves its client idle.
  std::vector<double> ends;
  for (const auto& [chat, end] : end_s) ends.push_back(end);
  std::sort(ends.begin(), ends.end());
  window.to_s = ends[static_cast<size_t>(num_chats - clients)];
  if (window.to_s <= window.from_s) return std::nullopt;
  return window;
}

SteadyRates RatesIn(const LoadWindow& window, const std::vector<LoadReply>& replies,
                    std::span<const MeteredStep> steps) {
  SteadyRates out;
  out.window = window;
  double context = 0;
  std::vector<double> waits;
  for (const LoadReply& reply : replies) {
    const bool is_sent_inside = reply.sent_s >= window.from_s && reply.sent_s < window.to_s;
    if (is_sent_inside && !reply.heard_s.empty()) {
      waits.push_back(reply.heard_s.front() - reply.sent_s);
    }
    for (size_t i = 0; i < reply.heard_s.size(); ++i) {
      // The window's first moment is the token that opens it.
      if (reply.heard_s[i] <= window.from_s || reply.heard_s[i] > window.to_s) continue;
      ++out.generated;
      context += reply.num_prompt + static_cast<double>(i);
    }
  }
  if (out.generated > 0) out.mean_context = context / static_cast<double>(out.generated);
  out.first_token_s = PercentilesOf(std::move(waits));
  std::vector<double> plain;
  double streams = 0, count = 0;
  const auto is_inside = [&](const MeteredStep& step) {
    return step.start_s >= window.from_s && step.start_s + step.run_s <= window.to_s;
  };
  for (const MeteredStep& step : steps) {
    if (!is_inside(step)) continue;
    out.prompt_computed += step.prompt_tokens;
    streams += step.streams();
    count += 1;
    if (step.prompt_tokens == 0) plain.push_back(step.run_s);
  }
  if (count > 0) out.mean_streams = streams / count;
  if (plain.empty()) return out;
  const auto middle = plain.begin() + static_cast<std::ptrdiff_t>(plain.size() / 2);
  std::nth_element(plain.begin(), middle, plain.end());
  double extra_s = 0;
  for (const MeteredStep& step : steps) {
    if (is_inside(step) && step.prompt_tokens > 0) extra_s += std::max(0.0, step.run_s - *middle);
  }
  out.prefill_share = extra_s / window.seconds();
  return out;
}

}  // namespace hearth
