// SPDX-License-Identifier: Apache-2.0
// Light, dark, or as the system has it; kept in this browser.
import {effect, signal} from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';
const NAME = 'hearth.theme';

function read(): Theme {
  try {
    const kept = localStorage.getItem(NAME);
    return kept === 'light' || kept === 'dark' ? kept : 'auto';
  } catch {
    return 'auto';
  }
}

export const theme = signal<Theme>(read());

effect(() => {
  const {value} = theme;
  if (value === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
  try {
    localStorage.setItem(NAME, value);
  } catch {
    // Then as the system has it next time.
  }
});

export const NEXT: Record<Theme, Theme> = {auto: 'light', light: 'dark', dark: 'auto'};
