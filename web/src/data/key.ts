// SPDX-License-Identifier: Apache-2.0
// The user's API key: for this tab, or for this browser if the user says so. It goes nowhere but into
// the authorization header of requests to the page's own origin (data/api.ts).
import {signal} from '@preact/signals';

const NAME = 'hearth.key';

function read(): string {
  try {
    return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? '';
  } catch {
    return '';
  }
}

export const key = signal(read());

export function setKey(value: string, isRemembered: boolean) {
  key.value = value;
  try {
    sessionStorage.removeItem(NAME);
    localStorage.removeItem(NAME);
    if (value) (isRemembered ? localStorage : sessionStorage).setItem(NAME, value);
  } catch {
    // Storage refused: the key lives as long as the page.
  }
}
