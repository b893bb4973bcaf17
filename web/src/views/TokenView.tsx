// SPDX-License-Identifier: Apache-2.0
// The tokens of a reply with their chances, and those of its prompt with what of them was cached.
import {useSignal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import {askJson} from '../data/api';
import {toolsFrom, wireMessages} from '../data/request';
import {type Conversation, type Message, pathTo, type TokenChance} from '../data/types';

const MAX_SHOWN = 5000;

const visible = (text: string) => text.replace(/\n/g, '↵\n').replace(/\t/g, '→').replace(/ /g, '·');
const percent = (logprob: number) => {
  const share = Math.exp(logprob) * 100;
  return share >= 99.95 ? '100 %' : share >= 1 ? `${share.toFixed(1)} %` : share >= 0.01 ? `${share.toFixed(2)} %` : '< 0.01 %';
};

// Five shades, from sure to surprising.
const shade = (logprob: number) => {
  const share = Math.exp(logprob);
  return share > 0.9 ? 0 : share > 0.6 ? 1 : share > 0.3 ? 2 : share > 0.1 ? 3 : 4;
};

function Chances({token}: {token: TokenChance}) {
  return (
    <div class="chances" aria-live="polite">
      <p><code>{visible(token.text)}</code> {percent(token.logprob)} <small>log-probability {token.logprob.toFixed(3)}</small></p>
      <table>
        <caption class="said">Most likely tokens here</caption>
        <tbody>
          {token.others.map((other) => (
            <tr class={other.text === token.text ? 'chosen' : undefined}>
              <td><code>{visible(other.text)}</code></td>
              <td><progress max={1} value={Math.exp(other.logprob)} aria-label={`chance of ${other.text}`} /></td>
              <td>{percent(other.logprob)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ReplyTokens({tokens}: {tokens: TokenChance[]}) {
  const at = useSignal(0);
  const focusOn = (index: number) => {
    at.value = Math.max(0, Math.min(tokens.length - 1, index));
    document.getElementById(`token-${at.peek()}`)?.focus();
  };
  return (
    <>
      <p class="tokens" dir="auto" role="group" aria-label="Tokens of the reply" onKeyDown={(event) => {
        if (event.key === 'ArrowRight') focusOn(at.peek() + 1);
        if (event.key === 'ArrowLeft') focusOn(at.peek() - 1);
      }}>
        {tokens.slice(0, MAX_SHOWN).map((token, index) => (
          <button type="button" id={`token-${index}`} tabIndex={index === at.value ? 0 : -1} class={`token shade-${shade(token.logprob)}`}
                  aria-label={`${token.text}, ${percent(token.logprob)}`}
                  onMouseEnter={() => { at.value = index; }} onFocus={() => { at.value = index; }}>{visible(token.text)}</button>
        ))}
      </p>
      {tokens[at.value] && <Chances token={tokens[at.value]!} />}
    </>
  );
}

interface Tokenized {
  count: number;
  token_strs?: string[];
}

function PromptTokens({conversation, message}: {conversation: Conversation; message: Message}) {
  const tokens = useSignal<string[] | null>(null);
  const problem = useSignal('');
  const cached = message.report?.cachedTokens ?? 0;
  useEffect(() => {
    const {settings} = conversation;
    const body: Record<string, unknown> = {
      messages: wireMessages(settings, pathTo(conversation, message.parent)), return_token_strs: true,
    };
    if (settings.model) body.model = settings.model;
    let tools: object[] = [];
    try {
      tools = toolsFrom(settings.tools);
    } catch {
      // Said where they are typed.
    }
    if (tools.length > 0) body.tools = tools;
    askJson<Tokenized>('/tokenize', body).then(
      (reply) => { tokens.value = reply.token_strs ?? []; },
      (error: Error) => { problem.value = error.message; });
  }, []);
  if (problem.value) return <p class="problem">{problem.value}</p>;
  if (!tokens.value) return <p class="hint">Asking the server…</p>;
  return (
    <>
      <p class="hint">
        {tokens.value.length} tokens as the settings are now; {message.report?.promptTokens !== undefined
          ? `${cached} of ${message.report.promptTokens} came from the cache`
          : 'how many came from the cache is not known'}
        {message.report?.cacheMiss && message.report.cacheMiss !== 'none' ? `, ${message.report.cacheMiss}` : ''}.
      </p>
      <p class="tokens" dir="auto" tabIndex={0} role="group" aria-label="Tokens of the prompt">
        {tokens.value.slice(0, MAX_SHOWN).map((text, index) => (
          <span class={index < cached ? 'token cached' : 'token'} title={`${index}${index < cached ? ', cached' : ''}`}>{visible(text)}</span>
        ))}
      </p>
      {tokens.value.length > MAX_SHOWN && <p class="hint">The first {MAX_SHOWN} are shown.</p>}
    </>
  );
}

export function TokenView({conversation, message}: {conversation: Conversation; message: Message}) {
  const isPrompt = useSignal(false);
  return (
    <section class="token-view" aria-label="Tokens">
      <div class="row" role="group" aria-label="Which tokens">
        <button type="button" aria-pressed={!isPrompt.value} onClick={() => { isPrompt.value = false; }}>Reply</button>
        <button type="button" aria-pressed={isPrompt.value} onClick={() => { isPrompt.value = true; }}>Prompt</button>
      </div>
      {isPrompt.value
        ? <PromptTokens conversation={conversation} message={message} />
        : message.tokens?.length
          ? <ReplyTokens tokens={message.tokens} />
          : <p class="hint">Turn on “Token details” in the settings and ask again to see each token with its log-probability.</p>}
    </section>
  );
}
