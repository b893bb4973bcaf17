// SPDX-License-Identifier: Apache-2.0
#include "gpu/tuning.h"

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace hearth::cuda {
namespace {

DeviceFacts Card(const char* name) {
  DeviceFacts facts;
  facts.name = name;
  facts.level = "sm_89";
  return facts;
}

TEST(Tuning, IsKeptForEachCardDriverAndKernels) {
  const testing::TempDir dir;
  const std::string path = dir.Path("deep/gpu-tuning.json");
  const std::byte image[] = {std::byte{1}, std::byte{2}};
  const std::string one = TuningKey(Card("one"), "13.0", image);
  const std::string other = TuningKey(Card("one"), "13.1", image);
  EXPECT_NE(one, other);
  EXPECT_NE(one, TuningKey(Card("two"), "13.0", image));
  EXPECT_NE(one, TuningKey(Card("one"), "13.0", std::span(image).first(1)));
  EXPECT_EQ(ReadTuning(path, one).status().code(), Code::kNotFound);
  Tuning tuning;
  tuning.few_up_to[static_cast<size_t>(WeightKind::kQ6K)] = 48;
  ASSERT_TRUE(WriteTuning(path, one, tuning).ok());
  ASSERT_TRUE(WriteTuning(path, other, Tuning()).ok());
  Result<Tuning> read = ReadTuning(path, one);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, tuning);
  EXPECT_EQ(*ReadTuning(path, other), Tuning());
  ASSERT_TRUE(WriteTuning(path, one, Tuning()).ok());
  EXPECT_EQ(*ReadTuning(path, one), Tuning());
}

TEST(Tuning, AFileThatIsNotOursCountsAsNoneAndIsReplaced) {
  const testing::TempDir dir;
  const std::string path = dir.Path("t.json");
  for (const char* text : {"", "{", "[]", R"({"schema":"other","version":1,"cards":{}})",
                           R"({"schema":"hearth.gpu.tuning","version":2,"cards":{"k":{}}})"}) {
    dir.Write("t.json", text);
    EXPECT_EQ(ReadTuning(path, "k").status().code(), Code::kNotFound) << text;
  }
  ASSERT_TRUE(WriteTuning(path, "k", Tuning()).ok());
  EXPECT_TRUE(ReadTuning(path, "k").ok());
}

TEST(Tuning, NumbersThatAreNoneAreAnError) {
  const testing::TempDir dir;
  for (const char* value : {"-1", "\"8\"", "1e3", "9999999999"}) {
    dir.Write("t.json", std::string(R"({"schema":"hearth.gpu.tuning","version":1,"cards":{"k":)") +
                            R"({"q8_0":)" + value + "}}}");
    EXPECT_EQ(ReadTuning(dir.Path("t.json"), "k").status().code(), Code::kCorrupt) << value;
  }
}

TEST(Tuning, LiesInTheUsersCache) {
  const auto with = [](const char* wanted, const char* value) -> Environment {
    return [wanted, value](const char* name) { return std::string(name) == wanted ? value : ""; };
  };
  EXPECT_EQ(TuningPath(with("XDG_CACHE_HOME", "/c")), "/c/hearth/gpu-tuning.json");
  EXPECT_EQ(TuningPath(with("NONE", "")), "");
}

}  // namespace
}  // namespace hearth::cuda
