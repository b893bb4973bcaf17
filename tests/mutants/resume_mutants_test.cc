// SPDX-License-Identifier: Apache-2.0
// Every seeded bug in how a broken stream is resumed must be noticed: streams are cut after each of
// their events, resumed by the id that the client has, and compared with the undisturbed ones. And
// every one in what keeps the ids, the seeds and the cached work of keys apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/fresh_random.h"
#include "server/access/base64.h"
#include "server/access/domain.h"
#include "server/access/secrets.h"
#include "server/turns/event_ids.h"
#include "testing/distinguisher.h"
#include "testing/mutants.h"
#include "testing/old_seeds.h"
namespace hearth {
namespace {

using testing::MutantFate;

// What each number breaks; the places are marked HEARTH_MUTANT(number) in patches/resume.
struct Bug {
  int number;
  const char* what;
};
constexpr Bug kBugs[] = {
    {200, "the last event that the client has comes twice"},
    {201, "the first event that it does not have is lost"},
    {202, "events of all choices are counted together"},
    {203, "comments count as events"},
    {204, "events that are written together have one id"},
    {205, "the id does not say how much was cached"},
    {206, "of several choices the last one's count is not read"},
    {207, "an id that was changed is read"},
    {208, "an id of another tenant is read"},
    {209, "the seed is not in the id"},
    {270, "one nonce encrypts all ids"},
    {271, "the counts of an id are not authenticated"},
    {272, "seeds are a counter's"},
    {273, "two purposes have one secret"},
    {274, "the root is left out of the secrets"},
    {275, "the secret is left out of cache domains"},
};

struct Written {
  int choice = -1;  // -1: of the reply as a whole
  std::string text;
};
struct Event {
  int choice = -1;
  std::string id, data;
};

const ReplyOrigin kOrigin{"0123456789abcdef01234567", 5, 77, {1, 2}, 3};
SivSeal IdSeal() { return SivSeal(Secrets("secret").For<64>(Purpose::kEventIds)); }
std::shared_ptr<const EventNames> Names() {
  return std::make_shared<const EventNames>(IdSeal(), kOrigin, "a");
}

// A beginning, some events of each choice as they come, comments, an end.
std::vector<Written> RandomReply(std::mt19937& random, int num_choices) {
  std::vector<Written> out = {{-1, "data: begin\n\n"}};
  std::vector<int> said(static_cast<size_t>(num_choices));
  for (int i = 0; i < 12; ++i) {
    if (random() % 4 == 0) out.push_back({-1, ": still there\n\n"});
    const int choice = static_cast<int>(random() % static_cast<unsigned>(num_choices));
    std::string text;
    for (auto k = random() % 3 + 1; k > 0; --k) {
      text += "data: " + std::to_string(choice) + "/" +
              std::to_string(said[static_cast<size_t>(choice)]++) + "\n\n";
    }
    out.push_back({choice, text});
  }
  out.push_back({-1, "data: [DONE]\n\n"});
  return out;
}

std::vector<Event> Streamed(const std::vector<Written>& reply, int num_choices,
                            const EventCursor& seen) {
  EventIds ids(Names(), static_cast<size_t>(num_choices), seen);
  ids.set_cached(48);
  std::vector<Event> out;
  for (const Written& written : reply) {
    const std::string text = written.choice < 0 ? ids.NumberWhole(written.text)
                                                : ids.NumberChosen(written.choice, written.text);
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find("\n\n", at) + 2;
      const std::string event = text.substr(at, end - at);
      at = end;
      if (event.starts_with(':')) continue;
      const size_t line = event.find('\n');
      const bool has_id = event.starts_with("id: ");
      out.push_back({written.choice, has_id ? event.substr(4, line - 4) : "",
                     has_id ? event.substr(line + 1) : event});
    }
  }
  return out;
}

// The same reply in another life: other comments, every event written when it comes, and the
// choices in another order.
std::vector<Written> AnotherLife(const std::vector<Written>& reply) {
  std::vector<Written> out;
  for (const Written& written : reply) {
    if (written.text.starts_with(':')) continue;
    for (size_t at = 0; at < written.text.size();) {
      const size_t end = written.text.find("\n\n", at) + 2;
      out.push_back({written.choice, written.text.substr(at, end - at)});
      at = end;
    }
  }
  std::stable_sort(out.begin() + 1, out.end() - 1,
                   [](const Written& a, const Written& b) { return a.choice > b.choice; });
  return out;
}

// What one choice, or the whole (-1), said.
std::string Of(const std::vector<Event>& events, size_t count, int choice) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    if (events[i].choice == choice) out += events[i].data;
  }
  return out;
}

std::string CheckStreams() {
  const SivSeal seal = IdSeal();
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const int num_choices = 1 + static_cast<int>(seed % 3);
    const std::vector<Written> reply = RandomReply(random, num_choices);
    const std::vector<Event> all = Streamed(reply, num_choices, {});
    for (size_t cut = 1; cut <= all.size(); ++cut) {
      const auto id = ReadEventId(all[cut - 1].id, seal, "a");
      if (!id) return "an id cannot be read: " + all[cut - 1].id;
      if (id->cursor.num_cached != 48) return "what was cached is lost";
      const std::vector<Event> rest = Streamed(AnotherLife(reply), num_choices, id->cursor);
      for (int choice = -1; choice < num_choices; ++choice) {
        const std::string got = Of(all, cut, choice) + Of(rest, rest.size(), choice);
        if (got != Of(all, all.size(), choice)) return "cut after " + all[cut - 1].id + ": " + got;
      }
    }
  }
  return "";
}

std::string CheckIds() {
  const SivSeal seal = IdSeal();
  EventCursor cursor;
  cursor.num_whole = 9;
  cursor.num_chosen = {4, 5};
  const std::string text = Names()->At(cursor);
  const auto id = ReadEventId(text, seal, "a");
  if (!id || id->origin != kOrigin || id->cursor != cursor) return "an id is not what it was";
  if (ReadEventId(text, seal, "b")) return "another tenant's id is read";
  auto bytes = *FromBase64(text);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    if (ReadEventId(AsBase64(bytes), seal, "a")) return "a changed id is read";
    bytes[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
  }
  return "";
}

// Samples of ids in which nothing differs but a count, and of seeds.
std::string CheckSecrecy() {
  constexpr int kCount = 3000;
  const auto names = Names();
  std::vector<std::string> ids, seeds;
  EventCursor cursor;
  for (cursor.num_whole = 1; cursor.num_whole <= kCount; ++cursor.num_whole) {
    const auto bytes = *FromBase64(names->At(cursor));
    ids.emplace_back(bytes.begin(), bytes.end());
    const uint64_t seed = FreshNumber();
    seeds.emplace_back(reinterpret_cast<const char*>(&seed), sizeof seed);
  }
  for (const auto* samples : {&ids, &seeds}) {
    const auto found = testing::SuspicionOf(*samples);
    if (found.is_sure()) return found.what;
  }
  const testing::SeedAttack attack(5000, 2);
  if (!attack.SolveAnywhere(seeds[0], seeds[1]).empty()) return "a seed follows from another";
  return "";
}

std::string CheckSecrets() {
  std::vector<std::string> all;
  for (const char* root : {"one", "two"}) {
    for (size_t i = 0; i < kNumPurposes; ++i) {
      all.push_back(Secrets(root).TextFor(static_cast<Purpose>(i)));
    }
  }
  std::sort(all.begin(), all.end());
  if (std::adjacent_find(all.begin(), all.end()) != all.end()) return "two secrets are one";
  const CipherKey one{1}, two{2};
  if (DomainOf("a", "", one).salt == DomainOf("a", "", two).salt) return "a domain needs no secret";
  return "";
}

std::string AllChecks() {
  for (const auto& check : {CheckStreams, CheckIds, CheckSecrecy, CheckSecrets}) {
    const std::string wrong = check();
    if (!wrong.empty()) return wrong;
  }
  return "";
}

TEST(ResumeMutants, NoneIsFoundWhereNoneIs) {
  EXPECT_EQ(AllChecks(), "");
  EXPECT_EQ(testing::RunMutant(0, AllChecks), MutantFate::kUnnoticed);
}

TEST(ResumeMutants, EachIsNoticed) {
  for (const Bug& bug : kBugs) {
    EXPECT_NE(testing::RunMutant(bug.number, AllChecks), MutantFate::kUnnoticed)
        << "mutant " << bug.number << ": " << bug.what;
  }
}

}  // namespace
}  // namespace hearth
