// SPDX-License-Identifier: Apache-2.0
#include "server/turns/event_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/fresh_random.h"
#include "server/access/base64.h"

namespace hearth {
namespace {

const ReplyOrigin kOrigin{"00ff10a7b3c4d5e6f7081920", 1'800'000'000, 0xfedcba98u, {1, 2}, 77};

class EventIdsTest : public ::testing::Test {
 protected:
  static SivSeal FreshSeal() {
    SivSeal::Key key;
    FillRandom(key);
    return SivSeal(key);
  }
  std::optional<EventCursor> Read(std::string_view id) const {
    const auto read = ReadEventId(id, seal_, "anna");
    if (!read) return std::nullopt;
    EXPECT_EQ(read->origin, kOrigin);
    return read->cursor;
  }
  // With the ids read: `id: 3` or, with choices, `id: 3-1-2`, and `.64` when so many were cached.
  std::string Plain(std::string events) const {
    for (size_t at = 0; (at = events.find("id: ", at)) != std::string::npos;) {
      at += 4;
      const size_t end = events.find('\n', at);
      const auto cursor = Read(std::string_view(events).substr(at, end - at));
      if (!cursor) return "no id: " + events;
      std::string text = std::to_string(cursor->num_whole);
      for (const int64_t count : cursor->num_chosen) text += "-" + std::to_string(count);
      if (cursor->num_cached >= 0) text += "." + std::to_string(cursor->num_cached);
      events.replace(at, end - at, text);
    }
    return events;
  }
  static EventCursor Seen(int64_t whole, std::vector<int64_t> chosen = {}) {
    EventCursor cursor;
    cursor.num_whole = whole;
    cursor.num_chosen = std::move(chosen);
    return cursor;
  }

  const SivSeal seal_ = FreshSeal();
  const std::shared_ptr<const EventNames> names_ =
      std::make_shared<const EventNames>(seal_, kOrigin, "anna");
};

TEST_F(EventIdsTest, NumbersEveryEventAndNoComment) {
  EventIds ids(names_, 1, {});
  EXPECT_EQ(Plain(ids.NumberWhole("data: a\n\ndata: b\n\n")),
            "id: 1\ndata: a\n\nid: 2\ndata: b\n\n");
  EXPECT_EQ(Plain(ids.NumberChosen(0, ": a comment\n\nevent: x\ndata: c\n\n")),
            ": a comment\n\nid: 3\nevent: x\ndata: c\n\n");
  ids.set_cached(64);
  EXPECT_EQ(Plain(ids.NumberWhole("data: [DONE]\n\n")), "id: 4.64\ndata: [DONE]\n\n");
  EXPECT_EQ(ids.NumberWhole(""), "");
}

TEST_F(EventIdsTest, WithoutNamesNothingChanges) {
  EventIds ids;
  EXPECT_EQ(ids.NumberWhole("data: a\n\n"), "data: a\n\n");
  EXPECT_EQ(ids.NumberChosen(3, "data: a\n\n"), "data: a\n\n");
}

TEST_F(EventIdsTest, DropsWhatTheClientHas) {
  EventIds ids(names_, 1, Seen(2));
  EXPECT_EQ(ids.NumberWhole("data: a\n\n"), "");
  EXPECT_EQ(Plain(ids.NumberChosen(0, "data: b\n\ndata: c\n\n")), "id: 3\ndata: c\n\n");
  EXPECT_EQ(ids.num_dropped(), 2);
}

TEST_F(EventIdsTest, CountsChoicesApart) {
  EventIds ids(names_, 2, {});
  EXPECT_EQ(Plain(ids.NumberWhole("data: a\n\n")), "id: 1-0-0\ndata: a\n\n");
  EXPECT_EQ(Plain(ids.NumberChosen(1, "data: b\n\n")), "id: 1-0-1\ndata: b\n\n");
  EXPECT_EQ(Plain(ids.NumberChosen(0, "data: c\n\n")), "id: 1-1-1\ndata: c\n\n");
  // Whatever order they come in the second time.
  EventIds later(names_, 2, Seen(1, {0, 1}));
  EXPECT_EQ(later.NumberWhole("data: a\n\n"), "");
  EXPECT_EQ(Plain(later.NumberChosen(0, "data: c\n\n")), "id: 1-1-0\ndata: c\n\n");
  EXPECT_EQ(Plain(later.NumberChosen(1, "data: b\n\ndata: d\n\n")), "id: 1-1-2\ndata: d\n\n");
}

// A cursor with fewer or more choices than the reply has does no harm.
TEST_F(EventIdsTest, TakesAnyCursor) {
  EventIds few(names_, 3, Seen(1));
  EXPECT_EQ(Plain(few.NumberChosen(2, "data: b\n\n")), "id: 0-0-0-1\ndata: b\n\n");
  EventIds many(names_, 1, Seen(1, {2, 3}));
  EXPECT_EQ(Plain(many.NumberChosen(0, "data: a\n\ndata: b\n\n")), "id: 2\ndata: b\n\n");
}

TEST_F(EventIdsTest, ReadsWhatItWrote) {
  for (const int64_t whole : {int64_t{0}, int64_t{17}, int64_t{0xffffffff}}) {
    for (const int cached : {-1, 0, 5, INT32_MAX}) {
      for (const size_t choices : {0, 1, 2, 3, 128}) {
        EventCursor cursor = Seen(whole, std::vector<int64_t>(choices, whole / 2));
        cursor.num_cached = cached;
        EXPECT_EQ(Read(names_->At(cursor)), cursor) << whole << " " << cached << " " << choices;
      }
    }
  }
}

// The same event of the same reply has the same id, in this process and in another.
TEST_F(EventIdsTest, FollowFromTheirContent) {
  const EventNames again(seal_, kOrigin, "anna"), theirs(seal_, kOrigin, "bert");
  EXPECT_EQ(again.At(Seen(3)), names_->At(Seen(3)));
  EXPECT_NE(again.At(Seen(4)), names_->At(Seen(3)));
  EXPECT_NE(theirs.At(Seen(3)), names_->At(Seen(3)));
}

// Whatever it says: how many events there were, what was cached, which seed.
TEST_F(EventIdsTest, HaveOneLength) {
  std::set<size_t> lengths;
  ReplyOrigin origin = kOrigin;
  for (int bit = 0; bit < 31; ++bit) {
    origin.seed = uint64_t{1} << 2 * bit;
    origin.created_s = int64_t{1} << bit;
    EventCursor cursor = Seen(int64_t{1} << bit);
    cursor.num_cached = bit - 1;
    const std::string id = EventNames(seal_, origin, "anna").At(cursor);
    lengths.insert(id.size());
    EXPECT_EQ(id.find_first_of("=.\n "), std::string::npos);
  }
  EXPECT_EQ(lengths.size(), 1u);
}

TEST_F(EventIdsTest, AreNobodyElses) {
  const std::string id = names_->At(Seen(3));
  ASSERT_TRUE(ReadEventId(id, seal_, "anna"));
  EXPECT_FALSE(ReadEventId(id, seal_, "bert"));
  EXPECT_FALSE(ReadEventId(id, seal_, ""));
  EXPECT_FALSE(ReadEventId(id, FreshSeal(), "anna"));
}

TEST_F(EventIdsTest, NoBitOfThemCanBeChanged) {
  EventCursor cursor = Seen(3, {1, 2});
  cursor.num_cached = 60;
  const std::string id = names_->At(cursor);
  auto bytes = *FromBase64(id);
  for (size_t i = 0; i < 8 * bytes.size(); ++i) {
    bytes[i / 8] ^= static_cast<unsigned char>(1 << i % 8);
    EXPECT_FALSE(ReadEventId(AsBase64(bytes), seal_, "anna")) << "bit " << i;
    bytes[i / 8] ^= static_cast<unsigned char>(1 << i % 8);
  }
  ASSERT_TRUE(ReadEventId(AsBase64(bytes), seal_, "anna"));
  for (size_t i = 0; i < id.size(); ++i) {
    EXPECT_FALSE(ReadEventId(id.substr(0, i), seal_, "anna")) << i;
  }
}

TEST_F(EventIdsTest, RefusesWhatNoReplyHas) {
  const std::string id = names_->At(Seen(3));
  // The first of them as versions before this one wrote them: 92 letters and numbers after a point.
  for (const std::string& bad :
       {std::string(92, 'A') + ".3.60", id + ".4", id + ".4.60", "." + id, id + " ", id + "=",
        std::string(), std::string("17"), std::string("AAAA"), std::string(108, 'A'),
        std::string(kMaxEventIdBytes + 4, 'A'), std::string(100'000, 'A')}) {
    EXPECT_FALSE(ReadEventId(bad, seal_, "anna")) << bad.substr(0, 200);
  }
}

// Sealed with the right key, and yet not in the form: another version's, or one with numbers that
// no reply has.
TEST_F(EventIdsTest, RefusesAnotherForm) {
  const std::string id = names_->At(Seen(3));
  const std::string content = *seal_.Open(id, "anna");
  EXPECT_TRUE(ReadEventId(seal_.Seal(content, "anna"), seal_, "anna"));
  for (const char version : {'\0', '\1', '\3'}) {
    std::string other = content;
    other[0] = version;
    EXPECT_FALSE(ReadEventId(seal_.Seal(other, "anna"), seal_, "anna")) << int{version};
  }
  EXPECT_FALSE(ReadEventId(seal_.Seal(content + "xyz", "anna"), seal_, "anna"));
  for (size_t size = 1; size < content.size(); ++size) {
    EXPECT_FALSE(ReadEventId(seal_.Seal(content.substr(0, size), "anna"), seal_, "anna")) << size;
  }
}

}  // namespace
}  // namespace hearth
