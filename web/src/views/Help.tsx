// SPDX-License-Identifier: Apache-2.0
// The keys, and where what is said here stays.
import {Dialog} from '../parts/Dialog';

const KEYS = [
  ['Enter', 'Send'],
  ['Shift + Enter', 'New line'],
  ['Escape', 'Stop the reply, or close a dialog'],
  ['↑ in an empty field', 'Edit your last message'],
  ['Ctrl + K', 'Search conversations'],
  ['Alt + N', 'New chat'],
  ['Alt + P', 'Settings of this chat'],
  ['Alt + S', 'Server page and back'],
  ['/', 'Go to the message field'],
  ['Ctrl + / or ?', 'This help'],
];

export const Help = ({onClose}: {onClose: () => void}) => (
  <Dialog title="Keyboard and privacy" onClose={onClose}>
    <dl class="keys">{KEYS.map(([key, what]) => <><dt><kbd>{key}</kbd></dt><dd>{what}</dd></>)}</dl>
    <p>Conversations are kept in this browser alone. The page asks the server that showed it and no other:
      images and styles in replies are never loaded.</p>
  </Dialog>
);
