// SPDX-License-Identifier: Apache-2.0
// Who may see and ask: keys, pages of others, names that were rebound; and what the page may load.
import http from 'node:http';
import {answering, ask, expect, launch, same} from './rig.mjs';

function get(port, path, headers = {}) {
  return new Promise((resolve, reject) => {
    http.get({port, host: '127.0.0.1', path, headers}, (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece));
      response.on('end', () => resolve({status: response.statusCode, headers: response.headers, body: Buffer.concat(pieces)}));
    }).on('error', reject);
  });
}
const HTML = {accept: 'text/html'};

async function files(runner, {model}) {
  await runner.run('the page is small, compressed, tagged and fenced in', async () => {
    const page = await get(model.port, '/', {...HTML, 'accept-encoding': 'gzip'});
    same([page.status, page.headers['content-encoding']], [200, 'gzip'], 'the page');
    const again = await get(model.port, '/', {...HTML, 'accept-encoding': 'gzip', 'if-none-match': page.headers.etag});
    same([again.status, again.body.length], [304, 0], 'the page asked for again');
    const plain = (await get(model.port, '/', HTML)).body.toString();
    expect(!/<script(?![^>]*\ssrc=)|<style|\son\w+=/.test(plain), `nothing inline in ${plain}`);
    let weight = page.body.length;
    const seen = new Set();
    const follow = async (text) => {
      for (const [, name] of text.matchAll(/["'`](?:\/ui\/|\.\/|ui\/)([\w-]+\.(?:js|css|svg))["'`]/g)) {
        if (seen.has(name)) continue;
        seen.add(name);
        const file = await get(model.port, `/ui/${name}`, {'accept-encoding': 'gzip'});
        same(file.status, 200, name);
        for (const header of ['etag', 'content-security-policy']) expect(file.headers[header], `${header} of ${name}`);
        same(file.headers['x-content-type-options'], 'nosniff', name);
        weight += file.body.length;
        await follow((await get(model.port, `/ui/${name}`)).body.toString());
      }
    };
    await follow(plain);
    expect(seen.size >= 5, `all files of the page, not ${[...seen]}`);
    expect(weight <= 400_000, `at most 400 KB, not ${weight}`);
    console.log(`        ${seen.size + 1} files, ${weight} bytes`);
  });
  await runner.run('programs still get a line of text', async () => {
    for (const headers of [{}, {accept: '*/*'}, {accept: 'application/json'}]) {
      const {status, body} = await get(model.port, '/', headers);
      expect(status === 200 && body.toString().includes('is running'), 'a line of text');
    }
    same((await get(model.port, '/ui/nothing.js')).status, 404, 'a file that is not there');
  });
}

async function keys(runner, {browser, keyed, key}) {
  await runner.run('with keys the page asks for one, and sends it as a header to its origin alone', async (visit) => {
    const {page, context} = await visit(browser, keyed.address);
    await page.getByText('This server needs an API key.').waitFor();
    await page.getByRole('button', {name: 'Enter key'}).click();
    await page.getByLabel('Key', {exact: true}).fill('wrong');
    await page.getByRole('button', {name: 'Use key'}).click();
    await page.getByText(/invalid API key/).waitFor();
    const sent = [];
    context.on('request', (request) => sent.push(request));
    await page.getByLabel('Key', {exact: true}).fill(key);
    await page.getByRole('button', {name: 'Use key'}).click();
    await page.getByText('This server needs an API key.').waitFor({state: 'detached'});
    await page.getByRole('combobox', {name: 'Model'}).getByText(/context/).waitFor({state: 'attached'});
    await page.getByRole('button', {name: 'Settings of this chat'}).click();
    await page.getByLabel('Longest reply').fill('4');
    await ask(page, 'Hello');
    await page.getByText('The reply reached its longest allowed length.').waitFor();
    for (const request of sent) {
      expect(!request.url().includes(key) && !(request.postData() ?? '').includes(key), 'the key in headers alone');
      expect(request.url().startsWith(keyed.address), `a request to the origin, not ${request.url()}`);
    }
    const kept = await page.evaluate(() => [sessionStorage.getItem('hearth.key'), localStorage.getItem('hearth.key'), document.cookie]);
    same(kept, [key, null, ''], 'where the key is kept');
  });
  await runner.slow('a key is remembered if one says so, and forgotten again', async (visit) => {
    const {page} = await visit(browser, keyed.address);
    await page.getByRole('button', {name: 'Enter key'}).click();
    await page.getByLabel('Key', {exact: true}).fill(key);
    await page.getByLabel(/Keep it in this browser/).check();
    await page.getByRole('button', {name: 'Use key'}).click();
    await page.getByText('This server needs an API key.').waitFor({state: 'detached'});
    same(await page.evaluate(() => localStorage.getItem('hearth.key')), key, 'the remembered key');
    await page.getByRole('navigation').locator('footer summary').click();
    await page.getByRole('button', {name: 'API key'}).click();
    await page.getByRole('button', {name: 'Forget key'}).click();
    same(await page.evaluate(() => [sessionStorage.length, localStorage.getItem('hearth.key')]), [0, null], 'what is left of it');
  });
  await runner.slow('the server page says that it needs an admin key', async (visit) => {
    const {page} = await visit(browser, keyed.address);
    await page.evaluate((value) => sessionStorage.setItem('hearth.key', value), key);
    await page.goto(`${keyed.address}/#/server`);
    await page.reload();
    await page.getByText(/an admin key is required/).waitFor();
  });
}

// A page of somebody else, with the real page's requests in every way it can make them.
async function strangers(runner, {browser, model}) {
  const evil = http.createServer((request, response) => {
    response.writeHead(200, {'content-type': 'text/html'});
    response.end('<!doctype html><title>evil</title>');
  });
  await new Promise((resolve) => evil.listen(0, '127.0.0.1', resolve));
  const {port} = evil.address();
  const tries = async (page, api) => page.evaluate(async (at) => {
    const body = JSON.stringify({messages: [{role: 'user', content: 'x'}], max_tokens: 1});
    const told = {};
    const way = async (name, make) => {
      told[name] = await make().then((reply) => (reply.type === 'opaque' ? 'opaque' : reply.status), (error) => error.name);
    };
    await way('read', () => fetch(`${at}/v1/models`));
    await way('page', () => fetch(`${at}/`, {headers: {accept: 'text/html'}}));
    await way('post', () => fetch(`${at}/v1/chat/completions`, {method: 'POST', headers: {'content-type': 'application/json'}, body}));
    await way('blind', () => fetch(`${at}/v1/chat/completions`, {method: 'POST', mode: 'no-cors', body}));
    told.frame = await new Promise((resolve) => {
      const frame = document.createElement('iframe');
      frame.onload = () => {
        try {
          resolve(frame.contentDocument ? `read ${frame.contentDocument.title}` : 'closed');
        } catch {
          resolve('closed');
        }
      };
      frame.src = at;
      document.body.append(frame);
    });
    return told;
  }, api);
  const admitted = async () => JSON.parse((await get(model.port, '/status')).body).requests.admitted;
  await runner.run('a page of another origin gets nothing and makes nothing happen', async (visit) => {
    const before = await admitted();
    const visitor = await visit(browser, `http://127.0.0.1:${port}`);
    const told = await tries(visitor.page, model.address);
    same([told.read, told.page, told.post], ['TypeError', 'TypeError', 'TypeError'], 'what it could read');
    expect(['opaque', 'TypeError'].includes(told.blind), 'a blind request shows nothing');
    same(told.frame, 'closed', 'the page in its frame');
    same(await admitted(), before, 'requests that were let in');
    visitor.foreign.length = visitor.errors.length = 0;
  });
  await runner.run('a name that was rebound to this machine gets nothing', async (visit) => {
    const before = await admitted();
    const bound = await launch([`--host-resolver-rules=MAP rebound.example 127.0.0.1`]);
    try {
      // The attacker's page under its name and this server's port: one origin for the browser.
      const visitor = await visit(bound, `http://rebound.example:${model.port}`);
      expect(/Host header does not name this server/.test(await visitor.page.content()), 'a refusal in place of the page');
      const told = await tries(visitor.page, `http://rebound.example:${model.port}`);
      same([told.read, told.page, told.post, told.blind], [403, 403, 403, 403], 'what it was answered');
      same(await admitted(), before, 'requests that were let in');
      visitor.foreign.length = visitor.errors.length = 0;
    } finally {
      await bound.close();
    }
  });
  evil.close();
}

export async function access(runner, parts) {
  await files(runner, parts);
  await keys(runner, parts);
  await strangers(runner, parts);
  await runner.slow('the page works under localhost as well', async (visit) => {
    answering(parts.relay, 'Yes.');
    const {page} = await visit(parts.browser, `http://localhost:${parts.relay.port}`);
    await ask(page, 'Hello');
    await page.getByText('Yes.').waitFor();
  });
}
