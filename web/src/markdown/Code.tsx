// SPDX-License-Identifier: Apache-2.0
// A block of code: its language, a button to copy it, colours once the highlighter is loaded.
import type {ComponentChildren} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {signal} from '@preact/signals';
import {CopyButton} from '../parts/CopyButton';
import type {Piece} from './highlight';

const MAX_COLOURED = 50_000;
const MAX_WHILE_GROWING = 3_000;

type Highlighter = typeof import('./highlight');
const highlighter = signal<Highlighter | null>(null);
let isLoading = false;

function loadHighlighter() {
  if (isLoading) return;
  isLoading = true;
  import('./highlight').then((loaded) => {
    highlighter.value = loaded;
  }, () => {
    isLoading = false;
  });
}

function nodesOf(pieces: Piece[]): ComponentChildren {
  return pieces.map((piece) =>
    piece.type === 'text'
      ? piece.value
      : <span class={Array.isArray(piece.properties?.className) ? piece.properties.className.join(' ') : undefined}>
          {nodesOf(piece.children ?? [])}
        </span>);
}

export function Code({text, language, isGrowing}: {text: string; language: string; isGrowing?: boolean}) {
  const [isWrapped, setWrapped] = useState(false);
  const loaded = highlighter.value;
  const mayColour = language !== '' && text.length < (isGrowing ? MAX_WHILE_GROWING : MAX_COLOURED);
  useEffect(() => {
    if (mayColour) loadHighlighter();
  }, [mayColour]);
  const pieces = loaded && mayColour ? loaded.highlight(text, language) : null;
  return (
    <figure class="code" aria-label={language ? `${language} code` : 'code'}>
      <figcaption>
        <span>{language || 'text'}</span>
        <button type="button" class="quiet" aria-pressed={isWrapped} onClick={() => setWrapped(!isWrapped)}>Wrap</button>
        <CopyButton text={text} label="Copy code" />
      </figcaption>
      <pre tabIndex={0} dir="ltr" class={isWrapped ? 'wrapped' : undefined}><code>{pieces ? nodesOf(pieces) : text}</code></pre>
    </figure>
  );
}
