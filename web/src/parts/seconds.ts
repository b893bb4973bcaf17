// SPDX-License-Identifier: Apache-2.0
// A length of time as people read it.
export const seconds = (ms: number) => (ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`);
