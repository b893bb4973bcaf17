// SPDX-License-Identifier: Apache-2.0
// Where in the page one is, as the address after '#': a conversation, a new one, or the server's page.
import {signal} from '@preact/signals';

export type Route = {view: 'chat'; id?: string} | {view: 'server'};

function read(): Route {
  const [, view, id] = location.hash.split('/');
  if (view === 'server') return {view: 'server'};
  return view === 'c' && id && /^[a-z0-9]+$/i.test(id) ? {view: 'chat', id} : {view: 'chat'};
}

export const route = signal<Route>(read());
window.addEventListener('hashchange', () => {
  route.value = read();
});

export const goTo = (hash: string) => {
  if (location.hash === hash || (hash === '#/' && location.hash === '')) route.value = read();
  else location.hash = hash;
};
