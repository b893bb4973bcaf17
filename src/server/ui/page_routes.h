// SPDX-License-Identifier: Apache-2.0
// The web page at / and the files that it loads.
#pragma once
#include <span>

#include "http/router.h"
#include "server/ui/page_files.h"
namespace hearth {

// GET / is the page for browsers and a line of text for everybody else, which says so when the
// program was built without the page; GET /ui/{file} is what the page loads. Public: a page without
// its user's key shows nothing. `files` outlive the router.
void AddFrontPage(Router& router, std::span<const PageFile> files = PageFiles());

}  // namespace hearth
