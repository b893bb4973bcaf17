// SPDX-License-Identifier: Apache-2.0
// One conversation: its head with the model, its messages, the field to write in.
import {type Signal, useSignal} from '@preact/signals';
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import {liveOf, running} from '../data/chats';
import {type Conversation, pathOf} from '../data/types';
import {Icon} from '../parts/Icon';
import {later} from '../parts/later';
import {isListShown, isSettingsShown} from '../parts/shown';
import {Composer} from './Composer';
import {MessageView} from './MessageView';
import {ModelPicker} from './ModelPicker';

const SettingsPanel = later(() => import('./rest').then((module) => module.SettingsPanel));

const NEAR = 80;  // pixels from the end that still count as reading along

// Keeps the end in view while a reply grows, unless the reader has scrolled up.
function useFollowing(last: string | undefined) {
  const place = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const isAway = useSignal(false);
  useLayoutEffect(() => {
    const box = place.current!;
    box.scrollTop = box.scrollHeight;
    isFollowing.current = true;
  }, [last]);
  useEffect(() => {
    const box = place.current!;
    let top = box.scrollTop;
    // Only the reader scrolls up; a text that grows moves the end away, and is followed.
    const onScroll = () => {
      const isNear = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
      if (isNear) isFollowing.current = true;
      else if (box.scrollTop < top) isFollowing.current = false;
      top = box.scrollTop;
      isAway.value = !isFollowing.current;
    };
    const grown = new ResizeObserver(() => {
      if (isFollowing.current) box.scrollTop = box.scrollHeight;
    });
    grown.observe(box.firstElementChild!);
    box.addEventListener('scroll', onScroll, {passive: true});
    return () => {
      grown.disconnect();
      box.removeEventListener('scroll', onScroll);
    };
  }, []);
  const toEnd = () => place.current!.scrollTo({top: place.current!.scrollHeight});
  return {place, isAway, toEnd};
}

const Welcome = () => (
  <div class="welcome">
    <h2>What is on your mind?</h2>
    <p>Replies are made on this server. Conversations stay in this browser.</p>
  </div>
);

export function Chat({conversation}: {conversation: Signal<Conversation>}) {
  const shown = conversation.value;
  const path = pathOf(shown);
  const last = path[path.length - 1];
  const busy = running.value;
  const {place, isAway, toEnd} = useFollowing(last?.id);
  const isBusy = path.some((message) => busy.has(message.id));
  return (
    <div class={isSettingsShown.value ? 'chat with-settings' : 'chat'}>
      <header class="top">
        <button type="button" class="quiet icon narrow" aria-label="Show the list of conversations"
                onClick={() => { isListShown.value = true; }}><Icon name="menu" /></button>
        <ModelPicker conversation={shown} />
        <h1 dir="auto">{shown.title}</h1>
        <button type="button" class="quiet icon" aria-label="Settings of this chat" aria-pressed={isSettingsShown.value}
                title="Settings (Alt+P)" onClick={() => { isSettingsShown.value = !isSettingsShown.peek(); }}><Icon name="sliders" /></button>
      </header>
      <div class="messages" ref={place} tabIndex={0} role="region" aria-label="Messages">
        <div class="column" role="log" aria-busy={isBusy}>
          {path.length === 0 && <Welcome />}
          {path.map((message) =>
            <MessageView key={message.id} conversation={shown} message={message} isLast={message === last}
                         live={busy.has(message.id) ? liveOf(message.id) : undefined} />)}
        </div>
      </div>
      <div class="foot">
        {isAway.value && <button type="button" class="to-end" onClick={toEnd}>To the newest message</button>}
        <Composer conversation={shown} last={last} isBusy={isBusy} />
      </div>
      {isSettingsShown.value && <SettingsPanel conversation={shown} />}
    </div>
  );
}
