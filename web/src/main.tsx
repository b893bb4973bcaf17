// SPDX-License-Identifier: Apache-2.0
// Starts the page.
import {render} from 'preact';
import {refreshModels} from './data/api';
import {refreshSummaries} from './data/chats';
import {loadTheRest} from './parts/later';
import './style/base.css';
import './style/chat.css';
import './style/server.css';
import {App} from './views/App';

const place = document.getElementById('app')!;
place.textContent = '';
render(<App />, place);
void refreshModels();
void refreshSummaries();
loadTheRest();
