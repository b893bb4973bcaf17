// SPDX-License-Identifier: Apache-2.0
// What is open beside the view itself.
import {signal} from '@preact/signals';

export const isListShown = signal(false);  // the conversations, on narrow screens, where they cover the rest
export const isHelpShown = signal(false);
export const isSettingsShown = signal(false);
export const isKeyAsked = signal(false);
