// SPDX-License-Identifier: Apache-2.0
// spec_bench work MODEL [ROUNDS [NAME]]: what drafts do for three kinds of answers (or those with
// NAME in their names), with and without them in turns. spec_bench verify MODEL [ROUNDS]: what
// checking k drafts costs beside a plain step.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "app/open_backend.h"
#include "app/open_model.h"
#include "app/open_tokenizer.h"
#include "backend/immediate_backend.h"
#include "engine/clock.h"
#include "engine/engine_core.h"

namespace hearth {
namespace {

constexpr int kBlocks = 256;

// Makes the model say what a test wrote: the answer a better model would give, at this one's cost.
class ForcingBackend : public ImmediateBackend {
 public:
  explicit ForcingBackend(Backend& inner) : inner_(inner) {}
  std::string_view name() const override { return inner_.name(); }
  KvLayout kv_layout() const override { return inner_.kv_layout(); }
  int vocab_size() const override { return inner_.vocab_size(); }
  Status Compute(const StepPlan& plan, std::span<float> logits) override {
    HEARTH_ASSIGN(const std::span<const RowResult> rows, RunStep(inner_, plan));
    for (size_t i = 0; i < rows.size(); ++i) {
      std::ranges::copy(rows[i].logits,
                        logits.begin() + static_cast<std::ptrdiff_t>(i * rows[i].logits.size()));
    }
    for (const SeqSlice& slice : plan.slices) {
      for (int i = 0; i < slice.num_rows; ++i) {
        const int next = slice.num_computed + slice.count - slice.num_rows + i + 1;
        if (next >= static_cast<int>(script.size())) continue;
        const auto row = static_cast<size_t>(slice.first_row + i);
        logits[row * static_cast<size_t>(vocab_size()) +
               static_cast<size_t>(script[static_cast<size_t>(next)])] += 1e6f;
      }
    }
    return Status();
  }
  std::vector<Token> script;  // prompt and answer; empty: the model's own words

 private:
  Backend& inner_;
};

struct Job {
  const char* name;
  std::string prompt, answer;  // an answer is forced; without one the model speaks for itself
  float temperature;
  int max_tokens;
};

const char kCode[] = R"(def read_rows(path, limit):
    rows = []
    with open(path) as source:
        for number, line in enumerate(source):
            if number >= limit:
                break
            fields = line.rstrip("\n").split(",")
            rows.append([field.strip() for field in fields])
    return rows

def column_sum(rows, index):
    total = 0.0
    for row in rows:
        if index < len(row) and row[index]:
            total += float(row[index])
    return total
)";
const char kReport[] =
    "The harbour was closed on Monday after the storm. The mayor said: \"We will open the harbour "
    "again as soon as the divers have looked at every wall.\" Fishermen lost two days of work. "
    "One of them, who has fished here for thirty years, said: \"I have never seen waves like these "
    "in September.\" The divers found a crack of two metres in the northern wall.\n";
const char kSummary[] =
    "The harbour was closed after the storm and will open when \"the divers have looked at every "
    "wall\", the mayor said. Fishermen lost two days; one who has fished here for thirty years "
    "has \"never seen waves like these in September\". The divers found a crack of two metres in "
    "the northern wall.\n";

std::string Renamed(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::vector<Job> Jobs(const std::string& name) {
  const std::string edit =
      std::string(kCode) + "\n# The same file again, with `rows` renamed to `table`:\n\n";
  const std::string quote = std::string(kReport) + "\nA summary with quotations:\n";
  std::vector<Job> jobs = {
      {"code edit, ideal answer", edit, Renamed(kCode, "rows", "table"), 0, 140},
      {"code edit, own words", edit, "", 0, 120},
      {"quotes, ideal answer", quote, kSummary, 0, 70},
      {"quotes, own words", quote, "", 0, 80},
      {"story, temperature 1", "Once upon a time there was a", "", 1, 120}};
  std::erase_if(
      jobs, [&](const Job& job) { return std::string(job.name).find(name) == std::string::npos; });
  return jobs;
}

struct Deaf : EventSink {
  int Room() const override { return 1 << 20; }
  void OnToken(const TokenEvent& event) override { tokens.push_back(event.token); }
  void OnFinish(const RequestRecord& ended) override { record = ended; }
  std::vector<Token> tokens;
  RequestRecord record;
};

struct Totals {
  double us[2] = {};  // without and with drafts, first token to last
  int64_t tokens = 0, drafted = 0, accepted = 0;
  std::vector<double> ratios;
};

class WorkBench {
 public:
  WorkBench(Backend& backend, const Tokenizer& tokenizer)
      : forcing_(backend),
        tokenizer_(tokenizer),
        plain_(forcing_, Options(false), clock_),
        drafting_(forcing_, Options(true), clock_) {}

  void Play(const Job& job, uint64_t round, Totals& totals) {
    Request request;
    tokenizer_.Encode(job.prompt, request.prompt);
    forcing_.script.clear();
    request.max_tokens = job.max_tokens;
    if (!job.answer.empty()) {
      forcing_.script = request.prompt;
      tokenizer_.EncodeMore(job.answer, forcing_.script);
      const size_t length = forcing_.script.size() - request.prompt.size();
      request.max_tokens = std::min(request.max_tokens, static_cast<int>(length));
    }
    request.sampling.temperature = job.temperature;
    request.sampling.seed = round;
    double us[2];
    std::vector<Token> said[2];
    for (int turn = 0; turn < 2; ++turn) {
      const int with = (turn + static_cast<int>(round)) % 2;
      EngineCore& core = with == 1 ? drafting_ : plain_;
      // The two share the backend's blocks: nothing of another run may be found again.
      request.domain.salt = ++salt_;
      const auto sink = std::make_shared<Deaf>();
      core.Submit(request, sink);
      while (core.Step() || !core.is_idle()) {
      }
      us[with] = static_cast<double>(sink->record.ended_us - sink->record.first_token_us);
      said[with] = sink->tokens;
      totals.us[with] += us[with];
      if (with == 0) continue;
      totals.tokens += sink->record.num_generated - 1;
      totals.drafted += sink->record.num_drafted;
      totals.accepted += sink->record.num_accepted;
    }
    if (said[0] != said[1]) std::printf("DIFFERENT ANSWERS: %s\n", job.name);
    totals.ratios.push_back(us[0] / us[1]);
  }

  void PrintCosts() const {
    std::printf("\na step of 1 takes %.1f ms; learnt:",
                drafting_.scheduler().draft_control().times().Us(1) * 1e-3);
    for (const int width : {2, 4, 8, 16}) {
      const WidthTimes& times = drafting_.scheduler().draft_control().times();
      std::printf(" %d tokens %.2f x%s", width, times.Us(width) / times.Us(1),
                  width == 16 ? "\n" : ",");
    }
  }

 private:
  static EngineOptions Options(bool speculates) {
    EngineOptions options;
    options.scheduler.max_context = 2048;
    options.scheduler.speculates = speculates;
    return options;
  }
  const SteadyClock clock_;
  ForcingBackend forcing_;
  const Tokenizer& tokenizer_;
  EngineCore plain_, drafting_;
  uint64_t salt_ = 0;
};

Status Work(Backend& backend, const std::string& path, int rounds, const std::string& name) {
  HEARTH_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, OpenTokenizer(path));
  WorkBench bench(backend, *tokenizer);
  const std::vector<Job> jobs = Jobs(name);
  std::vector<Totals> totals(jobs.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      bench.Play(jobs[i], static_cast<uint64_t>(round), totals[i]);
    }
  }
  std::printf("%-26s %9s %9s %7s %7s %9s %9s %8s\n", "answer", "plain t/s", "draft t/s", "speed",
              "median", "drafted", "accepted", "share");
  for (size_t i = 0; i < jobs.size(); ++i) {
    Totals& t = totals[i];
    std::sort(t.ratios.begin(), t.ratios.end());
    const double share =
        t.drafted == 0 ? 0 : static_cast<double>(t.accepted) / static_cast<double>(t.drafted);
    const auto tokens = static_cast<double>(t.tokens);
    std::printf("%-26s %9.1f %9.1f %6.2fx %6.2fx %9lld %9lld %7.0f%%\n", jobs[i].name,
                1e6 * tokens / t.us[0], 1e6 * tokens / t.us[1], t.us[0] / t.us[1],
                t.ratios[t.ratios.size() / 2], static_cast<long long>(t.drafted),
                static_cast<long long>(t.accepted), 100 * share);
  }
  bench.PrintCosts();
  return Status();
}

// The share of right drafts, each given the ones before it, at which k of them pay.
double BreakEven(int k, double cost) {
  double low = 0, high = 1;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    double said = 0;
    for (int j = 0; j <= k; ++j) said += std::pow(middle, j);
    (said < cost ? low : high) = middle;
  }
  return high;
}

// One sequence after 64 tokens of context; steps of 1 + k tokens it never said before, in turns.
Status Verify(Backend& backend, int rounds) {
  constexpr int kContext = 64;
  constexpr int kDrafts[] = {0, 1, 2, 3, 4, 5, 6, 7, 11, 15};
  const auto vocab = static_cast<size_t>(backend.vocab_size());
  const SteadyClock clock;
  std::vector<BlockId> table;
  for (int i = 0; i < 8; ++i) table.push_back(static_cast<BlockId>(i));
  const std::vector<BlockTable> tables(backend.kv_layout().groups.size(), table);
  uint64_t state = 1;
  const auto run = [&](int first, int count) -> Result<double> {
    StepPlan plan;
    SeqSlice slice;
    for (int i = 0; i < count; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      plan.tokens.push_back(static_cast<Token>((state >> 33) % vocab));
    }
    slice.count = count;
    slice.num_computed = first;
    slice.num_rows = plan.num_rows = std::min(count, 16);
    slice.tables = tables;
    plan.slices = {slice};
    const int64_t began_us = clock.now_us();
    HEARTH_TRY(RunStep(backend, plan).status());
    return static_cast<double>(clock.now_us() - began_us);
  };
  HEARTH_TRY(run(0, kContext).status());
  std::vector<std::vector<double>> us(std::size(kDrafts));
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < std::size(kDrafts); ++i) {
      HEARTH_ASSIGN(const double took, run(kContext, 1 + kDrafts[i]));
      us[i].push_back(took);
    }
  }
  std::printf("%7s %10s %10s %12s   best and median of %d rounds; break-even from the medians\n",
              "drafts", "best ms", "median ms", "plain steps", rounds);
  double plain = 0;
  for (size_t i = 0; i < std::size(kDrafts); ++i) {
    std::sort(us[i].begin(), us[i].end());
    const double median = us[i][us[i].size() / 2];
    if (i == 0) plain = median;
    std::printf("%7d %10.2f %10.2f %12.2f", kDrafts[i], us[i].front() * 1e-3, median * 1e-3,
                median / plain);
    if (i > 0) std::printf("   pays if %.0f%% hold", 100 * BreakEven(kDrafts[i], median / plain));
    std::printf("\n");
  }
  return Status();
}

Status Main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[1] : "";
  if (mode != "work" && mode != "verify") {
    return Error(Code::kInvalid, "spec_bench work|verify MODEL [ROUNDS [NAME]]");
  }
  const int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 2;
  HEARTH_ASSIGN(const Model model, OpenModelFor(argv[2], "cpu"));
  HEARTH_ASSIGN(BackendOptions options, OptionsFrom(BackendFlags()));
  options.max_step_tokens = 512;
  HEARTH_ASSIGN(BackendPlan plan, PlanBackend(model, options));
  SetBlocks(plan.kv, kBlocks);
  HEARTH_ASSIGN(const std::unique_ptr<Backend> backend, OpenBackend(model, plan));
  return mode == "work" ? Work(*backend, argv[2], rounds, argc > 4 ? argv[4] : "")
                        : Verify(*backend, rounds);
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  const hearth::Status status = hearth::Main(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
