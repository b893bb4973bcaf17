// SPDX-License-Identifier: Apache-2.0
// What a conversation is: a tree of messages, of which one path is shown. Editing a message or asking
// again adds a sibling; nothing is overwritten.

export type Role = 'user' | 'assistant' | 'tool';

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

export interface Attachment {
  name: string;
  text: string;
}

export interface TokenChance {
  text: string;
  logprob: number;
  others: {text: string; logprob: number}[];
}

// What the server told about one reply, and what was measured here.
export interface Report {
  model?: string;
  promptTokens?: number;
  cachedTokens?: number;
  computedTokens?: number;
  completionTokens?: number;
  reasoningTokens?: number;
  cacheMiss?: string;
  requestId?: string;
  sentAt: number;
  firstMs?: number;  // until the first token of any kind
  totalMs?: number;
  resumed?: number;  // how often the connection was lost and the stream taken up again
}

// null: running, or the page was closed while it ran. `lost`: the connection broke.
export type Finish = null | 'stop' | 'length' | 'tool_calls' | 'stopped' | 'lost' | 'error' | string;

export interface Message {
  id: string;
  parent: string | null;
  role: Role;
  content: string;
  createdAt: number;
  attachments?: Attachment[];
  reasoning?: string;
  reasoningMs?: number;
  calls?: ToolCall[];
  callId?: string;  // of a tool's result
  tokens?: TokenChance[];
  report?: Report;
  finish?: Finish;
  error?: string;
  isJson?: boolean;  // it was asked for as JSON
}

export interface Settings {
  model?: string;
  system?: string;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  repetition_penalty?: number;
  max_tokens?: number;
  seed?: number;
  reasoning_effort?: string;
  format?: 'text' | 'json_object' | 'json_schema';
  schema?: string;  // as typed
  tools?: string;   // as typed: a JSON list of functions
  details?: boolean;  // ask for log-probabilities
}

export interface Conversation {
  id: string;
  title: string;
  isNamed?: boolean;  // by the user: the first message no longer names it
  createdAt: number;
  updatedAt: number;
  settings: Settings;
  messages: Record<string, Message>;
  chosen: Record<string, string>;  // parent ('' for none) -> the child that is shown
}

export type Summary = Pick<Conversation, 'id' | 'title' | 'updatedAt'>;

export const newId = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(9)), (b) => b.toString(36).padStart(2, '0')).join('');

export function newConversation(settings: Settings = {}): Conversation {
  const now = Date.now();
  return {id: newId(), title: 'New chat', createdAt: now, updatedAt: now, settings, messages: {}, chosen: {}};
}

export function childrenOf(conversation: Conversation, parent: string | null): Message[] {
  return Object.values(conversation.messages)
    .filter((message) => message.parent === parent)
    .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
}

// The messages that are shown, first to last.
export function pathOf(conversation: Conversation): Message[] {
  const path: Message[] = [];
  let at = conversation.chosen[''];
  while (at !== undefined && conversation.messages[at] && path.length < 10_000) {
    path.push(conversation.messages[at]!);
    at = conversation.chosen[at];
  }
  return path;
}

// The path from the beginning up to this message, whether it is shown or not.
export function pathTo(conversation: Conversation, id: string | null): Message[] {
  const path: Message[] = [];
  for (let at = id; at !== null && conversation.messages[at]; at = conversation.messages[at]!.parent) {
    path.unshift(conversation.messages[at]!);
  }
  return path;
}

// A new conversation value with the message added below its parent and shown.
export function withMessage(conversation: Conversation, message: Message): Conversation {
  return {
    ...conversation,
    updatedAt: Date.now(),
    messages: {...conversation.messages, [message.id]: message},
    chosen: {...conversation.chosen, [message.parent ?? '']: message.id},
  };
}

export function withoutMessage(conversation: Conversation, id: string): Conversation {
  const gone = conversation.messages[id];
  if (!gone) return conversation;
  const messages = {...conversation.messages};
  const chosen = {...conversation.chosen};
  const remove = (at: string) => {
    for (const child of childrenOf(conversation, at)) remove(child.id);
    delete messages[at];
    delete chosen[at];
  };
  remove(id);
  const siblings = childrenOf(conversation, gone.parent).filter((m) => m.id !== id);
  const parent = gone.parent ?? '';
  if (chosen[parent] === id) {
    const last = siblings[siblings.length - 1];
    if (last) chosen[parent] = last.id;
    else delete chosen[parent];
  }
  return {...conversation, updatedAt: Date.now(), messages, chosen};
}

export function titleFrom(text: string): string {
  const line = text.trim().split('\n')[0]!.replace(/\s+/g, ' ');
  return line.length > 60 ? `${line.slice(0, 57)}…` : line || 'New chat';
}
