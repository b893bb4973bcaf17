// SPDX-License-Identifier: Apache-2.0
// The calls of a reply. Nothing is run here: the user hands in what each call gave.
import {useSignal} from '@preact/signals';
import {handIn} from '../data/asking';
import type {Conversation, Message} from '../data/types';
import {Code} from '../markdown/shown';

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export function ToolCards({conversation, message, isOpen}: {conversation: Conversation; message: Message; isOpen: boolean}) {
  const calls = message.calls ?? [];
  const results = useSignal<Record<string, string>>({});
  const canHandIn = isOpen && calls.length > 0 && message.finish !== 'error';
  return (
    <form class="calls" onSubmit={(event) => {
      event.preventDefault();
      handIn(conversation.id, message.id, calls.map((call) => ({callId: call.id, text: results.peek()[call.id] ?? ''})));
    }}>
      {calls.map((call) => (
        <section class="call" key={call.id} aria-label={`Call of ${call.name}`}>
          <h3>Calls <code>{call.name}</code></h3>
          <Code text={pretty(call.arguments)} language="json" />
          {canHandIn && (
            <label>Result of {call.name}
              <textarea rows={2} dir="auto" value={results.value[call.id] ?? ''}
                        onInput={(event) => { results.value = {...results.peek(), [call.id]: event.currentTarget.value}; }} />
            </label>
          )}
        </section>
      ))}
      {canHandIn && <div class="row"><button type="submit" class="main">{calls.length > 1 ? 'Hand in the results' : 'Hand in the result'}</button></div>}
    </form>
  );
}
