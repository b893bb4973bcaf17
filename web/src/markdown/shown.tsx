// SPDX-License-Identifier: Apache-2.0
// Markdown and code for the views. What draws them comes after the first paint; a text that is shown
// sooner is shown as it is until then.
import {later} from '../parts/later';

const module = () => import('./Markdown');
const Plain = ({text}: {text: string}) => <div class="markdown"><p dir="auto" class="raw">{text}</p></div>;

export const Markdown = later<{text: string; isGrowing?: boolean}>(() => module().then((loaded) => loaded.Markdown), Plain);
export const Code = later<{text: string; language: string}>(() => module().then((loaded) => loaded.Code), Plain);
