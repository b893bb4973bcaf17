// SPDX-License-Identifier: Apache-2.0
// What a line does with pastes, and lines without editing. Keys are tested on a terminal:
// tests/talk.
#include "talk/line_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "talk/interrupts.h"

namespace hearth {
namespace {

TEST(Pastes, ShortOnesAreShownAndLongOnesAreNamed) {
  Pastes pastes;
  EXPECT_EQ(pastes.Shown("two\nlines"), "two\nlines");
  const std::string many = "1\n2\n3\n4\n5\n6\n7\n8\n9";
  EXPECT_EQ(pastes.Shown(many), "[paste 1: 9 lines, 17 bytes]");
  EXPECT_EQ(pastes.Shown(std::string(1001, 'x')), "[paste 2: 1 line, 1001 bytes]");
}

TEST(Pastes, TheMessageHasTheirTexts) {
  Pastes pastes;
  const std::string many = "1\n2\n3\n4\n5\n6\n7\n8\n9";
  const std::string name = pastes.Shown(many);
  EXPECT_EQ(pastes.Expanded("see " + name + "!"), "see " + many + "!");
  EXPECT_EQ(pastes.Expanded(name + name), many + many);
  EXPECT_EQ(pastes.Expanded("none"), "none");
  pastes.Forget();
  EXPECT_EQ(pastes.Expanded(name), name) << "typed in another line it is only text";
}

TEST(Pastes, ATextThatSpellsANameIsNotExpandedAgain) {
  Pastes pastes;
  const std::string second_name = "[paste 2: 1 line, 1001 bytes]";
  const std::string first = "1\n2\n3\n4\n5\n6\n7\n8\n" + second_name;
  const std::string first_name = pastes.Shown(first);
  ASSERT_EQ(pastes.Shown(std::string(1001, 'x')), second_name);
  EXPECT_EQ(pastes.Expanded(first_name), first);
  EXPECT_EQ(pastes.Expanded(second_name + first_name), std::string(1001, 'x') + first);
}

// Standard input is a pipe, and what is printed goes into another.
class PlainLines : public ::testing::Test {
 protected:
  PlainLines() {
    CatchInterrupts();
    Interrupted() = false;
    EXPECT_EQ(pipe(in_.data()), 0);
    EXPECT_EQ(pipe(out_.data()), 0);
    EXPECT_EQ(dup2(in_[0], STDIN_FILENO), STDIN_FILENO);
  }
  ~PlainLines() override {
    dup2(before_, STDIN_FILENO);
    for (const int fd : {before_, in_[0], in_[1], out_[0], out_[1]}) close(fd);
    Interrupted() = false;
  }
  void Type(const std::string& text) {
    EXPECT_EQ(write(in_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void EndInput() {
    close(in_[1]);
    in_[1] = -1;
  }
  std::string Printed() {
    std::array<char, 100> bytes{};
    const ssize_t got = read(out_[0], bytes.data(), bytes.size());
    return std::string(bytes.data(), static_cast<size_t>(got));
  }
  const int before_ = dup(STDIN_FILENO);
  std::array<int, 2> in_{}, out_{};
};

TEST_F(PlainLines, AreReadOneByOne) {
  const auto reader = NewPlainLineReader(out_[1]);
  Type("one\ntwo\n\nlast");
  for (const char* wanted : {"one", "two", ""}) {
    const ReadLine line = reader->Read("> ");
    EXPECT_EQ(line.kind, ReadLine::Kind::kText);
    EXPECT_EQ(line.text, wanted);
  }
  EXPECT_EQ(Printed(), "> > > ");
  EndInput();
  EXPECT_EQ(reader->Read("").text, "last") << "a line without its end";
  EXPECT_EQ(reader->Read("").kind, ReadLine::Kind::kEnd);
  reader->Remember("nothing is kept");
}

TEST_F(PlainLines, AnInterruptGivesTheLineUp) {
  const auto reader = NewPlainLineReader(out_[1]);
  Type("begun");
  Interrupted() = true;
  const ReadLine line = reader->Read("> ");
  // Another test of this program may have asked for the end, which is not taken back.
  EXPECT_EQ(line.kind, IsEndAsked() ? ReadLine::Kind::kEnd : ReadLine::Kind::kInterrupted);
  EXPECT_EQ(Printed(), "> \n");
}

TEST_F(PlainLines, AnOutputThatIsGoneIsTheEnd) {
  const auto reader = NewPlainLineReader(-1);
  Type("one\n");
  EXPECT_EQ(reader->Read("> ").kind, ReadLine::Kind::kEnd);
}

bool Echoes(int terminal) {
  termios modes{};
  EXPECT_EQ(tcgetattr(terminal, &modes), 0);
  return (modes.c_lflag & ECHO) != 0;
}

TEST_F(PlainLines, KeysAreQuietWhileAReplyComesAndOnlyOnTerminals) {
  {
    const QuietKeys nothing_to_do;
  }
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_TRUE(grantpt(master) == 0 && unlockpt(master) == 0);
  const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(dup2(terminal, STDIN_FILENO), STDIN_FILENO);
  ASSERT_TRUE(Echoes(terminal));
  {
    const QuietKeys quiet;
    EXPECT_FALSE(Echoes(terminal));
    {
      const QuietKeys inner;
    }
    EXPECT_FALSE(Echoes(terminal)) << "the inner one found it so";
  }
  EXPECT_TRUE(Echoes(terminal));
  close(master);
  close(terminal);
}

}  // namespace
}  // namespace hearth
