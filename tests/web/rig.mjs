// SPDX-License-Identifier: Apache-2.0
// What the page's tests share: real servers, a relay that can cut and answer in between, Chromium, and
// a runner of scenarios that also looks for requests to elsewhere and for errors of the page.
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import http from 'node:http';
import {createRequire} from 'node:module';
import {homedir, tmpdir} from 'node:os';
import {join} from 'node:path';

const require = createRequire(new URL('../../web/package.json', import.meta.url));
const {chromium} = require('playwright-core');
export const axeSource = require('axe-core').source;

export const work = process.env.HEARTH_WORK ?? join(homedir(), '.cache', 'hearth');
const PATIENCE = 60_000;  // for a state to come, on a machine that does other things as well

export function expect(isSo, what) {
  if (!isSo) throw new Error(`expected ${what}`);
}
export function same(got, wanted, what) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what}: expected ${b}, got ${a}`);
}

const ended = new Set();
process.on('exit', () => ended.forEach((end) => end()));

// A server on a free port. Its second argument is what comes after `serve`.
export async function serve(program, args) {
  const child = spawn(program, ['serve', '--port', '0', ...args], {stdio: ['ignore', 'ignore', 'pipe']});
  const kill = () => child.kill('SIGKILL');
  ended.add(kill);
  let log = '';
  const port = await new Promise((resolve, reject) => {
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (text) => {
      log += text;
      const found = / at https?:\/\/[^ ]*:(\d+)\/v1/.exec(log);
      if (found) resolve(Number(found[1]));
    });
    child.on('exit', () => reject(new Error(`no server: ${log}`)));
  });
  const stop = () => new Promise((resolve) => {
    child.removeAllListeners('exit');
    child.on('exit', resolve);
    child.kill('SIGTERM');
  }).finally(() => ended.delete(kill));
  return {port, address: `http://127.0.0.1:${port}`, stop, log: () => log};
}

const OTHERWISE = [{channel: 'final', text: 'Hello.'}];

// The real server with a script for a model: `otherwise` is what it says, or with tools and the word
// TASK in the prompt its `turns`.
export async function serveScript(program, otherwise = OTHERWISE, turns = [OTHERWISE]) {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-web-'));
  const script = join(folder, 'script.json');
  writeFileSync(script, JSON.stringify({task: 'TASK', turns, otherwise}));
  const server = await serve(program, ['--model', join(work, 'tiny-oss-o200k.gguf'), '--script', script]);
  return {...server, stop: () => server.stop().finally(() => rmSync(folder, {recursive: true}))};
}

// Between browser and server, on an origin of its own. `rules`: functions (request, response, pass) that
// answer a request, or let it pass; they see POST bodies as `request.text`.
export async function relayTo(server) {
  const rules = [];
  const sockets = new Set();
  const requests = [];
  const relay = http.createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    request.text = Buffer.concat(pieces).toString();
    requests.push({method: request.method, url: request.url, headers: request.headers, text: request.text});
    const pass = (onData) => {
      const on = http.request({port: server.port, host: '127.0.0.1', method: request.method, path: request.url, headers: request.headers},
        (answer) => {
          response.writeHead(answer.statusCode, answer.headers);
          answer.on('data', (data) => (onData ? onData(data, answer) : response.write(data)));
          answer.on('end', () => response.end());
          answer.on('error', () => response.destroy());
        });
      on.on('error', () => response.destroy());
      response.on('close', () => on.destroy());
      on.end(request.text);
    };
    for (const rule of rules) if (rule(request, response, pass) === true) return;
    pass();
  });
  relay.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise((resolve) => relay.listen(0, '127.0.0.1', resolve));
  const {port} = relay.address();
  const stop = () => new Promise((resolve) => {
    relay.close(resolve);
    sockets.forEach((socket) => socket.destroy());
  });
  return {port, address: `http://127.0.0.1:${port}`, rules, requests, stop};
}

const chunk = (delta, finish = null) =>
  ({id: 'chatcmpl-x', object: 'chat.completion.chunk', model: 'm', choices: [{index: 0, delta, logprobs: null, finish_reason: finish}]});
export const event = (data, id) => `${id === undefined ? '' : `id: ${id}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
export const say = (text, id) => event(chunk({content: text}), id);
export const finish = (id) => event(chunk({}, 'stop'), id) + event('[DONE]', id === undefined ? undefined : id + 1);
export const isChat = (request) => request.method === 'POST' && request.url === '/v1/chat/completions';

export function startEvents(response) {
  response.writeHead(200, {'content-type': 'text/event-stream'});
}

// Answers every chat with this text, in pieces of so many characters.
export function answering(relay, text, size = 2000) {
  relay.rules.length = 0;
  relay.rules.push((request, response) => {
    if (!isChat(request)) return false;
    startEvents(response);
    for (let at = 0; at < text.length; at += size) response.write(say(text.slice(at, at + size)));
    response.end(finish());
    return true;
  });
}

export async function launch(more = []) {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium', headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', ...more],
  });
  return browser;
}

// A fresh browser profile with one page of it. Every request that it makes is kept, and every error.
export async function visit(browser, address, options = {}) {
  const context = await browser.newContext({viewport: {width: 1280, height: 800}, ...options});
  context.setDefaultTimeout(PATIENCE);
  const foreign = [];
  const errors = [];
  const allowed = new URL(address).origin;
  context.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${allowed}/`) && !url.startsWith('blob:') && !url.startsWith('data:')) foreign.push(url);
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    // A refused request is told there as well; scenarios that provoke one look at the page.
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) errors.push(message.text());
  });
  await page.goto(address);
  return {context, page, foreign, errors, close: () => context.close()};
}

// The steps that most scenarios share.
export const field = (page) => page.getByRole('textbox', {name: 'Message', exact: true});
export const replies = (page) => page.getByRole('article', {name: 'Assistant'});
export async function idle(page) {
  await page.getByRole('button', {name: 'Send', exact: true}).waitFor();
}
export async function type(page, text) {
  await field(page).fill(text);
  await field(page).press('Enter');
}
// Until the old chat has gone: its replies must not be counted among the new one's.
export async function newChat(page) {
  await page.getByRole('button', {name: 'New chat'}).click();
  await replies(page).first().waitFor({state: 'detached'});
}
export async function ask(page, text) {
  const before = await replies(page).count();
  await type(page, text);
  await replies(page).nth(before).waitFor();
  await idle(page);
}

export async function axe(page, what) {
  // Into the page's own world past its policy: evaluate is not a script of the page.
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => globalThis.axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'],
  }));
  const bad = found.violations.filter((each) => ['serious', 'critical'].includes(each.impact));
  const told = bad.map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`);
  expect(bad.length === 0, `no serious finding of axe in ${what}, not ${told.join('\n')}`);
}

export async function openSettings(page) {
  await page.getByRole('button', {name: 'Settings of this chat'}).click();
  await page.getByRole('complementary', {name: 'Settings of this chat'}).waitFor();
}

// What the page asked the server for, by the bodies of its chats.
export const chatsOf = (relay) => relay.requests.filter(isChat).map((request) => JSON.parse(request.text));

// Runs scenarios one after the other, each on pages of its own; tells all failures at the end.
export class Runner {
  constructor(isWhole) {
    this.isWhole = isWhole;
    this.failures = [];
    this.count = 0;
  }
  // Not in every change's run.
  async slow(name, body) {
    if (this.isWhole) await this.run(name, body);
  }
  // `body` gets a visitor; what it opened is closed, and looked at for what must never happen.
  async run(name, body) {
    const only = process.env.HEARTH_ONLY;
    if (only && !name.includes(only)) return;
    const visits = [];
    const began = Date.now();
    try {
      await body(async (browser, address, options) => {
        const visitor = await visit(browser, address, options);
        visits.push(visitor);
        return visitor;
      });
      for (const {foreign, errors} of visits) {
        same(foreign, [], 'requests outside the origin');
        same(errors, [], 'errors of the page');
      }
      console.log(`ok      ${name} (${Date.now() - began} ms)`);
    } catch (error) {
      this.failures.push(name);
      console.log(`FAILED  ${name}: ${error.stack ?? error}`);
      for (const {page, errors} of visits) {
        const shown = await page.locator('body').innerText({timeout: 1000}).catch(() => 'nothing');
        console.log(`        the page at ${page.url()} showed: ${shown.slice(0, 1500)}`, errors);
      }
    }
    this.count += 1;
    for (const visitor of visits) await visitor.close().catch(() => {});
  }
  finish() {
    console.log(`${this.count} scenarios, ${this.failures.length} failed`);
    process.exit(this.failures.length > 0 ? 1 : 0);
  }
}
