// SPDX-License-Identifier: Apache-2.0
// A button that copies a text and says that it did.
import {useEffect, useState} from 'preact/hooks';
import {Icon} from './Icon';

// The clipboard of browsers needs a secure page; on others the old command still works.
async function copy(text: string) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

export function CopyButton({text, label}: {text: string; label: string}) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return (
    <button type="button" class="quiet icon" aria-label={isCopied ? 'Copied' : label} title={label}
            onClick={() => void copy(text).then(() => setCopied(true), () => {})}>
      <Icon name={isCopied ? 'check' : 'copy'} />
    </button>
  );
}
