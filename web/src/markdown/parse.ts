// SPDX-License-Identifier: Apache-2.0
// Markdown as a tree of tokens, by marked's lexer with math added. Nothing here or later makes HTML:
// tokens become nodes one by one (Markdown.tsx), so what a model writes as HTML stays text.
import {Marked, type Token, type TokenizerAndRendererExtension} from 'marked';

// Longer texts are shown as they are: nobody reads them formatted, and lexing them would be felt.
export const MAX_TEXT = 200_000;

export interface MathToken {
  type: 'math';
  raw: string;
  text: string;
  isDisplay: boolean;
}

function math(raw: string, text: string, isDisplay: boolean): MathToken {
  return {type: 'math', raw, text: text.trim(), isDisplay};
}

const blockMath: TokenizerAndRendererExtension = {
  name: 'mathBlock',
  level: 'block',
  start: (source) => source.match(/^ {0,3}(\$\$|\\\[)/m)?.index,
  tokenizer(source) {
    const found = /^ {0,3}(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n|$)/.exec(source);
    return found ? math(found[0], found[1] ?? found[2]!, true) : undefined;
  },
};

const inlineMath: TokenizerAndRendererExtension = {
  name: 'mathInline',
  level: 'inline',
  start: (source) => source.match(/\$|\\\(|\\\[/)?.index,
  tokenizer(source) {
    const shown = /^(?:\$\$([^$\n]+?)\$\$|\\\[([\s\S]{1,4000}?)\\\])/.exec(source);
    if (shown) return math(shown[0], shown[1] ?? shown[2]!, true);
    // Prices are not math: no blank inside the dollars' edges, no digit after the last.
    const found = /^\$(?![\s$])((?:\\.|[^$\\\n]){1,2000}?)(?<!\s)\$(?!\d)/.exec(source) ??
      /^\\\(([\s\S]{1,4000}?)\\\)/.exec(source);
    return found ? math(found[0], found[1]!, false) : undefined;
  },
};

const marked = new Marked({gfm: true, breaks: true, extensions: undefined});
marked.use({extensions: [blockMath, inlineMath]});

export function lex(text: string): Token[] {
  if (text.length > MAX_TEXT) return [plain(text)];
  try {
    return marked.lexer(text);
  } catch {
    return [plain(text)];  // nested too deep, for instance
  }
}

const plain = (text: string) => ({type: 'plain', raw: text, text}) as Token;

// A text that grows: only its tail is lexed anew. The last two blocks may still change (a list goes on
// after a blank line, a heading is underlined); what is before them stays.
export class GrowingText {
  private text = '';
  private kept: Token[] = [];
  private keptLength = 0;

  tokens(text: string): Token[] {
    if (!text.startsWith(this.text) || text.length > MAX_TEXT) {
      this.kept = [];
      this.keptLength = 0;
    }
    this.text = text;
    const tail = lex(text.slice(this.keptLength));
    const all = [...this.kept, ...tail];
    const solid = tail.map((token, index) => (token.type === 'space' ? -1 : index)).filter((index) => index >= 0);
    const keep = solid.length > 2 ? solid[solid.length - 2]! : 0;
    for (const token of tail.slice(0, keep)) {
      this.kept.push(token);
      this.keptLength += token.raw.length;
    }
    return all;
  }
}

const NAMED: Record<string, string> = {
  amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', hellip: '…', mdash: '—', ndash: '–',
  copy: '©', reg: '®', trade: '™', times: '×', divide: '÷', deg: '°', plusmn: '±', le: '≤', ge: '≥', ne: '≠',
  larr: '←', rarr: '→', uarr: '↑', darr: '↓', euro: '€', pound: '£', laquo: '«', raquo: '»', middot: '·',
};

export function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,6}));/gi, (all, decimal, hex, name) => {
    if (name) return NAMED[name] ?? all;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    const isBad = code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff);
    return isBad ? '\ufffd' : String.fromCodePoint(code);
  });
}

// The address if a click on it is harmless: somewhere in the web, or a letter.
export function safeAddress(href: string): string | null {
  try {
    const url = new URL(decoded(href));
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
