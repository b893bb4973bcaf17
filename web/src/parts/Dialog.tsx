// SPDX-License-Identifier: Apache-2.0
// A modal dialog, the browser's own: it keeps the focus inside, closes with Escape and gives the focus
// back.
import type {ComponentChildren} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {Icon} from './Icon';

export function Dialog({title, onClose, children, isWide}: {
  title: string; onClose: () => void; children: ComponentChildren; isWide?: boolean;
}) {
  const place = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = place.current!;
    if (!dialog.open) dialog.showModal();
    return () => dialog.close();
  }, []);
  return (
    <dialog ref={place} class={isWide ? 'wide' : undefined} aria-label={title}
            onCancel={(event) => {
              event.preventDefault();
              onClose();
            }}
            onClick={(event) => {
              if (event.target === place.current) onClose();
            }}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet icon" aria-label="Close" onClick={onClose}><Icon name="close" /></button>
      </header>
      <div class="inside">{children}</div>
    </dialog>
  );
}
