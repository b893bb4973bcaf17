// SPDX-License-Identifier: Apache-2.0
// npm `@anthropic-ai/sdk` against /v1/messages: blocks and their events, thinking, tools, counts.
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import * as asking from './asking.mjs';

const HELLO = [{ role: 'user', content: asking.HELLO }];
const TOOL = {
  name: 'get_weather',
  description: 'The weather of a city.',
  input_schema: asking.WEATHER_SCHEMA,
};
const NAMED = { type: 'tool', name: 'get_weather' };
const DISABLED = { type: 'disabled' };

function client({ server, wire, key }) {
  const { address: baseURL } = server;
  return new Anthropic({ baseURL, apiKey: key, maxRetries: 0, fetch: wire.fetch });
}

const messages = (t) => client(t).messages;
const plain = (t) => ({ model: t.model, messages: HELLO, max_tokens: 10 });
const greedy = (t) => ({ ...plain(t), temperature: 0 });
const shaped = (t) => ({ ...plain(t), max_tokens: 160, thinking: DISABLED });
const textOf = (message) =>
  message.content.filter((block) => block.type === 'text').map((block) => block.text).join('');

// What a message says, without ids.
function told(message) {
  const blocks = message.content.map(({ id, ...rest }) => rest);
  const { stop_reason: why, stop_sequence: stop } = message;
  return { blocks, why, stop, tokens: message.usage.output_tokens };
}

// What the events add up to, put together without the SDK.
function joined(events) {
  assert.equal(events[0].type, 'message_start');
  assert.equal(events.at(-1).type, 'message_stop');
  const blocks = [];
  let end;
  for (const event of events) {
    if (event.type === 'content_block_start') {
      assert.equal(event.index, blocks.length);
      blocks.push({ ...event.content_block, json: '' });
    } else if (event.type === 'content_block_delta') {
      const block = blocks[event.index];
      const { type, ...delta } = event.delta;
      if (type === 'input_json_delta') block.json += delta.partial_json;
      else for (const [name, text] of Object.entries(delta)) block[name] += text;
    } else if (event.type === 'message_delta') {
      end = event;
    }
  }
  const content = blocks.map(({ json, ...block }) =>
    block.type === 'tool_use' ? { ...block, input: inputOf(json) } : block,
  );
  return told({ content, ...end.delta, usage: end.usage });
}

function inputOf(json) {
  try {
    return json === '' ? {} : JSON.parse(json);
  } catch {
    return { _incomplete: json };
  }
}

async function bothWays(t, body) {
  const whole = await messages(t).create(body);
  const events = [];
  for await (const event of await messages(t).create({ ...body, stream: true })) events.push(event);
  assert.deepEqual(joined(events), told(whole), 'streamed and whole');
  return whole;
}

async function streamHelper(t) {
  const whole = await messages(t).create(greedy(t));
  const stream = messages(t).stream(greedy(t));
  let text = '';
  stream.on('text', (delta) => (text += delta));
  const final = await stream.finalMessage();
  assert.deepEqual(told(final), told(whole), "the SDK's own accumulation");
  assert.equal(text, textOf(whole));
}

async function multiTurn(t) {
  const said = [];
  let tokens = 0;
  for (const word of ['My name is Ada.', 'What is my name?', 'Again?']) {
    said.push({ role: 'user', content: word });
    const reply = await bothWays(t, { ...greedy(t), system: 'Be brief.', messages: said });
    const used = reply.usage.input_tokens + reply.usage.cache_read_input_tokens;
    assert.ok(used > tokens, 'the prompt grows');
    tokens = used;
    said.push({ role: 'assistant', content: reply.content });
  }
}

async function calls(t, choice) {
  const ask = (seed) =>
    bothWays(t, { ...shaped(t), tools: [TOOL], tool_choice: choice, ...{ seed } });
  const reply = await asking.firstWhole(ask, (each) => each.stop_reason === 'tool_use');
  const made = reply.content.filter((block) => block.type === 'tool_use');
  assert.ok(made.length > 0);
  for (const call of made) asking.WEATHER.parse(call.input);
  return { reply, made };
}

async function roundTrip(t) {
  const { reply, made } = await calls(t, NAMED);
  const results = made.map((call) => ({
    type: 'tool_result',
    tool_use_id: call.id,
    content: [{ type: 'text', text: 'Sunny.' }],
  }));
  const after = await bothWays(t, {
    ...greedy(t),
    tools: [TOOL],
    tool_choice: { type: 'none' },
    messages: [
      ...HELLO,
      { role: 'assistant', content: reply.content },
      { role: 'user', content: results },
    ],
  });
  assert.ok(after.content.every((block) => block.type !== 'tool_use'));
}

// The SDK calls the function itself and sends the result back.
async function toolRunner(t, stream) {
  const asked = [];
  const tool = betaZodTool({
    name: 'get_weather',
    description: 'The weather of a city.',
    inputSchema: asking.WEATHER,
    run: (input) => {
      asked.push(input);
      return 'Sunny.';
    },
  });
  await asking.firstWhole(
    async (seed) => {
      const body = { ...shaped(t), tools: [tool], tool_choice: { type: 'any' }, seed, stream };
      const runner = client(t).beta.messages.toolRunner({ ...body, max_iterations: 2 });
      for await (const step of runner) if (stream) for await (const _ of step);
      return asked;
    },
    (done) => done.length > 0,
  );
  asked.forEach((each) => asking.WEATHER.parse(each));
}

async function thinking(t) {
  const thought = { type: 'enabled', budget_tokens: 8 };
  const reply = await asking.firstWhole(
    (seed) => bothWays(t, { ...plain(t), max_tokens: 30, thinking: thought, seed }),
    (each) => each.content.some((block) => block.type === 'thinking'),
  );
  const block = reply.content.find((each) => each.type === 'thinking');
  assert.ok(block.thinking.length > 0 && block.signature.length > 0);
  assert.ok(reply.usage.output_tokens_details.thinking_tokens > 0);
  const again = [
    ...HELLO,
    { role: 'assistant', content: reply.content },
    { role: 'user', content: 'And?' },
  ];
  await bothWays(t, { ...greedy(t), messages: again });
}

async function zodFormat(t) {
  // The package leaves numbers' bounds to the prose of the schema.
  const output = { format: zodOutputFormat(asking.WEATHER) };
  const reply = await asking.firstWhole(
    (seed) =>
      messages(t)
        .parse({ ...shaped(t), output_config: output, seed })
        .catch((error) => ({ error: String(error) })),
    (each) => each.stop_reason === 'end_turn',
  );
  asking.WEATHER.parse(reply.parsed_output);
}

async function schema(t) {
  const output = { format: { type: 'json_schema', schema: asking.REPORT_SCHEMA } };
  const reply = await asking.firstWhole(
    (seed) => bothWays(t, { ...shaped(t), output_config: output, seed }),
    (each) => each.stop_reason === 'end_turn',
  );
  asking.REPORT.parse(JSON.parse(textOf(reply)));
}

async function counts(t) {
  const body = { model: t.model, messages: HELLO, system: 'Be brief.' };
  if (t.house === 'tiny') body.tools = [TOOL];
  const counted = await messages(t).countTokens(body);
  const reply = await bothWays(t, { ...greedy(t), ...body });
  const { input_tokens: fresh, cache_read_input_tokens: cached } = reply.usage;
  assert.equal(counted.input_tokens, fresh + cached);
}

async function stops(t) {
  const body = { ...greedy(t), thinking: DISABLED };
  const free = textOf(await messages(t).create(body));
  const stop = [...free][Math.floor([...free].length / 2)];
  // Whitespace alone is a stop like any other here.
  const reply = await bothWays(t, { ...body, stop_sequences: [stop] });
  assert.equal(textOf(reply), free.slice(0, free.indexOf(stop)));
  assert.deepEqual([reply.stop_reason, reply.stop_sequence], ['stop_sequence', stop]);
}

async function abortStream(t) {
  const before = await asking.cancelled(t.server);
  const format = {
    type: 'json_schema',
    schema: { type: 'array', items: { type: 'boolean' }, minItems: 400 },
  };
  const body = { ...shaped(t), max_tokens: 1500, output_config: { format } };
  const stream = messages(t).stream(body);
  stream.on('error', () => {});
  await new Promise((resolve) => stream.once('text', resolve));
  stream.abort();
  await asking.refusal(() => stream.done(), Anthropic.APIUserAbortError);
  await asking.workStops(t.server, before);
}

// name, what is wrong, what the message names
const MISTAKES = [
  ['unknown_field', { temperatur: 1 }, 'temperatur'],
  ['no_messages', { messages: [] }, 'messages'],
  ['temperature', { temperature: 9 }, 'temperature'],
  ['max_tokens', { max_tokens: 0 }, 'max_tokens'],
  ['image', { messages: [{ role: 'user', content: [{ type: 'image' }] }] }, 'content[0].type'],
  ['server_tool', { tools: [{ type: 'bash_20250124', name: 'bash' }] }, 'tools[0].type'],
  ['choice_without_tools', { tool_choice: { type: 'any' } }, 'tool_choice'],
  ['budget', { thinking: { type: 'enabled' } }, 'thinking.budget_tokens'],
  ['unanswered_call', { messages: [...HELLO, { role: 'assistant', content: [
    { type: 'tool_use', id: 'a', name: 'f', input: {} }] }] }, 'messages'],
];

async function refuses(t, change, names) {
  for (const stream of [false, true]) {
    const ask = () => messages(t).create({ ...plain(t), ...change, stream });
    const error = await asking.refusal(ask, Anthropic.BadRequestError);
    assert.equal(error.type, 'invalid_request_error');
    assert.ok(error.message.includes(names), error.message);
    assert.ok(error.requestID, 'the id of the request');
  }
}

export const cases = [
  ['greedy', 'both', (t) => bothWays(t, greedy(t))],
  ['sampled', 'both', (t) => bothWays(t, { ...plain(t), temperature: 1.2, top_p: 0.9, seed: 3 })],
  ['top_k', 'both', (t) => bothWays(t, { ...plain(t), top_k: 5, seed: 3 })],
  ['system', 'both', (t) => bothWays(t, { ...greedy(t), system: 'Be brief.' })],
  [
    'system_blocks_and_cache_control',
    'both',
    (t) =>
      bothWays(t, {
        ...greedy(t),
        system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
        messages: [{ role: 'user', content: [{ type: 'text', text: asking.HELLO }] }],
      }),
  ],
  ['stream_helper', 'both', streamHelper],
  ['multi_turn', 'both', multiTurn],
  ['stop_sequences', 'both', stops],
  ['seeds', 'both', (t) => bothWays(t, { ...plain(t), seed: 11, temperature: 1.5 })],
  ['thinking.enabled', 'tiny', thinking],
  ['thinking.adaptive', 'tiny', (t) => bothWays(t, { ...plain(t), seed: 1, thinking: { type: 'adaptive' } })],
  [
    'thinking.disabled',
    'both',
    async (t) => {
      const reply = await bothWays(t, { ...plain(t), thinking: DISABLED, seed: 1 });
      assert.ok(reply.content.every((block) => block.type !== 'thinking'));
    },
  ],
  ...['low', 'medium', 'high', 'max'].map((effort) => [
    `effort_${effort}`,
    'tiny',
    (t) => bothWays(t, { ...plain(t), output_config: { effort }, seed: 1 }),
  ]),
  ['tools.named', 'tiny', (t) => calls(t, NAMED)],
  ['tools.any', 'tiny', (t) => calls(t, { type: 'any' })],
  [
    'tools.one_at_a_time',
    'tiny',
    async (t) => {
      const { made } = await calls(t, { type: 'any', disable_parallel_tool_use: true });
      assert.equal(made.length, 1);
    },
  ],
  ['tools.auto', 'tiny', (t) => bothWays(t, { ...plain(t), tools: [TOOL], seed: 1 })],
  ['tools.generic', 'smollm2', roundTrip],
  ['tools.round_trip', 'tiny', roundTrip],
  ['tools.runner', 'tiny', (t) => toolRunner(t, false)],
  ['tools.runner_streamed', 'tiny', (t) => toolRunner(t, true)],
  ['shape.json_schema', 'both', schema],
  ['shape.zod', 'both', zodFormat],
  ['count_tokens', 'both', counts],
  ['cancel.stream', 'both', abortStream],
  ...MISTAKES.map(([name, change, names]) => [
    `error.${name}`,
    'tiny',
    (t) => refuses(t, change, names),
  ]),
  [
    'error.context_length',
    'both',
    async (t) => {
      const long = [{ role: 'user', content: 'owl '.repeat(9000) }];
      const ask = () => messages(t).create({ ...plain(t), messages: long });
      const error = await asking.refusal(ask, Anthropic.BadRequestError);
      assert.match(error.message, /prompt is too long/);
    },
  ],
  [
    'error.model',
    'both',
    async (t) => {
      const ask = () => messages(t).create({ ...plain(t), model: 'claude-7' });
      assert.equal((await asking.refusal(ask, Anthropic.NotFoundError)).type, 'not_found_error');
    },
  ],
  [
    'error.no_key',
    'keyed',
    async (t) => {
      const ask = () => messages({ ...t, key: 'no' }).create(plain(t));
      const error = await asking.refusal(ask, Anthropic.AuthenticationError);
      assert.equal(error.type, 'authentication_error');
    },
  ],
  [
    'error.rate_limit',
    'limited',
    async (t) => {
      const ask = () => messages(t).create(plain(t));
      const error = await asking.rateLimit(ask, Anthropic.RateLimitError);
      assert.equal(error.type, 'rate_limit_error');
    },
  ],
  ['with_key', 'keyed', (t) => bothWays(t, greedy(t))],
];
