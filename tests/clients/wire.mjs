// SPDX-License-Identifier: Apache-2.0
// A fetch for SDKs that looks at every byte on its way: each body and each server-sent event must
// be of the SDK's own type, with no field missing and none left over.
import fs from 'node:fs';
import Ajv from 'ajv';

// Path, type of a whole answer, type of an event.
const ROUTES = [
  [/^\/v1\/chat\/completions$/, 'openai', 'ChatCompletion', 'ChatCompletionChunk'],
  [/^\/v1\/completions$/, 'openai', 'Completion', 'CompletionChunk'],
  [/^\/v1\/embeddings$/, 'openai', 'CreateEmbeddingResponse'],
  [/^\/v1\/responses$/, 'openai', 'Response', 'ResponseStreamEvent'],
  [/^\/v1\/responses\/input_tokens$/, 'openai', 'InputTokenCountResponse'],
  [/^\/v1\/responses\/[^/]+\/input_items$/, 'openai', 'ResponseItemList'],
  [/^\/v1\/responses\/[^/]+(\/cancel)?$/, 'openai', 'Response', 'ResponseStreamEvent'],
  [/^\/v1\/models$/, 'openai', 'ModelList'],
  [/^\/v1\/models\/[^/]+$/, 'openai', 'Model'],
  [/^\/v1\/messages$/, 'anthropic', 'Message', 'RawMessageStreamEvent'],
  [/^\/v1\/messages\/count_tokens$/, 'anthropic', 'MessageTokensCount'],
];

// A function per type of types.mjs that throws when a value is not of it.
export function loadChecks(typesPath) {
  const checks = {};
  const types = JSON.parse(fs.readFileSync(typesPath, 'utf8'));
  for (const [sdk, schema] of Object.entries(types)) {
    const ajv = new Ajv({ strict: false, allErrors: true, allowUnionTypes: true });
    ajv.addSchema(schema, sdk);
    for (const name of Object.keys(schema.properties)) {
      const check = ajv.compile({ $ref: `${sdk}#/properties/${name}` });
      checks[`${sdk}.${name}`] = (value, where) => {
        if (!check(value)) throw new Error(`${where}: ${complaint(check.errors, value)}`);
      };
    }
  }
  return checks;
}

export class Wire {
  #checks;
  #pending = [];
  exchanges = [];

  constructor(checks) {
    this.#checks = checks;
  }

  // Bound, so that it can be handed over as a function.
  fetch = async (url, init) => {
    const exchange = { path: new URL(url).pathname, request: bodyOf(init), events: [] };
    exchange.method = init?.method ?? 'GET';
    this.exchanges.push(exchange);
    const response = await fetch(url, init);
    exchange.status = response.status;
    exchange.headers = Object.fromEntries(response.headers);
    const copy = response.clone();
    this.#pending.push(this.#look(exchange, copy).catch((error) => error));
    return response;
  };

  // What was sent since the last call; throws if any of it was not as it must be.
  async settle() {
    const errors = (await Promise.all(this.#pending)).filter((error) => error);
    const exchanges = this.exchanges;
    this.#pending = [];
    this.exchanges = [];
    if (errors.length > 0) throw errors[0];
    return exchanges;
  }

  async #look(exchange, response) {
    let text = '';
    try {
      const decoder = new TextDecoder('utf-8', { fatal: true });
      for await (const piece of response.body) text += decoder.decode(piece, { stream: true });
      text += decoder.decode();
    } catch (error) {
      if (error.name !== 'AbortError' && !/terminated|aborted/.test(error.message)) throw error;
      exchange.isCut = true;
    }
    const [, sdk, whole, event] = ROUTES.find(([path]) => path.test(exchange.path)) ?? [];
    const where = `${exchange.method} ${exchange.path}`;
    if (!sdk) throw new Error(`${where}: no type is known for it`);
    const isAnswer = exchange.method === 'POST' && exchange.status === 200;
    if (isAnswer && event && !exchange.headers['x-request-id']) {
      throw new Error(`${where}: no x-request-id`);
    }
    const type = exchange.headers['content-type'];
    if (type === 'text/event-stream') {
      this.#lookAtEvents(exchange, text, `${sdk}.${event}`, where);
    } else if (!exchange.isCut) {
      if (type !== 'application/json') throw new Error(`${where}: content-type ${type}`);
      exchange.body = JSON.parse(text);
      const name = exchange.status >= 400 ? 'Failure' : whole;
      const kind = exchange.method === 'DELETE' && name !== 'Failure' ? 'ResponseDeleted' : name;
      this.#checks[`${sdk}.${kind}`](exchange.body, where);
    }
  }

  #lookAtEvents(exchange, text, kind, where) {
    const blocks = text.split('\n\n');
    const rest = blocks.pop();
    if (!exchange.isCut && rest !== '') throw new Error(`${where}: ends with ${rest}`);
    for (const block of blocks) {
      const lines = block.split('\n').filter((line) => !line.startsWith(':'));
      if (lines.length === 0) continue;
      const fields = Object.fromEntries(lines.map((line) => split(line, where)));
      if (fields.data === '[DONE]') {
        exchange.isDone = true;
        continue;
      }
      if (exchange.isDone) throw new Error(`${where}: an event after [DONE]: ${block}`);
      const event = JSON.parse(fields.data);
      this.#checks[kind](event, `${where} event ${exchange.events.length}`);
      const isNamed = exchange.path === '/v1/responses' || exchange.path === '/v1/messages';
      if (fields.event !== (isNamed ? event.type : undefined)) {
        throw new Error(`${where}: the name of ${block}`);
      }
      if (exchange.path === '/v1/responses' && event.sequence_number !== exchange.events.length) {
        throw new Error(`${where}: the number of ${block}`);
      }
      exchange.events.push(event);
    }
    const hasMark = exchange.path.endsWith('completions');
    if (!exchange.isCut && hasMark !== (exchange.isDone ?? false)) {
      throw new Error(`${where}: [DONE]`);
    }
  }
}

function bodyOf(init) {
  return typeof init?.body === 'string' ? JSON.parse(init.body) : init?.body;
}

function split(line, where) {
  const at = line.indexOf(': ');
  const name = line.slice(0, at);
  if (!['data', 'event', 'id'].includes(name)) throw new Error(`${where}: a line ${line}`);
  return [name, line.slice(at + 2)];
}

// Of a union every branch complains; those that fit the value's own `type` come first.
function complaint(errors, value) {
  const told = errors
    .filter((error) => !['anyOf', 'const', 'enum'].includes(error.keyword))
    .map((error) => {
      const extra = error.params.additionalProperty ?? error.params.missingProperty ?? '';
      return `${error.instancePath || '/'} ${error.message} ${extra}`;
    });
  const all = [...new Set(told.length > 0 ? told : errors.map((error) => error.message))];
  return `${all.slice(0, 12).join('; ')} in ${JSON.stringify(value).slice(0, 1500)}`;
}
