// SPDX-License-Identifier: Apache-2.0
// A reply as it arrives: chunks of a chat completion, and the comments beside them, make a message.
import type {ServerEvent} from './sse';
import type {Message, Report, TokenChance, ToolCall} from './types';

interface Chunk {
  id?: string;
  model?: string;
  error?: {message?: string};
  prompt_progress?: {total: number; cache: number; processed: number};
  choices?: {
    delta?: {
      content?: string | null;
      reasoning?: string | null;
      tool_calls?: {index: number; id?: string; function?: {name?: string; arguments?: string}}[];
    };
    logprobs?: {content?: {token: string; logprob: number; top_logprobs?: {token: string; logprob: number}[]}[]} | null;
    finish_reason?: string | null;
  }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    prompt_tokens_details?: {cached_tokens?: number};
    completion_tokens_details?: {reasoning_tokens?: number};
  } | null;
}

export class Reply {
  readonly message: Message;
  readonly report: Report;
  lastId: string | undefined;
  isDone = false;
  failure: string | undefined;
  progress: {total: number; done: number} | undefined;
  private thinkingSince: number | undefined;

  // `before`: what there is already; of a message that is continued, its text so far.
  constructor(before: Message, private readonly now: () => number = () => performance.now()) {
    this.report = {sentAt: Date.now()};
    this.message = {...before, finish: null, error: undefined, report: this.report};
    this.begun = now();
  }
  private readonly begun: number;

  take(event: ServerEvent) {
    if (event.id !== undefined) this.lastId = event.id;
    if (event.comment !== undefined) return this.takeComment(event.comment);
    if (event.data === undefined) return;
    if (event.data === '[DONE]') {
      this.isDone = true;
      return;
    }
    let chunk: Chunk;
    try {
      chunk = JSON.parse(event.data) as Chunk;
    } catch {
      return;  // cut in the middle: what follows tells
    }
    this.takeChunk(chunk);
  }

  end() {
    this.stopThinking();
    this.report.totalMs = this.now() - this.begun;
  }

  private takeComment(comment: string) {
    const [, name, value] = /^(x-hearth-[a-z-]+): (.*)$/.exec(comment) ?? [];
    if (name === 'x-hearth-cached-tokens') this.report.cachedTokens = Number(value);
    if (name === 'x-hearth-computed-tokens') this.report.computedTokens = Number(value);
    if (name === 'x-hearth-cache-miss') this.report.cacheMiss = value;
  }

  private takeChunk(chunk: Chunk) {
    if (chunk.error) this.failure = chunk.error.message ?? 'The server could not finish the reply.';
    if (chunk.id) this.report.requestId = chunk.id;
    if (chunk.model) this.report.model = chunk.model;
    if (chunk.prompt_progress) {
      this.progress = {total: chunk.prompt_progress.total, done: chunk.prompt_progress.processed};
    }
    if (chunk.usage) {
      this.report.promptTokens = chunk.usage.prompt_tokens;
      this.report.completionTokens = chunk.usage.completion_tokens;
      this.report.cachedTokens = chunk.usage.prompt_tokens_details?.cached_tokens ?? this.report.cachedTokens;
      this.report.reasoningTokens = chunk.usage.completion_tokens_details?.reasoning_tokens;
    }
    for (const choice of chunk.choices ?? []) {
      if (choice.delta) this.takeDelta(choice.delta);
      if (choice.logprobs?.content) this.takeTokens(choice.logprobs.content);
      if (choice.finish_reason) this.message.finish = choice.finish_reason;
    }
  }

  private takeDelta(delta: NonNullable<NonNullable<Chunk['choices']>[number]['delta']>) {
    const hasText = Boolean(delta.content) || Boolean(delta.tool_calls);
    if (hasText || delta.reasoning) {
      this.report.firstMs ??= this.now() - this.begun;
      this.progress = undefined;
    }
    if (delta.reasoning) {
      this.thinkingSince ??= this.now();
      this.message.reasoning = (this.message.reasoning ?? '') + delta.reasoning;
    }
    if (hasText) this.stopThinking();
    if (delta.content) this.message.content += delta.content;
    for (const part of delta.tool_calls ?? []) this.takeCall(part);
  }

  private takeCall(part: {index: number; id?: string; function?: {name?: string; arguments?: string}}) {
    const calls: ToolCall[] = [...(this.message.calls ?? [])];
    const call: ToolCall = {...(calls[part.index] ?? {id: '', name: '', arguments: ''})};
    if (part.id) call.id = part.id;
    call.name += part.function?.name ?? '';
    call.arguments += part.function?.arguments ?? '';
    calls[part.index] = call;
    this.message.calls = calls;
  }

  private takeTokens(list: {token: string; logprob: number; top_logprobs?: {token: string; logprob: number}[]}[]) {
    this.message.tokens ??= [];
    for (const each of list) {
      const token: TokenChance = {
        text: each.token,
        logprob: each.logprob,
        others: (each.top_logprobs ?? []).map((other) => ({text: other.token, logprob: other.logprob})),
      };
      this.message.tokens.push(token);
    }
  }

  private stopThinking() {
    if (this.thinkingSince === undefined) return;
    this.message.reasoningMs = (this.message.reasoningMs ?? 0) + this.now() - this.thinkingSince;
    this.thinkingSince = undefined;
  }
}
