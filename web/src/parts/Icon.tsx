// SPDX-License-Identifier: Apache-2.0
// The page's few icons, as paths of 24 by 24; a label is the business of what holds them.
const PATHS = {
  add: 'M12 5v14M5 12h14',
  again: 'M20 11a8 8 0 1 0-2.3 6.3M20 4v7h-7',
  attach: 'M20 11.5 11.8 19.7a5 5 0 0 1-7.1-7.1l8.5-8.5a3.3 3.3 0 0 1 4.7 4.7l-8.5 8.5a1.7 1.7 0 0 1-2.4-2.4l7.7-7.6',
  branch: 'M7 4v10a4 4 0 0 0 4 4h6M14 15l3 3-3 3M7 4 4.5 6.5M7 4l2.5 2.5',
  check: 'M5 12.5 10 17.5 19.5 7',
  close: 'M6 6l12 12M18 6 6 18',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  edit: 'M4 20l1-4L16 5l3 3L8 19zM14 7l3 3',
  help: 'M9 9.5a3 3 0 1 1 4 2.8c-.8.4-1 .9-1 1.7M12 17.5v.1M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z',
  left: 'M14.5 6 8.5 12l6 6',
  menu: 'M4 7h16M4 12h16M4 17h16',
  more: 'M6 12h.01v.5M12 12h.01v.5M18 12h.01v.5',
  right: 'M9.5 6l6 6-6 6',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4',
  send: 'M12 20V5M6 11l6-6 6 6',
  server: 'M4 18V13M9.5 18V8M15 18v-7M20 18V5',
  sliders: 'M4 7h9M17 7h3M4 17h3M11 17h9M13 5v4M7 15v4',
  stop: 'M7 7h10v10H7z',
  theme: 'M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18',
  tokens: 'M4 7h6v4H4zM12 7h8v4h-8zM4 14h9v4H4zM15 14h5v4h-5z',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({name}: {name: IconName}) => (
  <svg class="icon" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false">
    <path d={PATHS[name]} />
  </svg>
);
