// SPDX-License-Identifier: Apache-2.0
// The benchmark's arithmetic: statistics of samples, and the work a case must do.
#include <gmock/gmock.h>

#include "app/bench_runner.h"
#include "app/open_model.h"
#include "bench/case.h"
#include "bench/output.h"
#include "bench/work.h"
#include "testing/data.h"

namespace hearth {
namespace {

Samples SamplesOf(std::initializer_list<double> values, bool less_is_better) {
  Samples samples{.all = {}, .less_is_better = less_is_better};
  for (const double value : values) samples.all.push_back({value, 0});
  return samples;
}

TEST(BenchSamples, SecondsAreBestWhenLeast) {
  const Samples seconds = SamplesOf({2.0, 1.0, 4.0}, true);
  EXPECT_EQ(seconds.best(), 1.0);
  EXPECT_EQ(seconds.worst(), 4.0);
  EXPECT_EQ(seconds.median(), 2.0);
  EXPECT_EQ(seconds.spread(), 0.75);  // a quarter of the speed
}

TEST(BenchSamples, RatesAreBestWhenMost) {
  const Samples rates = SamplesOf({8.0, 10.0, 6.0, 9.0}, false);
  EXPECT_EQ(rates.best(), 10.0);
  EXPECT_EQ(rates.worst(), 6.0);
  EXPECT_EQ(rates.median(), 8.5);
  EXPECT_EQ(rates.spread(), 0.4);
}

TEST(BenchCase, NamesAndCountsTokens) {
  EXPECT_EQ(NameOf({BenchKind::kPrefill, 1, 0, 512}), "prefill 512");
  EXPECT_EQ(NameOf({BenchKind::kDecode, 32, 0, 16}), "decode 32");
  EXPECT_EQ(NameOf({BenchKind::kDecode, 1, 8192, 16}), "decode 1 at 8192");
  EXPECT_EQ(TotalTokens({BenchKind::kDecode, 32, 0, 16}), 512);
  EXPECT_EQ(TotalTokens({BenchKind::kPrefill, 1, 0, 512}), 512);
}

TEST(BenchOutput, PrefixesKeepThreeDigits) {
  EXPECT_EQ(WithPrefix(28.06e9, "B/s"), "28.1 GB/s");
  EXPECT_EQ(WithPrefix(4.2e12, "OP/s"), "4.2 TOP/s");
  EXPECT_EQ(WithPrefix(12, "B"), "12 B");
}

TEST(BenchOutput, SaysLoudlyWhatTheMachineLacks) {
  BenchRecord record;
  record.rounds = 3;
  for (const char* name : {"plain read", "stream read", "VNNI", "AMX"}) {
    record.rooflines.push_back({name, "B/s", SamplesOf({2e9, 1e9}, false), false});
  }
  record.rooflines[kAmxPeak].absent = true;
  const std::string table = BenchTable(record);
  EXPECT_THAT(table, ::testing::ContainsRegex("AMX +ABSENT"));
  EXPECT_THAT(table, ::testing::ContainsRegex("plain read +2 GB/s +50 %"));
  EXPECT_EQ(record.roofline(kAmxPeak), 0);
  const Json json = BenchJson(record);
  EXPECT_EQ(json.Find("schema")->string()->c_str(), std::string("hearth.bench"));
  const JsonArray& rooflines = *json.Find("yardsticks")->array();
  EXPECT_EQ(rooflines[kPlainRead].Find("best")->number(), 2e9);
  EXPECT_TRUE(*rooflines[kAmxPeak].Find("absent")->boolean());
  EXPECT_EQ(rooflines[kAmxPeak].Find("best"), nullptr);
}

Model Fixture(const std::string& family) {
  Result<Model> model =
      OpenModel(testing::RepoPath("tests/fixtures/families/" + family + "/model.gguf"));
  HEARTH_CHECK(model.ok());
  return *std::move(model);
}

// 40 bytes per token in layers that see everything, 24 in those with a window of 8.
const KvLayout kKv{
    .groups = {{.window = 0, .block_bytes = 40 * 16}, {.window = 8, .block_bytes = 24 * 16}}};

TEST(BenchWork, OneDecodedTokenReadsWhatTheCostsSay) {
  for (const char* family : {"gpt-oss", "llama-tied", "qwen3moe"}) {
    const Model model = Fixture(family);
    const Work work = WorkModel(model).Of({BenchKind::kDecode, 1, 0, 1}, kKv, 512);
    const ModelCosts costs = CostsOf(model);
    // The tied embedding's row is read as part of the head as well; costs count it once.
    const double row = static_cast<double>(BytesOf(model.embedding)) / model.spec.vocab_size;
    EXPECT_NEAR(work.bytes, static_cast<double>(costs.decode_bytes) + 64, row + 1) << family;
    const double products = 2.0 * static_cast<double>(costs.active_parameters);
    EXPECT_NEAR(work.flops, products, 0.05 * products) << family;
  }
}

TEST(BenchWork, BatchesShareWeightsButNotContext) {
  const Model model = Fixture("gpt-oss");
  const WorkModel work(model);
  const auto bytes = [&](int sequences, int depth) {
    return work.Of({BenchKind::kDecode, sequences, depth, 1}, kKv, 512).bytes;
  };
  const auto held = static_cast<double>(CostsOf(model).weight_bytes);
  EXPECT_LT(bytes(32, 0), 1.1 * held) << "no weight is read twice in a step";
  EXPECT_GT(bytes(4, 0), 1.05 * bytes(1, 0)) << "but more experts are";
  // Ten more tokens: all of them in full layers, the window is full already.
  EXPECT_NEAR(bytes(1, 110) - bytes(1, 100), 400, 1e-6);
  EXPECT_NEAR(bytes(3, 110) - bytes(3, 100), 1200, 1e-6);
}

TEST(BenchWork, PrefillComputesOnceAndReadsOncePerChunk) {
  const Model model = Fixture("gpt-oss");
  const WorkModel work(model);
  const Work whole = work.Of({BenchKind::kPrefill, 1, 0, 64}, kKv, 64);
  const Work halves = work.Of({BenchKind::kPrefill, 1, 0, 64}, kKv, 32);
  EXPECT_DOUBLE_EQ(whole.flops, halves.flops);
  EXPECT_GT(halves.bytes, 1.5 * whole.bytes);
  const Work decode = work.Of({BenchKind::kDecode, 1, 0, 64}, kKv, 64);
  const double head = 2.0 * model.head.rows * model.head.cols;
  EXPECT_NEAR(decode.flops - whole.flops, 63 * head, 1e-6 * whole.flops) << "one row of logits";
}

TEST(BenchRunner, RunsEveryCaseAndRefusesTooLong) {
  const Model model = Fixture("gpt-oss");
  BackendOptions options;
  options.isa = "scalar";
  options.num_threads = 1;
  const std::vector<BenchCase> cases = {{BenchKind::kDecode, 3, 0, 20},
                                        {BenchKind::kPrefill, 1, 0, 50},
                                        {BenchKind::kDecode, 2, 33, 5}};
  auto runner = BenchRunner::Make(model, options, cases, 16);
  ASSERT_TRUE(runner.ok()) << runner.status().message();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) {
      const Result<bool> copied = runner->Fill(i);
      EXPECT_TRUE(copied.ok()) << copied.status().message();
      Result<double> seconds = runner->Run(i);
      ASSERT_TRUE(seconds.ok()) << seconds.status().message();
      EXPECT_GT(*seconds, 0);
    }
  }
  const std::vector<BenchCase> long_case = {{BenchKind::kDecode, 1, 1 << 23, 5}};
  EXPECT_EQ(BenchRunner::Make(model, options, long_case, 16).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hearth
