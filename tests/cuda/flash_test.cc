// SPDX-License-Identifier: Apache-2.0
// The C API of flash attention on the mock driver: its results, what each call does in each state,
// and what it refuses.
#include <gmock/gmock.h>
#include <hearth/flash_attention_v2_opt.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>

#include "backend_rig.h"
#include "base/num.h"
#include "flash/flash_image.h"
#include "flash/flash_session.h"
#include "proof/flash_reference.h"
#include "proof/inputs.h"

namespace hearth::cuda {
namespace {

using ::testing::HasSubstr;

flash_attention_v2_opt_config SmallConfig() {
  flash_attention_v2_opt_config config{};
  config.size = sizeof config;
  config.batch_size = 2;
  config.num_heads = 8;
  config.num_kv_heads = 2;
  config.head_dim = 64;
  config.max_seq_len = 48;
  return config;
}

std::vector<uint16_t> Halves(proof::Rng& rng, size_t count) {
  std::vector<uint16_t> out;
  for (const float value : rng.Normals(static_cast<int>(count))) out.push_back(F16FromF32(value));
  return out;
}

// What a caller would hold, contiguous, and the same in blocks.
struct Data {
  Data(const flash_attention_v2_opt_config& config, std::vector<int32_t> seq_lens)
      : lengths(std::move(seq_lens)) {
    proof::Rng rng(5);
    const auto batch = static_cast<size_t>(config.batch_size),
               heads = static_cast<size_t>(config.num_heads);
    const auto kv = static_cast<size_t>(config.num_kv_heads),
               d = static_cast<size_t>(config.head_dim);
    const auto positions = static_cast<size_t>(config.max_seq_len);
    q = Halves(rng, batch * heads * d);
    k = Halves(rng, batch * kv * positions * d);
    v = Halves(rng, batch * kv * positions * d);
    out.assign(batch * heads * d, -1.0f);
    const size_t blocks = (positions + 15) / 16;
    for (size_t i = 0; i < batch * blocks; ++i) {
      tables.push_back(static_cast<int32_t>((i * 5 + 1) % (batch * blocks)));
    }
    k_blocks.assign(batch * blocks * kv * 16 * d, 0x7e00);
    v_blocks = k_blocks;
    for (size_t s = 0; s < batch; ++s) {
      for (size_t h = 0; h < kv; ++h) {
        for (size_t p = 0; p < positions; ++p) {
          const auto block = static_cast<size_t>(tables[s * blocks + p / 16]);
          const auto to = static_cast<int64_t>(((block * kv + h) * 16 + p % 16) * d);
          const auto from = static_cast<int64_t>(((s * kv + h) * positions + p) * d);
          std::copy_n(k.begin() + from, d, k_blocks.begin() + to);
          std::copy_n(v.begin() + from, d, v_blocks.begin() + to);
        }
      }
    }
  }
  FlashErrors Errors(const flash_attention_v2_opt_config& config) const {
    const FlashShape shape{config.num_heads, config.num_kv_heads, config.head_dim,
                           config.max_seq_len,
                           1.0f / std::sqrt(static_cast<float>(config.head_dim))};
    return FlashErrorsOf(shape, q, k, v, lengths, out.data());
  }
  std::vector<uint16_t> q, k, v, k_blocks, v_blocks;
  std::vector<int32_t> lengths, tables;
  std::vector<float> out;
};

class Flash : public ::testing::Test {
 protected:
  Flash() : config_(SmallConfig()), data_(config_, {48, 17}) {
    SetFlashImage(std::as_bytes(std::span(kSourceImage)));
  }
  ~Flash() override { flash_attention_v2_opt_cleanup(); }
  int Load() {
    return flash_attention_v2_opt_load_qkv(data_.q.data(), data_.k.data(), data_.v.data(), nullptr,
                                           data_.lengths.data());
  }
  int Output() { return flash_attention_v2_opt_get_output(data_.out.data(), data_.out.size()); }
  static std::string Why() { return flash_attention_v2_opt_last_error(); }

  flash_attention_v2_opt_config config_;
  Data data_;
};

constexpr int kOk = FLASH_ATTENTION_V2_OPT_OK, kState = FLASH_ATTENTION_V2_OPT_STATE;
constexpr int kInvalid = FLASH_ATTENTION_V2_OPT_INVALID;

TEST_F(Flash, StepByStepIsWithinTwiceTheErrorOfFp16) {
  ASSERT_EQ(flash_attention_v2_opt_init(&config_), kOk) << Why();
  ASSERT_EQ(Load(), kOk) << Why();
  ASSERT_EQ(flash_attention_v2_opt_decode_gpu(), kOk) << Why();
  ASSERT_EQ(Output(), kOk) << Why();
  EXPECT_EQ(Why(), "");
  const FlashErrors errors = data_.Errors(config_);
  EXPECT_GT(errors.plain, 0);
  EXPECT_LE(errors.got, 2 * errors.plain);
  std::printf("  wrong by %.2g, FP16 on the CPU by %.2g\n", errors.got, errors.plain);
}

TEST_F(Flash, OneCallAndAPagedCacheGiveTheSame) {
  ASSERT_EQ(flash_attention_v2_opt_decode(&config_, data_.q.data(), data_.k.data(), data_.v.data(),
                                          nullptr, data_.lengths.data(), data_.out.data(),
                                          data_.out.size()),
            kOk)
      << Why();
  const std::vector<float> contiguous = data_.out;
  EXPECT_LE(data_.Errors(config_).got, 2 * data_.Errors(config_).plain);
  config_.num_blocks = static_cast<int>(data_.tables.size());
  ASSERT_EQ(flash_attention_v2_opt_decode(&config_, data_.q.data(), data_.k_blocks.data(),
                                          data_.v_blocks.data(), data_.tables.data(),
                                          data_.lengths.data(), data_.out.data(), data_.out.size()),
            kOk)
      << Why();
  EXPECT_EQ(data_.out, contiguous);
}

TEST_F(Flash, LongSequencesAreSplitAndASequenceWithoutPositionsGetsZeros) {
  config_.head_dim = 128;
  config_.num_heads = config_.num_kv_heads = 2;
  config_.max_seq_len = 700;
  Data data(config_, {700, 0});
  flash_attention_v2_opt_handle* handle = nullptr;
  ASSERT_EQ(flash_attention_v2_opt_create(&config_, &handle), kOk) << Why();
  ASSERT_EQ(flash_attention_v2_opt_handle_load_qkv(handle, data.q.data(), data.k.data(),
                                                   data.v.data(), nullptr, data.lengths.data()),
            kOk);
  ASSERT_EQ(flash_attention_v2_opt_handle_decode_gpu(handle), kOk);
  ASSERT_EQ(flash_attention_v2_opt_handle_get_output(handle, data.out.data(), data.out.size()),
            kOk);
  flash_attention_v2_opt_destroy(handle);
  for (size_t i = data.out.size() / 2; i < data.out.size(); ++i) EXPECT_EQ(data.out[i], 0.0f);
  data.lengths = {700};
  const FlashErrors errors = data.Errors(config_);
  EXPECT_LE(errors.got, 2 * errors.plain);
  // The mock GPU has 4 processors with room for 2 blocks each, and there are 4 without splits.
  auto session =
      FlashSession::Open({0, 2, 2, 2, 128, 700, 0, 0}, std::as_bytes(std::span(kSourceImage)));
  ASSERT_TRUE(session.ok());
  data.lengths = {700, 0};
  ASSERT_TRUE((*session)
                  ->Load(data.q.data(), data.k.data(), data.v.data(), nullptr, data.lengths.data())
                  .ok());
  EXPECT_EQ((*session)->plan().splits, 2);
}

// Every call in every state: what it returns, and the state that follows.
TEST_F(Flash, EachCallInEachState) {
  enum State { kClosed, kReady, kLoaded, kDecoded };
  struct Row {
    const char* call;
    int result[4];  // by state
    State next[4];
  };
  const Row rows[] = {
      {"init", {kOk, kState, kState, kState}, {kReady, kReady, kLoaded, kDecoded}},
      {"load", {kState, kOk, kOk, kOk}, {kClosed, kLoaded, kLoaded, kLoaded}},
      {"decode", {kState, kState, kOk, kOk}, {kClosed, kReady, kDecoded, kDecoded}},
      {"output", {kState, kState, kState, kOk}, {kClosed, kReady, kLoaded, kDecoded}},
      {"reset", {kState, kOk, kOk, kOk}, {kClosed, kReady, kReady, kReady}},
      {"cleanup", {kOk, kOk, kOk, kOk}, {kClosed, kClosed, kClosed, kClosed}},
  };
  const auto call = [&](const std::string& name) {
    if (name == "init") return flash_attention_v2_opt_init(&config_);
    if (name == "load") return Load();
    if (name == "decode") return flash_attention_v2_opt_decode_gpu();
    if (name == "output") return Output();
    if (name == "reset") return flash_attention_v2_opt_reset();
    return flash_attention_v2_opt_cleanup();
  };
  const auto reach = [&](State state) {
    flash_attention_v2_opt_cleanup();
    for (const State next : {kReady, kLoaded, kDecoded}) {
      if (next > state) break;
      EXPECT_EQ(call(next == kReady ? "init" : next == kLoaded ? "load" : "decode"), kOk);
    }
  };
  // What tells states apart from outside.
  const auto state_now = [&]() -> State {
    if (Output() == kOk) return kDecoded;
    if (flash_attention_v2_opt_decode_gpu() == kOk) return kLoaded;
    return flash_attention_v2_opt_reset() == kOk ? kReady : kClosed;
  };
  for (const Row& row : rows) {
    for (const State state : {kClosed, kReady, kLoaded, kDecoded}) {
      SCOPED_TRACE(std::string(row.call) + " in state " + std::to_string(state));
      reach(state);
      const int result = call(row.call);
      EXPECT_EQ(result, row.result[state]) << Why();
      EXPECT_EQ(Why().empty(), result == kOk);
      EXPECT_EQ(state_now(), row.next[state]);
    }
  }
}

TEST_F(Flash, RefusesWhatMakesNoSense) {
  const auto refused = [&](auto change, const char* why) {
    flash_attention_v2_opt_config config = SmallConfig();
    change(config);
    EXPECT_EQ(flash_attention_v2_opt_init(&config), kInvalid) << why;
    EXPECT_THAT(Why(), HasSubstr(why));
  };
  EXPECT_EQ(flash_attention_v2_opt_init(nullptr), kInvalid);
  refused([](auto& c) { c.size = 8; }, "sizeof");
  refused([](auto& c) { c.head_dim = 96; }, "head_dim is 96");
  refused([](auto& c) { c.num_heads = 7; }, "7 heads over 2");
  refused([](auto& c) { c.num_kv_heads = 0; }, "over 0 KV heads");
  refused([](auto& c) { c.batch_size = 0; }, "batch_size is 0");
  refused([](auto& c) { c.max_seq_len = -1; }, "max_seq_len is -1");
  refused([](auto& c) { c.num_blocks = -1; }, "num_blocks is -1");
  refused([](auto& c) { c.scale = NAN; }, "scale");
  ASSERT_EQ(flash_attention_v2_opt_init(&config_), kOk);
  data_.lengths[1] = 49;
  EXPECT_EQ(Load(), kInvalid);
  EXPECT_THAT(Why(), HasSubstr("sequence 1 has length 49; max_seq_len is 48"));
  data_.lengths[1] = 17;
  EXPECT_EQ(flash_attention_v2_opt_load_qkv(nullptr, nullptr, nullptr, nullptr, nullptr), kInvalid);
  EXPECT_EQ(flash_attention_v2_opt_load_qkv(data_.q.data(), data_.k.data(), data_.v.data(),
                                            data_.tables.data(), data_.lengths.data()),
            kInvalid);
  ASSERT_EQ(Load(), kOk);
  ASSERT_EQ(flash_attention_v2_opt_decode_gpu(), kOk);
  EXPECT_EQ(flash_attention_v2_opt_get_output(data_.out.data(), 3), kInvalid);
  EXPECT_EQ(flash_attention_v2_opt_get_output(nullptr, data_.out.size()), kInvalid);
  EXPECT_EQ(flash_attention_v2_opt_handle_decode_gpu(nullptr), kInvalid);
  flash_attention_v2_opt_cleanup();
  config_.num_blocks = static_cast<int>(data_.tables.size());
  data_.tables[0] = config_.num_blocks;
  EXPECT_EQ(flash_attention_v2_opt_decode(&config_, data_.q.data(), data_.k_blocks.data(),
                                          data_.v_blocks.data(), data_.tables.data(),
                                          data_.lengths.data(), data_.out.data(), data_.out.size()),
            kInvalid);
  EXPECT_THAT(Why(), HasSubstr("names block 6; there are 6"));
}

TEST_F(Flash, TellsWhatTheDriverSays) {
  config_.device = 3;
  EXPECT_EQ(flash_attention_v2_opt_init(&config_), FLASH_ATTENTION_V2_OPT_NO_DEVICE);
  EXPECT_THAT(Why(), HasSubstr("no device cuda:3"));
  config_.device = 0;
  {
    const MockSettings settings("memory=20000");
    EXPECT_EQ(flash_attention_v2_opt_init(&config_), FLASH_ATTENTION_V2_OPT_OUT_OF_MEMORY);
    EXPECT_THAT(Why(), HasSubstr("out of memory"));
  }
  {
    const MockSettings settings("launch=0");
    ASSERT_EQ(flash_attention_v2_opt_init(&config_), kOk);
    ASSERT_EQ(Load(), kOk);
    EXPECT_EQ(flash_attention_v2_opt_decode_gpu(), FLASH_ATTENTION_V2_OPT_DRIVER);
    EXPECT_EQ(Output(), kState);
    EXPECT_EQ(flash_attention_v2_opt_decode_gpu(), kOk);  // the next one goes through
    EXPECT_EQ(Output(), kOk);
    flash_attention_v2_opt_cleanup();
  }
  const MockSettings settings("crash=0");
  ASSERT_EQ(flash_attention_v2_opt_init(&config_), kOk);
  ASSERT_EQ(Load(), kOk);
  ASSERT_EQ(flash_attention_v2_opt_decode_gpu(), kOk);
  EXPECT_EQ(Output(), FLASH_ATTENTION_V2_OPT_DRIVER);
  EXPECT_THAT(Why(), HasSubstr("stopped working"));
  EXPECT_EQ(Load(), FLASH_ATTENTION_V2_OPT_DRIVER);
}

// The page names every function and every number of the header.
TEST(FlashPage, NamesEverything) {
  const auto read = [](const char* path) {
    std::ifstream file(std::string(HEARTH_SOURCE_DIR) + path);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  const std::string header = read("/include/hearth/flash_attention_v2_opt.h");
  const std::string page = read("/docs/man/flash_attention_v2_opt.3");
  const std::regex name(
      "(flash_attention_v2_opt_[a-z0-9_]+(?=\\()|FLASH_ATTENTION_V2_OPT_[A-Z_]+)");
  int count = 0;
  for (auto at = std::sregex_iterator(header.begin(), header.end(), name);
       at != std::sregex_iterator(); ++at, ++count) {
    if (at->str() == "FLASH_ATTENTION_V2_OPT_H") continue;  // the guard of its inclusion
    EXPECT_THAT(page, HasSubstr(at->str()));
  }
  EXPECT_GT(count, 18);
  EXPECT_THAT(page, HasSubstr("not yet on hardware"));
}

}  // namespace
}  // namespace hearth::cuda
