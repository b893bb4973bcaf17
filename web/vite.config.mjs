// SPDX-License-Identifier: Apache-2.0
// How the page is built: every file beside index.html under /ui/ with its content's hash in its name,
// nothing inlined, because the Content-Security-Policy allows nothing inline.
import {defineConfig} from 'vite';
import {listPackages} from './packages.mjs';

export default defineConfig({
  base: '/',
  plugins: [listPackages(import.meta.dirname)],
  oxc: {jsx: {runtime: 'automatic', importSource: 'preact'}},
  build: {
    assetsDir: 'ui',
    assetsInlineLimit: 0,
    target: 'es2022',
    modulePreload: {polyfill: false},
    reportCompressedSize: false,
  },
});
