// SPDX-License-Identifier: Apache-2.0
// Drafts through the whole loop on a fake backend with a small vocabulary, where chance makes many
// of them hold: what is heard must not change.
#include <gtest/gtest.h>

#include "engine/token_mask.h"
#include "testing/engine_rig.h"

namespace hearth {
namespace {

using testing::Client;
using testing::EngineRig;
using testing::FakeOptions;

constexpr int kVocab = 3;

// Token 0 may not follow itself, and after `length` tokens nothing but the end, token 2, may come.
class ShortText : public TokenMask {
 public:
  explicit ShortText(int length) : left_(length) {}
  Status Fill(std::span<uint32_t> bits) override {
    bits[0] = left_ <= 0 ? 0b100 : last_ == 0 ? 0b010 : 0b011;
    return Status();
  }
  bool Accept(Token token) override {
    if (token == 2 && left_ > 0) return false;
    if (token == 0 && (last_ == 0 || left_ <= 0)) return false;
    finished_ = token == 2;
    last_ = token;
    --left_;
    return true;
  }
  bool is_finished() const override { return finished_; }
  std::unique_ptr<TokenMask> Clone() const override { return std::make_unique<ShortText>(*this); }

 private:
  int left_;
  Token last_ = -1;
  bool finished_ = false;
};

struct Heard {
  std::vector<Token> tokens;
  Finish finish = Finish::kNone;
  int drafted = 0, accepted = 0, steps = 0;
};

FakeOptions Fake() {
  FakeOptions fake;
  fake.vocab_size = kVocab;
  return fake;
}
EngineOptions Options(int fixed_draft) {
  EngineOptions options;
  options.scheduler.speculates = fixed_draft > 0;
  options.scheduler.fixed_draft = fixed_draft;
  return options;
}

Heard Play(const Request& request, int fixed_draft, int mask_length) {
  EngineRig rig(Fake(), Options(fixed_draft));
  Request own = request;
  if (mask_length > 0) own.mask = std::make_shared<ShortText>(mask_length);
  const Client client = rig.Submit(own);
  EXPECT_TRUE(client.admission.ok()) << client.admission.status.message();
  rig.Finish();
  rig.ExpectNothingHeld();
  const RequestRecord& record = *client.heard->record;
  return {client.heard->tokens, record.finish, record.num_drafted, record.num_accepted,
          static_cast<int>(rig.core.scheduler().totals().num_steps)};
}

TEST(Speculation, IsNotHeard) {
  const EngineRig maker(Fake());
  int drafted = 0, accepted = 0, stopped = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    Request request = maker.MakeRequest(20, 1 + static_cast<int>(seed % 50), seed);
    request.sampling.temperature = seed % 3 == 0 ? 0.0f : 0.8f;
    if (seed % 4 == 0) request.sampling.frequency_penalty = 0.5f;
    if (seed % 5 == 0) request.sampling.stop_tokens = {static_cast<Token>(seed % kVocab)};
    if (seed % 5 == 0) request.sampling.min_tokens = static_cast<int>(seed % 17);
    const int mask_length = seed % 2 == 0 ? static_cast<int>(seed % 40) + 1 : 0;
    const Heard plain = Play(request, 0, mask_length);
    for (const int fixed_draft : {1, 4, kMaxDraft}) {
      const Heard heard = Play(request, fixed_draft, mask_length);
      EXPECT_EQ(heard.tokens, plain.tokens);
      EXPECT_EQ(heard.finish, plain.finish);
      EXPECT_EQ(heard.steps, plain.steps - heard.accepted);
      drafted += heard.drafted;
      accepted += heard.accepted;
      stopped += heard.finish == Finish::kStop && heard.accepted > 0 ? 1 : 0;
    }
    EXPECT_EQ(plain.drafted, 0);
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(drafted - accepted, 1000);
  EXPECT_GT(stopped, 30);
}

// Whoever hears nothing but NaN after a draft's token must not suffer unless the token was right.
TEST(Speculation, ADraftThatIsNoNumberIsJustWrong) {
  FakeOptions fake = Fake();
  fake.nan_token = 2;
  int num_errors = 0, drafted = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Heard heard[2];
    for (const int fixed_draft : {0, 6}) {
      EngineRig rig(fake, Options(fixed_draft));
      Request request = rig.MakeRequest(12, 12, seed);
      for (Token& token : request.prompt) token %= 2;
      const Client client = rig.Submit(request);
      rig.Finish();
      heard[fixed_draft > 0 ? 1 : 0] = {client.heard->tokens, client.heard->finish()};
      drafted += client.heard->record->num_drafted;
    }
    EXPECT_EQ(heard[1].tokens, heard[0].tokens);
    EXPECT_EQ(heard[1].finish, heard[0].finish);
    num_errors += heard[0].finish == Finish::kError ? 1 : 0;
  }
  EXPECT_GT(num_errors, 10);
  EXPECT_GT(drafted, 100);
}

TEST(Speculation, OneRequestCanDoWithout) {
  EngineRig rig(Fake(), Options(8));
  Request request = rig.MakeRequest(20, 40, 3);
  const Client with = rig.Submit(request);
  request.speculates = false;
  const Client without = rig.Submit(request);
  rig.Finish();
  EXPECT_GT(with.heard->record->num_drafted, 0);
  EXPECT_EQ(without.heard->record->num_drafted, 0);
  EXPECT_EQ(with.heard->tokens, without.heard->tokens);
  const SchedulerTotals& totals = rig.core.scheduler().totals();
  EXPECT_EQ(totals.drafted_tokens, with.heard->record->num_drafted);
  EXPECT_EQ(totals.accepted_tokens, with.heard->record->num_accepted);
}

TEST(Speculation, NeverMoreThanTheReaderTakes) {
  EngineRig rig(Fake(), Options(kMaxDraft));
  const Client client = rig.Submit(rig.MakeRequest(20, 60, 3));
  client.heard->capacity = 3;  // Listener complains about a token without room
  for (int i = 0; i < 500 && !client.heard->record; ++i) {
    if (!rig.core.Step()) rig.clock.Advance(5000);
    if (i % 3 == 0) client.heard->num_read = static_cast<int>(client.heard->tokens.size());
  }
  EXPECT_EQ(client.heard->finish(), Finish::kLength);
  rig.ExpectRight(client);
  EXPECT_GT(client.heard->record->num_accepted, 0);
}

// Who asks the same again is offered what was said before, but only within one salt. The vocabulary
// is large and nothing repeats within a text, so every draft here comes from the cache.
TEST(Speculation, ARetryIsDraftedFromTheCache) {
  FakeOptions fake;
  fake.vocab_size = 50'000;
  EngineRig rig(fake, Options(kMaxDraft));
  Request request = rig.MakeRequest(70, 60, 3);
  request.domain = {1, 77};
  const Client first = rig.Submit(request);
  rig.Finish();
  EXPECT_EQ(first.heard->record->num_drafted, 0);
  const Client again = rig.Submit(request);
  rig.Finish();
  EXPECT_EQ(again.heard->tokens, first.heard->tokens);
  EXPECT_GT(again.heard->record->num_accepted, 40);
  EXPECT_EQ(again.heard->record->num_accepted, again.heard->record->num_drafted);
  request.domain = {1, 78};
  const Client stranger = rig.Submit(request);
  rig.Finish();
  EXPECT_EQ(stranger.heard->tokens, first.heard->tokens);
  EXPECT_EQ(stranger.heard->record->num_drafted, 0);
  rig.ExpectNothingHeld();
}

// Others who begin alike and then say something else are drafted wrongly, and are not disturbed.
TEST(Speculation, SiblingsSayWhatTheyWouldAlone) {
  FakeOptions fake;
  fake.vocab_size = 6;
  EngineRig rig(fake, Options(4));
  int drafted = 0, accepted = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Request request = rig.MakeRequest(40, 40, 9);
    request.sampling.seed = seed;
    request.sampling.temperature = 0.3f;
    const Client client = rig.Submit(request);
    rig.Finish();
    EXPECT_EQ(client.heard->tokens, rig.Expected(request));
    drafted += client.heard->record->num_drafted;
    accepted += client.heard->record->num_accepted;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(drafted - accepted, 100);
}

}  // namespace
}  // namespace hearth
