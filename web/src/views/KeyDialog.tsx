// SPDX-License-Identifier: Apache-2.0
// Asks for the API key and where to keep it.
import {useState} from 'preact/hooks';
import {askJson, type Model, models, needsKey} from '../data/api';
import {key, setKey} from '../data/key';
import {Dialog} from '../parts/Dialog';

export function KeyDialog({onClose}: {onClose: () => void}) {
  const [value, setValue] = useState(key.peek());
  const [isRemembered, setRemembered] = useState(false);
  const [problem, setProblem] = useState('');
  const submit = async (event: Event) => {
    event.preventDefault();
    setKey(value.trim(), isRemembered);
    try {
      models.value = (await askJson<{data: Model[]}>('/v1/models')).data;
      needsKey.value = false;
      onClose();
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  return (
    <Dialog title="API key" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <label>Key
          <input type="password" autocomplete="off" spellcheck={false} value={value} autofocus
                 aria-invalid={problem !== ''} aria-describedby="key-problem"
                 onInput={(event) => setValue(event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={isRemembered} onChange={(event) => setRemembered(event.currentTarget.checked)} />
          Keep it in this browser (otherwise until this tab closes)
        </label>
        <p id="key-problem" class="problem" role="alert">{problem}</p>
        <p class="hint">The key is sent to this server alone. Make one with <code>hearth key NAME</code>.</p>
        <div class="row">
          <button type="submit" class="main">Use key</button>
          {key.value && <button type="button" onClick={() => {
            setKey('', false);
            setValue('');
          }}>Forget key</button>}
        </div>
      </form>
    </Dialog>
  );
}
