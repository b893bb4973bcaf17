// SPDX-License-Identifier: Apache-2.0
// The whole page: the list of conversations, what is open, and the keys that work everywhere.
import {useEffect} from 'preact/hooks';
import {isReachable, needsKey, refreshModels} from '../data/api';
import {stop} from '../data/asking';
import {current, notice, openConversation, running, startNew} from '../data/chats';
import {pathOf} from '../data/types';
import {later} from '../parts/later';
import {isHelpShown, isKeyAsked, isListShown, isSettingsShown} from '../parts/shown';
import {goTo, route} from '../route';
import {Chat} from './Chat';
import {newChat} from './newChat';
import {Sidebar} from './Sidebar';

const Help = later(() => import('./rest').then((module) => module.Help));
const KeyDialog = later(() => import('./rest').then((module) => module.KeyDialog));
const ServerPage = later(() => import('./rest').then((module) => module.ServerPage));

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);

function stopShown(): boolean {
  const conversation = current.peek()?.peek();
  const going = conversation && pathOf(conversation).filter((message) => running.peek().has(message.id));
  going?.forEach((message) => stop(message.id));
  return Boolean(going?.length);
}

function focusOn(selector: string) {
  requestAnimationFrame(() => document.querySelector<HTMLElement>(selector)?.focus());
}

// From the server's page: the conversation that was open before.
function backTo(): string {
  const conversation = current.peek()?.peek();
  return conversation?.chosen[''] ? `#/c/${conversation.id}` : '#/';
}

function onKey(event: KeyboardEvent) {
  if (document.querySelector('dialog[open]')) return;
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand && event.key.toLowerCase() === 'k') {
    event.preventDefault();
    isListShown.value = true;
    focusOn('#search');
  } else if (event.altKey && event.code === 'KeyN') {
    event.preventDefault();
    newChat();
  } else if (event.altKey && event.code === 'KeyS') {
    event.preventDefault();
    goTo(route.peek().view === 'server' ? backTo() : '#/server');
  } else if (event.altKey && event.code === 'KeyP') {
    event.preventDefault();
    isSettingsShown.value = !isSettingsShown.peek();
  } else if (event.key === 'Escape' && stopShown()) {
    event.preventDefault();
  } else if ((isCommand && event.key === '/') || (event.key === '?' && !isTyping(event.target))) {
    event.preventDefault();
    isHelpShown.value = true;
  } else if (event.key === '/' && !isTyping(event.target)) {
    event.preventDefault();
    focusOn('#message');
  }
}

function Banner() {
  if (needsKey.value) {
    return (
      <div class="banner" role="alert">
        This server needs an API key.
        <button type="button" onClick={() => { isKeyAsked.value = true; }}>Enter key</button>
      </div>
    );
  }
  if (!isReachable.value) {
    return (
      <div class="banner" role="alert">
        The server cannot be reached.
        <button type="button" onClick={() => void refreshModels()}>Try again</button>
      </div>
    );
  }
  return null;
}

export function App() {
  const at = route.value;
  const id = at.view === 'chat' ? at.id : undefined;
  useEffect(() => {
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  useEffect(() => {
    if (at.view !== 'chat') return;
    if (id === undefined) startNew();
    else if (current.peek()?.peek().id !== id) {
      void openConversation(id).then((isFound) => {
        if (isFound) return;
        notice.value = 'There is no such conversation in this browser.';
        goTo('#/');
      });
    }
  }, [at.view, id]);
  return (
    <>
      <a class="skip" href="#message" onClick={(event) => {
        event.preventDefault();
        focusOn('#message');
      }}>Skip to the message field</a>
      <Sidebar />
      <main>
        <Banner />
        {at.view === 'server' ? <ServerPage /> : current.value && <Chat key={current.value.peek().id} conversation={current.value} />}
      </main>
      <div class="said" role="status" aria-live="polite">{notice.value}</div>
      {isHelpShown.value && <Help onClose={() => { isHelpShown.value = false; }} />}
      {isKeyAsked.value && <KeyDialog onClose={() => { isKeyAsked.value = false; }} />}
    </>
  );
}
