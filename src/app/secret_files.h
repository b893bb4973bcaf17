// SPDX-License-Identifier: Apache-2.0
// Files that hold secrets (API keys, private keys, passwords in a configuration file), and who but
// their owner can read them.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "app/config.h"
namespace hearth {

struct SecretFile {
  std::string path;
  std::string holds;   // "API keys"
  std::string origin;  // what names it; empty for a configuration file that was read
};

// Those that the settings name, and the configuration files with passwords in their values.
std::vector<SecretFile> SecretFilesOf(const Settings& settings);
// The latter alone.
std::vector<SecretFile> FilesWithPasswords(const Settings& settings);

// "can be read by other users"; empty: nobody else can. Root's files may be read by their group:
// that is how a secret is given to the account of a service that shall not change it
// (root:hearth, 0640).
std::string WhoElseReads(mode_t mode, uid_t owner);

struct Exposure {
  bool is_missing = false;
  std::string problem{}, advice{};  // empty: none
};
Exposure ExposureOf(const SecretFile& file);

// Warns on standard error of those that others can read. A file that is missing is no matter here:
// who opens it will say so.
void WarnOfExposed(const std::vector<SecretFile>& files);

}  // namespace hearth
