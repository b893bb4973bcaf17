// SPDX-License-Identifier: Apache-2.0
// What the server does, asked for once a second while its page is open, and the last two minutes of it.
import {signal} from '@preact/signals';
import {ApiError, ask, askJson} from './api';
import {type Histogram, histogram, percentile, since} from './metrics';

export interface Sequence {
  request_id: string;
  key: string;
  dialect: string;
  state: string;
  priority: string;
  age_ms: number;
  waited_ms: number;
  prompt_tokens: number;
  cached_tokens: number;
  computed_tokens: number;
  generated_tokens: number;
  tokens_per_s: number;
  preempted: number;
}

export interface Status {
  hearth: string;
  isa: string;
  model: string;
  state: string;
  uptime_s: number;
  resident_bytes: number;
  requests: {running: number; max_running: number; waiting: number; max_waiting: number; paused: number;
    admitted: number; refused: number; preemptions: number};
  steps: {count: number; mean_ms: number; mean_tokens: number; p50_ms: number; p99_ms: number};
  tokens: {prefill_per_s: number; decode_per_s: number; prefill: number; decode: number; prompt: number; cached: number};
  kv: {group: string; total: number; held: number; cached: number; free: number; pinned: number; block_bytes: number}[];
  tier: {parts: {name: string; used_bytes: number; capacity_bytes: number; hits: number; misses: number; stored: number;
    bytes_read: number; bytes_written: number; reads: boolean; writes: boolean}[]} | null;
  models?: {model: string; state: string; users: number; planned_bytes: number}[];
  sequences: Sequence[];
}

export interface Sample {
  at: number;
  decode: number;
  prefill: number;
  running: number;
  waiting: number;
  held: number;  // shares of all blocks
  cached: number;
  first50: number | null;
  first95: number | null;
  gap50: number | null;
  gap95: number | null;
}

// One request as it was seen: spans of states.
export interface Seen {
  id: string;
  dialect: string;
  spans: {state: string; from: number; to: number}[];
  last: Sequence;
}

const KEPT = 120;
const WINDOW = 10;  // seconds over which percentiles are taken

export const status = signal<Status | null>(null);
export const samples = signal<Sample[]>([]);
export const seen = signal<Seen[]>([]);
export const trouble = signal('');

let histograms: {at: number; first: Histogram; gap: Histogram}[] = [];
let before: {at: number; decode: number; prefill: number} | undefined;

function percentiles(now: number) {
  const newest = histograms[histograms.length - 1];
  const oldest = histograms.find((each) => now - each.at <= WINDOW * 1000);
  if (!newest || !oldest || newest === oldest) return {first50: null, first95: null, gap50: null, gap95: null};
  const first = since(newest.first, oldest.first);
  const gap = since(newest.gap, oldest.gap);
  const ms = (value: number | null) => (value === null ? null : value * 1000);
  return {
    first50: ms(percentile(first, 0.5)), first95: ms(percentile(first, 0.95)),
    gap50: ms(percentile(gap, 0.5)), gap95: ms(percentile(gap, 0.95)),
  };
}

function follow(list: Sequence[], now: number) {
  const known = new Map(seen.peek().map((each) => [each.id, each]));
  for (const sequence of list) {
    const id = sequence.request_id || String(sequence.age_ms);
    const old = known.get(id);
    const spans = old ? [...old.spans] : [{state: 'waiting', from: now - sequence.age_ms, to: now - sequence.age_ms + sequence.waited_ms}];
    const last = spans[spans.length - 1]!;
    if (last.state === sequence.state) spans[spans.length - 1] = {...last, to: now};
    else spans.push({state: sequence.state, from: last.to, to: now});
    known.set(id, {id, dialect: sequence.dialect, spans, last: sequence});
  }
  seen.value = [...known.values()]
    .filter((each) => now - each.spans[each.spans.length - 1]!.to < KEPT * 1000)
    .slice(-60);
}

function take(got: Status, now: number) {
  const blocks = got.kv.reduce((sum, group) => sum + group.total, 0) || 1;
  const seconds = before ? (now - before.at) / 1000 : 0;
  const rate = (total: number, old: number | undefined) =>
    old === undefined || seconds <= 0 || total < old ? 0 : (total - old) / seconds;
  const sample: Sample = {
    at: now,
    decode: rate(got.tokens.decode, before?.decode),
    prefill: rate(got.tokens.prefill, before?.prefill),
    running: got.requests.running,
    waiting: got.requests.waiting,
    held: got.kv.reduce((sum, group) => sum + group.held, 0) / blocks,
    cached: got.kv.reduce((sum, group) => sum + group.cached, 0) / blocks,
    ...percentiles(now),
  };
  before = {at: now, decode: got.tokens.decode, prefill: got.tokens.prefill};
  status.value = got;
  samples.value = [...samples.peek(), sample].slice(-KEPT);
  follow(got.sequences, now);
}

async function look() {
  try {
    const [got, text] = await Promise.all([
      askJson<Status>('/status'),
      ask('/metrics?names=hearth').then((response) => response.text()),
    ]);
    const now = Date.now();
    histograms.push({
      at: now, first: histogram(text, 'hearth_time_to_first_token_seconds'), gap: histogram(text, 'hearth_inter_token_seconds'),
    });
    histograms = histograms.slice(-KEPT);
    take(got, now);
    trouble.value = '';
  } catch (error) {
    trouble.value = error instanceof ApiError ? error.message : 'The server could not be reached.';
  }
}

// Until the function that it gives is called. A hidden page asks nothing.
export function watch(): () => void {
  let timer = 0;
  let isOver = false;
  const again = async () => {
    if (!document.hidden) await look();
    if (!isOver) timer = window.setTimeout(() => void again(), 1000);
  };
  void again();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
