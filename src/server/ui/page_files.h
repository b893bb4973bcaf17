// SPDX-License-Identifier: Apache-2.0
// The files of the web page, as web/embed.mjs put them into the program when it was built.
#pragma once
#include <span>
#include <string_view>
namespace hearth {

struct PageFile {
  std::string_view path;  // "/" for the page itself, "/ui/NAME" for what it loads
  std::string_view type;  // its content-type
  std::string_view hash;  // of `plain`, in hexadecimal
  std::string_view plain, gzip;
};

// Empty where the program was built without node or the page's packages. Defined in the file that
// is written into build/web.
std::span<const PageFile> PageFiles();

}  // namespace hearth
