// SPDX-License-Identifier: Apache-2.0
// The list of conversations: search, rename, remove, export and import.
import {signal, useSignal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import {addConversations, current, notice, removeConversation, rename, summaries} from '../data/chats';
import {asJson, asMarkdown, download, fileName, fromJson, fromMarkdown} from '../data/files';
import * as store from '../data/store';
import type {Summary} from '../data/types';
import {Icon} from '../parts/Icon';
import {isHelpShown, isKeyAsked, isListShown} from '../parts/shown';
import {NEXT, theme} from '../parts/theme';
import {goTo, route} from '../route';
import {newChat} from './newChat';

const wanted = signal('');

async function exportOne(id: string, kind: 'json' | 'md') {
  const conversation = await store.load(id);
  if (!conversation) return;
  if (kind === 'json') download(fileName(conversation.title, 'json'), asJson([conversation]), 'application/json');
  else download(fileName(conversation.title, 'md'), asMarkdown(conversation), 'text/markdown');
}

const exportAll = async () => download('hearth-conversations.json', asJson(await store.allBodies()), 'application/json');

async function importFiles(files: FileList | null) {
  for (const file of files ?? []) {
    try {
      const text = await file.text();
      const list = file.name.endsWith('.md') ? [fromMarkdown(text)] : fromJson(text);
      await addConversations(list);
      notice.value = `Imported ${list.length === 1 ? 'one conversation' : `${list.length} conversations`} from ${file.name}.`;
      if (list[0]) goTo(`#/c/${list[0].id}`);
    } catch (error) {
      notice.value = `${file.name} was not imported: ${(error as Error).message}.`;
    }
  }
}

function Entry({entry}: {entry: Summary}) {
  const isRenaming = useSignal(false);
  const isShown = current.value?.value.id === entry.id && route.value.view === 'chat';
  if (isRenaming.value) {
    // Once: taking the field away blurs it, and what was left with Escape is not kept.
    const finish = (title: string) => {
      if (!isRenaming.peek()) return;
      isRenaming.value = false;
      void rename(entry.id, title);
    };
    return (
      <li>
        <input class="rename" aria-label="New name" value={entry.title} ref={(input) => input?.focus()}
               onBlur={(event) => finish(event.currentTarget.value)}
               onKeyDown={(event) => {
                 if (event.key === 'Enter') finish(event.currentTarget.value);
                 if (event.key === 'Escape') {
                   event.stopPropagation();
                   isRenaming.value = false;
                 }
               }} />
      </li>
    );
  }
  return (
    <li class={isShown ? 'shown' : undefined}>
      <a href={`#/c/${entry.id}`} aria-current={isShown ? 'page' : undefined} dir="auto" title={entry.title}
         onClick={() => { isListShown.value = false; }}>{entry.title}</a>
      <details class="menu" onKeyDown={(event) => {
        if (event.key === 'Escape') event.currentTarget.open = false;
      }} onFocusOut={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) event.currentTarget.open = false;
      }}>
        <summary class="quiet icon" aria-label={`More about ${entry.title}`}><Icon name="more" /></summary>
        <div>
          <button type="button" onClick={() => { isRenaming.value = true; }}>Rename</button>
          <button type="button" onClick={() => void exportOne(entry.id, 'md')}>Export as Markdown</button>
          <button type="button" onClick={() => void exportOne(entry.id, 'json')}>Export as JSON</button>
          <button type="button" class="danger" onClick={() => {
            if (confirm(`Delete "${entry.title}"? This cannot be undone.`)) void removeConversation(entry.id);
          }}>Delete</button>
        </div>
      </details>
    </li>
  );
}

function dayOf(time: number): string {
  const days = Math.floor((new Date().setHours(24, 0, 0, 0) - time) / 86_400_000);
  if (days < 1) return 'Today';
  if (days < 2) return 'Yesterday';
  return days < 8 ? 'Last seven days' : new Date(time).toLocaleDateString(undefined, {month: 'long', year: 'numeric'});
}

function List() {
  const found = useSignal<Set<string> | null>(null);
  const words = wanted.value.trim().toLowerCase();
  useEffect(() => {
    found.value = null;
    if (!words) return;
    let isOld = false;
    void store.searchBodies(words).then((ids) => {
      if (!isOld) found.value = ids;
    });
    return () => { isOld = true; };
  }, [words]);
  const shown = summaries.value.filter((entry) =>
    !words || entry.title.toLowerCase().includes(words) || found.value?.has(entry.id));
  const days = new Map<string, Summary[]>();
  for (const entry of shown) days.set(dayOf(entry.updatedAt), [...(days.get(dayOf(entry.updatedAt)) ?? []), entry]);
  if (shown.length === 0) return <p class="empty">{words ? 'No conversation has these words.' : 'Conversations will be listed here. They stay in this browser.'}</p>;
  return (
    <>
      {[...days].map(([day, entries]) => (
        <section>
          <h2>{day}</h2>
          <ul>{entries.map((entry) => <Entry key={entry.id} entry={entry} />)}</ul>
        </section>
      ))}
    </>
  );
}

export function Sidebar() {
  return (
    <>
      <nav class={isListShown.value ? 'sidebar open' : 'sidebar'} aria-label="Conversations"
           onKeyDown={(event) => {
             if (event.key === 'Escape') isListShown.value = false;
           }}>
        <header>
          <span class="brand"><Mark />Hearth</span>
          <button type="button" class="quiet icon narrow" aria-label="Close the list" onClick={() => { isListShown.value = false; }}><Icon name="close" /></button>
        </header>
        <button type="button" class="new" onClick={() => {
          isListShown.value = false;
          newChat();
        }}><Icon name="add" />New chat</button>
        <label class="search">
          <Icon name="search" />
          <input id="search" type="search" placeholder="Search" aria-label="Search conversations" value={wanted.value}
                 onInput={(event) => { wanted.value = event.currentTarget.value; }} />
        </label>
        <div class="list"><List /></div>
        <footer>
          <a href="#/server" class={route.value.view === 'server' ? 'button shown' : 'button'}
             aria-current={route.value.view === 'server' ? 'page' : undefined}
             onClick={() => { isListShown.value = false; }}><Icon name="server" />Server</a>
          <Tools />
        </footer>
      </nav>
      {isListShown.value && <div class="shade" onClick={() => { isListShown.value = false; }} />}
    </>
  );
}

const Mark = () => (
  <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
    <rect width="32" height="32" rx="8" class="mark" />
    <path class="flame" d="M16.6 5.5c.7 4.2-5.9 6.3-5.9 12.6 0 1.2.3 2.3.9 3.2-.1-2.4 1-4.4 2.6-5.6-.2 2.9 2.8 3.9 2.8 6.7 0 1.2-.5 2.3-1.3 3.1h.3c3.6 0 6.2-2.8 6.2-6.6 0-3.3-1.5-5.2-2.6-6.7.1 1.6-.4 2.7-1.3 3.4.3-4.3-.6-8.1-1.7-10.1z" />
  </svg>
);

const Tools = () => (
  <details class="menu up" onKeyDown={(event) => {
    if (event.key === 'Escape') event.currentTarget.open = false;
  }} onFocusOut={(event) => {
    if (!event.currentTarget.contains(event.relatedTarget as Node | null)) event.currentTarget.open = false;
  }}>
    <summary class="quiet icon" aria-label="More"><Icon name="more" /></summary>
    <div>
      <button type="button" onClick={() => { theme.value = NEXT[theme.peek()]; }}>Theme: {theme.value === 'auto' ? 'as the system' : theme.value}</button>
      <button type="button" onClick={() => { isKeyAsked.value = true; }}>API key</button>
      <button type="button" onClick={() => void exportAll()}>Export all as JSON</button>
      <label class="as-button" tabIndex={0} onKeyDown={(event) => {
        if (event.key === 'Enter' || event.key === ' ') event.currentTarget.querySelector('input')!.click();
      }}>Import (JSON or Markdown)
        <input id="import" type="file" accept=".json,.md" multiple hidden onChange={(event) => {
          void importFiles(event.currentTarget.files);
          event.currentTarget.value = '';
        }} />
      </label>
      <button type="button" onClick={() => { isHelpShown.value = true; }}>Keyboard and privacy</button>
    </div>
  </details>
);
