// SPDX-License-Identifier: Apache-2.0
// What can be set, attached and looked into; and the real model, through all of it.
import {answering, ask, chatsOf, expect, field, idle, openSettings, replies, same, type, newChat} from './rig.mjs';

const TOOLS = '[{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}]';

async function sending(runner, {browser, relay}) {
  await runner.run('what is left empty is not sent, what is set is', async (visit) => {
    answering(relay, 'Yes.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Plain');
    const plain = chatsOf(relay).at(-1);
    same(['temperature', 'top_p', 'max_tokens', 'seed', 'tools', 'response_format', 'logprobs'].filter((name) => name in plain), [], 'fields that nobody set');
    await openSettings(page);
    await page.getByLabel('Temperature').fill('0.5');
    await page.getByLabel('Longest reply').fill('64');
    await page.getByLabel('Seed').fill('7');
    await page.getByLabel('System message').fill('Be brief.');
    await page.getByLabel('Reasoning effort').selectOption('low');
    await page.getByLabel('Token details').check();
    await ask(page, 'Set');
    const set = chatsOf(relay).at(-1);
    same([set.temperature, set.max_tokens, set.seed, set.reasoning_effort, set.logprobs], [0.5, 64, 7, 'low', true], 'fields that were set');
    same(set.messages[0], {role: 'system', content: 'Be brief.'}, 'the system message');
    await page.getByRole('button', {name: "Back to the model's defaults"}).click();
    await ask(page, 'Again plain');
    expect(!('temperature' in chatsOf(relay).at(-1)), 'the defaults again');
  });
  await runner.slow('settings stay with their chat and begin the next', async (visit) => {
    answering(relay, 'Yes.');
    const {page} = await visit(browser, relay.address);
    await openSettings(page);
    await page.getByLabel('Temperature').fill('0.7');
    await ask(page, 'One');
    await newChat(page);
    same(await page.getByLabel('Temperature').inputValue(), '0.7', 'in the next chat');
    await page.getByLabel('Temperature').fill('1.5');
    await page.getByRole('link', {name: 'One'}).click();
    await page.locator('.said-by-user').waitFor();
    same(await page.getByLabel('Temperature').inputValue(), '0.7', 'in the first chat');
  });
  await runner.slow('mistakes in a schema or in tools are told before anything is sent', async (visit) => {
    answering(relay, 'Yes.');
    relay.requests.length = 0;
    const {page} = await visit(browser, relay.address);
    await openSettings(page);
    await page.getByRole('combobox', {name: 'Form'}).selectOption('json_schema');
    await page.getByLabel('JSON schema').fill('{"type": ');
    await page.getByText(/Schema: not valid JSON/).waitFor();
    await ask(page, 'Go');
    await replies(page).getByText(/Schema: not valid JSON/).waitFor();
    same(chatsOf(relay).length, 0, 'requests');
    await page.getByLabel('Functions as JSON').fill('[{"nam": 1}]');
    await page.getByText('Tools: every function needs a name').waitFor();
  });
  await runner.run('text files are attached, others are refused', async (visit) => {
    answering(relay, 'Read.');
    const {page} = await visit(browser, relay.address);
    await page.locator('#attach').setInputFiles([
      {name: 'notes.md', mimeType: 'text/plain', buffer: Buffer.from('The code is 42.\n```\ninner\n```\n')},
      {name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from([0x89, 0x50, 0, 1, 0xff])}]);
    await page.getByText('photo.png is not a text file.').waitFor();
    await ask(page, 'What is the code?');
    const {content} = chatsOf(relay).at(-1).messages[0];
    same(content, 'What is the code?\n\nFile "notes.md":\n````\nThe code is 42.\n```\ninner\n```\n````', 'what is sent');
    await page.locator('article.user').getByText('notes.md').waitFor();
  });
  await runner.slow('two megabytes are pasted as an attachment and sent', async (visit) => {
    answering(relay, 'Read all.');
    const {page} = await visit(browser, relay.address);
    await field(page).evaluate((area) => {
      const data = new DataTransfer();
      data.setData('text/plain', 'line of text\n'.repeat(160_000));
      area.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
    });
    await page.locator('.composer').getByText('Pasted text').waitFor();
    await ask(page, 'Sum up');
    await page.getByText('Read all.').waitFor();
    expect(chatsOf(relay).at(-1).messages[0].content.length > 2_000_000, 'two megabytes');
  });
  await runner.slow('an attachment is removed again', async (visit) => {
    const {page} = await visit(browser, relay.address);
    await page.locator('#attach').setInputFiles([{name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('a')}]);
    await page.getByRole('button', {name: 'Remove a.txt'}).click();
    expect(await page.getByRole('button', {name: 'Send', exact: true}).isDisabled(), 'nothing to send');
  });
}

async function thinking(runner, {browser, scripted}) {
  await runner.run('thoughts are folded and open to a click', async (visit) => {
    const {page} = await visit(browser, scripted.address);
    await ask(page, 'Think first');
    const thoughts = replies(page).last().locator('details.thoughts');
    expect(/^Thought/.test(await thoughts.locator('summary').innerText()), 'a summary of the thoughts');
    same(await thoughts.getByText('Let me think.').isVisible(), false, 'folded thoughts are visible');
    await thoughts.locator('summary').click();
    await thoughts.getByText('Let me think.').waitFor();
    await replies(page).last().getByText('Hello', {exact: true}).waitFor();
  });
  await runner.run('a tool call is shown, its result handed in, and the reply goes on', async (visit) => {
    const {page} = await visit(browser, scripted.address);
    await openSettings(page);
    await page.getByLabel('Functions as JSON').fill(TOOLS);
    await ask(page, 'TASK: the weather');
    const card = page.getByRole('region', {name: 'Call of weather'});
    await card.getByText('"Oslo"').waitFor();
    await card.getByLabel('Result of weather').fill('{"celsius": -3}');
    await page.getByRole('button', {name: 'Hand in the result'}).click();
    await page.getByText('Cold in Oslo.').waitFor();
    same(await page.getByRole('article', {name: 'Tool result'}).count(), 1, 'results');
    same(await page.getByLabel('Result of weather').count(), 0, 'open results');
  });
}

async function tokens(runner, {browser, scripted}) {
  await runner.run('tokens: chances of the reply, and what of the prompt was cached', async (visit) => {
    const {page} = await visit(browser, scripted.address);
    await ask(page, 'Hello there');
    await replies(page).last().getByRole('button', {name: 'Tokens', exact: true}).click();
    await page.getByText('Turn on “Token details”').waitFor();
    await openSettings(page);
    await page.getByLabel('Token details').check();
    await ask(page, 'Once more, with a few words so that a block of the prompt before it is whole');
    const figures = replies(page).last().locator('.figures');
    await figures.getByText(/prompt tokens cached/).waitFor();
    await replies(page).last().getByRole('button', {name: 'Tokens', exact: true}).click();
    const shown = page.getByRole('group', {name: 'Tokens of the reply'}).getByRole('button');
    same((await shown.allInnerTexts()).join(''), '**Hello**·there.', 'tokens');
    await shown.nth(1).hover();
    await page.getByText(/log-probability 0\.000/).waitFor();
    same(await page.locator('.chances tr').count(), 5, 'likeliest tokens');
    await page.getByRole('button', {name: 'Prompt', exact: true}).last().click();
    const cached = Number(/(\d+) of \d+ prompt/.exec(await figures.innerText())[1]);
    await page.locator('.token.cached').first().waitFor();
    same(await page.locator('.token.cached').count(), cached, 'cached tokens');
  });
}

async function real(runner, {browser, model}) {
  await runner.slow('the real model answers, with figures; its cache is found again', async (visit) => {
    const {page} = await visit(browser, model.address);
    await openSettings(page);
    await page.getByLabel('Longest reply').fill('12');
    await page.getByLabel('Temperature').fill('0');
    await ask(page, 'Name three colours of a fire, please, and say why they are so.');
    await page.locator('.figures').getByText(/12 tokens/).waitFor();
    await ask(page, 'And now of water, if you would be so kind, with reasons as before.');
    await page.locator('.figures').getByText(/prompt tokens cached/).waitFor();
    await replies(page).last().getByRole('button', {name: 'Tokens', exact: true}).click();
    await page.getByText('Turn on “Token details”').waitFor();
    await page.getByRole('button', {name: 'Prompt', exact: true}).click();
    await page.locator('.token.cached').first().waitFor();
    const tokens = await page.getByRole('group', {name: 'Tokens of the prompt'}).innerText();
    expect(tokens.includes('water'), 'the words of the prompt');
  });
  await runner.slow('log-probabilities of every token of the real model', async (visit) => {
    const {page} = await visit(browser, model.address);
    await openSettings(page);
    await page.getByLabel('Longest reply').fill('8');
    await page.getByLabel('Token details').check();
    await ask(page, 'Hello there');
    await replies(page).last().getByRole('button', {name: 'Tokens', exact: true}).click();
    const tokens = page.getByRole('group', {name: 'Tokens of the reply'}).getByRole('button');
    same(await tokens.count(), 8, 'tokens');
    await tokens.nth(3).hover();
    await page.getByText(/log-probability/).waitFor();
    same(await page.locator('.chances tr').count(), 5, 'likeliest tokens');
    const joined = (await tokens.allInnerTexts()).join('').replace(/·/g, ' ').replace(/↵/g, '').replace(/\s+/g, ' ').trim();
    const text = (await replies(page).last().locator('.markdown').first().innerText()).replace(/\s+/g, ' ').trim();
    expect(joined.startsWith(text.slice(0, 10)), `the tokens to be the text: ${joined} / ${text}`);
  });
  await runner.slow('a schema is kept to by the real model, and shown as JSON', async (visit) => {
    const {page} = await visit(browser, model.address);
    await openSettings(page);
    await page.getByRole('combobox', {name: 'Form'}).selectOption('json_schema');
    await page.getByLabel('JSON schema').fill('{"type":"object","properties":{"colour":{"enum":["red","green"]},"count":{"enum":[1,2]}},"required":["colour","count"],"additionalProperties":false}');
    await ask(page, 'A colour and a count');
    const value = JSON.parse(await replies(page).last().locator('pre').innerText());
    expect(['red', 'green'].includes(value.colour) && [1, 2].includes(value.count), `JSON of the schema, not ${JSON.stringify(value)}`);
  });
  await runner.slow('the model is named with its context, defaults are shown', async (visit) => {
    const {page} = await visit(browser, model.address);
    await page.getByRole('combobox', {name: 'Model'}).getByText(/smollm2 · 8k context/).waitFor({state: 'attached'});
    await openSettings(page);
    await page.waitForFunction(() => document.querySelector('[aria-label="Settings of this chat"] input[placeholder="0.2"]'));
    await page.getByText("from SmolLM2's model card").waitFor();
  });
  await runner.slow('the same seed gives the same reply', async (visit) => {
    const {page} = await visit(browser, model.address);
    await openSettings(page);
    for (const [name, value] of [['Longest reply', '16'], ['Seed', '11'], ['Temperature', '1']]) await page.getByLabel(name).fill(value);
    await ask(page, 'Tell me something');
    const first = await replies(page).last().locator('.markdown').innerText();
    await page.getByRole('button', {name: 'Ask again'}).click();
    await page.getByText('2 / 2').waitFor();
    await idle(page);
    same(await replies(page).last().locator('.markdown').innerText(), first, 'the second reply');
  });
  await runner.slow('a long reply of the real model is stopped on the server too', async (visit) => {
    const {page} = await visit(browser, model.address);
    await type(page, 'Write a very long story about the sea.');
    await replies(page).last().locator('.markdown p').first().waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('Stopped.').waitFor();
    await page.waitForFunction(async () => (await (await fetch('/status')).json()).requests.running === 0);
  });
}

export async function settings(runner, parts) {
  await sending(runner, parts);
  await thinking(runner, parts);
  await tokens(runner, parts);
  await real(runner, parts);
}
