// SPDX-License-Identifier: Apache-2.0
// Requests to the server that showed this page, and to no other: every path is relative to it.
import {signal} from '@preact/signals';
import {key} from './key';
import {EventReader, type ServerEvent} from './sse';

export interface Sampling {
  temperature: number;
  top_p: number;
  top_k: number;
  min_p: number;
  repetition_penalty: number;
  source: string | null;
}

export interface Model {
  id: string;
  root?: string;
  max_model_len?: number;
  default_sampling?: Sampling;
  state?: string;
  pinned?: boolean;
  planned_bytes?: number;
  error?: string;
}

export class ApiError extends Error {
  constructor(readonly status: number, message: string, readonly retryAfter?: number) {
    super(message);
  }
}

export const models = signal<Model[]>([]);
export const needsKey = signal(false);
export const isReachable = signal(true);

export async function ask(path: string, body?: unknown, more: RequestInit = {}): Promise<Response> {
  if (!path.startsWith('/')) throw new Error('only paths of this server');
  const headers = new Headers(more.headers);
  if (key.value) headers.set('authorization', `Bearer ${key.value}`);
  if (body !== undefined) headers.set('content-type', 'application/json');
  const response = await fetch(path, {
    ...more,
    method: body === undefined ? 'GET' : 'POST',
    headers,
    body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    credentials: 'omit',
    redirect: 'error',
    cache: 'no-store',
  });
  isReachable.value = true;
  if (response.ok) return response;
  if (response.status === 401) needsKey.value = true;
  const text = await response.text();
  let message = text.trim() || `${response.status} ${response.statusText}`;
  try {
    message = JSON.parse(text).error.message ?? message;
  } catch {
    // Plain text then.
  }
  const retry = Number(response.headers.get('retry-after'));
  throw new ApiError(response.status, message, retry > 0 ? retry : undefined);
}

export async function askJson<T>(path: string, body?: unknown, more?: RequestInit): Promise<T> {
  return (await ask(path, body, more)).json() as Promise<T>;
}

export async function refreshModels(): Promise<void> {
  try {
    const list = await askJson<{data: Model[]}>('/v1/models');
    models.value = list.data;
    needsKey.value = false;
  } catch (error) {
    if (!(error instanceof ApiError)) isReachable.value = false;
  }
}

// The server knows no such stream any more, or never could: what came so far is all there is.
export class CannotResume extends Error {}

// The events of a streamed POST. `lastId`: those after that event of the same request, sent again.
export async function* stream(path: string, body: string, signal: AbortSignal,
                              lastId?: string): AsyncGenerator<ServerEvent[]> {
  const headers: Record<string, string> = lastId === undefined ? {} : {'last-event-id': lastId};
  let response: Response;
  try {
    response = await ask(path, body, {signal, headers});
  } catch (error) {
    if (lastId !== undefined && error instanceof ApiError && error.status < 500 && error.status !== 429) {
      throw new CannotResume(error.message);
    }
    throw error;
  }
  // Read without a transform in between: when a connection breaks, what waits in one is lost.
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  const events = new EventReader();
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      const got = events.push(decoder.decode(value, {stream: true}));
      if (got.length > 0) yield got;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
