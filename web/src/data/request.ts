// SPDX-License-Identifier: Apache-2.0
// A conversation as the body of POST /v1/chat/completions.
import type {Attachment, Conversation, Message, Settings} from './types';

// Longer than any run of backticks inside, so that no file can end its own fence.
function fenced(text: string): string {
  const runs = text.match(/`{3,}/g) ?? [];
  const fence = '`'.repeat(Math.max(3, ...runs.map((run) => run.length + 1)));
  return `${fence}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`;
}

export function contentOf(text: string, attachments: Attachment[] = []): string {
  const files = attachments.map((file) => `File "${file.name}":\n${fenced(file.text)}`);
  return [text, ...files].filter((part) => part !== '').join('\n\n');
}

function asWire(message: Message): object {
  if (message.role === 'tool') {
    return {role: 'tool', tool_call_id: message.callId, content: message.content};
  }
  if (message.role === 'user') {
    return {role: 'user', content: contentOf(message.content, message.attachments)};
  }
  const calls = message.calls?.map((call) => ({
    id: call.id, type: 'function', function: {name: call.name, arguments: call.arguments},
  }));
  return calls?.length
    ? {role: 'assistant', content: message.content, tool_calls: calls}
    : {role: 'assistant', content: message.content};
}

export function wireMessages(settings: Settings, path: Message[]): object[] {
  const system = settings.system?.trim();
  return [...(system ? [{role: 'system', content: system}] : []), ...path.map(asWire)];
}

function parsed(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${what}: not valid JSON (${(error as Error).message})`);
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

// Functions as typed: the API's form, or only its inner objects.
export function toolsFrom(text: string | undefined): object[] {
  if (!text?.trim()) return [];
  const list = parsed(text, 'Tools');
  if (!Array.isArray(list) || !list.every(isObject)) throw new Error('Tools: expected a JSON list of functions');
  return list.map((tool) => {
    const inner = isObject(tool.function) ? tool.function : tool;
    if (typeof inner.name !== 'string') throw new Error('Tools: every function needs a name');
    return {type: 'function', function: inner};
  });
}

export function schemaFrom(text: string | undefined): object {
  const schema = parsed(text?.trim() || '{}', 'Schema');
  if (!isObject(schema)) throw new Error('Schema: expected a JSON object');
  return schema;
}

const NUMBERS = ['temperature', 'top_p', 'top_k', 'min_p', 'repetition_penalty', 'max_tokens', 'seed'] as const;

// Fields that are left open are left out: then the model's own defaults count.
export function bodyFor(conversation: Conversation, path: Message[]): string {
  const {settings} = conversation;
  const body: Record<string, unknown> = {
    messages: wireMessages(settings, path),
    stream: true,
    stream_options: {include_usage: true},
    return_progress: true,
  };
  if (settings.model) body.model = settings.model;
  for (const name of NUMBERS) if (settings[name] !== undefined) body[name] = settings[name];
  if (settings.reasoning_effort) body.reasoning_effort = settings.reasoning_effort;
  if (settings.details) Object.assign(body, {logprobs: true, top_logprobs: 5});
  const tools = toolsFrom(settings.tools);
  if (tools.length > 0) body.tools = tools;
  if (settings.format === 'json_object') body.response_format = {type: 'json_object'};
  if (settings.format === 'json_schema') {
    body.response_format = {
      type: 'json_schema',
      json_schema: {name: 'reply', schema: schemaFrom(settings.schema), strict: true},
    };
  }
  return JSON.stringify(body);
}
