// SPDX-License-Identifier: Apache-2.0
// Conversations as files: JSON with everything, Markdown of what is shown; and back.
import {type Conversation, type Message, newConversation, newId, pathOf, withMessage} from './types';

const KIND = 'hearth-conversations';

export const asJson = (list: Conversation[]) =>
  `${JSON.stringify({kind: KIND, version: 1, conversations: list}, null, 1)}\n`;

const HEADS: Record<string, Message['role']> = {User: 'user', Assistant: 'assistant', Tool: 'tool'};

// A line of the text itself that would read as a head or a comment of ours is marked with a backslash.
const guarded = (text: string) => text.replace(/^(\\*)(## (?:User|Assistant|Tool)$)/gm, '\\$1$2');
const unguarded = (text: string) => text.replace(/^\\(\\*## (?:User|Assistant|Tool)$)/gm, '$1');

export function asMarkdown(conversation: Conversation): string {
  const parts = [`# ${conversation.title}`];
  if (conversation.settings.system) parts.push(`> ${conversation.settings.system.replace(/\n/g, '\n> ')}`);
  for (const message of pathOf(conversation)) {
    const head = Object.keys(HEADS).find((name) => HEADS[name] === message.role)!;
    const files = (message.attachments ?? []).map((file) => `*Attached: ${file.name}*`);
    const calls = (message.calls ?? []).map((call) => `*Called ${call.name}(${call.arguments})*`);
    parts.push(`## ${head}`, ...[guarded(message.content), ...files, ...calls].filter((part) => part !== ''));
  }
  return `${parts.join('\n\n')}\n`;
}

export function fromMarkdown(text: string): Conversation {
  let conversation = newConversation();
  const title = /^# (.+)$/m.exec(text)?.[1];
  if (title) Object.assign(conversation, {title, isNamed: true});
  const sections = text.split(/^## (User|Assistant|Tool)[ \t]*$/m);
  const system = /^>[^\n]*(\n>[^\n]*)*/m.exec(sections[0]!)?.[0];
  if (system) conversation.settings.system = system.replace(/^> ?/gm, '');
  let parent: string | null = null;
  for (let i = 1; i + 1 < sections.length; i += 2) {
    const message: Message = {
      id: newId(), parent, role: HEADS[sections[i]!]!, content: unguarded(sections[i + 1]!.trim()),
      createdAt: Date.now() + i, finish: 'stop',
    };
    conversation = withMessage(conversation, message);
    parent = message.id;
  }
  if (parent === null) throw new Error('no "## User" or "## Assistant" heading was found');
  return conversation;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isId = (value: unknown): value is string => isText(value) && /^[A-Za-z0-9]{1,64}$/.test(value);

// Only the fields that are known, of the types they must have: a file may come from anybody.
function messageFrom(value: Record<string, unknown>): Message | null {
  const {id, parent, role, content} = value;
  if (!isId(id) || !(parent === null || isId(parent)) || !isText(content)) return null;
  if (role !== 'user' && role !== 'assistant' && role !== 'tool') return null;
  const message: Message = {id, parent, role, content, createdAt: Number(value.createdAt) || 0};
  if (isText(value.reasoning)) message.reasoning = value.reasoning;
  if (typeof value.reasoningMs === 'number') message.reasoningMs = value.reasoningMs;
  if (isText(value.callId)) message.callId = value.callId;
  if (isText(value.finish)) message.finish = value.finish;
  if (isText(value.error)) message.error = value.error;
  if (value.isJson === true) message.isJson = true;
  if (Array.isArray(value.attachments)) {
    message.attachments = value.attachments
      .filter((file) => isText(file?.name) && isText(file?.text))
      .map(({name, text}) => ({name, text}));
  }
  if (Array.isArray(value.calls)) {
    message.calls = value.calls
      .filter((call) => isText(call?.id) && isText(call?.name) && isText(call?.arguments))
      .map((call) => ({id: call.id, name: call.name, arguments: call.arguments}));
  }
  return message;
}

function settingsFrom(value: unknown): Conversation['settings'] {
  const out: Record<string, unknown> = {};
  const given = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  for (const name of ['model', 'system', 'reasoning_effort', 'format', 'schema', 'tools']) {
    if (isText(given[name])) out[name] = given[name];
  }
  for (const name of ['temperature', 'top_p', 'top_k', 'min_p', 'repetition_penalty', 'max_tokens', 'seed']) {
    if (typeof given[name] === 'number') out[name] = given[name];
  }
  return out;
}

function conversationFrom(value: Record<string, unknown>): Conversation {
  const conversation = newConversation(settingsFrom(value.settings));
  if (isText(value.title)) Object.assign(conversation, {title: value.title.slice(0, 200), isNamed: true});
  const given = Object.values((value.messages ?? {}) as Record<string, Record<string, unknown>>);
  for (const each of given) {
    const message = typeof each === 'object' && each !== null ? messageFrom(each) : null;
    if (message) conversation.messages[message.id] = message;
  }
  for (const message of Object.values(conversation.messages)) {
    if (message.parent !== null && !conversation.messages[message.parent]) delete conversation.messages[message.id];
  }
  for (const [parent, child] of Object.entries((value.chosen ?? {}) as Record<string, unknown>)) {
    if (isId(child) && conversation.messages[child]?.parent === (parent || null)) conversation.chosen[parent] = child;
  }
  return conversation;
}

export function fromJson(text: string): Conversation[] {
  const file = JSON.parse(text) as {kind?: unknown; conversations?: unknown};
  if (file?.kind !== KIND || !Array.isArray(file.conversations)) {
    throw new Error('this is not a file of exported conversations');
  }
  return file.conversations
    .filter((each) => typeof each === 'object' && each !== null)
    .map((each) => conversationFrom(each));
}

export function download(name: string, text: string, type: string) {
  const link = document.createElement('a');
  const url = URL.createObjectURL(new Blob([text], {type}));
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export const fileName = (title: string, suffix: string) =>
  `${title.replace(/[^\p{L}\p{N} _-]/gu, '').trim().slice(0, 60) || 'conversation'}.${suffix}`;
