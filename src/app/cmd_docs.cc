// SPDX-License-Identifier: Apache-2.0
// hearth docs: man pages, completions and docs/configuration.md, all from the flags themselves. For
// packages and for this repository, so the help does not list it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "app/commands.h"
#include "app/completions.h"
#include "app/flag_docs.h"
#include "app/man_pages.h"
#include "app/print.h"
#include "platform/file.h"

namespace hearth {
namespace {

Status WriteManPages(CLI::App& root, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error(Code::kIo, "%s: %s", folder.c_str(), error.message().c_str());
  for (const ManPage& page : ManPages(root)) {
    const std::string path = folder + "/" + page.file;
    HEARTH_TRY(WriteFileAtomically(path, std::as_bytes(std::span(page.text))));
  }
  return Status();
}

Status Print(const std::string& text) {
  PrintOut(text);
  return Status();
}

}  // namespace

void AddDocs(CLI::App& app, Command& chosen) {
  CLI::App* docs = app.add_subcommand(
      "docs", "Write the documents that are made from the flags: man pages, completions, a page");
  docs->group("");
  docs->require_subcommand(1);
  auto folder = std::make_shared<std::string>();
  CLI::App* man = docs->add_subcommand("man", "Write one man page per command into a folder");
  man->add_option("folder", *folder, "Folder, created if missing")->required();
  man->callback(
      [&app, &chosen, folder] { chosen = [&app, folder] { return WriteManPages(app, *folder); }; });
  using Writer = std::string (*)(CLI::App&);
  const std::map<std::string, Writer> shells = {
      {"bash", BashCompletion}, {"fish", FishCompletion}, {"zsh", ZshCompletion}};
  CLI::App* completions = docs->add_subcommand("completions", "Print a shell's completions");
  completions->require_subcommand(1);
  for (const auto& [shell, writer] : shells) {
    CLI::App* sub = completions->add_subcommand(shell, "Print completions for " + shell);
    sub->callback(
        [&app, &chosen, write = writer] { chosen = [&app, write] { return Print(write(app)); }; });
  }
  CLI::App* page = docs->add_subcommand("configuration", "Print docs/configuration.md");
  page->callback([&app, &chosen] { chosen = [&app] { return Print(ConfigurationPage(app)); }; });
}

}  // namespace hearth
