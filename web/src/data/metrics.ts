// SPDX-License-Identifier: Apache-2.0
// Prometheus' text as numbers, and percentiles from the buckets of its histograms.

export interface Histogram {
  bounds: number[];  // upper bounds, the last is infinite
  counts: number[];  // cumulative
}

export function histogram(text: string, name: string): Histogram {
  const bounds: number[] = [];
  const counts: number[] = [];
  for (const line of text.split('\n')) {
    if (!line.startsWith(`${name}_bucket{`)) continue;
    const found = /le="([^"]+)"[^}]*\} (\S+)/.exec(line);
    if (!found) continue;
    bounds.push(found[1] === '+Inf' ? Infinity : Number(found[1]));
    counts.push(Number(found[2]));
  }
  return {bounds, counts};
}

// What came between two readings. A restarted server counts from zero again.
export function since(now: Histogram, before: Histogram | undefined): Histogram {
  if (!before || before.counts.length !== now.counts.length) return now;
  const counts = now.counts.map((count, at) => count - before.counts[at]!);
  return counts.some((count) => count < 0) ? now : {bounds: now.bounds, counts};
}

// Within a bucket values are taken as spread evenly. Without values there is none.
export function percentile({bounds, counts}: Histogram, share: number): number | null {
  const total = counts[counts.length - 1] ?? 0;
  if (total <= 0) return null;
  const wanted = share * total;
  const at = counts.findIndex((count) => count >= wanted);
  const low = at > 0 ? bounds[at - 1]! : 0;
  const high = bounds[at]!;
  if (!Number.isFinite(high)) return low;
  const below = at > 0 ? counts[at - 1]! : 0;
  const inside = counts[at]! - below;
  return low + (high - low) * (inside > 0 ? (wanted - below) / inside : 1);
}
