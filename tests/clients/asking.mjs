// SPDX-License-Identifier: Apache-2.0
// What the suites ask for, and what they expect of any answer.
import assert from 'node:assert/strict';
import { z } from 'zod';

export const HELLO = 'Say hello to Ada, please.';
export const CITIES = ['Uppsala', 'Visby'];
export const WEATHER = z.object({ city: z.enum(CITIES) });
export const REPORT = z.object({ city: z.enum(CITIES), degrees: z.int().min(-40).max(40) });
export const WEATHER_SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string', enum: CITIES } },
  required: ['city'],
  additionalProperties: false,
};
export const REPORT_SCHEMA = {
  type: 'object',
  properties: {
    city: { type: 'string', enum: CITIES },
    degrees: { type: 'integer', minimum: -40, maximum: 40 },
  },
  required: ['city', 'degrees'],
  additionalProperties: false,
};

// Noise for weights may talk until its tokens are over: some seed comes to its end.
export async function firstWhole(ask, isWhole) {
  let last;
  for (let seed = 0; seed < 30; ++seed) {
    last = await ask(seed);
    if (isWhole(last)) return last;
  }
  throw new Error(`no seed came to its end: ${JSON.stringify(last).slice(0, 600)}`);
}

// The error that `call` must end with.
export async function refusal(call, kind) {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof kind, `a ${kind.name}, not ${error.stack}`);
    return error;
  }
  throw new Error(`no ${kind.name}`);
}

// Asks until the key's minute is used up; says when to come back.
export async function rateLimit(ask, kind) {
  const error = await refusal(async () => {
    for (let tries = 0; tries < 4; ++tries) await ask();
  }, kind);
  assert.equal(error.status ?? error.statusCode, 429);
  const headers = error.headers ?? new Headers(error.responseHeaders);
  const seconds = Number(headers.get('retry-after'));
  assert.ok(seconds > 0 && seconds <= 60, `seconds to wait, not ${seconds}`);
  return error;
}

export async function eventually(what, isTrue) {
  for (let tries = 0; tries < 400; ++tries) {
    if (await isTrue()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`never came true: ${what}`);
}

// Nothing runs any more, and one more request ended because its client had gone.
export async function workStops(server, cancelledBefore) {
  await eventually('the work of a client that left has ended', async () => {
    const running = await server.metric('hearth_requests_running');
    return running === 0 && (await cancelled(server)) === cancelledBefore + 1;
  });
}

export async function cancelled(server) {
  return (await server.metric('hearth_requests_finished_total{reason="cancelled"}')) ?? 0;
}
