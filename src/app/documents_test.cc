// SPDX-License-Identifier: Apache-2.0
// Man pages, completions and the page of flags: all of them have all of the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "app/commands.h"
#include "app/completions.h"
#include "app/config.h"
#include "app/flag_docs.h"
#include "app/flag_list.h"
#include "app/man_pages.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DocumentsTest : public ::testing::Test {
 protected:
  DocumentsTest() {
    AddCommands(app_, chosen_);
    outcome_ = AddConfiguration(app_);
  }
  CLI::App app_;
  Command chosen_;
  std::shared_ptr<const ConfigOutcome> outcome_;
};

TEST_F(DocumentsTest, EveryCommandHasAManPageWithItsFlags) {
  const std::vector<ManPage> pages = ManPages(app_);
  const std::vector<CommandFlags> shown = ListShown(app_);
  ASSERT_EQ(pages.size(), shown.size() + 1);
  EXPECT_EQ(pages[0].file, "hearth.1");
  for (size_t i = 0; i < shown.size(); ++i) {
    EXPECT_THAT(pages[0].text, HasSubstr(RoffText("hearth " + shown[i].name)));
    EXPECT_THAT(pages[i + 1].text,
                HasSubstr(".SH SYNOPSIS\n\\fBhearth " + RoffText(shown[i].name)));
    for (const Flag& flag : shown[i].flags) {
      EXPECT_THAT(pages[i + 1].text, HasSubstr("\\fB" + RoffText("--" + flag.key) + "\\fR"));
    }
  }
  EXPECT_EQ(pages[1].file.find(' '), std::string::npos);
}

TEST(RoffText, NothingBecomesARequest) {
  EXPECT_EQ(RoffText("--port"), "\\-\\-port");
  EXPECT_EQ(RoffText(".so x"), "\\&.so x");
  EXPECT_EQ(RoffText("'br"), "\\(aqbr");
  EXPECT_EQ(RoffText("a\\b\nc"), "a\\eb c");
}

TEST_F(DocumentsTest, EveryShellCompletesEveryFlag) {
  const std::string bash = BashCompletion(app_), zsh = ZshCompletion(app_),
                    fish = FishCompletion(app_);
  for (const CommandFlags& command : ListShown(app_)) {
    for (const Flag& flag : command.flags) {
      EXPECT_THAT(bash, HasSubstr("--" + flag.key));
      EXPECT_THAT(zsh, HasSubstr("--" + flag.key));
      EXPECT_THAT(fish, HasSubstr(" -l " + flag.key + " "));
    }
  }
  EXPECT_THAT(bash,
              HasSubstr("' run --backend') mapfile -t COMPREPLY < <(compgen -W 'cpu reference'"));
  EXPECT_THAT(zsh, HasSubstr("--backend=[Compute backend]:VALUE:(cpu reference)'"));
  EXPECT_THAT(fish, HasSubstr("-l backend -x -a 'cpu reference'"));
  for (const std::string* text : {&bash, &zsh, &fish}) {
    EXPECT_THAT(*text, Not(HasSubstr("completions bash"))) << "hidden commands are not offered";
  }
}

// A program whose texts have every letter that some shell or format takes for its own.
class OddTextsTest : public ::testing::Test {
 protected:
  OddTextsTest() {
    app_.name("hearth");
    CLI::App* sub = app_.add_subcommand("go", "Don't [stop]: a\\b");
    sub->add_option("--file", text_, "The user's <file> | [1]: x");
    sub->add_option("--many", many_, "Several");
    sub->add_option("--count", count_, "How many");
    sub->add_option("in", text_, "Input")->required();
    CLI::App* inner = sub->add_subcommand("far-away", "Inside");
    inner->add_flag("--quick", is_quick_, "Quick");
    app_.add_subcommand("docs", "Hidden")->group("");
  }
  CLI::App app_;
  std::string text_;
  std::vector<std::string> many_;
  int count_ = 0;
  bool is_quick_ = false;
};

TEST_F(OddTextsTest, Zsh) {
  const std::string zsh = ZshCompletion(app_);
  EXPECT_THAT(zsh, HasSubstr("'go:Don'\\''t \\[stop\\]\\: a\\\\b'"));
  EXPECT_THAT(zsh, HasSubstr("'--file=[The user'\\''s <file> | \\[1\\]\\: x]:VALUE:_files'"));
  EXPECT_THAT(zsh, HasSubstr("'*--many=[Several]:VALUE:_files'")) << "may be given again";
  EXPECT_THAT(zsh, HasSubstr("'--count=[How many]:N: '")) << "no files for a number";
  EXPECT_THAT(zsh, HasSubstr("_hearth_go_far_away() {"));
  EXPECT_THAT(zsh, HasSubstr("        far-away) _hearth_go_far_away ;;"));
}

TEST_F(OddTextsTest, Fish) {
  const std::string fish = FishCompletion(app_);
  EXPECT_THAT(fish, HasSubstr("-f -a go -d 'Don\\'t [stop]: a\\\\b'"));
  EXPECT_THAT(fish, HasSubstr("'__fish_seen_subcommand_from go; and not "
                              "__fish_seen_subcommand_from far-away' -l file -r -d"));
  EXPECT_THAT(fish, HasSubstr("'__fish_seen_subcommand_from go; and __fish_seen_subcommand_from "
                              "far-away' -l quick -d 'Quick'"));
}

TEST_F(OddTextsTest, Bash) {
  const std::string bash = BashCompletion(app_);
  EXPECT_THAT(bash, HasSubstr("      ' go' | ' go far-away') path+="));
  EXPECT_THAT(bash,
              HasSubstr("    ' go') words='far-away --file --many --count --config --help' ;;"));
  EXPECT_THAT(bash, HasSubstr("    '') words='go --version --config --help' ;;"));
}

TEST_F(OddTextsTest, ManAndMarkdown) {
  const std::vector<ManPage> pages = ManPages(app_);
  ASSERT_EQ(pages.size(), 3u);
  EXPECT_EQ(pages[2].file, "hearth-go-far-away.1");
  EXPECT_THAT(pages[1].text, HasSubstr("Don\\(aqt [stop]: a\\eb"));
  EXPECT_THAT(pages[1].text, HasSubstr(" \\fIIN\\fR\n")) << "the argument in the synopsis";
  EXPECT_THAT(pages[1].text, HasSubstr(".SH COMMANDS\n.TP\n\\fBhearth go far\\-away\\fR\n"));
  EXPECT_THAT(ConfigurationPage(app_), HasSubstr("| The user's &lt;file> \\| [1]: x |\n"));
}

TEST_F(DocumentsTest, ThePageHasEveryFlagAndVariable) {
  const std::string page = ConfigurationPage(app_);
  for (const CommandFlags& command : ListConfigurable(app_)) {
    if (command.flags.empty()) continue;
    EXPECT_THAT(page, HasSubstr("### [" + command.section + "]"));
    for (const Flag& flag : command.flags) {
      EXPECT_THAT(
          page, HasSubstr("| `--" + flag.key + "` | `" + flag.key + "` | `" + flag.variable + "`"));
    }
  }
  for (const PlainVariable& each : PlainVariables()) EXPECT_THAT(page, HasSubstr(each.name));
  EXPECT_THAT(page, HasSubstr("| `HEARTH_SERVE_PORT` | whole number [0..65535] | `8080` |"));
}

}  // namespace
}  // namespace hearth
