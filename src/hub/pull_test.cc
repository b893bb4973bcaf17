// SPDX-License-Identifier: Apache-2.0
#include "hub/pull.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <thread>

#include "platform/file.h"
#include "testing/fake_transport.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::FakeTransport;
using testing::Fault;
using testing::TempDir;

class Notes final : public PullWatcher {
 public:
  void OnPlan(const Manifest& manifest) override { planned = manifest; }
  void OnProgress(uint64_t bytes_here) override { last = bytes_here; }
  void OnNote(const std::string& note) override { text += note + "\n"; }
  Manifest planned;
  uint64_t last = 0;
  std::string text;
};

std::string HexOf(DigestKind kind, std::string_view text) {
  Digester digester(kind, text.size());
  digester.Add(std::as_bytes(std::span(text.data(), text.size())));
  return digester.Finish().hex;
}

const std::string kCommit(40, 'c');

class PullTest : public ::testing::Test {
 protected:
  PullTest() {
    places_.own = dir_.Path("own");
    wishes_.policy = {.num_connections = 2, .part_bytes = 4096, .stall_time = milliseconds(50)};
    wishes_.policy.retry = {
        .max_retries = 3, .first_wait = milliseconds(1), .longest_wait = milliseconds(1)};
    Serve("a/b", "main",
          {{"m-Q4_K_M.gguf", gguf_}, {"m-Q8_0.gguf", gguf_ + "8"}, {"README.md", "x"}});
  }
  // A repository of these files on the server. Names in "LARGE" cases have a SHA-256, JSON is
  // git's.
  void Serve(const std::string& repo, const std::string& revision,
             const std::vector<std::pair<std::string, std::string>>& files) {
    std::string siblings;
    for (const auto& [name, content] : files) {
      const bool is_small = name.ends_with(".json") || name.ends_with(".md");
      siblings += siblings.empty() ? "" : ",";
      siblings += R"({"rfilename": ")" + name + R"(", "size": )" + std::to_string(content.size());
      siblings += is_small ? R"(, "blobId": ")" + HexOf(DigestKind::kGitBlob, content) + "\"}"
                           : R"(, "lfs": {"sha256": ")" + HexOf(DigestKind::kSha256, content) +
                                 R"(", "size": )" + std::to_string(content.size()) + "}}";
      transport_.files["http://hub/" + repo + "/resolve/" + kCommit + "/" + name] = content;
    }
    transport_.files["http://hub/api/models/" + repo + "/revision/" + revision + "?blobs=true"] =
        R"({"sha": ")" + kCommit + R"(", "tags": ["license:mit"], "siblings": [)" + siblings + "]}";
  }
  Result<Pulled> Pull(const std::string& what) {
    wishes_.what = what;
    return PullModel(transport_, places_, {"http://hub", "token"}, wishes_, notes_);
  }
  std::string Message(const std::string& what) { return Pull(what).status().message(); }
  std::string Text(const std::string& path) { return *ReadTextFile(path, 1 << 20); }

  const std::string gguf_ = "GGUF" + std::string(10000, 'w');
  TempDir dir_;
  StorePlaces places_;
  FakeTransport transport_;
  PullWishes wishes_;
  Notes notes_;
};

TEST_F(PullTest, AModelOfTheHub) {
  Result<Pulled> pulled = Pull("a/b");
  ASSERT_TRUE(pulled.ok()) << pulled.status().message();
  EXPECT_EQ(pulled->name, "m-Q4_K_M");
  EXPECT_EQ(pulled->path, dir_.Path("own/m-Q4_K_M/m-Q4_K_M.gguf"));
  EXPECT_TRUE(pulled->is_checked && !pulled->was_here);
  EXPECT_EQ(Text(pulled->path), gguf_);
  EXPECT_EQ(notes_.last, gguf_.size());
  EXPECT_NE(notes_.text.find("chose m-Q4_K_M of 2"), std::string::npos);
  Result<Manifest> manifest = ModelStore(places_.own).Read("m-Q4_K_M");
  ASSERT_TRUE(manifest.ok());
  EXPECT_TRUE(manifest->is_complete);
  EXPECT_EQ(manifest->source(), "a/b@" + kCommit + ":Q4_K_M");
  EXPECT_EQ(manifest->licence, "mit");
  // Again: no request is made.
  const size_t before = transport_.requests.size();
  for (const char* again : {"a/b", "a/b:Q4_K_M", "m-Q4_K_M"}) {
    pulled = Pull(again);
    ASSERT_TRUE(pulled.ok());
    EXPECT_TRUE(pulled->was_here);
  }
  EXPECT_EQ(transport_.requests.size(), before);
}

TEST_F(PullTest, WhatANewerVersionKeepsIsNotOverwritten) {
  ASSERT_TRUE(Pull("a/b").ok());
  const std::string path = dir_.Path("own/m-Q4_K_M/hearth.json");
  std::string newer = Text(path);
  newer.replace(newer.find("\"format\": 1"), 11, "\"format\": 2");
  ASSERT_TRUE(WriteFileAtomically(path, std::as_bytes(std::span(newer))).ok());
  EXPECT_NE(Message("a/b").find("newer version"), std::string::npos) << Message("a/b");
  EXPECT_EQ(Text(path), newer);
}

TEST_F(PullTest, ASelectorAndAName) {
  wishes_.name = "eight";
  Result<Pulled> pulled = Pull("a/b:q8_0");
  ASSERT_TRUE(pulled.ok()) << pulled.status().message();
  EXPECT_EQ(Text(dir_.Path("own/eight/m-Q8_0.gguf")), gguf_ + "8");
  EXPECT_NE(Message("a/b:Q4_K_M").find("--name"), std::string::npos);  // the name is taken
  wishes_.name = "../x";
  EXPECT_NE(Message("a/b").find("--name"), std::string::npos);
}

TEST_F(PullTest, ADirectoryIsSeveralFiles) {
  Serve("a/dir", "v1",
        {{"config.json", "{}"},
         {"tokenizer.json", "[]"},
         {"model-00001-of-00002.safetensors", "one"},
         {"model-00002-of-00002.safetensors", "two"},
         {"x.bin", "no"}});
  Result<Pulled> pulled = Pull("a/dir@v1");
  ASSERT_TRUE(pulled.ok()) << pulled.status().message();
  EXPECT_EQ(pulled->path, dir_.Path("own/dir"));
  EXPECT_EQ(Text(dir_.Path("own/dir/model-00002-of-00002.safetensors")), "two");
  EXPECT_EQ(Text(dir_.Path("own/dir/config.json")), "{}");
  EXPECT_FALSE(fs::exists(dir_.Path("own/dir/x.bin")));
}

TEST_F(PullTest, AnInterruptedPullGoesOnByItsName) {
  Serve("a/dir", "main", {{"config.json", "{}"}, {"model.safetensors", std::string(9000, 's')}});
  transport_.fault = [](int, const HttpFetch& fetch) {
    const bool is_late = fetch.first.value_or(0) >= 8192;
    return is_late ? Fault{.trouble = FetchTrouble::kNoConnection} : Fault();
  };
  EXPECT_EQ(Pull("a/dir").status().code(), Code::kIo);
  ASSERT_EQ(TakeInventory(places_).models.size(), 1u);
  EXPECT_FALSE(TakeInventory(places_).models[0].is_complete);
  transport_.fault = nullptr;
  // The commit that was begun is what is asked for.
  transport_.files["http://hub/api/models/a/dir/revision/" + kCommit + "?blobs=true"] =
      transport_.files["http://hub/api/models/a/dir/revision/main?blobs=true"];
  const uint64_t before = transport_.bytes_sent;
  Result<Pulled> pulled = Pull("dir");
  ASSERT_TRUE(pulled.ok()) << pulled.status().message();
  const uint64_t listing =
      transport_.files["http://hub/api/models/a/dir/revision/main?blobs=true"].size();
  EXPECT_EQ(transport_.bytes_sent - before, listing + 9000 - 8192);
}

TEST_F(PullTest, AUrl) {
  transport_.files["http://x/some%20dir/model-Q8_0.gguf?sig=1"] = gguf_;
  Result<Pulled> pulled = Pull("http://x/some%20dir/model-Q8_0.gguf?sig=1");
  ASSERT_TRUE(pulled.ok()) << pulled.status().message();
  EXPECT_EQ(pulled->path, dir_.Path("own/model-Q8_0/model-Q8_0.gguf"));
  EXPECT_FALSE(pulled->is_checked);
  for (const HttpFetch& fetch : transport_.requests) EXPECT_EQ(fetch.token, "");
  wishes_.sha256 = HexOf(DigestKind::kSha256, "other");
  transport_.files["http://x/n.gguf"] = gguf_;
  EXPECT_EQ(Pull("http://x/n.gguf").status().code(), Code::kCorrupt);
  wishes_.sha256 = HexOf(DigestKind::kSha256, gguf_);
  pulled = Pull("http://x/n.gguf");
  ASSERT_TRUE(pulled.ok()) << pulled.status().message();
  EXPECT_TRUE(pulled->is_checked);
  wishes_.sha256 = "abc";
  EXPECT_NE(Message("http://x/model-Q8_0.gguf").find("404"), std::string::npos);
}

TEST_F(PullTest, ALoginPageIsNoModel) {
  transport_.files["http://x/m.gguf"] = "<html>log in</html>";
  Result<Pulled> pulled = Pull("http://x/m.gguf");
  EXPECT_NE(pulled.status().message().find("\"<htm\""), std::string::npos);
  EXPECT_FALSE(fs::exists(dir_.Path("own/m")));
}

TEST_F(PullTest, MemoryIsCheckedFirst) {
  wishes_.usable_memory_bytes = 5000;
  EXPECT_NE(Message("a/b").find("--anyway"), std::string::npos);
  EXPECT_EQ(transport_.requests.size(), 1u);  // the listing
  EXPECT_FALSE(fs::exists(dir_.Path("own/m-Q4_K_M")));
  wishes_.ignores_memory = true;
  EXPECT_TRUE(Pull("a/b").ok());
}

TEST_F(PullTest, TheDiskIsCheckedFirst) {
  transport_.files["http://hub/api/models/a/huge/revision/main?blobs=true"] =
      R"({"sha": ")" + kCommit +
      R"(", "siblings": [{"rfilename": "m.gguf", "size": 17000000000000}]})";
  const std::string message = Message("a/huge");
  EXPECT_NE(message.find("17000 GB"), std::string::npos) << message;
  EXPECT_NE(message.find("HEARTH_MODELS"), std::string::npos);
  EXPECT_EQ(transport_.requests.size(), 1u);
}

TEST_F(PullTest, AnotherProcessIsWaitedFor) {
  const ModelStore store(places_.own);
  wishes_.waits_for_others = false;
  {
    Result<ModelLock> lock = store.TryLock("m-Q4_K_M");
    ASSERT_TRUE(lock.ok());
    EXPECT_NE(Message("a/b").find("another process"), std::string::npos);
  }
  wishes_.waits_for_others = true;
  Result<ModelLock> held = store.TryLock("m-Q4_K_M");
  ASSERT_TRUE(held.ok());
  std::thread other([lock = *std::move(held)] { std::this_thread::sleep_for(milliseconds(100)); });
  EXPECT_EQ(Pull("a/b").status().code(), Code::kOk);
  other.join();
  EXPECT_NE(notes_.text.find("waiting"), std::string::npos);
}

TEST_F(PullTest, WithoutANetworkItSaysWhatIsHere) {
  ASSERT_TRUE(Pull("a/b").ok());
  transport_.fault = [](int, const HttpFetch&) { return Fault{.trouble = FetchTrouble::kNoHost}; };
  const std::string message = Message("a/other");
  EXPECT_NE(message.find("On this machine are: m-Q4_K_M"), std::string::npos) << message;
}

TEST_F(PullTest, UnknownNames) {
  EXPECT_NE(Message("qwen3-8c").find("qwen3-8b"), std::string::npos);
  EXPECT_NE(Message("nobody/nothing").find("404"), std::string::npos);
  EXPECT_NE(Message("a/b:Q2_K").find("Q4_K_M, Q8_0"), std::string::npos);
  EXPECT_FALSE(Pull("../..").ok());
}

}  // namespace
}  // namespace hearth
