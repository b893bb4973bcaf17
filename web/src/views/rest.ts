// SPDX-License-Identifier: Apache-2.0
// The views that nobody sees at first, as one file of the page.
export {Help} from './Help';
export {KeyDialog} from './KeyDialog';
export {ServerPage} from './ServerPage';
export {SettingsPanel} from './SettingsPanel';
export {TokenView} from './TokenView';
