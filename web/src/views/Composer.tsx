// SPDX-License-Identifier: Apache-2.0
// The field to write in, with attached text files. A very long paste becomes an attachment.
import {signal, useSignal} from '@preact/signals';
import {useLayoutEffect, useRef} from 'preact/hooks';
import {send, stop} from '../data/asking';
import {notice, running} from '../data/chats';
import type {Attachment, Conversation, Message} from '../data/types';
import {Icon} from '../parts/Icon';
import {goTo} from '../route';

export const editing = signal<string | null>(null);  // the message that is being edited

const MAX_FILE = 3_000_000;   // of the 4 MiB that a request may have
const LONG_PASTE = 20_000;

async function readFile(file: File): Promise<Attachment> {
  if (file.size > MAX_FILE) throw new Error(`${file.name} is too large: at most 3 MB of text can be attached`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    const text = new TextDecoder('utf-8', {fatal: true}).decode(bytes);
    if (!text.includes('\0')) return {name: file.name, text};
  } catch {
    // Said below.
  }
  throw new Error(`${file.name} is not a text file`);
}

export const sizeOf = (text: string) =>
  text.length < 1000 ? `${text.length} characters` : `${(text.length / 1000).toFixed(text.length < 10_000 ? 1 : 0)} k characters`;

export const Chip = ({file, onRemove}: {file: Attachment; onRemove?: () => void}) => (
  <span class="chip">
    <Icon name="attach" />
    <span dir="auto">{file.name}</span> <small>{sizeOf(file.text)}</small>
    {onRemove && <button type="button" class="quiet icon" aria-label={`Remove ${file.name}`} onClick={onRemove}><Icon name="close" /></button>}
  </span>
);

export function Composer({conversation, last, isBusy}: {conversation: Conversation; last?: Message; isBusy: boolean}) {
  const text = useSignal('');
  const files = useSignal<Attachment[]>([]);
  const field = useRef<HTMLTextAreaElement>(null);
  // Not where the field would bring up a keyboard over half of the screen.
  useLayoutEffect(() => {
    if (!matchMedia('(pointer: coarse)').matches) field.current?.focus();
  }, []);
  const add = async (list: Iterable<File> | null) => {
    for (const file of list ?? []) {
      try {
        files.value = [...files.peek(), await readFile(file)];
      } catch (error) {
        notice.value = `${(error as Error).message}.`;
      }
    }
  };
  const submit = () => {
    if (isBusy || (text.peek().trim() === '' && files.peek().length === 0)) return;
    send(conversation.id, last?.id ?? null, text.peek().trim(), files.peek());
    text.value = '';
    files.value = [];
    goTo(`#/c/${conversation.id}`);
  };
  const stopAll = () => running.peek().forEach((id) => conversation.messages[id] && stop(id));
  const onPaste = (event: ClipboardEvent) => {
    const pasted = event.clipboardData?.getData('text/plain') ?? '';
    const given = event.clipboardData?.files;
    if (given && given.length > 0) {
      event.preventDefault();
      void add(given);
    } else if (pasted.length > MAX_FILE) {
      event.preventDefault();
      notice.value = 'The pasted text is too long: at most 3 MB can be sent.';
    } else if (pasted.length > LONG_PASTE) {
      event.preventDefault();
      files.value = [...files.peek(), {name: 'Pasted text', text: pasted}];
      notice.value = 'The long text was attached.';
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    } else if (event.key === 'ArrowUp' && text.peek() === '' && !isBusy) {
      const mine = [...document.querySelectorAll<HTMLElement>('article.user')].pop();
      if (!mine?.dataset.id) return;
      event.preventDefault();  // else the key moves the cursor of the field that opens
      editing.value = mine.dataset.id;
    }
  };
  return (
    <form class="composer" aria-label="New message" onSubmit={(event) => {
      event.preventDefault();
      submit();
    }} onDragOver={(event) => event.preventDefault()} onDrop={(event) => {
      event.preventDefault();
      void add(event.dataTransfer?.files ?? null);
    }}>
      {files.value.length > 0 && (
        <div class="chips">{files.value.map((file, at) =>
          <Chip file={file} key={at} onRemove={() => { files.value = files.peek().filter((_, index) => index !== at); }} />)}</div>
      )}
      <textarea id="message" ref={field} rows={1} dir="auto" placeholder="Write a message" aria-label="Message"
                value={text.value} onInput={(event) => { text.value = event.currentTarget.value; }}
                onPaste={onPaste} onKeyDown={onKeyDown} />
      <div class="row">
        <label class="quiet icon as-button" tabIndex={0} title="Attach text files" onKeyDown={(event) => {
          if (event.key === 'Enter' || event.key === ' ') {
            event.preventDefault();
            event.currentTarget.querySelector('input')!.click();
          }
        }}>
          <Icon name="attach" /><span class="said">Attach text files</span>
          <input id="attach" type="file" multiple hidden onChange={(event) => {
            void add([...(event.currentTarget.files ?? [])]);
            event.currentTarget.value = '';
          }} />
        </label>
        <span class="spacer" />
        {isBusy
          ? <button type="button" class="main icon" aria-label="Stop" title="Stop (Escape)" onClick={stopAll}><Icon name="stop" /></button>
          : <button type="submit" class="main icon" aria-label="Send" title="Send (Enter)"
                    disabled={text.value.trim() === '' && files.value.length === 0}><Icon name="send" /></button>}
      </div>
    </form>
  );
}
