// SPDX-License-Identifier: Apache-2.0
// npm `openai` against /v1/responses: items and their events, reasoning, calls, what is stored.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod';
import * as asking from './asking.mjs';

const TOOL = {
  type: 'function',
  name: 'get_weather',
  description: 'The weather of a city.',
  parameters: asking.WEATHER_SCHEMA,
  strict: true,
};
const NAMED = { type: 'function', name: 'get_weather' };

function api({ server, wire, key }) {
  const baseURL = `${server.address}/v1`;
  return new OpenAI({ baseURL, apiKey: key, maxRetries: 0, fetch: wire.fetch }).responses;
}

const plain = (t) => ({ model: t.model, input: asking.HELLO, max_output_tokens: 10 });
const greedy = (t) => ({ ...plain(t), temperature: 0 });
const shaped = (t) => ({ ...plain(t), max_output_tokens: 160, reasoning: { effort: 'none' } });

// What a response says, without ids and times.
function told(response) {
  const items = response.output.map(({ id, call_id: call, ...rest }) => rest);
  return { items, status: response.status, why: response.incomplete_details?.reason ?? null };
}

// The response of the last event, checked against what the deltas before it add up to.
function joined(events) {
  assert.deepEqual(
    events.slice(0, 2).map((event) => event.type),
    ['response.created', 'response.in_progress'],
  );
  const final = events.at(-1).response;
  const texts = final.output.map(() => '');
  for (const event of events) {
    if (event.type.endsWith('.delta')) texts[event.output_index] += event.delta;
    if (event.type === 'response.output_item.done') {
      assert.deepEqual(event.item, final.output[event.output_index], 'an item when it was done');
    }
  }
  final.output.forEach((item, index) => {
    assert.equal(texts[index], item.arguments ?? item.content[0].text, `deltas of ${item.type}`);
  });
  return told(final);
}

async function bothWays(t, body) {
  const whole = await api(t).create(body);
  const events = [];
  for await (const event of await api(t).create({ ...body, stream: true })) events.push(event);
  assert.deepEqual(joined(events), told(whole), 'streamed and whole');
  return { whole, events };
}

async function streamHelper(t) {
  const { whole } = await bothWays(t, greedy(t));
  const stream = api(t).stream(greedy(t));
  const types = new Set();
  stream.on('event', (event) => types.add(event.type));
  const final = await stream.finalResponse();
  assert.equal(final.output_text, whole.output_text);
  assert.ok(types.has('response.created') && types.has('response.in_progress'));
}

// Everything about thoughts: the item, its events in their order, the count of its tokens.
async function reasoning(t) {
  const body = { ...plain(t), max_output_tokens: 40, reasoning: { effort: 'high', summary: 'auto' } };
  const seen = await asking.firstWhole(
    (seed) => bothWays(t, { ...body, seed }),
    ({ whole }) => whole.output.some((item) => item.type === 'reasoning'),
  );
  const item = seen.whole.output.find((each) => each.type === 'reasoning');
  assert.equal(item.content[0].type, 'reasoning_text');
  assert.deepEqual(item.summary, []);
  assert.ok(seen.whole.usage.output_tokens_details.reasoning_tokens > 0);
  const types = seen.events.map((event) => event.type);
  const first = types.indexOf('response.reasoning_text.delta');
  assert.ok(first > types.indexOf('response.output_item.added'), types.join());
  assert.ok(types.indexOf('response.reasoning_text.done') > first, types.join());
}

async function encrypted(t) {
  const include = ['reasoning.encrypted_content'];
  const body = { ...plain(t), max_output_tokens: 40, include, store: false };
  const { whole } = await asking.firstWhole(
    (seed) => bothWays(t, { ...body, seed }),
    (each) => each.whole.output.some((item) => item.type === 'reasoning'),
  );
  const item = whole.output.find((each) => each.type === 'reasoning');
  assert.ok(item.encrypted_content.length > 0);
  const again = { role: 'user', content: 'And?' };
  const input = [{ role: 'user', content: asking.HELLO }, ...whole.output, again];
  await bothWays(t, { ...greedy(t), input, store: false });
}

async function previous(t) {
  const first = await api(t).create({ ...greedy(t), input: 'My name is Ada.' });
  const named = { ...greedy(t), input: 'What is my name?', previous_response_id: first.id };
  const { whole: second } = await bothWays(t, named);
  const input = [
    { role: 'user', content: 'My name is Ada.' },
    ...first.output,
    { role: 'user', content: 'What is my name?' },
  ];
  const byHand = await api(t).create({ ...greedy(t), input, store: false });
  assert.deepEqual(told(second), told(byHand), 'by name and by hand');
  assert.equal(second.usage.input_tokens, byHand.usage.input_tokens);
  assert.equal(second.previous_response_id, first.id);
}

async function stored(t) {
  const made = await api(t).create({ ...greedy(t), metadata: { a: 'b' } });
  const kept = await api(t).retrieve(made.id);
  assert.deepEqual(kept, made);
  const items = [];
  for await (const item of api(t).inputItems.list(made.id)) items.push(item);
  assert.equal(items[0].content[0].text, asking.HELLO);
  await api(t).delete(made.id);
  const look = () => api(t).retrieve(made.id);
  assert.equal((await asking.refusal(look, OpenAI.NotFoundError)).status, 404);
}

async function notStored(t) {
  const made = await api(t).create({ ...greedy(t), store: false });
  await asking.refusal(() => api(t).retrieve(made.id), OpenAI.NotFoundError);
}

async function calls(t, choice, more = {}) {
  const { whole } = await asking.firstWhole(
    (seed) => bothWays(t, { ...shaped(t), tools: [TOOL], tool_choice: choice, seed, ...more }),
    (each) => each.whole.status === 'completed',
  );
  const made = whole.output.filter((item) => item.type === 'function_call');
  assert.ok(made.length > 0, JSON.stringify(whole.output));
  for (const call of made) asking.WEATHER.parse(JSON.parse(call.arguments));
  return { whole, made };
}

async function roundTrip(t, byName) {
  const { whole, made } = await calls(t, NAMED);
  const results = made.map((call) => ({
    type: 'function_call_output',
    call_id: call.call_id,
    output: 'Sunny.',
  }));
  const asked = { role: 'user', content: asking.HELLO };
  const input = byName ? results : [asked, ...whole.output, ...results];
  const id = byName ? { previous_response_id: whole.id } : {};
  const body = { ...greedy(t), ...id, input, tools: [TOOL], tool_choice: 'none' };
  const { whole: after } = await bothWays(t, body);
  assert.ok(after.usage.input_tokens > whole.usage.input_tokens);
  assert.ok(after.output.every((item) => item.type !== 'function_call'));
}

async function zodFormat(t) {
  const text = { format: zodTextFormat(asking.REPORT, 'report') };
  const reply = await asking.firstWhole(
    (seed) => api(t).parse({ ...shaped(t), text, seed }).catch((error) => ({ error })),
    (each) => each.status === 'completed',
  );
  asking.REPORT.parse(reply.output_parsed);
}

async function zodTool(t) {
  const tools = [zodResponsesFunction({ name: 'get_weather', parameters: asking.WEATHER })];
  const reply = await asking.firstWhole(
    (seed) =>
      api(t).parse({ ...shaped(t), tools, tool_choice: NAMED, seed }).catch((error) => ({ error })),
    (each) => each.status === 'completed',
  );
  const call = reply.output.find((item) => item.type === 'function_call');
  asking.WEATHER.parse(call.parsed_arguments);
}

async function schema(t) {
  const format = { type: 'json_schema', name: 'report', schema: asking.REPORT_SCHEMA, strict: true };
  const { whole } = await asking.firstWhole(
    (seed) => bothWays(t, { ...shaped(t), text: { format }, seed }),
    (each) => each.whole.status === 'completed',
  );
  asking.REPORT.parse(JSON.parse(whole.output_text));
}

async function usage(t) {
  const { whole } = await bothWays(t, greedy(t));
  const { usage: used } = whole;
  assert.equal(used.total_tokens, used.input_tokens + used.output_tokens);
  assert.ok(used.output_tokens <= 10 && used.input_tokens_details.cached_tokens >= 0);
  const counted = await api(t).inputTokens.count({ model: t.model, input: asking.HELLO });
  assert.equal(counted.input_tokens, used.input_tokens);
}

async function abortStream(t) {
  const before = await asking.cancelled(t.server);
  const input = 'Tell me everything. '.repeat(20);
  // Without an end of its own: a schema that never closes.
  const format = {
    type: 'json_schema',
    name: 'long',
    schema: { type: 'array', items: { type: 'boolean' }, minItems: 400 },
  };
  const body = { ...plain(t), input, max_output_tokens: 1500, text: { format }, stream: true };
  const stream = await api(t).create({ ...body, reasoning: { effort: 'none' } });
  let events = 0;
  for await (const _ of stream) {
    if (++events === 6) break;
  }
  stream.controller.abort();
  await asking.workStops(t.server, before);
}

// name, what is wrong, what the message names
const MISTAKES = [
  ['unknown_field', { inputs: 'x' }, 'inputs'],
  ['no_input', { input: null }, 'input'],
  ['temperature', { temperature: -1 }, 'temperature'],
  ['truncation', { truncation: 'auto' }, 'truncation'],
  ['tool_type', { tools: [{ type: 'file_search', vector_store_ids: ['x'] }] }, 'tools[0].type'],
  ['conversation', { conversation: 'conv_1' }, 'conversation'],
  ['effort', { reasoning: { effort: 'huge' } }, 'reasoning.effort'],
  ['item_type', { input: [{ type: 'item_reference', id: 'x' }] }, 'input[0].type'],
];

async function refuses(t, change, names) {
  for (const stream of [false, true]) {
    const ask = () => api(t).create({ ...plain(t), ...change, stream });
    const error = await asking.refusal(ask, OpenAI.BadRequestError);
    assert.ok(error.message.includes(names), error.message);
    assert.equal(error.type, 'invalid_request_error');
  }
}

export const cases = [
  ['greedy', 'both', (t) => bothWays(t, greedy(t))],
  ['sampled', 'both', (t) => bothWays(t, { ...plain(t), temperature: 1.2, top_p: 0.9, seed: 3 })],
  ['instructions', 'both', (t) => bothWays(t, { ...greedy(t), instructions: 'Be brief.' })],
  [
    'input_items',
    'both',
    (t) =>
      bothWays(t, {
        ...greedy(t),
        input: [
          { role: 'developer', content: 'Be brief.' },
          { role: 'user', content: [{ type: 'input_text', text: asking.HELLO }] },
        ],
      }),
  ],
  ['stream_helper', 'both', streamHelper],
  ['reasoning.items_and_events', 'tiny', reasoning],
  ['reasoning.encrypted_content', 'tiny', encrypted],
  ...['none', 'minimal', 'low', 'medium', 'high', 'xhigh'].map((effort) => [
    `reasoning.effort_${effort}`,
    'tiny',
    async (t) => {
      const { whole } = await bothWays(t, { ...plain(t), seed: 1, reasoning: { effort } });
      assert.equal(whole.reasoning.effort, effort);
      if (effort === 'none') assert.ok(whole.output.every((item) => item.type !== 'reasoning'));
    },
  ]),
  ['previous_response', 'both', previous],
  ['stored', 'both', stored],
  ['not_stored', 'both', notStored],
  ['tools.named', 'tiny', (t) => calls(t, NAMED)],
  ['tools.required', 'tiny', (t) => calls(t, 'required')],
  [
    'tools.one_at_a_time',
    'tiny',
    async (t) => {
      const { made } = await calls(t, 'required', { parallel_tool_calls: false });
      assert.equal(made.length, 1);
    },
  ],
  ['tools.auto', 'tiny', (t) => bothWays(t, { ...plain(t), tools: [TOOL], seed: 1 })],
  ['tools.none', 'tiny', (t) => bothWays(t, { ...plain(t), seed: 1, tools: [TOOL], tool_choice: 'none' })],
  ['tools.round_trip', 'tiny', (t) => roundTrip(t, false)],
  ['tools.round_trip_by_id', 'tiny', (t) => roundTrip(t, true)],
  ['tools.generic', 'smollm2', (t) => roundTrip(t, false)],
  ['tools.zod', 'tiny', zodTool],
  ['shape.json_schema', 'both', schema],
  ['shape.zod', 'both', zodFormat],
  ['usage_and_count', 'both', usage],
  [
    'seeds',
    'both',
    async (t) => {
      const ask = (seed) => api(t).create({ ...plain(t), temperature: 1.5, seed });
      assert.deepEqual(told(await ask(1)), told(await ask(1)));
    },
  ],
  ['cancel.stream', 'both', abortStream],
  ...MISTAKES.map(([name, change, names]) => [
    `error.${name}`,
    'tiny',
    (t) => refuses(t, change, names),
  ]),
  [
    'error.previous_unknown',
    'both',
    async (t) => {
      const ask = () => api(t).create({ ...plain(t), previous_response_id: 'resp_nothing' });
      assert.ok((await asking.refusal(ask, OpenAI.NotFoundError)).message.includes('resp_nothing'));
    },
  ],
  [
    'error.context_length',
    'both',
    async (t) => {
      const ask = () => api(t).create({ ...plain(t), input: 'owl '.repeat(9000) });
      const error = await asking.refusal(ask, OpenAI.BadRequestError);
      assert.equal(error.code, 'context_length_exceeded');
    },
  ],
  [
    'error.rate_limit',
    'limited',
    (t) => asking.rateLimit(() => api(t).create(plain(t)), OpenAI.RateLimitError),
  ],
  [
    'error.no_key',
    'keyed',
    (t) =>
      asking.refusal(() => api({ ...t, key: 'no' }).create(plain(t)), OpenAI.AuthenticationError),
  ],
];
