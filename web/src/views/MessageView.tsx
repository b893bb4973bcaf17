// SPDX-License-Identifier: Apache-2.0
// One message: who says it, what, and what can be done with it.
import {type Signal, useSignal} from '@preact/signals';
import {useLayoutEffect, useRef} from 'preact/hooks';
import {continueReply, edit, progressOf, regenerate, showSibling} from '../data/asking';
import {change} from '../data/chats';
import {childrenOf, type Conversation, type Message, withoutMessage} from '../data/types';
import {Code, Markdown} from '../markdown/shown';
import {CopyButton} from '../parts/CopyButton';
import {Icon} from '../parts/Icon';
import {later} from '../parts/later';
import {seconds} from '../parts/seconds';
import {ToolCards} from './ToolCards';
import {Chip, editing} from './Composer';

const TokenView = later(() => import('./rest').then((module) => module.TokenView));

function Thoughts({message, isGrowing}: {message: Message; isGrowing: boolean}) {
  const isThinking = isGrowing && message.content === '' && !message.calls;
  const took = message.reasoningMs;
  return (
    <details class="thoughts">
      <summary>{isThinking ? <span class="pulse">Thinking…</span> : took === undefined ? 'Thought' : took < 100 ? 'Thought briefly' : `Thought for ${seconds(took)}`}</summary>
      <Markdown text={message.reasoning ?? ''} isGrowing={isGrowing} />
    </details>
  );
}

function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Waiting({id}: {id: string}) {
  const progress = progressOf.value[id];
  if (!progress || progress.total === 0) return <p class="waiting"><span class="pulse">Waiting for the first token…</span></p>;
  const share = Math.round((100 * progress.done) / progress.total);
  return (
    <p class="waiting">
      <span class="pulse">Reading the prompt…</span>
      <progress max={progress.total} value={progress.done} aria-label="Prompt read">{share} %</progress> {share} %
    </p>
  );
}

function Ending({conversation, message}: {conversation: Conversation; message: Message}) {
  const {finish} = message;
  const says = finish === 'lost' ? 'The connection was lost.' : finish === 'stopped' ? 'Stopped.'
    : finish === 'length' ? 'The reply reached its longest allowed length.' : finish === null ? 'The reply was interrupted.' : '';
  if (message.error) {
    return (
      <div class="ending problem" role="alert">{message.error}
        <button type="button" onClick={() => regenerate(conversation.id, message.id)}>Try again</button>
      </div>
    );
  }
  if (!says) return null;
  return (
    <div class="ending">{says}
      {!message.calls?.length && <button type="button" onClick={() => continueReply(conversation.id, message.id)}>Continue</button>}
    </div>
  );
}

function Editor({conversation, message}: {conversation: Conversation; message: Message}) {
  const text = useSignal(message.content);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(text.peek().length, text.peek().length);
  }, []);
  const close = () => {
    editing.value = null;
    document.getElementById('message')?.focus();
  };
  const save = () => {
    edit(conversation.id, message.id, text.peek());
    close();
  };
  return (
    <form class="editor" onSubmit={(event) => {
      event.preventDefault();
      save();
    }}>
      <textarea ref={field} dir="auto" rows={2} aria-label="Edit the message" value={text.value}
                onInput={(event) => { text.value = event.currentTarget.value; }}
                onKeyDown={(event) => {
                  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
                    event.preventDefault();
                    save();
                  } else if (event.key === 'Escape') {
                    event.stopPropagation();
                    close();
                  }
                }} />
      <div class="row">
        <button type="submit" class="main">{message.role === 'user' ? 'Send as a branch' : 'Keep as a branch'}</button>
        <button type="button" onClick={close}>Cancel</button>
      </div>
    </form>
  );
}

function Siblings({conversation, message}: {conversation: Conversation; message: Message}) {
  const siblings = childrenOf(conversation, message.parent);
  if (siblings.length < 2) return null;
  const at = siblings.findIndex((each) => each.id === message.id);
  return (
    <span class="siblings" role="group" aria-label="Branches">
      <button type="button" class="quiet icon" aria-label="Previous branch" disabled={at === 0}
              onClick={() => showSibling(conversation.id, message.id, -1)}><Icon name="left" /></button>
      <span>{at + 1} / {siblings.length}</span>
      <button type="button" class="quiet icon" aria-label="Next branch" disabled={at === siblings.length - 1}
              onClick={() => showSibling(conversation.id, message.id, 1)}><Icon name="right" /></button>
    </span>
  );
}

function Figures({message}: {message: Message}) {
  const report = message.report;
  if (!report?.totalMs || report.completionTokens === undefined) return null;
  const speaking = (report.totalMs - (report.firstMs ?? 0)) / 1000;
  const rate = report.completionTokens > 1 && speaking > 0 ? `${((report.completionTokens - 1) / speaking).toFixed(1)} tokens/s` : '';
  const cached = report.cachedTokens ? `${report.cachedTokens} of ${report.promptTokens} prompt tokens cached` : '';
  const resumed = report.resumed ? `resumed ${report.resumed}×` : '';
  const parts = [`${report.completionTokens} tokens`, rate, report.firstMs ? `first after ${seconds(report.firstMs)}` : '', cached, resumed];
  return <span class="figures" title={report.cacheMiss ? `Cache: ${report.cacheMiss}` : undefined}>{parts.filter(Boolean).join(' · ')}</span>;
}

function Actions({conversation, message, isTokens, onTokens}: {
  conversation: Conversation; message: Message; isTokens: boolean; onTokens: () => void;
}) {
  return (
    <div class="actions">
      <Siblings conversation={conversation} message={message} />
      <CopyButton text={message.content} label="Copy message" />
      {message.role !== 'tool' && (
        <button type="button" class="quiet icon" aria-label="Edit as a branch" title="Edit as a branch"
                onClick={() => { editing.value = message.id; }}><Icon name="edit" /></button>
      )}
      {message.role === 'assistant' && (
        <>
          <button type="button" class="quiet icon" aria-label="Ask again" title="Ask again"
                  onClick={() => regenerate(conversation.id, message.id)}><Icon name="again" /></button>
          <button type="button" class="quiet icon" aria-label="Tokens" title="Tokens" aria-pressed={isTokens} onClick={onTokens}><Icon name="tokens" /></button>
        </>
      )}
      <button type="button" class="quiet icon" aria-label="Delete message" title="Delete this message and what follows it"
              onClick={() => change(conversation.id, (c) => withoutMessage(c, message.id))}><Icon name="trash" /></button>
      <Figures message={message} />
    </div>
  );
}

function Body({message, isGrowing}: {message: Message; isGrowing: boolean}) {
  if (message.role === 'assistant') {
    const isWaiting = isGrowing && message.content === '' && !message.reasoning && !message.calls;
    return (
      <>
        {message.reasoning && <Thoughts message={message} isGrowing={isGrowing} />}
        {isWaiting && <Waiting id={message.id} />}
        {message.isJson && !isGrowing && message.content
          ? <Code text={prettyJson(message.content)} language="json" />
          : <Markdown text={message.content} isGrowing={isGrowing} />}
      </>
    );
  }
  if (message.role === 'tool') return <Code text={prettyJson(message.content)} language="" />;
  return (
    <>
      <p class="said-by-user" dir="auto">{message.content}</p>
      {message.attachments && <div class="chips">{message.attachments.map((file) => <Chip file={file} />)}</div>}
    </>
  );
}

const NAMES = {user: 'You', assistant: 'Assistant', tool: 'Tool result'};

export function MessageView({conversation, message: kept, isLast, live}: {
  conversation: Conversation; message: Message; isLast: boolean; live?: Signal<Message>;
}) {
  const message = live ? live.value : kept;
  const isTokens = useSignal(false);
  const isEdited = editing.value === message.id;
  return (
    <article class={message.role} data-id={message.id} aria-label={NAMES[message.role]}>
      {isEdited ? <Editor conversation={conversation} message={message} /> : <Body message={message} isGrowing={live !== undefined} />}
      {message.calls && <ToolCards conversation={conversation} message={message} isOpen={isLast && !live} />}
      {!live && message.role === 'assistant' && <Ending conversation={conversation} message={message} />}
      {!live && !isEdited && <Actions conversation={conversation} message={message} isTokens={isTokens.value}
                                      onTokens={() => { isTokens.value = !isTokens.peek(); }} />}
      {isTokens.value && <TokenView conversation={conversation} message={message} />}
    </article>
  );
}
