// SPDX-License-Identifier: Apache-2.0
// The SDKs ship their types as TypeScript alone. This turns them into JSON schemas that allow no
// field the types do not name:  node types.mjs OUT.json
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createGenerator } from 'ts-json-schema-generator';

const here = path.dirname(fileURLToPath(import.meta.url));

// Beyond OpenAI's types, and named in docs/api.md: reasoning under both names that clients look
// for, and what a model's card tells.
const EXTRAS = {
  ChatCompletionMessage: { reasoning: 'string', reasoning_content: 'string' },
  'ChatCompletionChunk.Choice.Delta': { reasoning: 'string', reasoning_content: 'string' },
  Model: {
    max_model_len: 'integer',
    context_length: 'integer',
    root: 'string',
    default_sampling: 'object',
  },
};

function schemasOf(entry) {
  const schema = createGenerator({
    path: path.join(here, entry),
    type: 'Wire',
    tsconfig: path.join(here, 'tsconfig.json'),
    skipTypeCheck: true,
    expose: 'all',
    jsDoc: 'none',
    topRef: false,
    additionalProperties: false,
  }).createSchema('Wire');
  return schema;
}

const openai = schemasOf('wire_openai.ts');
for (const [name, fields] of Object.entries(EXTRAS)) {
  const { properties } = openai.definitions[name];
  for (const [field, type] of Object.entries(fields)) properties[field] = { type };
}
// The SDK adds this one to what the server sent.
const { Response } = openai.definitions;
delete Response.properties.output_text;
Response.required = Response.required.filter((field) => field !== 'output_text');
// OpenAI says null here as long as it does not know; the type says that it may be absent.
Response.properties.usage = { anyOf: [Response.properties.usage, { type: 'null' }] };

// Asked for as base64, which the SDK does by itself, an embedding is a string on the wire.
const { Embedding } = openai.definitions;
Embedding.properties.embedding = {
  anyOf: [Embedding.properties.embedding, { type: 'string' }],
};

const out = { openai, anthropic: schemasOf('wire_anthropic.ts') };
fs.writeFileSync(process.argv[2], JSON.stringify(out));
const counts = Object.values(out).map((schema) => Object.keys(schema.definitions).length);
console.log(`types of openai: ${counts[0]}, of anthropic: ${counts[1]}`);
