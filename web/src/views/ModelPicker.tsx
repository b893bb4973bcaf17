// SPDX-License-Identifier: Apache-2.0
// Which model answers, with what the server says of each: loaded or not, how much context.
import {type Model, models, refreshModels} from '../data/api';
import {setSettings} from '../data/chats';
import type {Conversation} from '../data/types';

export const contextOf = (model: Model) =>
  model.max_model_len ? `${model.max_model_len >= 1024 ? `${Math.round(model.max_model_len / 1024)}k` : model.max_model_len} context` : '';

const STATES: Record<string, string> = {offered: 'not loaded', loading: 'loading…', unloading: 'leaving…', loaded: 'loaded'};
export const stateOf = (model: Model) => STATES[model.state ?? 'loaded'] ?? model.state ?? '';

export const modelOf = (conversation: Conversation): Model | undefined =>
  models.value.find((model) => model.id === conversation.settings.model) ?? models.value[0];

export function ModelPicker({conversation}: {conversation: Conversation}) {
  const list = models.value;
  const chosen = modelOf(conversation);
  const isGone = conversation.settings.model !== undefined && chosen?.id !== conversation.settings.model;
  return (
    <label class="picker">
      <span class={`dot ${chosen?.state ?? (chosen ? 'loaded' : 'none')}`} aria-hidden="true" />
      <select aria-label="Model" value={chosen?.id ?? ''} title={isGone ? `${conversation.settings.model} is not served any more` : undefined}
              onFocus={() => void refreshModels()}
              onChange={(event) => setSettings(conversation.id, {model: event.currentTarget.value})}>
        {list.length === 0 && <option value="">No model</option>}
        {list.map((model) =>
          <option value={model.id} key={model.id}>{[model.id, ...(list.length > 1 ? [stateOf(model)] : []), contextOf(model)].filter(Boolean).join(' · ')}</option>)}
      </select>
    </label>
  );
}
