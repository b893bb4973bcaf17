// SPDX-License-Identifier: Apache-2.0
// Every seeded bug in how a broken stream is resumed must be noticed: streams are cut after each of
// their events, resumed by the id that the client has, and compared with the undisturbed ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "server/access/reply_origin.h"
#include "server/turns/event_ids.h"
#include "testing/mutants.h"
namespace hearth {
namespace {

using testing::MutantFate;

// What each number breaks; the places are marked HEARTH_MUTANT(number) in patches/resume.
constexpr int kFirst = 200;
constexpr const char* kBugs[] = {
    "the last event that the client has comes twice",
    "the first event that it does not have is lost",
    "events of all choices are counted together",
    "comments count as events",
    "events that are written together have one id",
    "the id does not say how much was cached",
    "of several choices the last one's count is not read",
    "an origin that nobody sealed is opened",
    "an origin of another tenant is opened",
    "the seed is not in the origin",
};

struct Written {
  int choice = -1;  // -1: of the reply as a whole
  std::string text;
};
struct Event {
  int choice = -1;
  std::string id, data;
};

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
  EventIds ids("sealed", static_cast<size_t>(num_choices), seen);
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
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const int num_choices = 1 + static_cast<int>(seed % 3);
    const std::vector<Written> reply = RandomReply(random, num_choices);
    const std::vector<Event> all = Streamed(reply, num_choices, {});
    for (size_t cut = 1; cut <= all.size(); ++cut) {
      const auto id = ReadEventId(all[cut - 1].id);
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

std::string CheckOrigins() {
  const OriginSeal seal(KeyFrom("secret", "test"));
  const ReplyOrigin origin{"0123456789abcdef01234567", 5, 77, {1, 2}, 3};
  const std::string sealed = seal.Seal(origin, "a");
  if (seal.Open(sealed, "a") != origin) return "an origin is not what it was";
  if (seal.Open(sealed, "b")) return "another tenant opens it";
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    if (changed != sealed && seal.Open(changed, "a")) return "a changed one is opened";
  }
  return "";
}

std::string AllChecks() {
  const std::string wrong = CheckStreams();
  return wrong.empty() ? CheckOrigins() : wrong;
}

TEST(ResumeMutants, NoneIsFoundWhereNoneIs) {
  EXPECT_EQ(AllChecks(), "");
  EXPECT_EQ(testing::RunMutant(0, AllChecks), MutantFate::kUnnoticed);
}

TEST(ResumeMutants, EachIsNoticed) {
  for (int i = 0; i < static_cast<int>(std::size(kBugs)); ++i) {
    EXPECT_NE(testing::RunMutant(kFirst + i, AllChecks), MutantFate::kUnnoticed)
        << "mutant " << kFirst + i << ": " << kBugs[i];
  }
}

}  // namespace
}  // namespace hearth
