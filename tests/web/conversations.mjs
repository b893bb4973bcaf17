// SPDX-License-Identifier: Apache-2.0
// Conversations: kept, found, named, branched, carried in and out.
import {readFileSync} from 'node:fs';
import {answering, ask, chatsOf, expect, field, idle, replies, same, type, newChat} from './rig.mjs';

const listed = (page) => page.getByRole('navigation', {name: 'Conversations'}).getByRole('listitem');
const menu = async (page, name) => {
  await listed(page).first().hover();
  await listed(page).first().getByLabel('More about').click();
  await listed(page).first().getByRole('button', {name}).click();
};
const toolbar = async (page, name) => {
  await page.getByRole('navigation').locator('footer summary').click();
  await page.getByRole('button', {name}).click();
};
async function downloaded(page, act) {
  const [file] = await Promise.all([page.waitForEvent('download'), act()]);
  return {name: file.suggestedFilename(), path: await file.path()};
}

async function keeping(runner, {browser, relay}) {
  await runner.run('a reply is shown and the chat is listed under its first words', async (visit) => {
    answering(relay, 'Hello from the model.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Greet me warmly');
    await page.getByText('Hello from the model.').waitFor();
    await listed(page).getByText('Greet me warmly').waitFor();
  });
  await runner.run('a chat is still there after reloading', async (visit) => {
    answering(relay, 'Kept.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Remember this');
    await listed(page).first().waitFor();
    await page.reload();
    await page.getByText('Kept.', {exact: true}).waitFor();
    await page.locator('.said-by-user').getByText('Remember this').waitFor();
  });
  await runner.slow('a new chat begins empty and the old one is left', async (visit) => {
    answering(relay, 'One.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'First chat');
    await newChat(page);
    await page.getByText('What is on your mind').waitFor();
    same(await replies(page).count(), 0, 'replies in a new chat');
    await listed(page).getByText('First chat').click();
    await page.getByText('One.', {exact: true}).waitFor();
  });
  await runner.run('search finds words of titles and of messages', async (visit) => {
    answering(relay, 'The word is xylophone.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'About music');
    answering(relay, 'Nothing of note.');
    await newChat(page);
    await ask(page, 'About bread');
    await listed(page).nth(1).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('xylophone');
    await listed(page).getByText('About music').waitFor();
    await listed(page).getByText('About bread').waitFor({state: 'detached'});
    await page.getByLabel('Search conversations').fill('BREAD');
    await listed(page).getByText('About bread').waitFor();
    await page.getByLabel('Search conversations').fill('nowhere');
    await page.getByText('No conversation has these words.').waitFor();
  });
  await runner.slow('a chat is renamed, and keeps its name', async (visit) => {
    answering(relay, 'Fine.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Name me');
    await listed(page).first().waitFor();
    await menu(page, 'Rename');
    await page.getByLabel('New name').fill('A better name');
    await page.getByLabel('New name').press('Enter');
    await listed(page).getByText('A better name').waitFor();
    await page.reload();
    await listed(page).getByText('A better name').waitFor();
  });
  await runner.slow('renaming is left with Escape', async (visit) => {
    answering(relay, 'Fine.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Old name');
    await listed(page).first().waitFor();
    await menu(page, 'Rename');
    await page.getByLabel('New name').fill('Never');
    await page.getByLabel('New name').press('Escape');
    await listed(page).getByText('Old name').waitFor();
  });
  await runner.slow('a chat is deleted after being asked', async (visit) => {
    answering(relay, 'Fine.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Delete me');
    await listed(page).first().waitFor();
    page.once('dialog', (dialog) => dialog.dismiss());
    await menu(page, 'Delete');
    same(await listed(page).count(), 1, 'chats after saying no');
    page.once('dialog', (dialog) => dialog.accept());
    await listed(page).first().getByRole('button', {name: 'Delete'}).click();
    await page.getByText('Conversations will be listed here').waitFor();
    await page.reload();
    await page.getByText('Conversations will be listed here').waitFor();
  });
}

async function branching(runner, {browser, relay}) {
  await runner.run('editing a message makes a branch, and both can be shown', async (visit) => {
    answering(relay, 'Answer.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'First question');
    await ask(page, 'Second question');
    await page.locator('article.user').first().hover();
    await page.getByRole('button', {name: 'Edit as a branch'}).first().click();
    await page.getByLabel('Edit the message').fill('Changed question');
    await page.getByLabel('Edit the message').press('Enter');
    await page.getByText('Changed question', {exact: true}).first().waitFor();
    await idle(page);
    same(await page.locator('article').count(), 2, 'messages of the new branch');
    same(chatsOf(relay).at(-1).messages.map((m) => m.content), ['Changed question'], 'what the branch asked');
    await page.getByRole('button', {name: 'Previous branch'}).first().click();
    await page.getByText('Second question').waitFor();
    same(await page.locator('article').count(), 4, 'messages of the old branch');
    await page.reload();
    await page.getByText('Second question').waitFor();
    await page.getByText('1 / 2').waitFor();
  });
  await runner.run('asking again adds a reply beside the old one', async (visit) => {
    answering(relay, 'Old reply.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Say something');
    answering(relay, 'New reply.');
    await page.getByRole('button', {name: 'Ask again'}).click();
    await page.getByText('New reply.').waitFor();
    await page.getByText('2 / 2').waitFor();
    await page.getByRole('button', {name: 'Previous branch'}).click();
    await page.getByText('Old reply.').waitFor();
  });
  await runner.slow('what the assistant said can be edited as a branch', async (visit) => {
    answering(relay, 'Wrong.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Question');
    await page.getByRole('button', {name: 'Edit as a branch'}).last().click();
    await page.getByLabel('Edit the message').fill('Right.');
    await page.getByRole('button', {name: 'Keep as a branch'}).click();
    await page.getByText('Right.').waitFor();
    await ask(page, 'Go on');
    same(chatsOf(relay).at(-1).messages.map((m) => m.content), ['Question', 'Right.', 'Go on'], 'what is asked then');
  });
  await runner.slow('a message is deleted with what follows it', async (visit) => {
    answering(relay, 'Answer.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'One');
    await ask(page, 'Two');
    await page.locator('article.user').last().hover();
    await page.locator('article.user').last().getByRole('button', {name: 'Delete message'}).click();
    await page.getByText('Two', {exact: true}).waitFor({state: 'detached'});
    same(await page.locator('article').count(), 2, 'messages left');
  });
  await runner.slow('the arrow up edits the last message', async (visit) => {
    answering(relay, 'Answer.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Typo hree');
    await field(page).press('ArrowUp');
    same(await page.getByLabel('Edit the message').inputValue(), 'Typo hree', 'what is edited');
    await page.getByLabel('Edit the message').press('Escape');
    await page.getByLabel('Edit the message').waitFor({state: 'detached'});
  });
}

async function carrying(runner, {browser, relay}) {
  await runner.run('export as JSON and import elsewhere give the same chat with its branches', async (visit) => {
    answering(relay, 'First.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Carry me');
    answering(relay, 'Second.');
    await page.getByRole('button', {name: 'Ask again'}).click();
    await page.getByText('Second.').waitFor();
    await idle(page);
    await listed(page).first().waitFor();
    const file = await downloaded(page, () => menu(page, 'Export as JSON'));
    same(file.name, 'Carry me.json', 'the name of the file');
    const other = (await visit(browser, relay.address)).page;
    await other.locator('#import').setInputFiles({name: file.name, mimeType: 'application/json', buffer: readFileSync(file.path)});
    await other.getByText('Second.').waitFor();
    await other.getByRole('button', {name: 'Previous branch'}).click();
    await other.getByText('First.').waitFor();
  });
  await runner.slow('export as Markdown and back', async (visit) => {
    answering(relay, 'Some **bold** words.\n\n## User\n\nnot a heading of ours');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Write Markdown');
    await listed(page).first().waitFor();
    const file = await downloaded(page, () => menu(page, 'Export as Markdown'));
    const text = readFileSync(file.path, 'utf8');
    expect(text.startsWith('# Write Markdown\n\n## User\n\nWrite Markdown\n\n## Assistant\n\nSome **bold**'), `Markdown, not ${text}`);
    const other = (await visit(browser, relay.address)).page;
    await other.locator('#import').setInputFiles({name: file.name, mimeType: 'text/markdown', buffer: readFileSync(file.path)});
    await other.getByText('bold', {exact: true}).waitFor();
    same(await other.locator('article').count(), 2, 'messages that came back');
  });
  await runner.slow('all chats are exported together', async (visit) => {
    answering(relay, 'Yes.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'One');
    await newChat(page);
    await ask(page, 'Two');
    await listed(page).nth(1).waitFor();
    const file = await downloaded(page, () => toolbar(page, 'Export all as JSON'));
    same(JSON.parse(readFileSync(file.path, 'utf8')).conversations.length, 2, 'exported chats');
  });
  await runner.slow('a broken or foreign file is refused and says why', async (visit) => {
    const {page} = await visit(browser, relay.address);
    for (const text of ['{', '[]', '{"kind":"other"}', 'null']) {
      await page.locator('#import').setInputFiles({name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(text)});
      await page.getByText(/x\.json was not imported/).waitFor();
    }
    await page.locator('#import').setInputFiles({name: 'x.md', mimeType: 'text/markdown', buffer: Buffer.from('nothing')});
    await page.getByText(/x\.md was not imported/).waitFor();
  });
  await runner.run('a hostile file of chats does nothing but lie in the list', async (visit) => {
    const {page} = await visit(browser, relay.address);
    const file = {kind: 'hearth-conversations', version: 1, conversations: [{
      title: '<img src=x onerror=document.title="bad">', settings: {temperature: 'x', system: 5, model: {}},
      messages: {__proto__: {id: 1}, a: {id: 'a', parent: null, role: 'user', content: '<script>document.title="bad"</script>'},
        b: {id: 'b', parent: 'a', role: 'assistant', content: '[x](javascript:document.title="bad")', calls: 7, attachments: 'no'},
        c: {id: 'c', parent: 'nobody', role: 'user', content: 'lost'}, d: {id: 'd', parent: 'd', role: 'root', content: 1}},
      chosen: {'': 'a', a: 'b', b: 'a'}}]};
    await page.locator('#import').setInputFiles({name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(file))});
    await page.getByText('<script>document.title="bad"</script>').waitFor();
    same(await page.title(), 'Hearth', 'the title');
    same(await page.locator('article').count(), 2, 'messages');
    same(await page.locator('article a').count(), 0, 'links');
  });
}

export async function conversations(runner, parts) {
  await keeping(runner, parts);
  await branching(runner, parts);
  await carrying(runner, parts);
  await runner.slow('two hundred messages are shown and answered', async (visit) => {
    answering(parts.relay, 'Short.');
    const {page} = await visit(parts.browser, parts.relay.address);
    let text = '# Long\n';
    for (let i = 0; i < 100; ++i) text += `\n## User\n\nQuestion ${i}\n\n## Assistant\n\nAnswer **${i}** with \`code\`.\n`;
    await page.locator('#import').setInputFiles({name: 'long.md', mimeType: 'text/markdown', buffer: Buffer.from(text)});
    await page.getByText('Question 99').waitFor();
    same(await page.locator('article').count(), 200, 'messages');
    await ask(page, 'One more');
    same(chatsOf(parts.relay).at(-1).messages.length, 201, 'messages that were sent');
  });
  await runner.slow('another tab sees what this one wrote', async (visit) => {
    answering(parts.relay, 'Shared.');
    const {page, context} = await visit(parts.browser, parts.relay.address);
    const other = await context.newPage();
    await other.goto(parts.relay.address);
    await type(page, 'From the first tab');
    await listed(other).getByText('From the first tab').waitFor();
  });
}
