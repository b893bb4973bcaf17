// SPDX-License-Identifier: Apache-2.0
// npm `ollama` against /api: every route that the package has; each reply whole and streamed.
import assert from 'node:assert/strict';
import { Ollama } from 'ollama';
import * as asking from './asking.mjs';

const HELLO = [{ role: 'user', content: asking.HELLO }];
const SHORT = { num_predict: 10, temperature: 0 };
const TOOL = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city.',
    parameters: asking.WEATHER_SCHEMA,
  },
};

function client({ server, key }) {
  return new Ollama({ host: server.address, headers: { Authorization: `Bearer ${key}` } });
}

// What a reply says, without ids and times.
function told({ message, ...reply }) {
  const said = message ?? { content: reply.response, ...reply };
  return {
    text: said.content ?? '',
    thinking: said.thinking ?? '',
    calls: (said.tool_calls ?? []).map((call) => call.function),
    logprobs: reply.logprobs ?? [],
    why: reply.done_reason,
    counts: [reply.prompt_eval_count, reply.eval_count],
  };
}

// What the pieces of a stream add up to, put together without the package.
function joined(parts) {
  assert.deepEqual(
    parts.map((part) => part.done),
    parts.map((_, index) => index === parts.length - 1),
  );
  const pieces = parts.map(told);
  return {
    ...pieces.at(-1),
    text: pieces.map((piece) => piece.text).join(''),
    thinking: pieces.map((piece) => piece.thinking).join(''),
    calls: pieces.flatMap((piece) => piece.calls),
    logprobs: pieces.flatMap((piece) => piece.logprobs),
  };
}

// `verb` is chat or generate. The package writes into what it is given, so each call gets a copy.
async function bothWays(t, verb, body) {
  const whole = await client(t)[verb](structuredClone(body));
  const parts = [];
  const stream = await client(t)[verb]({ ...structuredClone(body), stream: true });
  for await (const part of stream) parts.push(part);
  assert.deepEqual(joined(parts), told(whole), 'streamed and whole');
  return whole;
}

const chat = (t, more = {}) =>
  bothWays(t, 'chat', {
    model: t.model,
    messages: HELLO,
    ...more,
    options: { ...SHORT, ...more.options },
  });
const generate = (t, more = {}) =>
  bothWays(t, 'generate', {
    model: t.model,
    prompt: 'Once upon',
    ...more,
    options: { ...SHORT, ...more.options },
  });
const warm = (seed, tokens) => ({ temperature: 1, seed, num_predict: tokens });

async function refuses(call, status, words) {
  const error = await asking.refusal(call, Error);
  assert.equal(error.name, 'ResponseError', error.stack);
  assert.equal(error.status_code, status, error.message);
  assert.match(error.error, words);
}

async function plain(t) {
  const reply = await chat(t);
  assert.equal(reply.model, t.model);
  assert.equal(reply.message.role, 'assistant');
  assert.ok(reply.eval_count > 0 && reply.eval_count <= 10);
  assert.ok(reply.total_duration >= reply.eval_duration && reply.eval_duration > 0);
  assert.ok(Math.abs(new Date(reply.created_at) - Date.now()) < 60_000, reply.created_at);
}

async function multiTurn(t) {
  const said = [{ role: 'system', content: 'Be brief.' }];
  let tokens = 0;
  for (const word of ['My name is Ada.', 'What is my name?', 'Again?']) {
    said.push({ role: 'user', content: word });
    const reply = await chat(t, { messages: said });
    assert.ok(reply.prompt_eval_count > tokens, 'the prompt grows');
    tokens = reply.prompt_eval_count;
    said.push(reply.message);
  }
}

// A last message of the assistant's: the reply is what follows it.
async function continued(t) {
  const begun = { role: 'assistant', content: 'Hello, my dear' };
  const reply = await chat(t, { messages: [...HELLO, begun] });
  assert.ok(reply.prompt_eval_count > (await chat(t)).prompt_eval_count, 'a longer prompt');
  assert.ok(!(reply.message.content ?? '').startsWith(begun.content), reply.message.content);
}

async function seeds(t) {
  const [one, same, other] = await Promise.all(
    [1, 1, 2].map((seed) => chat(t, { options: { ...warm(seed, 12), temperature: 2 } })),
  );
  assert.deepEqual(told(same), told(one));
  assert.notDeepEqual(told(other), told(one));
}

async function shaped(t, verb) {
  const ask = (seed) => verb(t, { format: asking.REPORT_SCHEMA, think: false, options: warm(seed, 120) });
  const reply = await asking.firstWhole(ask, (each) => each.done_reason === 'stop');
  asking.REPORT.parse(JSON.parse(told(reply).text));
}

async function calls(t) {
  const ask = (seed) => chat(t, { tools: [TOOL], think: false, options: warm(seed, 160) });
  const reply = await asking.firstWhole(ask, (each) => each.message.tool_calls?.length > 0);
  for (const call of reply.message.tool_calls) {
    assert.equal(call.function.name, 'get_weather');
    asking.WEATHER.parse(call.function.arguments);
  }
  return reply;
}

async function roundTrip(t) {
  const reply = await calls(t);
  const results = reply.message.tool_calls.map((call) => ({
    role: 'tool',
    tool_name: call.function.name,
    content: 'Sunny.',
  }));
  const after = await chat(t, { tools: [TOOL], messages: [...HELLO, reply.message, ...results] });
  assert.ok(after.prompt_eval_count > reply.prompt_eval_count);
}

async function thinks(t) {
  const ask = (seed) => chat(t, { think: 'low', options: warm(seed, 20) });
  await asking.firstWhole(ask, (each) => each.message.thinking?.length > 0);
  const silent = await chat(t, { think: false, options: warm(1, 20) });
  assert.equal(silent.message.thinking, undefined);
}

async function logprobs(t) {
  const reply = await chat(t, { logprobs: true, top_logprobs: 2, think: false });
  assert.equal(reply.logprobs.map((each) => each.token).join(''), reply.message.content);
  for (const each of reply.logprobs) assert.equal(each.top_logprobs.length, 2);
}

async function embeds(t) {
  const api = client(t);
  const { embeddings } = await api.embed({ model: t.model, input: ['one', 'two'], truncate: true });
  assert.equal(embeddings.length, 2);
  assert.ok(Math.abs(Math.hypot(...embeddings[0]) - 1) < 1e-3);
  const old = await api.embeddings({ model: t.model, prompt: 'two' });
  assert.deepEqual(old.embedding, embeddings[1]);
}

async function lists(t) {
  const api = client(t);
  const { models } = await api.list();
  assert.deepEqual(models.map((each) => each.name), [`${t.model}:latest`]);
  const running = await api.ps();
  assert.equal(running.models[0].digest, models[0].digest);
  assert.ok(new Date(running.models[0].expires_at) > Date.now());
  assert.match((await api.version()).version, /^\d+\.\d+\.\d+$/);
}

async function shows(t) {
  const shown = await client(t).show({ model: `${t.model}:latest` });
  const family = shown.model_info['general.architecture'];
  assert.equal(shown.details.family, family);
  assert.ok(shown.model_info[`${family}.context_length`] >= 2048);
  assert.ok(shown.capabilities.includes('completion') && shown.capabilities.includes('tools'));
}

async function pulls(t) {
  const api = client(t);
  assert.equal((await api.pull({ model: t.model })).status, 'success');
  const parts = [];
  for await (const part of await api.pull({ model: t.model, stream: true })) parts.push(part);
  assert.equal(parts.at(-1).status, 'success');
  for (const stream of [false, true]) {
    await refuses(() => api.pull({ model: 'llama3.2', stream }), 501, /hearth pull/);
  }
}

async function changesNothing(t) {
  const api = client(t);
  await refuses(() => api.create({ model: 'x', from: t.model }), 501, /not implemented/);
  await refuses(() => api.copy({ source: t.model, destination: 'x' }), 501, /not implemented/);
  await refuses(() => api.delete({ model: t.model }), 501, /not implemented/);
  await refuses(() => api.push({ model: t.model }), 501, /not implemented/);
}

async function loads(t) {
  const api = client(t);
  for (const keep_alive of [0, -1, '5m']) {
    const reply = await api.generate({ model: t.model, prompt: '', keep_alive });
    assert.deepEqual([reply.done, reply.done_reason, reply.response], [true, 'load', '']);
    assert.equal((await api.chat({ model: t.model, keep_alive })).done_reason, 'load');
  }
}

async function abortStream(t) {
  const before = await asking.cancelled(t.server);
  const stream = await client(t).chat({
    model: t.model,
    messages: HELLO,
    stream: true,
    options: { num_predict: 1500, temperature: 1, seed: 3, stop: [] },
  });
  await assert.rejects(async () => {
    for await (const _ of stream) stream.abort();
  }, /abort/i);
  await asking.workStops(t.server, before);
}

const MISTAKES = [
  ['option', { options: { temprature: 1 } }, /Unknown field "options.temprature"/],
  ['option_range', { options: { top_p: 2 } }, /options.top_p: its value must be between/],
  ['format', { format: 'xml' }, /format: must be "json" or a JSON schema/],
  ['think', { think: 'much' }, /think: must be true, false/],
  ['images', { messages: [{ ...HELLO[0], images: ['aGk='] }] }, /images: not supported/],
  ['role', { messages: [{ role: 'robot', content: 'x' }] }, /messages\[0\].role/],
  ['field', { temperature: 1 }, /Unknown field "temperature"/],
];

async function mistake(t, members, words) {
  for (const stream of [false, true]) {
    const body = { model: t.model, messages: HELLO, ...structuredClone(members), stream };
    await refuses(() => client(t).chat(body), 400, words);
  }
}

export const cases = [
  ['chat', 'both', plain],
  ['chat.turns', 'both', multiTurn],
  ['chat.continued', 'both', continued],
  ['chat.seed', 'both', seeds],
  ['chat.schema', 'both', (t) => shaped(t, chat)],
  ['chat.tools', 'tiny', calls],
  ['chat.tool_round_trip', 'tiny', roundTrip],
  ['chat.think', 'tiny', thinks],
  ['chat.logprobs', 'both', logprobs],
  ['chat.load', 'both', loads],
  ['chat.abort', 'both', abortStream],
  ['chat.key', 'keyed', plain],
  ['generate', 'both', (t) => generate(t)],
  ['generate.raw', 'both', (t) => generate(t, { raw: true })],
  ['generate.system', 'both', (t) => generate(t, { system: 'Be brief.' })],
  ['generate.schema', 'both', (t) => shaped(t, generate)],
  ['embed', 'both', embeds],
  ['models.list', 'both', lists],
  ['models.show', 'both', shows],
  ['models.pull', 'both', pulls],
  ['models.change', 'both', changesNothing],
  ['error.model', 'both', (t) => refuses(() => chat({ ...t, model: 'x' }), 404, /not found/)],
  ['error.key', 'keyed', (t) => refuses(() => chat({ ...t, key: 'no' }), 401, /invalid API key/)],
  ['error.rate', 'limited', async (t) => {
    const ask = async () => {
      for (let tries = 0; tries < 4; ++tries) await chat(t);
    };
    await refuses(ask, 429, /Rate limit reached/);
  }],
  ...MISTAKES.map(([name, members, words]) => [
    `error.${name}`, 'tiny', (t) => mistake(t, members, words),
  ]),
];
