// SPDX-License-Identifier: Apache-2.0
// Style sheets are imported for Vite to collect; nothing comes of them.
declare module '*.css';
