// SPDX-License-Identifier: Apache-2.0
// Writes the built page into one C++ file: every file plain and gzipped, with its hash. Fails when
// all of it together is beyond what the page may weigh.
import {createHash} from 'node:crypto';
import {readdirSync, readFileSync, renameSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {gzipSync} from 'node:zlib';

const MAX_BYTES = 400_000;  // of everything, gzipped
const TYPES = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

const [folder, out] = process.argv.slice(2);
const names = readdirSync(folder, {recursive: true, withFileTypes: true})
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
  .sort();

const array = (name, bytes) => `constexpr unsigned char ${name}[] = {${[...bytes].join(',')}};\n`;
const view = (name) => `std::string_view(reinterpret_cast<const char*>(${name}), sizeof ${name})`;

let total = 0;
let arrays = '';
let rows = '';
names.forEach((name, index) => {
  const type = TYPES[name.split('.').pop()];
  if (type === undefined || (name !== 'index.html' && !/^ui\/[\w.-]+$/.test(name))) {
    throw new Error(`${name}: not a file that the page is made of`);
  }
  const plain = readFileSync(join(folder, name));
  const gzip = gzipSync(plain, {level: 9});
  const hash = createHash('sha256').update(plain).digest('hex').slice(0, 32);
  total += gzip.length;
  arrays += array(`kPlain${index}`, plain) + array(`kGzip${index}`, gzip);
  rows += `      {"${name === 'index.html' ? '/' : `/${name}`}", "${type}", "${hash}",\n` +
    `       ${view(`kPlain${index}`)},\n       ${view(`kGzip${index}`)}},\n`;
});
if (total > MAX_BYTES) throw new Error(`the page weighs ${total} bytes gzipped, ${MAX_BYTES} are allowed`);

writeFileSync(`${out}.new`, `// Written by web/embed.mjs.
#include "server/ui/page_files.h"
namespace hearth {
namespace {
${arrays}}  // namespace
std::span<const PageFile> PageFiles() {
  static const PageFile kFiles[] = {
${rows}  };
  return kFiles;
}
}  // namespace hearth
`);
renameSync(`${out}.new`, out);
console.log(`web: ${names.length} files, ${total} bytes gzipped`);
