// SPDX-License-Identifier: Apache-2.0
#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

namespace hearth {
namespace {

struct Ending {
  std::string shown;
  bool stopped = false;
};
bool operator==(const Ending& a, const Ending& b) {
  return a.shown == b.shown && a.stopped == b.stopped;
}

// The stop string that is complete first, the longest of those; what stands before it is shown.
Ending Naive(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

Ending Streamed(StopStrings stops, const std::vector<std::string>& pieces) {
  Ending ending;
  for (const std::string& piece : pieces) {
    const bool stopped = stops.Append(piece, ending.shown);
    EXPECT_TRUE(stopped || !ending.stopped) << "stopped stays stopped";
    EXPECT_EQ(stopped, stops.found() >= 0);
    ending.stopped = stopped;
  }
  stops.Finish(ending.shown);
  return ending;
}

StopStrings Made(const std::vector<std::string>& stops) {
  Result<StopStrings> made = StopStrings::Make(stops);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

TEST(StopStrings, EverySplitPointGivesTheSame) {
  const std::vector<std::vector<std::string>> sets = {
      {"END"},
      {"\n\n"},
      {"aab", "ab"},
      {"xabc", "ab"},
      {"abab"},
      {"a", "aa"},
      {"he", "she", "hers", "his"},
      {"\xc3\xa9t\xc3\xa9"},
      {"aaaa", "aab"},
      {"</tool>", "</t>", "<"},
  };
  const std::vector<std::string> texts = {
      "the END of it",
      "ENEND",
      "E",
      "one\n\ntwo",
      "aaab",
      "xabd xabc",
      "abacabab!",
      "ushers and his",
      "aaaaab",
      "",
      "caf\xc3\xa9 l'\xc3\xa9t\xc3\xa9.",
      "a</too</tool>b",
  };
  for (const auto& set : sets) {
    const StopStrings stops = Made(set);
    for (const std::string& text : texts) {
      const Ending want = Naive(text, set);
      for (size_t i = 0; i <= text.size(); ++i) {
        for (size_t j = i; j <= text.size(); ++j) {
          const std::vector<std::string> pieces = {text.substr(0, i), text.substr(i, j - i),
                                                   text.substr(j)};
          EXPECT_EQ(Streamed(stops, pieces), want) << Quoted(text) << " at " << i << ", " << j;
        }
      }
    }
  }
}

TEST(StopStrings, RandomTextsByteByByte) {
  std::mt19937 random(5);
  const auto word = [&](size_t least, size_t most) {
    std::string made(least + random() % (most - least + 1), 'a');
    for (char& c : made) c = static_cast<char>('a' + random() % 2);
    return made;
  };
  int stopped = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> set;
    for (unsigned i = 0; i <= random() % 4; ++i) set.push_back(word(2, 9));
    const std::string text = word(0, 30);
    std::vector<std::string> bytes;
    for (const char c : text) bytes.emplace_back(1, c);
    const Ending want = Naive(text, set);
    ASSERT_EQ(Streamed(Made(set), bytes), want) << text;
    stopped += want.stopped ? 1 : 0;
  }
  EXPECT_GT(stopped, 2000);
  EXPECT_LT(stopped, 18000);
}

// What is shown at any moment is never taken back, and nothing is held back without need.
TEST(StopStrings, HoldsBackOnlyWhatMayBecomeAStop) {
  StopStrings stops = Made({"stop", "top hat"});
  std::string shown;
  EXPECT_FALSE(stops.Append("a st", shown));
  EXPECT_EQ(shown, "a ");
  EXPECT_FALSE(stops.Append("o", shown));
  EXPECT_EQ(stops.held_bytes(), 3u);
  EXPECT_FALSE(stops.Append("x", shown));
  EXPECT_EQ(shown, "a stox");
  EXPECT_EQ(stops.held_bytes(), 0u);
  EXPECT_FALSE(stops.Append("top h", shown));
  EXPECT_EQ(shown, "a stox");
  EXPECT_TRUE(stops.Append("at and more", shown));
  EXPECT_EQ(shown, "a stox");
  EXPECT_EQ(stops.found(), 1);
  EXPECT_TRUE(stops.Append("ignored", shown));
  stops.Finish(shown);
  EXPECT_EQ(shown, "a stox");
  stops.Reset();
  EXPECT_FALSE(stops.Append("to", shown));
  stops.Finish(shown);
  EXPECT_EQ(shown, "a stoxto");
}

TEST(StopStrings, RefusesWhatMakesNoSense) {
  EXPECT_EQ(StopStrings::Make({"a", ""}).status().message(), "stop: a string is empty");
  EXPECT_EQ(StopStrings::Make({std::string(257, 'a')}).status().message(),
            "stop: a string of 257 bytes; the limit is 256");
  EXPECT_EQ(StopStrings::Make(std::vector<std::string>(17, "a")).status().message(),
            "stop: 17 strings; the limit is 16");
  StopStrings none = Made({});
  std::string shown;
  EXPECT_FALSE(none.Append("everything", shown));
  EXPECT_EQ(shown, "everything");
}

// Comparing every string at every byte would take 16 * 256 steps a byte: more than half a minute.
TEST(StopStrings, HostileStringsTakeLinearTime) {
  std::vector<std::string> set;
  for (int i = 0; i < 16; ++i) {
    set.push_back(std::string(static_cast<size_t>(255 - i), 'a') + static_cast<char>('b' + i));
  }
  StopStrings stops = Made(set);
  std::string text(8 << 20, 'a');
  for (size_t i = 200; i < text.size(); i += 200) text[i] = 'z';
  std::string shown;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(stops.Append(text, shown));
  stops.Finish(shown);
  EXPECT_EQ(shown, text);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 20.0);
}

}  // namespace
}  // namespace hearth
