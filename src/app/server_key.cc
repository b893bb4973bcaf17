// SPDX-License-Identifier: Apache-2.0
#include "app/server_key.h"

#include <cstdlib>

#include "app/secret_files.h"
#include "platform/file.h"

namespace hearth {

Result<std::string> ServerKey(const std::string& key_path) {
  if (key_path.empty()) {
    const char* key = std::getenv("HEARTH_API_KEY");
    return std::string(key == nullptr ? "" : key);
  }
  HEARTH_ASSIGN(std::string key, ReadTextFile(key_path, 4096));
  WarnOfExposed({{key_path, "an API key", "--key-file"}});
  key.resize(key.find_last_not_of(" \r\n\t") + 1);
  return key;
}

}  // namespace hearth
