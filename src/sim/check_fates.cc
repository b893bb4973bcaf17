// SPDX-License-Identifier: Apache-2.0
// The promises that can be looked at only when everything has ended.
#include <algorithm>
#include <map>

#include "sim/simulation.h"

namespace hearth {
namespace {

// Looks at one client after another; keeps the first thing that is wrong.
class Checker {
 public:
  Checker(const SimScenario& scenario, const SimModel& model, const SimOutcome& outcome)
      : scenario_(scenario), model_(model), outcome_(outcome) {}

  std::string Check() {
    for (client_ = 0; client_ < scenario_.clients.size(); ++client_) CheckOne();
    CheckOrder();
    CheckTotals();
    return failure_;
  }

 private:
  const SimClient& plan() const { return scenario_.clients[client_]; }
  const SimFate& fate() const { return outcome_.fates[client_]; }
  const RequestRecord& record() const { return fate().record; }
  void Require(bool holds, const char* what) {
    if (holds || !failure_.empty()) return;
    failure_ = Printf("client %zu (%s): %s", client_, NameOf(record().finish), what);
  }

  void CheckOne() {
    if (!fate().arrived) return Require(false, "never arrived");
    CheckAdmission();
    if (!fate().admission.ok()) return Require(fate().num_finishes == 0, "refused, and yet ended");
    Require(fate().num_finishes == 1, "did not end exactly once");
    CheckWords();
    CheckReason();
    CheckRecord();
    CheckTimes();
  }

  void CheckAdmission() {
    const Admission& admission = fate().admission;
    const int limit =
        std::min(scenario_.options.scheduler.max_context, outcome_.max_sequence_tokens);
    const bool fits =
        static_cast<int>(fate().prompt.size()) + std::max(1, plan().request.max_tokens) <= limit;
    if (admission.ok()) {
      Require(fits, "let in although it can never fit");
      Require(admission.queued_requests < scenario_.options.admission.max_requests,
              "let in although the line was full");
      return;
    }
    Require(fits == (admission.status.code() == Code::kExhausted), "refused for the wrong reason");
    if (fits) Require(admission.retry_after_s > 0, "told to come back, but not when");
  }

  // What the model says to this prompt when nobody disturbs it.
  std::vector<Token> Expected(size_t most, bool& stops) const {
    LoneSim lone(model_);
    for (const Token token : fate().prompt) lone.Append(token);
    std::vector<Token> words;
    std::vector<float> logits(static_cast<size_t>(model_.vocab));
    stops = false;
    while (words.size() < most && !stops) {
      lone.Logits(logits);
      words.push_back(Sample(logits, plan().request.sampling, words.size()));
      lone.Append(words.back());
      stops = EndsSequence(plan().request.sampling, words.back());
    }
    return words;
  }

  void CheckWords() {
    const auto prompt = static_cast<int>(fate().prompt.size());
    const int limit =
        std::min(scenario_.options.scheduler.max_context, outcome_.max_sequence_tokens);
    const int wish = plan().request.max_tokens;
    const auto most = static_cast<size_t>(wish > 0 ? wish : limit - prompt);
    bool stops = false;
    const std::vector<Token> words = Expected(most, stops);
    const std::vector<Token>& heard = fate().heard;
    const bool is_start =
        heard.size() <= words.size() && std::equal(heard.begin(), heard.end(), words.begin());
    Require(is_start, "heard other tokens than it would have alone");
    const Finish finish = record().finish;
    if (finish == Finish::kStop) Require(stops, "stopped without its stop token");
    if (finish == Finish::kLength) Require(!stops, "ended by length although it had stopped");
    const bool natural = finish == Finish::kStop || finish == Finish::kLength;
    if (natural) Require(heard.size() == words.size(), "ended without all of its tokens");
  }

  void CheckReason() {
    const bool cancelled = fate().cancelled_us >= 0;
    const int64_t life_us = record().ended_us - record().arrived_us;
    switch (record().finish) {
      case Finish::kStop:
      case Finish::kLength:
        return Require(!fate().went_bad || fate().heard.size() <= Clean(),
                       "spoke on with numbers that are none");
      case Finish::kCancelled:
        return Require(cancelled, "nobody cancelled it");
      case Finish::kExpired:
        return Require(plan().request.timeout_us > 0 && life_us >= plan().request.timeout_us,
                       "its time had not run out");
      case Finish::kSlowReader:
        return Require(fate().was_full && life_us >= scenario_.options.slow_reader_us,
                       "its reader was not slow");
      case Finish::kShutdown:
        return Require(scenario_.drains_us >= 0, "nobody shut down");
      case Finish::kError:
        return Require(fate().went_bad || fate().was_in_failed_step, "nothing was wrong with it");
      case Finish::kMask:
        return Require(false, "it has no mask");
      case Finish::kNone:
        return Require(false, "ended without a reason");
    }
  }

  // How many tokens it may have heard before its numbers went wrong. A position that only a draft
  // got to may have gone wrong while those before it were fine.
  size_t Clean() const {
    const auto said = plan().bad_position + 1 - static_cast<int64_t>(fate().prompt.size());
    return std::max(fate().heard_before_bad, static_cast<size_t>(std::max<int64_t>(0, said)));
  }

  void CheckRecord() {
    const RequestRecord& r = record();
    Require(r.id == fate().admission.id, "another one's record");
    Require(r.num_prompt == static_cast<int>(fate().prompt.size()), "num_prompt");
    Require(r.num_generated == static_cast<int>(fate().heard.size()), "num_generated");
    Require(r.num_cached % scenario_.layout.block_tokens == 0 && r.num_cached < r.num_prompt,
            "num_cached");
    Require(r.num_recomputed <= r.num_computed, "num_recomputed");
    Require(r.num_accepted <= r.num_drafted && r.num_accepted <= std::max(0, r.num_generated - 1),
            "num_accepted");
    if (!scenario_.options.scheduler.speculates || !plan().request.speculates) {
      Require(r.num_drafted == 0, "drafted without leave");
    }
    Require(r.num_preempted <= scenario_.options.scheduler.max_preemptions,
            "was preempted more often than allowed");
    if (r.num_preempted == 0) Require(r.num_recomputed == 0, "recomputed without preemption");
    if (r.num_generated == 0) return;
    // Everything but the last token was put through the backend or found; what was found after
    // preemption is counted nowhere, so more than that is possible only then.
    const int64_t needed = r.num_prompt + r.num_generated - 1;
    const int64_t failed = r.num_drafted - r.num_accepted;
    const int64_t first = r.num_computed - failed - r.num_recomputed + r.num_cached;
    if (r.num_preempted == 0) {
      // A step that ended it may have computed more than it was heard to say.
      Require(first >= needed && first <= needed + 1, "computed and cached tokens do not add up");
    } else {
      Require(first + r.num_recomputed <= needed * (1 + r.num_preempted) + 1,
              "computed more than it could ever need");
    }
    if (fate().went_bad) {
      Require(fate().heard.size() <= Clean(), "a token was sampled from numbers that are none");
    }
  }

  void CheckTimes() {
    const RequestRecord& r = record();
    Require(r.arrived_us >= fate().arrived_us, "arrived before it came");
    Require(r.ended_us >= r.arrived_us, "ended before it arrived");
    if (r.started_us > 0) {
      Require(r.started_us >= r.arrived_us && r.started_us <= r.ended_us, "started_us");
    }
    if (r.num_generated > 0) {
      Require(r.first_token_us > r.started_us && r.first_token_us <= r.ended_us, "first_token_us");
      Require(r.first_token_us <= fate().heard_us.front(), "heard before it was computed");
    }
    Require(r.waited_us >= 0 && r.waited_us <= r.ended_us - r.arrived_us, "waited_us");
    Require(r.paused_us >= 0 && r.paused_us <= r.ended_us - r.arrived_us, "paused_us");
    // A step that runs is not interrupted, and a suspended machine notices late. While all are
    // paused the engine looks every 5 ms.
    const int64_t slack_us = outcome_.longest_turn_us + scenario_.jump_us + 5'000;
    if (plan().request.timeout_us > 0) {
      Require(r.ended_us <= r.arrived_us + plan().request.timeout_us + slack_us,
              "outlived its deadline");
    }
    if (fate().cancelled_us >= 0) {
      Require(r.ended_us <= fate().cancelled_us + slack_us, "outlived its cancellation");
    }
    if (scenario_.drains_us >= 0) {
      const int64_t end_us = kStartUs + scenario_.drains_us + scenario_.drain_bound_us;
      Require(r.ended_us <= end_us + slack_us, "outlived the drain");
      if (r.finish == Finish::kShutdown) Require(r.ended_us >= end_us, "drained too early");
      Require(fate().arrived_us <= kStartUs + scenario_.drains_us, "let in during the drain");
    }
    Require(r.ended_us - r.arrived_us <= BoundUs(), "waited longer than all work together takes");
  }

  // All that everybody asked for, one token a step, as often as preemption allows, and all delays.
  int64_t BoundUs() const {
    if (bound_us_ > 0) return bound_us_;
    double tokens = 0;
    int num_slow = 0, longest = 0;
    for (size_t i = 0; i < scenario_.clients.size(); ++i) {
      const SimFate& other = outcome_.fates[i];
      if (!other.admission.ok()) continue;
      tokens += static_cast<double>(other.prompt.size() + other.heard.size() + 1);
      longest = std::max(longest, static_cast<int>(other.prompt.size() + other.heard.size()));
      num_slow += scenario_.clients[i].reader.takes_at_once() ? 0 : 1;
    }
    const double step_us = scenario_.timing.StepUs(1, longest) * (1 + scenario_.noise);
    const int times = 1 + scenario_.options.scheduler.max_preemptions;
    double reading_us = 0;
    for (size_t i = 0; i < scenario_.clients.size(); ++i) {
      reading_us += static_cast<double>(scenario_.clients[i].reader.every_us) *
                    static_cast<double>(outcome_.fates[i].heard.size() + 1);
    }
    bound_us_ = static_cast<int64_t>(tokens * times * step_us + reading_us) + outcome_.lost_us +
                num_slow * scenario_.options.slow_reader_us + outcome_.longest_step_us;
    return bound_us_;
  }

  // Within a tenant and a class, whoever came first starts first.
  void CheckOrder() {
    std::map<std::pair<uint32_t, Priority>, std::vector<size_t>> lines;
    for (size_t i = 0; i < scenario_.clients.size(); ++i) {
      if (!outcome_.fates[i].admission.ok()) continue;
      const RequestRecord& r = outcome_.fates[i].record;
      lines[{r.domain.tenant, r.priority}].push_back(i);
    }
    for (auto& [key, line] : lines) {
      std::sort(line.begin(), line.end(), [&](size_t a, size_t b) {
        return outcome_.fates[a].admission.id < outcome_.fates[b].admission.id;
      });
      int64_t not_before_us = 0;
      for (const size_t index : line) {
        client_ = index;
        if (record().started_us > 0) {
          Require(record().started_us >= not_before_us, "overtook an older one of its class");
        }
        // One that waits for a tier lets others pass. Whether it did is not known of those that
        // ended before they started.
        const bool may_be_passed = scenario_.tier.exists && record().started_us == 0;
        if (record().loading_us > 0 || may_be_passed) continue;
        // One that never started holds the others up until it leaves.
        not_before_us = std::max(not_before_us,
                                 record().started_us > 0 ? record().started_us : record().ended_us);
      }
    }
  }

  void CheckTotals() {
    client_ = 0;
    const EngineSnapshot& last = outcome_.last;
    uint64_t admitted = 0;
    int64_t prompt = 0, generated = 0, accepted = 0;
    std::array<uint64_t, kNumFinishes> finished{};
    for (const SimFate& fate : outcome_.fates) {
      if (!fate.admission.ok()) continue;
      ++admitted;
      prompt += fate.record.num_prompt;
      generated += fate.record.num_generated;
      accepted += fate.record.num_accepted;
      ++finished[static_cast<size_t>(fate.record.finish)];
    }
    Require(last.num_admitted == admitted, "the engine counted other admissions");
    Require(last.num_backend_failures == static_cast<uint64_t>(outcome_.num_failed_steps),
            "num_backend_failures");
    Require(last.num_refused == outcome_.fates.size() - admitted, "num_refused");
    Require(last.num_finished == finished, "num_finished");
    Require(last.prompt_tokens == prompt && last.generated_tokens == generated, "sums of tokens");
    Require(last.totals.accepted_tokens == accepted, "accepted_tokens");
    for (const KvGroupState& group : last.kv) {
      Require(group.counts.held == 0, "blocks are held by nobody");
      Require(group.counts.pinned == 0, "blocks are pinned by nobody");
    }
    Require(last.load.num_running == 0 && last.load.num_waiting == 0 && last.load.num_paused == 0 &&
                last.load.waiting_tokens == 0 && last.load.backlog_tokens == 0,
            "an empty engine with a load");
    Require(last.rows.empty(), "an empty engine with rows");
  }

  const SimScenario& scenario_;
  const SimModel& model_;
  const SimOutcome& outcome_;
  size_t client_ = 0;
  mutable int64_t bound_us_ = 0;
  std::string failure_;
};

}  // namespace

std::string CheckFates(const SimScenario& scenario, const SimModel& model,
                       const SimOutcome& outcome) {
  return Checker(scenario, model, outcome).Check();
}

}  // namespace hearth
