// SPDX-License-Identifier: Apache-2.0
// npm `openai` against /v1/chat/completions, /v1/completions, /v1/models and /v1/embeddings.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import * as asking from './asking.mjs';

const HELLO = [{ role: 'user', content: asking.HELLO }];
const TOOL = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city.',
    parameters: asking.WEATHER_SCHEMA,
    strict: true,
  },
};
const WAIT = { type: 'function', function: { name: 'wait', parameters: { type: 'object' } } };
const NAMED = { type: 'function', function: { name: 'get_weather' } };
const FORMAT = {
  type: 'json_schema',
  json_schema: { name: 'report', schema: asking.REPORT_SCHEMA, strict: true },
};

function client({ server, wire, key }) {
  return new OpenAI({
    baseURL: `${server.address}/v1`,
    apiKey: key,
    maxRetries: 0,
    fetch: wire.fetch,
  });
}

const chats = (t) => client(t).chat.completions;
const plain = (t) => ({ model: t.model, messages: HELLO, max_completion_tokens: 10 });
const greedy = (t) => ({ ...plain(t), temperature: 0 });
// Few thoughts, then room for a shape.
const shaped = (t) => ({ ...plain(t), max_completion_tokens: 160, reasoning_effort: 'none' });

// [content, reasoning, calls, finish reason] of a stream's choice.
async function joined(stream, index = 0) {
  let [content, reasoning, finish] = ['', '', null];
  const calls = [];
  for await (const chunk of stream) {
    for (const choice of chunk.choices.filter((each) => each.index === index)) {
      const { delta } = choice;
      assert.equal(delta.reasoning, delta.reasoning_content, 'both names of reasoning');
      content += delta.content ?? '';
      reasoning += delta.reasoning ?? '';
      for (const call of delta.tool_calls ?? []) {
        if (call.id) calls.push([call.function.name, '']);
        calls[call.index][1] += call.function.arguments;
      }
      finish = choice.finish_reason ?? finish;
    }
  }
  return [content, reasoning, calls, finish];
}

function told(completion, index = 0) {
  const { message, finish_reason: finish } = completion.choices[index];
  const calls = (message.tool_calls ?? []).map((call) => [
    call.function.name,
    call.function.arguments,
  ]);
  return [message.content ?? '', message.reasoning ?? '', calls, finish];
}

// The same request whole and streamed; what is told must not differ.
async function bothWays(t, body, check = () => {}) {
  const whole = await chats(t).create(body);
  const stream = await chats(t).create({ ...body, stream: true });
  assert.deepEqual(await joined(stream), told(whole), 'streamed and whole');
  await check(whole);
  return whole;
}

async function callsOf(t, choice, more = {}) {
  return asking.firstWhole(
    (seed) =>
      chats(t).create({ ...shaped(t), tools: [TOOL, WAIT], tool_choice: choice, seed, ...more }),
    (reply) => reply.choices[0].finish_reason === 'tool_calls',
  );
}

function checkCall(call) {
  assert.equal(call.type, 'function');
  assert.match(call.id, /^call_[0-9a-f]+$/);
  if (call.function.name === 'get_weather') asking.WEATHER.parse(JSON.parse(call.function.arguments));
}

async function roundTrip(t) {
  const first = await callsOf(t, NAMED);
  const { message } = first.choices[0];
  message.tool_calls.forEach(checkCall);
  const results = message.tool_calls.map((call) => ({
    role: 'tool',
    tool_call_id: call.id,
    content: '{"degrees": 4}',
  }));
  const body = {
    ...greedy(t),
    tools: [TOOL],
    tool_choice: 'none',
    messages: [...HELLO, message, ...results],
  };
  const second = await bothWays(t, body);
  assert.ok(second.usage.prompt_tokens > first.usage.prompt_tokens);
  assert.equal(second.choices[0].message.tool_calls, undefined);
}

const [BadRequest, NotFound, Unauthorized] = [
  OpenAI.BadRequestError,
  OpenAI.NotFoundError,
  OpenAI.AuthenticationError,
];

// name, what is wrong, field, code
const MISTAKES = [
  ['unknown_field', { temperatur: 1 }, 'temperatur', 'unknown_parameter'],
  ['temperature_range', { temperature: 9 }, 'temperature', null],
  ['temperature_type', { temperature: 'hot' }, 'temperature', null],
  ['max_tokens_zero', { max_completion_tokens: 0 }, 'max_completion_tokens', null],
  ['n_range', { n: 99 }, 'n', null],
  ['stop_empty', { stop: [''] }, 'stop', null],
  ['role', { messages: [{ role: 'wizard', content: 'x' }] }, 'messages[0].role', null],
  ['messages_empty', { messages: [] }, 'messages', null],
  ['audio', { audio: { voice: 'alloy', format: 'wav' } }, 'audio', 'unsupported_parameter'],
  ['top_logprobs_alone', { top_logprobs: 3 }, 'top_logprobs', null],
  ['choice_without_tools', { tool_choice: 'required' }, 'tool_choice', null],
  [
    'schema',
    { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'no' } } } },
    'response_format',
    null,
  ],
];

async function refuses(t, change, field, code) {
  for (const stream of [false, true]) {
    const body = { ...plain(t), ...change, stream };
    const error = await asking.refusal(() => chats(t).create(body), BadRequest);
    assert.equal(error.status, 400);
    assert.equal(error.type, 'invalid_request_error');
    assert.equal(error.param?.split('.')[0], field.split('.')[0]);
    assert.equal(error.code, code);
    assert.ok(error.message.includes(field), error.message);
  }
}

async function abortStream(t) {
  const before = await asking.cancelled(t.server);
  const body = { ...plain(t), max_completion_tokens: 1500, ignore_eos: true, stream: true };
  const stream = await chats(t).create(body);
  let chunks = 0;
  for await (const _ of stream) {
    if (++chunks === 3) break;
  }
  stream.controller.abort();
  await asking.workStops(t.server, before);
}

async function abortWhole(t) {
  const before = await asking.cancelled(t.server);
  const controller = new AbortController();
  const body = { ...plain(t), max_completion_tokens: 1500, ignore_eos: true };
  const asked = asking.refusal(
    () => chats(t).create(body, { signal: controller.signal }),
    OpenAI.APIUserAbortError,
  );
  await asking.eventually('it runs', async () => (await t.server.metric('hearth_requests_running')) > 0);
  controller.abort();
  await asked;
  await asking.workStops(t.server, before);
}

async function streamHelper(t) {
  const whole = await chats(t).create(greedy(t));
  const runner = chats(t).stream(greedy(t));
  let content = '';
  runner.on('content', (delta) => (content += delta));
  const final = await runner.finalChatCompletion();
  assert.equal(content, whole.choices[0].message.content ?? '');
  assert.equal(final.choices[0].finish_reason, whole.choices[0].finish_reason);
  assert.deepEqual(told(final).slice(0, 1), told(whole).slice(0, 1));
}

async function zodParsed(t) {
  const format = zodResponseFormat(asking.REPORT, 'report');
  const reply = await asking.firstWhole(
    (seed) =>
      chats(t)
        .parse({ ...shaped(t), response_format: format, seed })
        .catch((error) => ({ error, choices: [{}] })),
    (each) => each.choices[0].finish_reason === 'stop',
  );
  asking.REPORT.parse(reply.choices[0].message.parsed);
}

async function zodTool(t) {
  const tool = zodFunction({ name: 'get_weather', parameters: asking.WEATHER });
  const reply = await asking.firstWhole(
    (seed) =>
      chats(t)
        .parse({ ...shaped(t), tools: [tool], tool_choice: NAMED, seed })
        .catch((error) => ({ error, choices: [{}] })),
    (each) => each.choices[0].finish_reason === 'tool_calls',
  );
  asking.WEATHER.parse(reply.choices[0].message.tool_calls[0].function.parsed_arguments);
}

// The SDK calls the function itself and sends the result back; the second answer may be anything.
async function runsTools(t, stream) {
  const asked = [];
  const tool = {
    type: 'function',
    function: {
      name: 'get_weather',
      parameters: asking.WEATHER_SCHEMA,
      parse: JSON.parse,
      function: (given) => {
        asked.push(asking.WEATHER.parse(given));
        return '{"degrees": 4}';
      },
    },
  };
  await asking.firstWhole(
    async (seed) => {
      const body = { ...shaped(t), max_completion_tokens: 60, tools: [tool], tool_choice: 'required' };
      const runner = chats(t).runTools({ ...body, seed, stream }, { maxChatCompletions: 2 });
      await runner.done().catch(() => {});
      return runner.messages.map((message) => message.role);
    },
    (roles) => roles.filter((role) => role === 'tool').length > 0,
  );
  assert.ok(asked.length > 0);
}

async function logprobs(t) {
  const body = { ...greedy(t), reasoning_effort: 'none', logprobs: true, top_logprobs: 3 };
  const whole = await chats(t).create(body);
  const entries = whole.choices[0].logprobs.content;
  const bytes = Buffer.from(entries.flatMap((each) => each.bytes));
  assert.equal(bytes.toString('utf8'), whole.choices[0].message.content);
  for (const entry of entries) {
    assert.equal(entry.top_logprobs.length, 3);
    assert.ok(entry.logprob <= 0 && entry.top_logprobs[0].logprob >= entry.logprob);
  }
  const streamed = [];
  for await (const chunk of await chats(t).create({ ...body, stream: true })) {
    for (const choice of chunk.choices) streamed.push(...(choice.logprobs?.content ?? []));
  }
  assert.deepEqual(streamed, entries);
}

async function choices(t) {
  const body = { ...plain(t), n: 3, seed: 4, temperature: 1 };
  const whole = await chats(t).create(body);
  assert.deepEqual(whole.choices.map((each) => each.index), [0, 1, 2]);
  for (const index of [0, 1, 2]) {
    const stream = await chats(t).create({ ...body, stream: true });
    assert.deepEqual(await joined(stream, index), told(whole, index));
  }
  const alone = await chats(t).create({ ...body, n: 1 });
  assert.deepEqual(told(alone), told(whole));
}

async function seeds(t) {
  const ask = (seed) => chats(t).create({ ...plain(t), seed, temperature: 1.5 });
  assert.deepEqual(told(await ask(7)), told(await ask(7)), 'the same seed');
  const others = await Promise.all([8, 9, 10].map(ask));
  const texts = new Set(others.map((each) => JSON.stringify(told(each))));
  assert.ok(texts.size > 1, 'other seeds, other replies');
}

async function usage(t) {
  const whole = await chats(t).create(greedy(t));
  const { usage: used } = whole;
  assert.equal(used.total_tokens, used.prompt_tokens + used.completion_tokens);
  assert.ok(used.completion_tokens > 0 && used.completion_tokens <= 10);
  assert.ok(used.prompt_tokens_details.cached_tokens <= used.prompt_tokens);
  const seen = [];
  const options = { stream: true, stream_options: { include_usage: true } };
  for await (const chunk of await chats(t).create({ ...greedy(t), ...options })) seen.push(chunk);
  assert.deepEqual(seen.at(-1).choices, []);
  assert.equal(seen.at(-1).usage.completion_tokens, used.completion_tokens);
  assert.equal(seen.at(-1).usage.prompt_tokens, used.prompt_tokens);
  assert.ok(seen.slice(0, -1).every((chunk) => chunk.usage === null));
}

async function stops(t) {
  const free = told(await chats(t).create({ ...greedy(t), reasoning_effort: 'none' }))[0];
  const stop = [...free][Math.floor([...free].length / 2)];
  const body = { ...greedy(t), reasoning_effort: 'none', stop: [stop] };
  const whole = await bothWays(t, body);
  assert.equal(whole.choices[0].message.content, free.slice(0, free.indexOf(stop)));
  assert.equal(whole.choices[0].finish_reason, 'stop');
}

async function multiTurn(t) {
  const messages = [{ role: 'system', content: 'Be brief.' }];
  let tokens = 0;
  for (const word of ['My name is Ada.', 'What is my name?', 'Again?']) {
    messages.push({ role: 'user', content: word });
    const reply = await bothWays(t, { ...greedy(t), messages });
    assert.ok(reply.usage.prompt_tokens > tokens, 'the prompt grows');
    tokens = reply.usage.prompt_tokens;
    messages.push(reply.choices[0].message);
  }
}

async function tooLong(t) {
  const messages = [{ role: 'user', content: 'owl '.repeat(9000) }];
  for (const stream of [false, true]) {
    const body = { ...plain(t), messages, stream };
    const error = await asking.refusal(() => chats(t).create(body), BadRequest);
    assert.equal(error.code, 'context_length_exceeded');
    assert.match(error.message, /maximum context length is \d+ tokens.*\d+/);
  }
}

async function completions(t) {
  const api = client(t).completions;
  const body = { model: t.model, prompt: 'Once upon', max_tokens: 8, temperature: 0 };
  const whole = await api.create(body);
  let text = '';
  for await (const chunk of await api.create({ ...body, stream: true })) {
    text += chunk.choices[0]?.text ?? '';
  }
  assert.equal(text, whole.choices[0].text);
  const many = await api.create({ ...body, prompt: ['Once', 'Two'], n: 2, temperature: 1, logprobs: 2 });
  assert.deepEqual(many.choices.map((each) => each.index), [0, 1, 2, 3]);
  for (const { logprobs: each } of many.choices) {
    assert.equal(each.tokens.length, each.token_logprobs.length);
  }
}

async function embeddings(t) {
  const ask = { model: t.model, input: ['Once upon', 'a time'] };
  const packed = await client(t).embeddings.create(ask); // the SDK asks for base64 and unpacks
  const open = await client(t).embeddings.create({ ...ask, encoding_format: 'float' });
  assert.deepEqual(open.data.map((each) => each.index), [0, 1]);
  const floats = (found) => found.data.map((each) => each.embedding.map(Math.fround));
  assert.deepEqual(floats(packed), floats(open), 'both encodings');
  assert.ok(open.usage.prompt_tokens > 1 && open.usage.total_tokens === open.usage.prompt_tokens);
}

async function models(t) {
  const listed = [];
  for await (const model of client(t).models.list()) listed.push(model);
  assert.deepEqual(listed.map((each) => each.id), [t.model]);
  assert.ok(listed[0].max_model_len >= 2048);
  assert.equal((await client(t).models.retrieve(t.model)).id, t.model);
}

export const cases = [
  ['chat.greedy', 'both', (t) => bothWays(t, greedy(t))],
  ['chat.sampled', 'both', (t) => bothWays(t, { ...plain(t), seed: 5, temperature: 1.2, top_p: 0.9 })],
  ['chat.multi_turn', 'both', multiTurn],
  ['chat.stream_helper', 'both', streamHelper],
  ['chat.usage', 'both', usage],
  ['chat.logprobs', 'both', logprobs],
  ['chat.choices', 'both', choices],
  ['chat.stop', 'both', stops],
  ['chat.seeds', 'both', seeds],
  [
    'chat.penalties',
    'both',
    (t) => bothWays(t, { ...greedy(t), frequency_penalty: 1, presence_penalty: 0.5 }),
  ],
  ['chat.logit_bias', 'both', (t) => bothWays(t, { ...greedy(t), logit_bias: { 11: -100, 13: 5 } })],
  [
    'chat.content_parts',
    'both',
    (t) =>
      bothWays(t, {
        ...greedy(t),
        messages: [{ role: 'user', content: [{ type: 'text', text: asking.HELLO }] }],
      }),
  ],
  [
    'chat.developer_role',
    'both',
    (t) =>
      bothWays(t, {
        ...greedy(t),
        messages: [{ role: 'developer', content: 'Be brief.' }, ...HELLO],
      }),
  ],
  ...['none', 'low', 'medium', 'high'].map((effort) => [
    `chat.reasoning_effort_${effort}`,
    'tiny',
    (t) =>
      bothWays(t, { ...plain(t), seed: 2, reasoning_effort: effort }, (whole) => {
        if (effort === 'none') assert.equal(told(whole)[1], '');
        else assert.ok(whole.usage.completion_tokens_details.reasoning_tokens >= 0);
      }),
  ]),
  ['tools.round_trip', 'tiny', roundTrip],
  [
    'tools.required',
    'tiny',
    async (t) => (await callsOf(t, 'required')).choices[0].message.tool_calls.forEach(checkCall),
  ],
  [
    'tools.named',
    'tiny',
    async (t) => {
      const { tool_calls: calls } = (await callsOf(t, NAMED)).choices[0].message;
      assert.ok(calls.every((call) => call.function.name === 'get_weather'));
      calls.forEach(checkCall);
    },
  ],
  [
    'tools.one_at_a_time',
    'tiny',
    async (t) => {
      const reply = await callsOf(t, 'required', { parallel_tool_calls: false });
      assert.equal(reply.choices[0].message.tool_calls.length, 1);
    },
  ],
  [
    'tools.required_streamed',
    'tiny',
    (t) => bothWays(t, { ...shaped(t), tools: [TOOL], tool_choice: 'required', seed: 1 }),
  ],
  ['tools.auto', 'tiny', (t) => bothWays(t, { ...plain(t), tools: [TOOL, WAIT], seed: 1 })],
  [
    'tools.none',
    'tiny',
    (t) =>
      bothWays(t, { ...plain(t), tools: [TOOL], tool_choice: 'none', seed: 1 }, (whole) =>
        assert.deepEqual(told(whole)[2], []),
      ),
  ],
  ['tools.generic', 'smollm2', roundTrip],
  ['tools.zod_function', 'tiny', zodTool],
  ['tools.run_tools', 'tiny', (t) => runsTools(t, false)],
  ['tools.run_tools_streamed', 'tiny', (t) => runsTools(t, true)],
  [
    'shape.json_schema',
    'both',
    async (t) => {
      const ask = (seed) => bothWays(t, { ...shaped(t), response_format: FORMAT, seed });
      const reply = await asking.firstWhole(ask, (each) => told(each)[3] === 'stop');
      asking.REPORT.parse(JSON.parse(reply.choices[0].message.content));
    },
  ],
  ['shape.zod_parse', 'both', zodParsed],
  [
    'shape.json_object',
    'both',
    (t) =>
      bothWays(
        t,
        { ...shaped(t), max_completion_tokens: 16, response_format: { type: 'json_object' }, seed: 1 },
        (whole) => assert.match(whole.choices[0].message.content, /^\s*\{/),
      ),
  ],
  ...MISTAKES.map(([name, change, field, code]) => [
    `error.${name}`,
    'tiny',
    (t) => refuses(t, change, field, code),
  ]),
  ['error.context_length', 'both', tooLong],
  [
    'error.model',
    'both',
    async (t) => {
      const ask = () => chats(t).create({ ...plain(t), model: 'gpt-7' });
      assert.equal((await asking.refusal(ask, NotFound)).code, 'model_not_found');
      const look = () => client(t).models.retrieve('gpt-7');
      assert.equal((await asking.refusal(look, NotFound)).code, 'model_not_found');
    },
  ],
  [
    'error.no_key',
    'keyed',
    async (t) => {
      const ask = () => chats({ ...t, key: 'wrong' }).create(plain(t));
      assert.equal((await asking.refusal(ask, Unauthorized)).code, 'invalid_api_key');
    },
  ],
  [
    'error.rate_limit',
    'limited',
    (t) => asking.rateLimit(() => chats(t).create(plain(t)), OpenAI.RateLimitError),
  ],
  ['chat.with_key', 'keyed', (t) => bothWays(t, greedy(t))],
  ['cancel.stream', 'both', abortStream],
  ['cancel.whole', 'both', abortWhole],
  ['completions.text', 'both', completions],
  ['embeddings.both_encodings', 'both', embeddings],
  ['models.list_and_card', 'both', models],
];
