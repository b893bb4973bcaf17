// SPDX-License-Identifier: Apache-2.0
// mask_bench MODEL [--batch 1,32] [--steps 20] [--rounds 3]: what masks add to a step. Streams
// under a schema and streams without one take turns on the same engine; the ratio of their median
// steps is the answer, and how many steps had to wait for a mask.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/open_engine.h"
#include "app/open_model.h"
#include "app/open_tokenizer.h"
#include "engine/clock.h"
#include "engine/engine_core.h"
#include "grammar/compiler.h"
#include "grammar/grammar_mask.h"
#include "platform/topology.h"

namespace hearth {
namespace {

// Never ends while it is measured: strings, enums, numbers and patterns all come up.
constexpr char kSchema[] = R"({"type":"array","minItems":9000,"items":{"type":"object",
  "properties":{"name":{"type":"string","maxLength":12},"unit":{"enum":["celsius","fahrenheit"]},
  "sku":{"type":"string","pattern":"^[A-Z]{3}-\\d{4}$"},"count":{"type":"integer","minimum":1,
  "maximum":99},"since":{"type":"string","format":"date"}},
  "required":["name","unit","sku","count","since"]}})";

struct Deaf : EventSink {
  int Room() const override { return 1; }
  void OnToken(const TokenEvent&) override { ++num_heard; }
  void OnFinish(const RequestRecord&) override {}
  int num_heard = 0;
};

class Bench {
 public:
  Bench(Backend& backend, const EngineOptions& options, const Tokenizer& tokenizer,
        std::shared_ptr<const Grammar> grammar, Token end)
      : core_(backend, options, clock_, &beside_),
        tokenizer_(tokenizer),
        grammar_(std::move(grammar)),
        end_(end) {}

  // Times of `steps` steps of `batch` streams, in microseconds, appended to `out`.
  void Run(int batch, int steps, bool masked, std::vector<double>& out) {
    std::vector<std::shared_ptr<Deaf>> sinks;
    std::vector<SeqId> ids;
    for (int i = 0; i < batch; ++i) {
      Request request;
      tokenizer_.Encode("A list of readings, number " + std::to_string(i), request.prompt);
      request.sampling.temperature = 1;
      request.sampling.seed = ++seed_;
      request.max_tokens = steps + 64;
      if (masked) request.mask = MakeGrammarMask(grammar_, {end_});
      sinks.push_back(std::make_shared<Deaf>());
      ids.push_back(core_.Submit(std::move(request), sinks.back()).id);
    }
    const auto all_speak = [&] {
      return std::all_of(sinks.begin(), sinks.end(),
                         [](const auto& s) { return s->num_heard > 1; });
    };
    while (!all_speak()) core_.Step();
    for (int i = 0; i < steps; ++i) {
      const int64_t before = clock_.now_us();
      core_.Step();
      out.push_back(static_cast<double>(clock_.now_us() - before));
    }
    for (const SeqId id : ids) core_.Cancel(id);
    core_.Step();
  }
  MaskTotals totals() const { return core_.TakeSnapshot().masks; }

 private:
  SteadyClock clock_;
  SideThread beside_;
  EngineCore core_;
  const Tokenizer& tokenizer_;
  const std::shared_ptr<const Grammar> grammar_;
  const Token end_;
  uint64_t seed_ = 0;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Measure(Bench& bench, int batch, int steps, int rounds) {
  std::vector<double> with, without;
  bench.Run(batch, 3, true, with);  // warm: pages, the grammar's own tables
  bench.Run(batch, 3, false, without);
  with.clear();
  without.clear();
  const MaskTotals before = bench.totals();
  for (int round = 0; round < rounds; ++round) {
    bench.Run(batch, steps, round % 2 == 0, round % 2 == 0 ? with : without);
    bench.Run(batch, steps, round % 2 != 0, round % 2 != 0 ? with : without);
  }
  const MaskTotals after = bench.totals();
  const double masked = Median(with), plain = Median(without);
  const auto num_steps = static_cast<double>(after.num_steps - before.num_steps);
  const auto delayed = static_cast<double>(after.num_delayed - before.num_delayed);
  std::printf(
      "batch %d: step %.2f ms with masks, %.2f ms without: ratio %.4f; Fill median %lld us; "
      "%.1f %% of %.0f steps waited for a mask, %.3f ms each\n",
      batch, masked / 1e3, plain / 1e3, masked / plain,
      static_cast<long long>(after.median_fill_us), 100 * delayed / num_steps, num_steps,
      delayed > 0 ? static_cast<double>(after.delayed_us - before.delayed_us) / delayed / 1e3
                  : 0.0);
}

Status Main(int argc, char** argv) {
  std::vector<int> batches = {1, 32};
  int steps = 20, rounds = 3;
  if (argc < 2)
    return Error(Code::kInvalid, "usage: mask_bench MODEL [--batch N] [--steps N] [--rounds N]");
  for (int i = 2; i + 1 < argc; i += 2) {
    const int value = std::atoi(argv[i + 1]);
    if (value <= 0) return Error(Code::kInvalid, "%s must be a positive number", argv[i]);
    const std::string_view name = argv[i];
    if (name == "--batch") batches = {value};
    if (name == "--steps") steps = value;
    if (name == "--rounds") rounds = value;
  }
  HEARTH_ASSIGN(const auto tokenizer, OpenTokenizer(argv[1]));
  HEARTH_ASSIGN(const auto vocabulary, GrammarVocabulary::Make(*tokenizer));
  GrammarCompiler compiler(vocabulary);
  HEARTH_ASSIGN(const auto grammar, compiler.SchemaText(kSchema));
  HEARTH_ASSIGN(const Model model, OpenModelFor(argv[1], "cpu"));
  EngineFlags flags;
  flags.kv_bytes = int64_t{256} << 20;
  flags.max_context = 2048;
  HEARTH_ASSIGN(const EnginePlan plan,
                PlanEngine(model, flags, ReadTopology().usable_memory_bytes()));
  HEARTH_ASSIGN(const std::unique_ptr<Backend> backend, OpenBackend(model, plan.backend));
  Bench bench(*backend, plan.engine, *tokenizer, grammar, vocabulary->end());
  for (const int batch : batches) Measure(bench, batch, steps, rounds);
  return Status();
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  const hearth::Status status = hearth::Main(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "mask_bench: %s\n", status.message().c_str());
  return 1;
}
