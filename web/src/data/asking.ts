// SPDX-License-Identifier: Apache-2.0
// What makes the model speak: send, ask again, edit, continue, hand in a tool's result; and stop.
// A stream whose connection breaks is taken up again where the server numbers its events.
import {signal} from '@preact/signals';
import {ApiError, CannotResume, stream} from './api';
import {change, nameFrom, notice, peek, saveSoon, setLive} from './chats';
import {Reply} from './reply';
import {bodyFor} from './request';
import {type Attachment, childrenOf, type Message, newId, pathTo, withMessage} from './types';

const PATH = '/v1/chat/completions';
const MAX_ATTEMPTS = 6;
const stops = new Map<string, AbortController>();

export const progressOf = signal<Record<string, {total: number; done: number}>>({});

export interface Life {
  id: string;
  title: string;
  sentAt: number;
  firstMs?: number;
  totalMs: number;
  finish: string;
  report: Message['report'];
}
// The requests that this page made, newest first, for the server page.
export const lives = signal<Life[]>([]);

const emptyReply = (parent: string | null, isJson: boolean): Message =>
  ({id: newId(), parent, role: 'assistant', content: '', createdAt: Date.now(), isJson});

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    }, {once: true});
  });

// Reads the stream to its end, over several connections where that is possible.
async function receive(body: string, reply: Reply, stop: AbortSignal, show: () => void) {
  for (let attempt = 0; ;) {
    try {
      for await (const events of stream(PATH, body, stop, reply.lastId)) {
        attempt = 0;
        for (const event of events) reply.take(event);
        show();
      }
      if (reply.isDone || reply.failure !== undefined) return;
    } catch (error) {
      if (stop.aborted) return;
      if (error instanceof ApiError && (reply.lastId === undefined || attempt >= MAX_ATTEMPTS)) throw error;
      if (error instanceof CannotResume) return;
      if (reply.lastId === undefined && reply.report.firstMs === undefined) throw error;
    }
    if (stop.aborted || reply.lastId === undefined || attempt >= MAX_ATTEMPTS) return;
    reply.report.resumed = (reply.report.resumed ?? 0) + 1;
    await pause(250 * 2 ** attempt++, stop);
  }
}

function explain(error: unknown): string {
  if (error instanceof ApiError) {
    return error.retryAfter ? `${error.message} (try again in ${error.retryAfter} s)` : error.message;
  }
  if (error instanceof TypeError) return 'The server could not be reached.';
  return (error as Error).message;
}

function settle(reply: Reply, stop: AbortSignal, error: unknown) {
  const {message} = reply;
  reply.end();
  if (error !== undefined) {
    message.finish = 'error';
    message.error = explain(error);
  } else if (reply.failure !== undefined) {
    message.finish = 'error';
    message.error = reply.failure;
  } else if (stop.aborted) {
    message.finish = 'stopped';
  } else if (!reply.isDone) {
    message.finish = 'lost';
  }
}

// Runs the assistant's message that is already in the tree.
async function run(conversationId: string, message: Message, isContinued = false) {
  const conversation = peek(conversationId)!;
  const stop = new AbortController();
  const reply = new Reply(message);
  const shown = signal({...reply.message});
  let frame = 0;
  const show = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      shown.value = {...reply.message};
      if (reply.progress) progressOf.value = {...progressOf.peek(), [message.id]: reply.progress};
      saveSoon(conversationId, 1000);
    });
  };
  stops.set(message.id, stop);
  setLive(message.id, shown);
  let error: unknown;
  try {
    const path = pathTo(conversation, isContinued ? message.id : message.parent);
    await receive(bodyFor(conversation, path), reply, stop.signal, show);
  } catch (problem) {
    if (!stop.signal.aborted) error = problem;
  }
  cancelAnimationFrame(frame);
  settle(reply, stop.signal, error);
  stops.delete(message.id);
  const {[message.id]: _, ...others} = progressOf.peek();
  progressOf.value = others;
  change(conversationId, (c) => ({...c, updatedAt: Date.now(), messages: {...c.messages, [message.id]: reply.message}}));
  setLive(message.id, null);
  tell(conversation.title, reply);
}

function tell(title: string, reply: Reply) {
  const {report, message} = reply;
  lives.value = [{
    id: report.requestId ?? message.id, title, sentAt: report.sentAt, firstMs: report.firstMs,
    totalMs: report.totalMs ?? 0, finish: message.finish ?? '', report,
  }, ...lives.peek()].slice(0, 50);
  notice.value = message.finish === 'error' ? `The reply failed: ${message.error}` : 'The reply is complete.';
}

function begin(conversationId: string, parent: string | null) {
  const format = peek(conversationId)!.settings.format;
  const reply = emptyReply(parent, format === 'json_object' || format === 'json_schema');
  change(conversationId, (c) => withMessage(c, reply));
  void run(conversationId, reply);
}

export function send(conversationId: string, parent: string | null, text: string, attachments: Attachment[]) {
  const message: Message = {id: newId(), parent, role: 'user', content: text, createdAt: Date.now()};
  if (attachments.length > 0) message.attachments = attachments;
  change(conversationId, (c) => withMessage(c, message));
  nameFrom(conversationId, text || attachments[0]?.name || '');
  begin(conversationId, message.id);
}

export function regenerate(conversationId: string, id: string) {
  const message = peek(conversationId)?.messages[id];
  if (message) begin(conversationId, message.role === 'assistant' ? message.parent : message.id);
}

// A sibling with other words. What a user said is answered anew; an assistant's words just stand.
export function edit(conversationId: string, id: string, text: string) {
  const old = peek(conversationId)?.messages[id];
  if (!old) return;
  if (old.role === 'user') {
    send(conversationId, old.parent, text, old.attachments ?? []);
    return;
  }
  const message: Message = {...old, id: newId(), content: text, createdAt: Date.now()};
  delete message.tokens;
  delete message.report;
  change(conversationId, (c) => withMessage(c, {...message, finish: 'stop', error: undefined}));
}

export function continueReply(conversationId: string, id: string) {
  const message = peek(conversationId)?.messages[id];
  if (message) void run(conversationId, message, message.content !== '');
}

// Results for all calls of one reply; the model goes on from them.
export function handIn(conversationId: string, id: string, results: {callId: string; text: string}[]) {
  let parent = id;
  for (const {callId, text} of results) {
    const message: Message =
      {id: newId(), parent, role: 'tool', content: text, callId, createdAt: Date.now()};
    change(conversationId, (c) => withMessage(c, message));
    parent = message.id;
  }
  begin(conversationId, parent);
}

export const stop = (id: string) => stops.get(id)?.abort();

// Shows the previous or next sibling of a message.
export function showSibling(conversationId: string, id: string, step: number) {
  change(conversationId, (c) => {
    const message = c.messages[id]!;
    const siblings = childrenOf(c, message.parent);
    const wanted = siblings[siblings.findIndex((each) => each.id === id) + step];
    return wanted ? {...c, chosen: {...c.chosen, [message.parent ?? '']: wanted.id}} : c;
  });
}
