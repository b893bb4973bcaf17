// SPDX-License-Identifier: Apache-2.0
// The settings of one conversation. What is left empty is the model's own default, which is shown.
import {schemaFrom, toolsFrom} from '../data/request';
import {setSettings} from '../data/chats';
import type {Conversation, Settings} from '../data/types';
import {Icon} from '../parts/Icon';
import {isSettingsShown} from '../parts/shown';
import {contextOf, modelOf} from './ModelPicker';

interface Field {
  name: 'temperature' | 'top_p' | 'top_k' | 'min_p' | 'repetition_penalty' | 'max_tokens' | 'seed';
  label: string;
  min?: number;
  max?: number;
  step: number;
}

const FIELDS: Field[] = [
  {name: 'temperature', label: 'Temperature', min: 0, max: 2, step: 0.05},
  {name: 'top_p', label: 'Top p', min: 0, max: 1, step: 0.01},
  {name: 'top_k', label: 'Top k', min: 0, max: 1_048_576, step: 1},
  {name: 'min_p', label: 'Min p', min: 0, max: 1, step: 0.01},
  {name: 'repetition_penalty', label: 'Repetition penalty', min: 0.01, max: 10, step: 0.01},
  {name: 'max_tokens', label: 'Longest reply', min: 1, max: 134_217_728, step: 1},
  {name: 'seed', label: 'Seed', step: 1},
];

const problemOf = (check: () => unknown): string => {
  try {
    check();
    return '';
  } catch (error) {
    return (error as Error).message;
  }
};

function Numbers({conversation, set}: {conversation: Conversation; set: (more: Partial<Settings>) => void}) {
  const model = modelOf(conversation);
  const defaults = (model?.default_sampling ?? {}) as Record<string, unknown>;
  const shown = (name: string) => (name === 'max_tokens' ? 'as fits' : name === 'seed' ? 'random' : String(defaults[name] ?? ''));
  return (
    <fieldset>
      <legend>Sampling</legend>
      <div class="fields">
        {FIELDS.map(({name, label, min, max, step}) => (
          <label key={name}>{label}
            <input type="number" inputMode="decimal" min={min} max={max} step={step} placeholder={shown(name)}
                   value={conversation.settings[name] ?? ''}
                   onInput={(event) => {
                     const {value, valueAsNumber} = event.currentTarget;
                     set({[name]: value === '' || Number.isNaN(valueAsNumber) ? undefined : valueAsNumber});
                   }} />
          </label>
        ))}
      </div>
      <p class="hint">
        Empty: the model's own{typeof defaults.source === 'string' ? `, from ${defaults.source}` : ''}.
        {model && contextOf(model) ? ` ${model.id} has ${contextOf(model)}.` : ''}
      </p>
    </fieldset>
  );
}

const EXAMPLE = `{
  "type": "object",
  "properties": {
    "name": {"type": "string"},
    "year": {"type": "integer"}
  },
  "required": ["name", "year"],
  "additionalProperties": false
}`;

function Format({conversation, set}: {conversation: Conversation; set: (more: Partial<Settings>) => void}) {
  const {settings} = conversation;
  const problem = settings.format === 'json_schema' ? problemOf(() => schemaFrom(settings.schema)) : '';
  return (
    <fieldset>
      <legend>Form of the reply</legend>
      <label>Form
        <select value={settings.format ?? 'text'} onChange={(event) => {
          const format = event.currentTarget.value as Settings['format'];
          set(format === 'json_schema' && !settings.schema ? {format, schema: EXAMPLE} : {format});
        }}>
          <option value="text">Text</option>
          <option value="json_object">Any JSON object</option>
          <option value="json_schema">JSON of a schema</option>
        </select>
      </label>
      {settings.format === 'json_schema' && (
        <label>JSON schema
          <textarea class="source" rows={10} spellcheck={false} dir="ltr" value={settings.schema ?? ''}
                    aria-invalid={problem !== ''} aria-describedby="schema-problem"
                    onInput={(event) => set({schema: event.currentTarget.value})} />
        </label>
      )}
      <p class="problem" id="schema-problem" role="status">{problem}</p>
    </fieldset>
  );
}

export function SettingsPanel({conversation}: {conversation: Conversation}) {
  const {settings} = conversation;
  const set = (more: Partial<Settings>) => setSettings(conversation.id, more);
  const toolProblem = problemOf(() => toolsFrom(settings.tools));
  return (
    <aside class="settings" aria-label="Settings of this chat">
      <header>
        <h2>Settings</h2>
        <button type="button" class="quiet icon" aria-label="Close settings" onClick={() => { isSettingsShown.value = false; }}><Icon name="close" /></button>
      </header>
      <label>System message
        <textarea rows={3} dir="auto" value={settings.system ?? ''} onInput={(event) => set({system: event.currentTarget.value})} />
      </label>
      <Numbers conversation={conversation} set={set} />
      <label>Reasoning effort
        <select value={settings.reasoning_effort ?? ''} onChange={(event) => set({reasoning_effort: event.currentTarget.value || undefined})}>
          <option value="">The model's own</option>
          {['none', 'low', 'medium', 'high'].map((each) => <option value={each}>{each}</option>)}
        </select>
      </label>
      <Format conversation={conversation} set={set} />
      <fieldset>
        <legend>Tools</legend>
        <label>Functions as JSON
          <textarea class="source" rows={5} spellcheck={false} dir="ltr" value={settings.tools ?? ''}
                    placeholder={'[{"name": "weather", "parameters": {…}}]'}
                    aria-invalid={toolProblem !== ''} aria-describedby="tools-problem"
                    onInput={(event) => set({tools: event.currentTarget.value})} />
        </label>
        <p class="problem" id="tools-problem" role="status">{toolProblem}</p>
        <p class="hint">The page runs nothing: you hand in what a call gives.</p>
      </fieldset>
      <label class="check">
        <input type="checkbox" checked={settings.details ?? false} onChange={(event) => set({details: event.currentTarget.checked})} />
        Token details: log-probabilities of every token
      </label>
      <button type="button" onClick={() => set({
        system: undefined, temperature: undefined, top_p: undefined, top_k: undefined, min_p: undefined, repetition_penalty: undefined,
        max_tokens: undefined, seed: undefined, reasoning_effort: undefined, format: undefined, schema: undefined, tools: undefined, details: undefined,
      })}>Back to the model's defaults</button>
    </aside>
  );
}
