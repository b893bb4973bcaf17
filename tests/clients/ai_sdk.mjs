// SPDX-License-Identifier: Apache-2.0
// npm `ai` with `@ai-sdk/openai-compatible` against hearth serve, as agents built on it ask.
import assert from 'node:assert/strict';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import {
  APICallError,
  Output,
  embedMany,
  generateText,
  jsonSchema,
  stepCountIs,
  streamText,
  tool,
} from 'ai';
import * as asking from './asking.mjs';

// The package warns on the terminal about what it itself does not know.
globalThis.AI_SDK_LOG_WARNINGS = false;

function provider({ server, wire, key }) {
  return createOpenAICompatible({
    name: 'hearth',
    baseURL: `${server.address}/v1`,
    apiKey: key,
    fetch: wire.fetch,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
}

const plain = (t) => ({
  model: provider(t)(t.model),
  prompt: asking.HELLO,
  maxOutputTokens: 10,
  maxRetries: 0,
});
const greedy = (t) => ({ ...plain(t), temperature: 0 });
const shaped = (t) => ({
  ...plain(t),
  maxOutputTokens: 160,
  providerOptions: { hearth: { reasoningEffort: 'none' } },
});
const weather = (asked = []) =>
  tool({
    description: 'The weather of a city.',
    inputSchema: asking.WEATHER,
    execute: (input) => {
      asked.push(input);
      return { degrees: 4 };
    },
  });
const idle = tool({ description: 'The weather.', inputSchema: asking.WEATHER });

function told(result) {
  const calls = result.toolCalls.map((call) => [call.toolName, call.input]);
  const reasoning = result.reasoningText ?? '';
  return { text: result.text, reasoning, calls, why: result.finishReason };
}

async function streamed(options) {
  const errors = [];
  const result = streamText({ ...options, onError: ({ error }) => errors.push(error) });
  await result.consumeStream();
  if (errors.length > 0) throw errors[0];
  return {
    text: await result.text,
    reasoningText: await result.reasoningText,
    toolCalls: await result.toolCalls,
    finishReason: await result.finishReason,
    usage: await result.usage,
    response: await result.response,
  };
}

async function bothWays(options) {
  const whole = await generateText(options);
  const pieces = await streamed(options);
  assert.deepEqual(told(pieces), told(whole), 'streamed and whole');
  assert.equal(pieces.usage.outputTokens, whole.usage.outputTokens);
  assert.equal(pieces.usage.inputTokens, whole.usage.inputTokens);
  return whole;
}

async function multiTurn(t) {
  const messages = [];
  let tokens = 0;
  for (const word of ['My name is Ada.', 'What is my name?', 'Again?']) {
    messages.push({ role: 'user', content: word });
    const { prompt, ...rest } = greedy(t);
    const reply = await bothWays({ ...rest, system: 'Be brief.', messages });
    assert.ok(reply.usage.inputTokens > tokens, 'the prompt grows');
    tokens = reply.usage.inputTokens;
    messages.push(...reply.response.messages);
  }
}

async function reasoning(t) {
  const options = { ...plain(t), maxOutputTokens: 40 };
  const reply = await asking.firstWhole(
    (seed) => bothWays({ ...options, seed }),
    (each) => (each.reasoningText ?? '') !== '',
  );
  assert.ok(reply.reasoningText.length > 0);
}

async function calls(t, choice, tools = { get_weather: idle }) {
  const reply = await asking.firstWhole(
    (seed) => bothWays({ ...shaped(t), tools, toolChoice: choice, seed }),
    (each) => each.finishReason === 'tool-calls',
  );
  assert.ok(reply.toolCalls.length > 0);
  for (const call of reply.toolCalls) asking.WEATHER.parse(call.input);
  return reply;
}

// The package runs the tool and goes on by itself.
async function loop(t, run) {
  const asked = [];
  await asking.firstWhole(
    async (seed) => {
      await run({
        ...shaped(t),
        tools: { get_weather: weather(asked) },
        toolChoice: 'required',
        stopWhen: stepCountIs(2),
        seed,
      }).catch(() => {});
      return asked;
    },
    (done) => done.length > 0,
  );
  asked.forEach((each) => asking.WEATHER.parse(each));
}

async function roundTrip(t) {
  const first = await calls(t, { type: 'tool', toolName: 'get_weather' });
  const results = first.toolCalls.map((call) => ({
    type: 'tool-result',
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    output: { type: 'json', value: { degrees: 4 } },
  }));
  const { prompt, ...rest } = greedy(t);
  const messages = [
    { role: 'user', content: asking.HELLO },
    ...first.response.messages,
    { role: 'tool', content: results },
  ];
  const tools = { get_weather: idle };
  const second = await bothWays({ ...rest, messages, tools, toolChoice: 'none' });
  assert.ok(second.usage.inputTokens > first.usage.inputTokens);
  assert.deepEqual(second.toolCalls, []);
}

async function object(t, output, isRight) {
  const reply = await asking.firstWhole(
    (seed) =>
      generateText({ ...shaped(t), output, seed }).then(
        (each) => ({ why: each.finishReason, value: each.finishReason === 'stop' && each.output }),
        (error) => ({ error: String(error) }),
      ),
    (each) => each.why === 'stop',
  );
  isRight(reply.value);
}

async function streamedObject(t) {
  const output = Output.object({ schema: asking.REPORT });
  const value = await asking.firstWhole(
    async (seed) => {
      const result = streamText({ ...shaped(t), output, seed, onError: () => {} });
      const parts = [];
      for await (const part of result.partialOutputStream) parts.push(part);
      return (await result.finishReason) === 'stop' && parts.at(-1);
    },
    (each) => each !== false,
  );
  asking.REPORT.parse(value);
}

// name, options, what the message names
const MISTAKES = [
  ['temperature', { temperature: 9 }, 'temperature'],
  ['unknown_field', { providerOptions: { hearth: { temperatur: 1 } } }, 'temperatur'],
  ['max_tokens', { maxOutputTokens: 1 << 26 }, 'maximum context length'],
  ['penalty', { frequencyPenalty: 9 }, 'frequency_penalty'],
];

async function refuses(t, change, names) {
  for (const ask of [generateText, streamed]) {
    const error = await asking.refusal(() => ask({ ...plain(t), ...change }), Error);
    const cause = APICallError.isInstance(error) ? error : error.lastError ?? error.cause;
    assert.ok(APICallError.isInstance(cause), String(error));
    assert.equal(cause.statusCode, 400);
    assert.equal(cause.isRetryable, false);
    assert.ok(cause.message.includes(names), cause.message);
  }
}

async function abortStream(t) {
  const before = await asking.cancelled(t.server);
  const controller = new AbortController();
  const result = streamText({
    ...plain(t),
    maxOutputTokens: 1500,
    providerOptions: { hearth: { ignore_eos: true } },
    abortSignal: controller.signal,
    onError: () => {},
  });
  let parts = 0;
  for await (const _ of result.fullStream) {
    if (++parts === 6) controller.abort();
  }
  await asking.workStops(t.server, before);
}

async function abortWhole(t) {
  const before = await asking.cancelled(t.server);
  const controller = new AbortController();
  const options = { ...plain(t), maxOutputTokens: 1500 };
  const asked = asking.refusal(
    () =>
      generateText({
        ...options,
        providerOptions: { hearth: { ignore_eos: true } },
        abortSignal: controller.signal,
      }),
    Error,
  );
  await asking.eventually('it runs', async () => (await t.server.metric('hearth_requests_running')) > 0);
  controller.abort();
  await asked;
  await asking.workStops(t.server, before);
}

async function completion(t) {
  const model = provider(t).completionModel(t.model);
  const options = { model, prompt: 'Once upon', maxOutputTokens: 8, temperature: 0, maxRetries: 0 };
  const whole = await generateText(options);
  const pieces = await streamed(options);
  assert.equal(pieces.text, whole.text);
}

async function embeddings(t) {
  const model = provider(t).embeddingModel(t.model);
  const { embeddings: found, usage } = await embedMany({ model, values: ['a', 'b'], maxRetries: 0 });
  assert.equal(found.length, 2);
  assert.ok(Math.abs(Math.hypot(...found[0]) - 1) < 1e-3, 'of length 1');
  assert.ok(usage.tokens > 1);
}

const choiceOf = (values) => Output.choice({ options: values });
const schemaOf = (schema) => Output.object({ schema: jsonSchema(schema) });

export const cases = [
  ['text.greedy', 'both', (t) => bothWays(greedy(t))],
  ['text.sampled', 'both', (t) => bothWays({ ...plain(t), temperature: 1.2, topP: 0.9, seed: 3 })],
  ['text.system', 'both', (t) => bothWays({ ...greedy(t), system: 'Be brief.' })],
  ['text.multi_turn', 'both', multiTurn],
  ['text.stop', 'both', (t) => bothWays({ ...greedy(t), stopSequences: ['a', 'e'] })],
  [
    'text.penalties',
    'both',
    (t) => bothWays({ ...greedy(t), frequencyPenalty: 1, presencePenalty: 0.5 }),
  ],
  [
    'text.usage',
    'both',
    async (t) => {
      const { usage } = await bothWays(greedy(t));
      assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
      assert.ok(usage.outputTokens > 0 && usage.outputTokens <= 10);
    },
  ],
  ['text.completion_model', 'both', completion],
  ['reasoning.text', 'tiny', reasoning],
  ...['none', 'low', 'high'].map((effort) => [
    `reasoning.effort_${effort}`,
    'tiny',
    (t) =>
      bothWays({ ...plain(t), seed: 1, providerOptions: { hearth: { reasoningEffort: effort } } }),
  ]),
  ['tools.required', 'tiny', (t) => calls(t, 'required')],
  ['tools.named', 'tiny', (t) => calls(t, { type: 'tool', toolName: 'get_weather' })],
  [
    'tools.auto',
    'tiny',
    (t) => bothWays({ ...plain(t), seed: 1, tools: { get_weather: idle } }),
  ],
  // Its template has no form for tools.
  ['tools.generic', 'smollm2', (t) => calls(t, 'required')],
  ['tools.round_trip', 'tiny', roundTrip],
  ['tools.loop', 'tiny', (t) => loop(t, generateText)],
  ['tools.loop_streamed', 'tiny', (t) => loop(t, streamed)],
  [
    'shape.object',
    'both',
    (t) => object(t, Output.object({ schema: asking.REPORT }), (value) => asking.REPORT.parse(value)),
  ],
  ['shape.object_streamed', 'both', streamedObject],
  [
    'shape.json_schema',
    'both',
    (t) => object(t, schemaOf(asking.REPORT_SCHEMA), (value) => asking.REPORT.parse(value)),
  ],
  [
    'shape.choice',
    'both',
    (t) => object(t, choiceOf(asking.CITIES), (value) => assert.ok(asking.CITIES.includes(value))),
  ],
  ['embeddings', 'both', embeddings],
  ['cancel.stream', 'both', abortStream],
  ['cancel.whole', 'both', abortWhole],
  ...MISTAKES.map(([name, change, names]) => [
    `error.${name}`,
    'tiny',
    (t) => refuses(t, change, names),
  ]),
  [
    'error.model',
    'both',
    async (t) => {
      const ask = () => generateText({ ...plain(t), model: provider(t)('gpt-7') });
      assert.equal((await asking.refusal(ask, Error)).statusCode, 404);
    },
  ],
  [
    'error.rate_limit',
    'limited',
    async (t) => {
      const error = await asking.rateLimit(() => generateText(plain(t)), Error);
      assert.equal(error.isRetryable, true);
    },
  ],
  [
    'error.no_key',
    'keyed',
    async (t) => {
      const ask = () => generateText(plain({ ...t, key: 'no' }));
      assert.equal((await asking.refusal(ask, Error)).statusCode, 401);
    },
  ],
];
