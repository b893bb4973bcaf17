// SPDX-License-Identifier: Apache-2.0
// Parts of the page that nobody sees at first: their code comes after the first paint, or when one of
// them is shown before that. Until it is there, `Meanwhile` stands in.
import {signal} from '@preact/signals';
import type {ComponentType} from 'preact';
import {useEffect} from 'preact/hooks';

const waiting: (() => void)[] = [];

export function later<Props extends object>(load: () => Promise<ComponentType<Props>>, Meanwhile?: ComponentType<Props>) {
  const loaded = signal<ComponentType<Props> | null>(null);
  let isAsked = false;
  const fetch = () => {
    if (isAsked) return;
    isAsked = true;
    load().then((component) => {
      loaded.value = component;
    }, () => {
      isAsked = false;  // the next time that it is drawn
    });
  };
  waiting.push(fetch);
  return function Later(props: Props) {
    useEffect(fetch);
    const Shown = loaded.value ?? Meanwhile;
    return Shown ? <Shown {...props} /> : null;
  };
}

// Once the page is on the screen.
export function loadTheRest() {
  requestAnimationFrame(() => setTimeout(() => waiting.forEach((fetch) => fetch())));
}
