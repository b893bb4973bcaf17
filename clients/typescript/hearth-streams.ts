// SPDX-License-Identifier: Apache-2.0
// Streams that survive: a `fetch` for the official OpenAI and Anthropic clients which resumes a
// broken stream of `hearth serve` by itself (docs/streams.md).
//
//   import OpenAI from 'openai';
//   import { resumingFetch } from './hearth-streams.ts';
//
//   const client = new OpenAI({ baseURL: 'http://127.0.0.1:8080/v1', apiKey: 'none',
//                               fetch: resumingFetch() });
//
// Everything else stays as it is. A lost connection, a restarted server, one that hangs, another
// replica at the same address: the SDK sees one stream, without a lost and without a doubled event.

export interface ResumingOptions {
  patienceMs?: number; // how long to go on trying after a break, until the first answer
  // How long a stream may be without any byte before it counts as broken; a server that is well
  // sends a ping every ten seconds.
  gapMs?: number;
  fetch?: typeof fetch;
}

const RETRIED = [429, 502, 503, 504]; // the server is there, but not now
const MAX_IDLE_TRIES = 20;

// Cuts what arrives into whole events and remembers the last id. A part of an event is not passed
// on: after a break it comes again, whole.
class Events {
  lastId: string | undefined;
  rest = '';

  add(text: string): string {
    this.rest += text;
    const end = this.rest.lastIndexOf('\n\n');
    if (end < 0) return '';
    const whole = this.rest.slice(0, end + 2);
    this.rest = this.rest.slice(end + 2);
    const at = whole.lastIndexOf('\nid: ');
    if (at >= 0 || whole.startsWith('id: ')) {
      const start = at >= 0 ? at + 5 : 4;
      this.lastId = whole.slice(start, whole.indexOf('\n', start));
    }
    return whole;
  }
}

// What comes of `wait`, or after `ms` of silence an error, with `giveUp` called.
async function unlessSilent<T>(wait: Promise<T>, ms: number, giveUp: () => void): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no byte of the stream for ${ms} ms`));
      giveUp();
    }, ms);
  });
  try {
    return await Promise.race([wait, silence]);
  } finally {
    clearTimeout(timer);
  }
}

export function resumingFetch(options: ResumingOptions = {}): typeof fetch {
  const inner = options.fetch ?? fetch;
  const patienceMs = options.patienceMs ?? 60_000;
  const gapMs = options.gapMs ?? 45_000;

  return async (input, init) => {
    if (init?.method?.toUpperCase() !== 'POST') return inner(input, init);
    const headers = new Headers(init.headers);
    // The same key in every try: if an answer is lost before its first event, the next try gets
    // the same reply.
    if (!headers.has('idempotency-key')) {
      headers.set('idempotency-key', `hearth-${crypto.randomUUID()}`);
    }
    const asksForStream = typeof init.body === 'string' && /"stream"\s*:\s*true/.test(init.body);
    const ask = (lastId?: string) => {
      const own = new Headers(headers);
      if (lastId !== undefined) own.set('last-event-id', lastId);
      if (!asksForStream) return inner(input, { ...init, headers: own });
      // A stream's head is sent at once, so the gap bounds the wait for it as well.
      const late = new AbortController();
      const signal = init.signal ? AbortSignal.any([init.signal, late.signal]) : late.signal;
      const answer = inner(input, { ...init, headers: own, signal });
      return unlessSilent(answer, gapMs, () => late.abort());
    };

    // A new answer to the same request, from where the old one broke.
    const again = async (lastId: string | undefined, broken: unknown): Promise<Response> => {
      const until = Date.now() + patienceMs;
      let why = broken;
      for (let pause = 50; Date.now() < until; pause = Math.min(1000, pause * 1.5)) {
        if (init.signal?.aborted) throw broken;
        await new Promise((resolve) => setTimeout(resolve, pause));
        let response: Response;
        try {
          response = await ask(lastId);
        } catch (error) {
          why = error;
          continue;
        }
        const isRetried = RETRIED.includes(response.status);
        if (response.status === 200 || (lastId === undefined && !isRetried)) return response;
        why = new Error(
          `the stream broke, and resuming it was answered ${response.status}: ` +
            (await response.text()),
        );
        if (!isRetried) break;
      }
      throw why;
    };

    const first = await ask().catch((error: unknown) => {
      if (init.signal?.aborted) throw error;
      return again(undefined, error);
    });
    const isStream = first.headers.get('content-type')?.startsWith('text/event-stream');
    if (!isStream || first.body === null) return first;

    const events = new Events();
    const utf8 = new TextEncoder();
    let decoder = new TextDecoder();
    let reader = first.body.getReader();
    let isOver = false; // nobody listens any more
    let idleTries = 0; // breaks in a row without an event between them
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        while (!isOver) {
          let part;
          try {
            const silent = reader;
            part = await unlessSilent(reader.read(), gapMs, () => void silent.cancel().catch(() => {}));
          } catch (error) {
            if (isOver) return;
            if (init.signal?.aborted || ++idleTries > MAX_IDLE_TRIES) return controller.error(error);
            events.rest = '';
            decoder = new TextDecoder();
            try {
              reader = (await again(events.lastId, error)).body!.getReader();
            } catch (failure) {
              return controller.error(failure);
            }
            continue;
          }
          if (isOver) return;
          if (part.done) {
            if (events.rest) controller.enqueue(utf8.encode(events.rest));
            return controller.close();
          }
          const whole = events.add(decoder.decode(part.value, { stream: true }));
          if (!whole) continue;
          idleTries = 0;
          return controller.enqueue(utf8.encode(whole));
        }
      },
      cancel(reason) {
        isOver = true;
        return reader.cancel(reason);
      },
    });
    return new Response(body, { status: first.status, headers: first.headers });
  };
}
