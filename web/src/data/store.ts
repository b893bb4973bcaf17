// SPDX-License-Identifier: Apache-2.0
// Conversations in the browser's IndexedDB: summaries for the list, bodies apart. Where the browser
// keeps nothing (private windows, storage refused) they live as long as the page.
import type {Conversation, Summary} from './types';

const NAME = 'hearth';
const memory = new Map<string, Conversation>();

let opening: Promise<IDBDatabase | null> | undefined;
let ready: IDBDatabase | undefined;

function database(): Promise<IDBDatabase | null> {
  opening ??= new Promise((resolve) => {
    let request: IDBOpenDBRequest;
    try {
      request = indexedDB.open(NAME, 1);
    } catch {
      resolve(null);
      return;
    }
    request.onupgradeneeded = () => {
      request.result.createObjectStore('summaries', {keyPath: 'id'});
      request.result.createObjectStore('bodies', {keyPath: 'id'});
    };
    request.onsuccess = () => {
      ready = request.result;
      resolve(ready);
    };
    request.onerror = () => resolve(null);
    request.onblocked = () => resolve(null);
  });
  return opening;
}

const done = <T>(request: IDBRequest<T>) =>
  new Promise<T>((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

export const isKept = async () => (await database()) !== null;

export async function allSummaries(): Promise<Summary[]> {
  const db = await database();
  const rows: Summary[] = db
    ? await done(db.transaction('summaries').objectStore('summaries').getAll())
    : [...memory.values()].map(({id, title, updatedAt}) => ({id, title, updatedAt}));
  return rows.sort((a, b) => b.updatedAt - a.updatedAt);
}

export async function load(id: string): Promise<Conversation | undefined> {
  const db = await database();
  return db ? done(db.transaction('bodies').objectStore('bodies').get(id)) : memory.get(id);
}

function write(db: IDBDatabase, conversation: Conversation): IDBTransaction {
  const {id, title, updatedAt} = conversation;
  const change = db.transaction(['summaries', 'bodies'], 'readwrite');
  change.objectStore('summaries').put({id, title, updatedAt});
  change.objectStore('bodies').put(conversation);
  return change;
}

// For a page that is being left, which waits for nothing.
export function saveAtOnce(conversation: Conversation) {
  if (ready) write(ready, conversation).commit();
}

export async function save(conversation: Conversation): Promise<void> {
  const db = await database();
  if (!db) {
    memory.set(conversation.id, conversation);
    return;
  }
  const change = write(db, conversation);
  await new Promise<void>((resolve, reject) => {
    change.oncomplete = () => resolve();
    change.onerror = change.onabort = () => reject(change.error);
  });
}

export async function remove(id: string): Promise<void> {
  const db = await database();
  memory.delete(id);
  if (!db) return;
  const change = db.transaction(['summaries', 'bodies'], 'readwrite');
  change.objectStore('summaries').delete(id);
  change.objectStore('bodies').delete(id);
  await new Promise<void>((resolve) => {
    change.oncomplete = change.onabort = change.onerror = () => resolve();
  });
}

export async function allBodies(): Promise<Conversation[]> {
  const db = await database();
  return db ? done(db.transaction('bodies').objectStore('bodies').getAll()) : [...memory.values()];
}

// Ids of conversations in which some message holds the words.
export async function searchBodies(words: string): Promise<Set<string>> {
  const wanted = words.toLowerCase();
  const found = new Set<string>();
  const look = (conversation: Conversation) => {
    const has = Object.values(conversation.messages)
      .some((message) => message.content.toLowerCase().includes(wanted));
    if (has) found.add(conversation.id);
  };
  const db = await database();
  if (!db) {
    memory.forEach(look);
    return found;
  }
  await new Promise<void>((resolve) => {
    const request = db.transaction('bodies').objectStore('bodies').openCursor();
    request.onerror = () => resolve();
    request.onsuccess = () => {
      if (!request.result) return resolve();
      look(request.result.value as Conversation);
      request.result.continue();
    };
  });
  return found;
}
