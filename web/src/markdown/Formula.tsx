// SPDX-License-Identifier: Apache-2.0
// TeX as MathML, by Temml, loaded with the first formula. It builds nodes and no HTML, and trusts
// nothing: commands that would make links, classes or styles are shown as errors.
import {useEffect, useRef} from 'preact/hooks';

// A formula in a line that is longer than this may not fit a narrow screen and scrolls on its own.
// The others do not: a scroller each would be most of what painting a reply costs.
const LONG = 32;

export function Formula({text, isDisplay}: {text: string; isDisplay: boolean}) {
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    let isGone = false;
    void import('temml').then(({default: temml}) => {
      if (isGone || !place.current) return;
      try {
        temml.render(text, place.current, {
          displayMode: isDisplay, trust: false, throwOnError: true, maxSize: [20, 400], maxExpand: 200,
        });
      } catch {
        place.current.textContent = text;
      }
    }).catch(() => {});
    return () => {
      isGone = true;
    };
  }, [text, isDisplay]);
  return isDisplay
    ? <div class="formula" dir="ltr" tabIndex={0} ref={place as never}>{text}</div>
    : <span class={text.length > LONG ? 'formula long' : 'formula'} dir="ltr" ref={place as never}>{text}</span>;
}
