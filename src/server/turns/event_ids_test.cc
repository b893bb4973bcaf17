// SPDX-License-Identifier: Apache-2.0
#include "server/turns/event_ids.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

EventCursor Seen(std::string_view id) { return ReadEventId(id)->cursor; }

TEST(EventIds, NumbersEveryEventAndNoComment) {
  EventIds ids("S", 1, {});
  EXPECT_EQ(ids.NumberWhole("data: a\n\ndata: b\n\n"), "id: S.1\ndata: a\n\nid: S.2\ndata: b\n\n");
  EXPECT_EQ(ids.NumberChosen(0, ": a comment\n\nevent: x\ndata: c\n\n"),
            ": a comment\n\nid: S.3\nevent: x\ndata: c\n\n");
  ids.set_cached(64);
  EXPECT_EQ(ids.NumberWhole("data: [DONE]\n\n"), "id: S.4.64\ndata: [DONE]\n\n");
  EXPECT_EQ(ids.NumberWhole(""), "");
}

TEST(EventIds, WithoutASealNothingChanges) {
  EventIds ids;
  EXPECT_EQ(ids.NumberWhole("data: a\n\n"), "data: a\n\n");
  EXPECT_EQ(ids.NumberChosen(3, "data: a\n\n"), "data: a\n\n");
}

TEST(EventIds, DropsWhatTheClientHas) {
  EventIds ids("S", 1, Seen("S.2"));
  EXPECT_EQ(ids.NumberWhole("data: a\n\n"), "");
  EXPECT_EQ(ids.NumberChosen(0, "data: b\n\ndata: c\n\n"), "id: S.3\ndata: c\n\n");
  EXPECT_EQ(ids.num_dropped(), 2);
}

TEST(EventIds, CountsChoicesApart) {
  EventIds ids("S", 2, {});
  EXPECT_EQ(ids.NumberWhole("data: a\n\n"), "id: S.1-0-0\ndata: a\n\n");
  EXPECT_EQ(ids.NumberChosen(1, "data: b\n\n"), "id: S.1-0-1\ndata: b\n\n");
  EXPECT_EQ(ids.NumberChosen(0, "data: c\n\n"), "id: S.1-1-1\ndata: c\n\n");
  // Whatever order they come in the second time.
  EventIds later("S", 2, Seen("S.1-0-1"));
  EXPECT_EQ(later.NumberWhole("data: a\n\n"), "");
  EXPECT_EQ(later.NumberChosen(0, "data: c\n\n"), "id: S.1-1-0\ndata: c\n\n");
  EXPECT_EQ(later.NumberChosen(1, "data: b\n\ndata: d\n\n"), "id: S.1-1-2\ndata: d\n\n");
}

TEST(EventIds, ReadsWhatItWrote) {
  const auto id = ReadEventId("abc.17.5");
  ASSERT_TRUE(id.has_value());
  EXPECT_EQ(id->sealed, "abc");
  EXPECT_EQ(id->cursor.num_whole, 17);
  EXPECT_EQ(id->cursor.num_cached, 5);
  const auto several = ReadEventId("abc.3-4-5");
  ASSERT_TRUE(several.has_value());
  EXPECT_EQ(several->cursor.num_whole, 3);
  EXPECT_EQ(several->cursor.num_chosen, (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(several->cursor.num_cached, -1);
}

TEST(EventIds, RefusesWhatNoReplyHas) {
  for (const char* bad :
       {"", "abc", "abc.", "abc.x", "abc.-1", "abc.1-", "abc.1--2", "abc.1.", "abc.1.x",
        "abc.1.2.3", "abc.99999999999999999999", "abc.1.99999999999", "abc. 1", "abc.+1"}) {
    EXPECT_FALSE(ReadEventId(bad).has_value()) << bad;
  }
  EXPECT_FALSE(ReadEventId("a." + std::string(kMaxEventIdBytes, '1')).has_value());
}

// A cursor with fewer or more choices than the reply has does no harm.
TEST(EventIds, TakesAnyCursor) {
  EventIds few("S", 3, Seen("S.1"));
  EXPECT_EQ(few.NumberChosen(2, "data: b\n\n"), "id: S.0-0-0-1\ndata: b\n\n");
  EventIds many("S", 1, Seen("S.1-2-3"));
  EXPECT_EQ(many.NumberChosen(0, "data: a\n\ndata: b\n\n"), "id: S.2\ndata: b\n\n");
}

}  // namespace
}  // namespace hearth
