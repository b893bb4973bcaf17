// SPDX-License-Identifier: Apache-2.0
#include "app/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/commands.h"
#include "app/config_show.h"
#include "app/flag_checks.h"

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A program of two commands, and files of its own.
class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() : folder_(std::filesystem::temp_directory_path() / Unique()) {
    std::filesystem::create_directories(folder_);
    serve_ = app_.add_subcommand("serve", "Serve");
    serve_->add_option("--port", port_, "Port")->check(Between(0, 65535))->capture_default_str();
    serve_->add_option("--model", model_, "Model")->required();
    serve_->add_option("--host-name", hosts_, "Hosts");
    CLI::Option* url = serve_->add_option("--url", url_, "URL");
    url->envname("HEARTH_TEST_URL");
    serve_->add_option("--control", control_, "Control")->excludes(url);
    auto* group = serve_->add_option_group("source")->require_option(0, 1);
    group->add_option("--from-a", from_a_, "A");
    group->add_option("--from-b", from_b_, "B");
    app_.add_subcommand("run", "Run")->add_flag("--quick", is_quick_, "Quick");
    app_.require_subcommand(1);
  }
  ~ConfigTest() override { std::filesystem::remove_all(folder_); }
  static std::string Unique() { return "hearth-config-" + std::to_string(::getpid()); }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }
  Settings Read(const ConfigSources& sources) {
    commands_ = ListConfigurable(app_);
    return ReadSettings(sources, commands_);
  }
  // The settings applied to a line, as the program would.
  Status ParseWith(const ConfigSources& sources, const std::string& line) {
    const Settings settings = Read(sources);
    Status status;
    app_.add_option_function<std::string>(
            "--config", [&](const std::string&) { status = Apply(settings, commands_[0]); }, "")
        ->force_callback();
    try {
      app_.parse(line);
    } catch (const CLI::ParseError& error) {
      if (status.ok()) status = Status(Code::kInvalid, error.what());
    }
    return status;
  }
  std::filesystem::path folder_;
  CLI::App app_;
  CLI::App* serve_ = nullptr;
  int port_ = 8080, control_ = 0;
  bool is_quick_ = false;
  std::string model_, url_, from_a_, from_b_;
  std::vector<std::string> hosts_;
  std::vector<CommandFlags> commands_;
};

TEST_F(ConfigTest, TheStrongestSourceCounts) {
  ConfigSources sources;
  sources.system_path = Write("system.toml", "[serve]\nport = 1\nmodel = \"s\"\nurl = \"s\"\n");
  sources.user_path = Write("user.toml", "[serve]\nport = 2\nmodel = \"u\"\n");
  sources.environment = {"HEARTH_SERVE_PORT=3", "PATH=/bin"};
  const Settings settings = Read(sources);
  EXPECT_THAT(settings.problems, IsEmpty());
  EXPECT_EQ(settings.values.at("HEARTH_SERVE_PORT").origin, "HEARTH_SERVE_PORT");
  EXPECT_EQ(settings.values.at("HEARTH_SERVE_MODEL").origin, sources.user_path + ":3");
  EXPECT_EQ(settings.values.at("HEARTH_SERVE_URL").origin, sources.system_path + ":4");
  ASSERT_TRUE(ParseWith(sources, "serve").ok()) << "a required flag is given by the file";
  EXPECT_EQ(port_, 3);
  EXPECT_EQ(model_, "u");
  EXPECT_EQ(url_, "s");
}

TEST_F(ConfigTest, TheLineCountsMoreThanAll) {
  ConfigSources sources;
  sources.environment = {"HEARTH_SERVE_PORT=3", "HEARTH_SERVE_MODEL=m",
                         "HEARTH_SERVE_HOST_NAME=a,b"};
  ASSERT_TRUE(ParseWith(sources, "serve --port 4 --host-name c").ok());
  EXPECT_EQ(port_, 4);
  EXPECT_EQ(model_, "m");
  EXPECT_THAT(hosts_, ElementsAre("c")) << "replaced, not joined";
}

TEST_F(ConfigTest, SectionsOfModelsAreSettingsOfServe) {
  std::vector<std::string> settings;
  serve_->add_option("--model-setting", settings, "Settings");
  ConfigSources sources;
  sources.system_path = Write("system.toml", "[models.other]\npin = true\n");
  sources.user_path = Write("user.toml",
                            "[serve]\nmodel = \"m\"\n[models.\"a-0.5b\"]\ncontext = 4096\n"
                            "pin = true\n[models.b]\nserved-name = [\"x\", \"y\"]\n");
  ASSERT_TRUE(ParseWith(sources, "serve").ok());
  EXPECT_THAT(settings, ElementsAre("a-0.5b.context=4096", "a-0.5b.pin=true", "b.served-name=x",
                                    "b.served-name=y"))
      << "the user's file replaces the system's";
  sources.user_path = Write("loose.toml", "[models]\npin = true\n");
  EXPECT_THAT(Read(sources).problems, ElementsAre(HasSubstr("put it under a model's name")));
}

TEST_F(ConfigTest, AGivenFileReplacesTheOthers) {
  ConfigSources sources;
  sources.user_path = Write("user.toml", "[serve]\nport = 2\n");
  sources.given = Write("given.toml", "[serve]\nmodel = \"g\"\n");
  const Settings settings = Read(sources);
  EXPECT_THAT(settings.files, ElementsAre(sources.given));
  EXPECT_FALSE(settings.values.contains("HEARTH_SERVE_PORT"));
  sources.given = folder_ / "missing.toml";
  EXPECT_THAT(Read(sources).problems, ElementsAre(HasSubstr("missing.toml")))
      << "a file that was asked for must be there";
  sources.given = "/dev/null";
  EXPECT_THAT(Read(sources).files, IsEmpty()) << "none at all";
  EXPECT_THAT(Read(sources).problems, IsEmpty());
}

TEST_F(ConfigTest, FilesThatAreNotThereAreNoProblem) {
  ConfigSources sources;
  sources.user_path = folder_ / "no.toml";
  sources.system_path = folder_ / "none.toml";
  const Settings settings = Read(sources);
  EXPECT_THAT(settings.problems, IsEmpty());
  EXPECT_THAT(settings.files, IsEmpty());
}

TEST_F(ConfigTest, UnknownNamesAreToldWithTheOneThatWasMeant) {
  ConfigSources sources;
  sources.given = Write("f.toml",
                        "loose = 1\n[serv]\nport = 1\n[serve]\nprot = 1\nport = \"1\"\n"
                        "[run]\nquick = 2\n");
  const std::string at = sources.given + ":";
  EXPECT_THAT(
      Read(sources).problems,
      ElementsAre(at + "1: \"loose\" stands above the first section; put it under the command "
                       "that it is for, such as [serve]",
                  at + "2: unknown section [serv]; did you mean \"serve\"?",
                  at + "5: [serve] has no key \"prot\"; did you mean \"port\"?",
                  at + "6: port: expected a number, found a string; write port = 1 without quotes",
                  at + "8: quick: expected true or false, found a number"));
}

TEST_F(ConfigTest, UnknownVariablesAreWarnedOf) {
  ConfigSources sources;
  sources.environment = {"HEARTH_SERVE_PROT=1",
                         "HEARTH_WORK=/w",
                         "HEARTH_PORT=tcp://10.0.0.1:80",
                         "HEARTH_SERVICE_HOST=10.0.0.1",
                         "HEARTH_SERVE_URL=",
                         "OTHER=1",
                         "HEARTH_TEST_URL=x"};
  const Settings settings = Read(sources);
  EXPECT_THAT(settings.warnings,
              ElementsAre("HEARTH_SERVE_PROT names no flag and has no effect; did you mean "
                          "\"HEARTH_SERVE_PORT\"?"));
  EXPECT_THAT(settings.problems, IsEmpty());
  EXPECT_TRUE(settings.values.empty()) << "an empty variable is none";
}

TEST_F(ConfigTest, ValuesAreCheckedWithTheirOrigin) {
  ConfigSources sources;
  sources.given = Write("f.toml", "[serve]\nmodel = \"m\"\nport = 99999\n");
  EXPECT_EQ(ParseWith(sources, "serve").message(),
            sources.given + ":3: expected a whole number from 0 to 65535, found \"99999\"");
}

TEST_F(ConfigTest, CheckingFindsAllValues) {
  ConfigSources sources;
  sources.environment = {"HEARTH_SERVE_PORT=x", "HEARTH_RUN_QUICK=perhaps", "HEARTH_SERVE_URL=u"};
  const Settings settings = Read(sources);
  EXPECT_THAT(CheckValues(settings, commands_),
              ElementsAre(HasSubstr("HEARTH_SERVE_PORT: expected a whole number"),
                          HasSubstr("HEARTH_RUN_QUICK: expected true or false")));
}

TEST_F(ConfigTest, AFlagOnTheLineOverrulesWhatItExcludes) {
  ConfigSources sources;
  sources.environment = {"HEARTH_SERVE_URL=u", "HEARTH_SERVE_MODEL=m", "HEARTH_SERVE_FROM_A=a"};
  const Status status = ParseWith(sources, "serve --control 5 --from-b b");
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(url_, "");
  EXPECT_EQ(control_, 5);
  EXPECT_EQ(from_a_, "");
  EXPECT_EQ(from_b_, "b");
}

TEST_F(ConfigTest, TwoThatExcludeEachOtherInOneSourceAreAnError) {
  ConfigSources sources;
  sources.environment = {"HEARTH_SERVE_URL=u", "HEARTH_SERVE_CONTROL=5", "HEARTH_SERVE_MODEL=m"};
  EXPECT_THAT(ParseWith(sources, "serve").message(), HasSubstr("excludes"));
}

TEST_F(ConfigTest, AStrongerSourceOverrulesWhatItExcludes) {
  ConfigSources sources;
  sources.given = Write("f.toml", "[serve]\nurl = \"u\"\nmodel = \"m\"\n");
  sources.environment = {"HEARTH_SERVE_CONTROL=5"};
  ASSERT_TRUE(ParseWith(sources, "serve").ok());
  EXPECT_EQ(url_, "");
  EXPECT_EQ(control_, 5);
}

TEST_F(ConfigTest, WhatIsShownIsAConfigurationAgain) {
  ConfigSources sources;
  sources.environment = {"HEARTH_SERVE_MODEL=a \"b\"\\c", "HEARTH_SERVE_HOST_NAME=x,y",
                         "HEARTH_RUN_QUICK=1"};
  const Settings settings = Read(sources);
  const std::string shown = ShowSettings(settings, commands_);
  EXPECT_THAT(shown, HasSubstr("port = 8080  # default\n"));
  EXPECT_THAT(shown, HasSubstr("host-name = [\"x\", \"y\"]  # HEARTH_SERVE_HOST_NAME\n"));
  EXPECT_THAT(shown, HasSubstr("# url is not set\n"));
  ConfigSources again;
  again.given = Write("shown.toml", shown);
  const Settings reread = Read(again);
  EXPECT_THAT(reread.problems, IsEmpty());
  EXPECT_THAT(reread.values.at("HEARTH_SERVE_MODEL").values, ElementsAre("a \"b\"\\c"));
  EXPECT_THAT(reread.values.at("HEARTH_RUN_QUICK").values, ElementsAre("true"));
  EXPECT_THAT(ShowSettings(Settings(), commands_), HasSubstr("# model is required\n"));
}

TEST_F(ConfigTest, ShowHidesPasswords) {
  const std::string file = Write(
      "p.toml", "[serve]\nurl = 'http://ada:hunter2@h/'\nhost-name = ['a', 'b?token=hunter2']\n");
  const Settings settings = Read({file, "", "", {}});
  const std::string shown = ShowSettings(settings, commands_);
  EXPECT_THAT(shown, HasSubstr("url = \"http://ada:***@h/\"  # " + file + ":2, secrets as ***\n"));
  EXPECT_THAT(shown, HasSubstr("[\"a\", \"b?token=***\"]"));
  EXPECT_THAT(shown, Not(HasSubstr("hunter2")));
}

// The system's file may hold passwords that are for the service alone.
TEST_F(ConfigTest, GoesWithoutTheSystemsFileWhereItIsForOthers) {
  const std::string file = Write("system.toml", "[serve]\nport = 9\n");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  if (::access(file.c_str(), R_OK) == 0) GTEST_SKIP() << "root reads everything";
  const Settings settings = Read({"", file, "", {}});
  EXPECT_THAT(settings.problems, IsEmpty());
  EXPECT_THAT(settings.files, IsEmpty());
  EXPECT_THAT(settings.skipped, ElementsAre(file));
  // One that was named is a mistake.
  EXPECT_THAT(Read({file, "", "", {}}).problems, ElementsAre(HasSubstr("ermission")));
}

TEST_F(ConfigTest, CommandsAreFoundByName) {
  const std::vector<CommandFlags> commands = ListConfigurable(app_);
  EXPECT_EQ(CommandsNamed(commands, {})->size(), 2u);
  EXPECT_EQ(CommandsNamed(commands, {"run"})->at(0).name, "run");
  EXPECT_THAT(CommandsNamed(commands, {"servr"}).status().message(),
              HasSubstr("did you mean \"serve\"?"));
}

// The whole way, with the program's own commands: parsing applies what the variable sets.
TEST(Configuration, IsAppliedWhileTheLineIsParsed) {
  ::setenv("HEARTH_CONFIG", "/dev/null", 1);
  ::setenv("HEARTH_KEY_MAX_CONCURRENT", "none", 1);
  CLI::App app;
  Command chosen;
  AddCommands(app, chosen);
  const auto outcome = AddConfiguration(app);
  app.parse("key ada");
  EXPECT_THAT(outcome->status.message(), HasSubstr("HEARTH_KEY_MAX_CONCURRENT: expected"));
  ::setenv("HEARTH_KEY_MAX_CONCURRENT", "7", 1);
  CLI::App other;
  AddCommands(other, chosen);
  const auto fine = AddConfiguration(other);
  other.parse("key ada");
  EXPECT_TRUE(fine->status.ok()) << fine->status.message();
  EXPECT_EQ(other.get_subcommand("key")->get_option("--max-concurrent")->as<int>(), 7);
  ::unsetenv("HEARTH_KEY_MAX_CONCURRENT");
  ::unsetenv("HEARTH_CONFIG");
}

TEST(Configuration, TheFlagIsTakenBeforeAndBehindTheCommand) {
  for (const char* line : {"--config a.toml key ada", "key ada --config a.toml", "key ada"}) {
    CLI::App app;
    Command chosen;
    AddCommands(app, chosen);
    const auto outcome = AddConfiguration(app);
    try {
      app.parse(line);
    } catch (const CLI::ParseError&) {
    }
    EXPECT_EQ(GivenConfig(app), std::string(line) == "key ada" ? "" : "a.toml") << line;
  }
}

}  // namespace
}  // namespace hearth
