// SPDX-License-Identifier: Apache-2.0
// The official clients over clients/typescript, while the worker of hearth serve is killed:
//   node resume.mjs HEARTH KILLS
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { resumingFetch } from '../../clients/typescript/hearth-streams.ts';
import { Server } from './serve.mjs';

const [program, kills] = [process.argv[2], Number(process.argv[3])];

function workerOf(pid) {
  for (const entry of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const fields = fs.readFileSync(`/proc/${entry}/stat`, 'utf8').split(') ').pop().split(' ');
      if (Number(fields[1]) === pid && fields[0] !== 'Z') return Number(entry);
    } catch {
      // it has just ended
    }
  }
  return undefined;
}

const server = await Server.start(program, 'minimind2-small-q8_0', '--context', '1024');
let breaks = 0;
// Counts the streams that the wrapper went on with.
const counted = async (input, init) => {
  const response = await fetch(input, init);
  if (new Headers(init?.headers).has('last-event-id') && response.ok) breaks += 1;
  return response;
};
const wrapped = resumingFetch({ fetch: counted, patienceMs: 240_000 });
const openaiAt = (address, fetch) =>
  new OpenAI({ baseURL: `${address}/v1`, apiKey: 'none', fetch, maxRetries: 0 });
const openai = openaiAt(server.address, wrapped);
const anthropic = new Anthropic({ baseURL: server.address, apiKey: 'none', fetch: wrapped, maxRetries: 0 });
const content = (number) => [{ role: 'user', content: `Tell tale ${number}` }];

async function* chat(number, client = openai) {
  const stream = await client.chat.completions.create({
    model: server.name, messages: content(number), stream: true, max_tokens: 200, seed: number, min_tokens: 200,
  });
  for await (const chunk of stream) yield chunk.choices[0]?.delta?.content ?? '';
}

async function* message(number) {
  const stream = anthropic.messages.stream({
    model: server.name, messages: content(number), max_tokens: 200, temperature: 0,
  });
  for await (const event of stream) if (event.type === 'content_block_delta') yield event.delta.text;
}

async function textOf(stream, killAt) {
  let text = '';
  let pieces = 0;
  for await (const piece of stream) {
    text += piece;
    pieces += 1;
    if (pieces === killAt) process.kill(workerOf(server.process.pid), 'SIGKILL');
  }
  return text;
}

// A stream that was whole in a socket's buffer when its server died counts for nothing.
for (let number = 1; breaks < kills; number += 1) {
  assert.ok(number <= 10 * kills, `only ${breaks} of ${number} streams were in flight`);
  const ask = number % 2 ? chat : message;
  const undisturbed = await textOf(ask(number), 0);
  assert.equal(await textOf(ask(number), 3 + (number % 5)), undisturbed);
}

// A relay whose first connections fall silent after so many bytes of the answer, as one to a machine
// that hangs does: nothing more comes, and nothing is closed.
function mute(port, silences, after) {
  let left = silences;
  const relay = net.createServer((near) => {
    const far = net.connect(port, '127.0.0.1');
    let room = left-- > 0 ? after : Infinity;
    far.on('data', (data) => {
      if (data.length > room) relay.silenced = (relay.silenced ?? 0) + 1;
      near.write(data.subarray(0, Math.min(room, data.length)));
      room = Math.max(0, room - data.length);
    });
    far.on('end', () => room > 0 && near.end());
    near.on('data', (data) => far.write(data));
    near.on('error', () => far.destroy());
    near.on('close', () => far.destroy());
    far.on('error', () => near.destroy());
  });
  return new Promise((resolve) => relay.listen(0, '127.0.0.1', () => resolve(relay)));
}

for (const after of [0, 1500]) {
  const relay = await mute(new URL(server.address).port, 2, after);
  let tries = 0;
  const trying = (input, init) => {
    tries += 1;
    return fetch(input, { ...init, headers: new Headers([...init.headers, ['connection', 'close']]) });
  };
  const quiet = openaiAt(
    `http://127.0.0.1:${relay.address().port}`, resumingFetch({ fetch: trying, gapMs: 500 }));
  assert.equal(await textOf(chat(7, quiet), 0), await textOf(chat(7), 0));
  assert.ok(relay.silenced > 0 && tries > 1, `${relay.silenced} silences, ${tries} tries`);
  relay.close();
}
await server.stop();
console.log(`${breaks} streams killed in flight and resumed: all equal`);
