// SPDX-License-Identifier: Apache-2.0
// Begins a chat: its field takes the focus when it is shown.
import {startNew} from '../data/chats';
import {goTo} from '../route';

export function newChat() {
  // Where the address changes, App begins one; where it does not, nobody would.
  if (['', '#', '#/'].includes(location.hash)) startNew();
  else goTo('#/');
}
