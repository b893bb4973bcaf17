// SPDX-License-Identifier: Apache-2.0
#include "store/reference.h"

#include <gtest/gtest.h>

#include <random>

namespace hearth {
namespace {

using Kind = ModelReference::Kind;

ModelReference Parsed(const char* text) {
  Result<ModelReference> reference = ParseReference(text);
  EXPECT_TRUE(reference.ok()) << text << ": " << reference.status().message();
  return reference.ok() ? *reference : ModelReference{};
}

TEST(Reference, NamesMayHaveTags) {
  EXPECT_EQ(Parsed("qwen3-8b").kind, Kind::kName);
  EXPECT_EQ(Parsed("qwen3:8b").name, "qwen3:8b");
}

TEST(Reference, RepositoriesHaveRevisionsAndFiles) {
  ModelReference reference = Parsed("Qwen/Qwen3-8B-GGUF");
  EXPECT_EQ(reference.kind, Kind::kHub);
  EXPECT_EQ(reference.repo, "Qwen/Qwen3-8B-GGUF");
  EXPECT_EQ(reference.revision + reference.selector, "");
  reference = Parsed("hf.co/a/b@refs/pr/3:sub/x.Q4_K_M.gguf");
  EXPECT_EQ(reference.repo, "a/b");
  EXPECT_EQ(reference.revision, "refs/pr/3");
  EXPECT_EQ(reference.selector, "sub/x.Q4_K_M.gguf");
  EXPECT_EQ(Parsed("huggingface.co/a/b:q8_0").selector, "q8_0");
}

TEST(Reference, Urls) {
  EXPECT_EQ(Parsed("https://example.org/x.gguf").url, "https://example.org/x.gguf");
  EXPECT_EQ(Parsed("http://127.0.0.1:1/x").kind, Kind::kUrl);
}

TEST(Reference, WhatLeadsElsewhereIsRefused) {
  for (const char* text :
       {"",         "..",     "a/..",        "../a",   "a/b/c",    "a/b:",       "a/b:..",
        "a/b:../x", "a/b:/x", "a/b@",        "a/b@..", "a/b@x//y", "a/b@/x",     "ftp://x/y",
        "a b",      "a\nb",   "/etc/passwd", "-x",     "~/x",      "a/b@../..:x"}) {
    EXPECT_EQ(ParseReference(text).status().code(), Code::kInvalid) << text;
  }
  EXPECT_FALSE(ParseReference(std::string(5000, 'a')).ok());
}

TEST(Reference, RandomTextNeverBecomesAnUnsafeName) {
  std::mt19937 random(7);
  constexpr std::string_view kBytes = "ab./:@-_~\\ %\n\x80";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += kBytes[random() % kBytes.size()];
    Result<ModelReference> reference = ParseReference(text);
    if (!reference.ok() || reference->kind != Kind::kHub) continue;
    const std::string& repo = reference->repo;
    EXPECT_TRUE(IsModelName(repo.substr(0, repo.find('/')))) << text;
    EXPECT_TRUE(IsModelName(repo.substr(repo.find('/') + 1))) << text;
    EXPECT_EQ(("/" + reference->selector + "/").find("/../"), std::string::npos) << text;
    EXPECT_EQ(reference->revision.find(".."), std::string::npos) << text;
  }
}

TEST(Reference, PlainForms) {
  EXPECT_EQ(PlainForm("Qwen3:8B"), "qwen3-8b");
  EXPECT_EQ(PlainForm("llama3.2:latest"), "llama3.2");
  EXPECT_EQ(PlainForm("llama3.2-latest:latest"), "llama3.2") << "plain once, plain for good";
}

TEST(Reference, NearNamesAreFewAndLike) {
  const std::vector<std::string> known = {"qwen3-8b", "qwen3-4b", "qwen2.5-7b", "gpt-oss-20b"};
  EXPECT_EQ(NearNames("qwen3-8c", known)[0], "qwen3-8b");
  EXPECT_EQ(NearNames("gptoss-20b", known), (std::vector<std::string>{"gpt-oss-20b"}));
  EXPECT_EQ(NearNames("oss", known), (std::vector<std::string>{"gpt-oss-20b"}));
  EXPECT_TRUE(NearNames("mistral-large", known).empty());
  EXPECT_TRUE(NearNames("", known).empty());
  EXPECT_EQ(NearNames("qwen3-8b", known, 1).size(), 1u);
  EXPECT_TRUE(NearNames(std::string(100000, 'q'), known).empty());
}

TEST(Reference, NamesHaveALength) {
  const std::string longest(128, 'a');
  EXPECT_TRUE(ParseReference(longest).ok());
  EXPECT_FALSE(ParseReference(longest + "a").ok());
  EXPECT_TRUE(ParseReference(longest + "/" + longest + "@" + longest + ":" + longest).ok());
  EXPECT_FALSE(ParseReference("a/b@" + longest + "a").ok());
  EXPECT_FALSE(ParseReference("a/b:" + std::string(256, 'x')).ok()) << "no file's name";
}

TEST(Reference, MessagesSayWhatWasExpected) {
  const auto message = [](const char* text) { return ParseReference(text).status().message(); };
  EXPECT_EQ(message(""), "the model's name is empty");
  EXPECT_NE(message("a b").find("has a character that no name has"), std::string::npos);
  EXPECT_NE(message("ftp://x").find("not an http or https URL"), std::string::npos);
  EXPECT_NE(message("a/b:").find("no file or quantisation"), std::string::npos);
  EXPECT_NE(message("a/b@").find("not a revision"), std::string::npos);
  EXPECT_NE(message("a/b/c").find("not a repository's name"), std::string::npos);
  EXPECT_NE(message("~x").find("not a model's name"), std::string::npos);
  EXPECT_NE(message("~x").find("OWNER/REPO:QUANT"), std::string::npos) << "and what would do";
}

TEST(Reference, SlipsComeBeforeNamesThatContainTheWord) {
  const std::vector<std::string> known = {"llama-guard-3", "lama", "my-llama"};
  EXPECT_EQ(NearNames("llama", known),
            (std::vector<std::string>{"lama", "my-llama", "llama-guard-3"}));
  EXPECT_EQ(NearNames("llama", std::vector<std::string>{"lama", "lama"}).size(), 1u);
  EXPECT_TRUE(NearNames("la", std::vector<std::string>{"zzzz-la-zzzz"}).empty())
      << "two letters are in everything";
}

}  // namespace
}  // namespace hearth
