// SPDX-License-Identifier: Apache-2.0
// How the page is built: every file beside index.html under /ui/ with its content's hash in its name,
// nothing inlined, because the Content-Security-Policy allows nothing inline.
import {defineConfig} from 'vite';

export default defineConfig({
  base: '/',
  oxc: {jsx: {runtime: 'automatic', importSource: 'preact'}},
  build: {
    assetsDir: 'ui',
    assetsInlineLimit: 0,
    target: 'es2022',
    modulePreload: {polyfill: false},
    reportCompressedSize: false,
  },
});
