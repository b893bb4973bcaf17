// SPDX-License-Identifier: Apache-2.0
// The official clients over clients/typescript, while the worker of hearth serve is killed:
//   node resume.mjs HEARTH KILLS
import assert from 'node:assert/strict';
import fs from 'node:fs';
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
const openai = new OpenAI({ baseURL: `${server.address}/v1`, apiKey: 'none', fetch: wrapped, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: server.address, apiKey: 'none', fetch: wrapped, maxRetries: 0 });
const content = (number) => [{ role: 'user', content: `Tell tale ${number}` }];

async function* chat(number) {
  const stream = await openai.chat.completions.create({
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
await server.stop();
console.log(`${breaks} streams killed in flight and resumed: all equal`);
