// SPDX-License-Identifier: Apache-2.0
// A small plot of the last two minutes: lines over time, the newest on the right.
interface Line {
  label: string;
  values: (number | null)[];
}

const WIDTH = 320;
const HEIGHT = 96;

// The next round number, so that the scale does not change with every sample.
function ceiling(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power;
}

function pathOf(values: (number | null)[], top: number, count: number): string {
  let path = '';
  let isDrawing = false;
  values.forEach((value, at) => {
    if (value === null) {
      isDrawing = false;
      return;
    }
    const x = WIDTH - ((values.length - 1 - at) * WIDTH) / (count - 1);
    const y = HEIGHT - (Math.min(value, top) / top) * (HEIGHT - 4) - 2;
    // A value between two gaps would be a line without length.
    path += `${isDrawing ? 'L' : `M${x.toFixed(1)} ${y.toFixed(1)}h.1M`}${x.toFixed(1)} ${y.toFixed(1)}`;
    isDrawing = true;
  });
  return path;
}

export function Plot({title, unit, lines, count = 120, max, digits = 0}: {
  title: string; unit: string; lines: Line[]; count?: number; max?: number; digits?: number;
}) {
  const top = max ?? ceiling(Math.max(0, ...lines.flatMap((line) => line.values.map((value) => value ?? 0))));
  const newest = (line: Line) => line.values[line.values.length - 1];
  const written = (value: number | null | undefined) => (value === null || value === undefined ? '–' : value.toFixed(digits));
  const summary = lines.map((line) => `${line.label} ${written(newest(line))} ${unit}`).join(', ');
  return (
    <figure class="plot">
      <figcaption>
        <h3>{title}</h3>
        <ul>{lines.map((line, at) => <li class={`line-${at}`}>{line.label} <b>{written(newest(line))}</b> {unit}</li>)}</ul>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${title}: ${summary}`}>
        {[0.25, 0.5, 0.75].map((share) => <path class="grid" d={`M0 ${HEIGHT * share}H${WIDTH}`} />)}
        {lines.map((line, at) => <path class={`line line-${at}`} d={pathOf(line.values, top, count)} />)}
      </svg>
      <span class="scale">{top.toLocaleString()} {unit}</span>
    </figure>
  );
}
