// SPDX-License-Identifier: Apache-2.0
// The conversations of this page: which there are, which is open, which replies are running.
import {type Signal, signal} from '@preact/signals';
import * as store from './store';
import {type Conversation, type Message, newConversation, type Settings, type Summary, titleFrom} from './types';

export const summaries = signal<Summary[]>([]);
export const current = signal<Signal<Conversation> | null>(null);
export const running = signal<ReadonlySet<string>>(new Set());  // ids of messages
export const notice = signal<string>('');  // for everybody, also said by screen readers

const open = new Map<string, Signal<Conversation>>();
const live = new Map<string, Signal<Message>>();
const unsaved = new Map<string, number>();
const tabs = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('hearth');
const DEFAULTS = 'hearth.settings';

// What a new conversation begins with: the settings that were last used.
function lastSettings(): Settings {
  try {
    return JSON.parse(localStorage.getItem(DEFAULTS) ?? '{}') as Settings;
  } catch {
    return {};
  }
}

export const liveOf = (id: string) => live.get(id);

export function setLive(id: string, message: Signal<Message> | null) {
  if (message) live.set(id, message);
  else live.delete(id);
  running.value = new Set(live.keys());
}

// With what its running replies have so far.
function whole(conversation: Conversation): Conversation {
  let messages = conversation.messages;
  for (const [id, message] of live) {
    if (messages[id]) messages = {...messages, [id]: message.peek()};
  }
  return messages === conversation.messages ? conversation : {...conversation, messages};
}

async function saveNow(id: string) {
  unsaved.delete(id);
  const conversation = open.get(id)?.peek();
  if (!conversation || Object.keys(conversation.messages).length === 0) return;
  try {
    await store.save(whole(conversation));
    tabs?.postMessage(id);
  } catch (error) {
    notice.value = `This browser could not keep the conversation: ${(error as Error)?.message ?? 'storage is full'}`;
  }
  await refreshSummaries();
}

export function saveSoon(id: string, ms = 0) {
  if (unsaved.has(id)) {
    if (ms > 0) return;
    clearTimeout(unsaved.get(id));
  }
  unsaved.set(id, window.setTimeout(() => void saveNow(id), ms));
}

export async function refreshSummaries() {
  summaries.value = await store.allSummaries();
}

export function change(id: string, by: (conversation: Conversation) => Conversation) {
  const conversation = open.get(id);
  if (!conversation) return;
  conversation.value = by(conversation.peek());
  saveSoon(id);
}

export const peek = (id: string) => open.get(id)?.peek();

export function startNew() {
  const conversation = signal(newConversation(lastSettings()));
  open.set(conversation.peek().id, conversation);
  current.value = conversation;
}

export async function openConversation(id: string): Promise<boolean> {
  let conversation = open.get(id);
  if (!conversation) {
    const kept = await store.load(id);
    if (!kept) return false;
    conversation = signal(kept);
    open.set(id, conversation);
  }
  current.value = conversation;
  return true;
}

export async function rename(id: string, title: string) {
  const wanted = title.trim();
  if (!wanted) return;
  if (!open.has(id)) {
    const kept = await store.load(id);
    if (!kept) return;
    open.set(id, signal(kept));
  }
  change(id, (c) => ({...c, title: wanted, isNamed: true}));
}

export async function removeConversation(id: string) {
  window.clearTimeout(unsaved.get(id));
  unsaved.delete(id);
  open.delete(id);
  await store.remove(id);
  tabs?.postMessage(id);
  if (current.peek()?.peek().id === id) startNew();
  await refreshSummaries();
}

export async function addConversations(list: Conversation[]) {
  for (const conversation of list) await store.save(conversation);
  await refreshSummaries();
}

export function setSettings(id: string, more: Partial<Settings>) {
  change(id, (c) => ({...c, settings: {...c.settings, ...more}}));
  const settings = open.get(id)?.peek().settings;
  try {
    localStorage.setItem(DEFAULTS, JSON.stringify(settings));
  } catch {
    // Then the next conversation begins with the model's own.
  }
}

export function nameFrom(id: string, text: string) {
  change(id, (c) => (c.isNamed || c.title !== 'New chat' ? c : {...c, title: titleFrom(text)}));
}

// Another tab changed one: shown again unless a reply of it runs here.
tabs?.addEventListener('message', (event: MessageEvent<string>) => {
  const id = event.data;
  const here = open.get(id);
  const isRunning = here && Object.keys(here.peek().messages).some((each) => live.has(each));
  if (here && !isRunning && !unsaved.has(id)) {
    void store.load(id).then((kept) => {
      if (kept) here.value = kept;
    });
  }
  void refreshSummaries();
});

window.addEventListener('pagehide', () => {
  for (const id of [...unsaved.keys()]) {
    clearTimeout(unsaved.get(id));
    unsaved.delete(id);
    const conversation = open.get(id)?.peek();
    if (conversation && conversation.chosen['']) store.saveAtOnce(whole(conversation));
  }
});
