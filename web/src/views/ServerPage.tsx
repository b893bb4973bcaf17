// SPDX-License-Identifier: Apache-2.0
// What the server is doing: rates, queue, memory of keys and values, waiting times, and the requests.
import {useEffect} from 'preact/hooks';
import {type Life, lives} from '../data/asking';
import {samples, type Seen, seen, type Status, status, trouble, watch} from '../data/watching';
import {Icon} from '../parts/Icon';
import {Plot} from '../parts/Plot';
import {isKeyAsked, isListShown} from '../parts/shown';
import {seconds} from '../parts/seconds';

const gib = (bytes: number) => (bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`);

function ago(total: number): string {
  const s = Math.floor(total);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

function Facts({now}: {now: Status}) {
  const hits = now.tokens.prompt > 0 ? `${Math.round((100 * now.tokens.cached) / now.tokens.prompt)} %` : '–';
  const facts: [string, string][] = [
    ['State', now.state], ['Model', now.model], ['Up for', ago(now.uptime_s)], ['Memory', gib(now.resident_bytes)],
    ['Instructions', now.isa], ['Requests', now.requests.admitted.toLocaleString()], ['Refused', now.requests.refused.toLocaleString()],
    ['Prompt tokens cached', hits], ['Step', `${now.steps.p50_ms.toFixed(1)} ms, p99 ${now.steps.p99_ms.toFixed(1)} ms`], ['Version', now.hearth],
  ];
  return <dl class="facts">{facts.map(([name, value]) => <div><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

function Plots() {
  const list = samples.value;
  const of = (name: keyof (typeof list)[number]) => list.map((sample) => sample[name] as number | null);
  const percent = (name: 'held' | 'cached') => list.map((sample) => sample[name] * 100);
  return (
    <div class="plots">
      <Plot title="Written" unit="tokens/s" lines={[{label: 'all replies', values: of('decode')}]} />
      <Plot title="Read" unit="tokens/s" lines={[{label: 'prompts', values: of('prefill')}]} />
      <Plot title="Requests" unit="" lines={[{label: 'running', values: of('running')}, {label: 'waiting', values: of('waiting')}]} />
      <Plot title="Keys and values" unit="%" max={100} digits={1}
            lines={[{label: 'in use', values: percent('held')}, {label: 'cached', values: percent('cached')}]} />
      <Plot title="Time to first token" unit="ms" lines={[{label: 'median', values: of('first50')}, {label: '95th', values: of('first95')}]} />
      <Plot title="Gap between tokens" unit="ms" lines={[{label: 'median', values: of('gap50')}, {label: '95th', values: of('gap95')}]} />
    </div>
  );
}

function Cache({now}: {now: Status}) {
  const parts = now.tier?.parts ?? [];
  return (
    <section aria-label="Cache">
      <h2>Cache by tier</h2>
      <div class="table" tabIndex={0}>
        <table>
          <thead><tr><th scope="col">Memory</th><th scope="col">In use</th><th scope="col">Cached</th><th scope="col">Free</th><th scope="col">All</th><th scope="col">Share</th></tr></thead>
          <tbody>
            {now.kv.map((group) => (
              <tr>
                <th scope="row">{group.group}</th>
                {[group.held, group.cached, group.free, group.total].map((blocks) => <td>{blocks.toLocaleString()} <small>{gib(blocks * group.block_bytes)}</small></td>)}
                <td>
                  <svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" role="img"
                       aria-label={`${group.held} blocks in use and ${group.cached} cached of ${group.total}`}>
                    <rect class="rest" width="100" height="8" />
                    <rect class="cached" width={(100 * (group.held + group.cached)) / group.total} height="8" />
                    <rect class="held" width={(100 * group.held) / group.total} height="8" />
                  </svg>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {parts.length === 0
        ? <p class="hint">There is no tier below memory (disk or Redis).</p>
        : <div class="table" tabIndex={0}>
            <table>
              <thead><tr><th scope="col">Tier</th><th scope="col">Holds</th><th scope="col">Found</th><th scope="col">Missed</th><th scope="col">Stored</th><th scope="col">Read</th><th scope="col">Written</th></tr></thead>
              <tbody>{parts.map((part) => (
                <tr>
                  <th scope="row">{part.name}{part.reads && part.writes ? '' : ' (left alone after errors)'}</th>
                  <td>{part.capacity_bytes > 0 ? `${gib(part.used_bytes)} of ${gib(part.capacity_bytes)}` : '–'}</td>
                  <td>{part.hits.toLocaleString()}</td><td>{part.misses.toLocaleString()}</td><td>{part.stored.toLocaleString()}</td>
                  <td>{gib(part.bytes_read)}</td><td>{gib(part.bytes_written)}</td>
                </tr>
              ))}</tbody>
            </table>
          </div>}
    </section>
  );
}

const STATES: Record<string, string> = {decode: 'writing', prefill: 'reading', loading: 'fetching cache'};
const named = (state: string) => STATES[state] ?? state;

// Two minutes as a bar: where the request was when.
function Bar({each, now}: {each: Seen; now: number}) {
  const from = now - 120_000;
  const x = (time: number) => Math.max(0, Math.min(1200, (time - from) / 100));
  return (
    <svg class="life" viewBox="0 0 1200 10" preserveAspectRatio="none" role="img"
         aria-label={each.spans.map((span) => `${named(span.state)} ${seconds(span.to - span.from)}`).join(', ')}>
      {each.spans.map((span) => <rect class={span.state} x={x(span.from)} width={Math.max(2, x(span.to) - x(span.from))} height="10" />)}
    </svg>
  );
}

function Requests({now}: {now: Status}) {
  const list = [...seen.value].reverse();
  const at = samples.value[samples.value.length - 1]?.at ?? Date.now();
  const alive = new Set(now.sequences.map((sequence) => sequence.request_id));
  return (
    <section aria-label="Requests">
      <h2>Requests of the last two minutes</h2>
      {list.length === 0
        ? <p class="hint">None since this page was opened.</p>
        : <div class="table" tabIndex={0}>
            <table>
              <thead><tr><th scope="col">Request</th><th scope="col">State</th><th scope="col">Prompt</th><th scope="col">Cached</th><th scope="col">Written</th><th scope="col">Rate</th><th scope="col">Timeline</th></tr></thead>
              <tbody>
                {list.map((each) => (
                  <tr key={each.id}>
                    <th scope="row"><code>{each.id.slice(-8)}</code> <small>{each.dialect}</small></th>
                    <td><span class={`state ${alive.has(each.id) ? each.last.state : 'over'}`}>{alive.has(each.id) ? named(each.last.state) : 'over'}</span></td>
                    <td>{each.last.prompt_tokens}</td><td>{each.last.cached_tokens}</td><td>{each.last.generated_tokens}</td>
                    <td>{each.last.tokens_per_s ? `${each.last.tokens_per_s.toFixed(1)}/s` : '–'}</td>
                    <td class="wide"><Bar each={each} now={at} /></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>}
      <p class="legend"><span class="waiting">waiting</span><span class="loading">fetching cache</span><span class="prefill">reading the prompt</span><span class="decode">writing</span></p>
    </section>
  );
}

const ownBar = (life: Life) => {
  const total = Math.max(1, life.totalMs);
  const first = Math.min(total, life.firstMs ?? total);
  return (
    <svg class="life" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img"
         aria-label={`first token after ${seconds(first)}, whole after ${seconds(total)}`}>
      <rect class="prefill" width={(1000 * first) / total} height="10" />
      <rect class="decode" x={(1000 * first) / total} width={(1000 * (total - first)) / total} height="10" />
    </svg>
  );
};

function Own() {
  if (lives.value.length === 0) return null;
  return (
    <section aria-label="Requests of this page">
      <h2>Requests of this page</h2>
      <div class="table" tabIndex={0}>
        <table>
          <thead><tr><th scope="col">Conversation</th><th scope="col">First token</th><th scope="col">Whole</th><th scope="col">Prompt</th><th scope="col">Cached</th><th scope="col">Why no more</th><th scope="col">Timeline</th></tr></thead>
          <tbody>
            {lives.value.map((life) => (
              <tr key={life.id}>
                <th scope="row" dir="auto">{life.title}</th>
                <td>{life.firstMs === undefined ? '–' : seconds(life.firstMs)}</td><td>{seconds(life.totalMs)}</td>
                <td>{life.report?.promptTokens ?? '–'}</td><td>{life.report?.cachedTokens ?? '–'}</td>
                <td>{life.report?.cacheMiss ?? '–'}</td><td class="wide">{ownBar(life)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Models({now}: {now: Status}) {
  if (!now.models) return null;
  return (
    <section aria-label="Models">
      <h2>Models</h2>
      <div class="table" tabIndex={0}>
        <table>
          <thead><tr><th scope="col">Model</th><th scope="col">State</th><th scope="col">Users</th><th scope="col">Memory</th></tr></thead>
          <tbody>{now.models.map((each) => <tr><th scope="row">{each.model}</th><td>{each.state}</td><td>{each.users}</td><td>{each.planned_bytes ? gib(each.planned_bytes) : '–'}</td></tr>)}</tbody>
        </table>
      </div>
    </section>
  );
}

export function ServerPage() {
  useEffect(watch, []);
  const now = status.value;
  return (
    <div class="server">
      <header class="top">
        <button type="button" class="quiet icon narrow" aria-label="Show the list of conversations"
                onClick={() => { isListShown.value = true; }}><Icon name="menu" /></button>
        <h1>Server</h1>
      </header>
      <div class="page" tabIndex={0} role="region" aria-label="What the server is doing">
        {trouble.value && <div class="banner" role="alert">{trouble.value}
          <button type="button" onClick={() => { isKeyAsked.value = true; }}>Enter key</button></div>}
        {now && <><Facts now={now} /><Plots /><Requests now={now} /><Own /><Cache now={now} /><Models now={now} /></>}
        {!now && !trouble.value && <p class="hint">Asking the server…</p>}
      </div>
    </div>
  );
}
