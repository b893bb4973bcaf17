// SPDX-License-Identifier: Apache-2.0
// Every view for everybody: with a keyboard alone, for screen readers (axe), narrow and wide, light and
// dark; and the server's page.
import {answering, ask, axe, expect, field, idle, openSettings, replies, same, type} from './rig.mjs';

const RICH = '# Head\n\nText with $x$ and [link](https://example.org/).\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [ ] task';
const SIZES = [['wide', {width: 1920, height: 1080}], ['narrow', {width: 375, height: 812}]];

async function fits(page, what) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect(over <= 0, `${what} to fit the width, not ${over} pixels more`);
}

async function views(runner, {browser, relay, model}) {
  for (const [size, viewport] of SIZES) {
    for (const colorScheme of ['light', 'dark']) {
      const isFirst = (size === 'wide') === (colorScheme === 'light');
      await runner[isFirst ? 'run' : 'slow'](`axe finds nothing serious: ${size}, ${colorScheme}`, async (visit) => {
        answering(relay, RICH);
        const {page} = await visit(browser, relay.address, {viewport, colorScheme, reducedMotion: 'reduce'});
        await page.getByText('What is on your mind').waitFor();
        await axe(page, 'an empty chat');
        await ask(page, 'Show me everything');
        await page.locator('math').first().waitFor();
        await page.locator('.hljs-number').first().waitFor();
        await fits(page, 'a chat');
        await axe(page, 'a chat');
        await openSettings(page);
        await fits(page, 'settings');
        await axe(page, 'settings');
        await page.getByRole('button', {name: 'Close settings'}).click();
        await replies(page).last().getByRole('button', {name: 'Tokens', exact: true}).click();
        await page.getByRole('button', {name: 'Prompt', exact: true}).click();
        await page.locator('.token').first().waitFor();
        await axe(page, 'tokens');
        await page.keyboard.press('Alt+s');
        await page.getByRole('heading', {name: 'Cache by tier'}).waitFor();
        await fits(page, 'the server page');
        await axe(page, 'the server page');
        if (size === 'narrow') {
          await page.getByRole('button', {name: 'Show the list of conversations'}).click();
          await page.getByRole('navigation', {name: 'Conversations'}).getByRole('link', {name: 'Show me everything'}).waitFor();
          await axe(page, 'the list');
          await page.getByRole('link', {name: 'Show me everything'}).click();
        }
        await page.keyboard.press('Alt+n');
        await page.getByRole('heading', {name: 'What is on your mind'}).waitFor();
        await page.evaluate(() => document.activeElement.blur());
        await page.keyboard.press('?');
        await page.getByRole('dialog').waitFor();
        await axe(page, 'help');
      });
    }
  }
  await runner.run('the server page shows a running request of the real model', async (visit) => {
    const {page} = await visit(browser, model.address);
    await type(page, 'Write a very long story about a lighthouse.');
    await page.getByRole('button', {name: 'Stop', exact: true}).waitFor();
    await page.keyboard.press('Alt+s');
    await page.locator('table').getByText('writing', {exact: true}).waitFor();
    await page.locator('.life .decode').first().waitFor();
    for (const title of ['Written', 'Read', 'Requests', 'Keys and values', 'Time to first token', 'Gap between tokens']) {
      await page.getByRole('img', {name: new RegExp(`^${title}: `)}).waitFor();
    }
    await page.getByRole('img', {name: /^Gap between tokens: median \d/}).waitFor();
    await page.keyboard.press('Alt+s');
    await page.getByText(/Write a very long/).last().waitFor();
    await page.keyboard.press('Escape');
    await idle(page);
    await page.keyboard.press('Alt+s');
    await page.getByRole('region', {name: 'Requests of this page'}).getByText(/Write a very long/).waitFor();
  });
}

async function keyboard(runner, {browser, relay}) {
  await runner.run('everything by keyboard: write, stop, branch, search, settings, help', async (visit) => {
    answering(relay, 'Answer.');
    const {page} = await visit(browser, relay.address);
    await page.waitForFunction(() => document.activeElement?.id === 'message');
    await page.keyboard.type('By keyboard');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('second line');
    await page.keyboard.press('Enter');
    await page.getByText('Answer.', {exact: true}).waitFor();
    await idle(page);
    await field(page).focus();
    await page.keyboard.press('ArrowUp');
    await page.waitForFunction(() => document.activeElement?.getAttribute('aria-label') === 'Edit the message');
    await page.keyboard.type(' more');
    await page.keyboard.press('Enter');
    await page.getByText('2 / 2').waitFor();
    await idle(page);
    await page.keyboard.press('Control+k');
    await page.waitForFunction(() => document.activeElement?.id === 'search');
    await page.keyboard.press('Alt+p');
    await page.getByRole('complementary', {name: 'Settings of this chat'}).waitFor();
    await page.keyboard.press('Alt+p');
    await page.getByRole('complementary', {name: 'Settings of this chat'}).waitFor({state: 'detached'});
    await page.keyboard.press('Alt+n');
    await page.waitForFunction(() => document.activeElement?.id === 'message');
    await page.getByText('What is on your mind').waitFor();
    await page.getByRole('link', {name: 'By keyboard'}).focus();
    await page.keyboard.press('Enter');
    await page.getByText('second line more').waitFor();
    await page.keyboard.press('Control+/');
    await page.getByRole('dialog', {name: 'Keyboard and privacy'}).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({state: 'detached'});
  });
  await runner.slow('the focus is always visible', async (visit) => {
    answering(relay, 'Answer.');
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Hello');
    await page.evaluate(() => document.activeElement.blur());
    for (let i = 0; i < 25; ++i) {
      await page.keyboard.press('Tab');
      const shown = await page.evaluate(() => {
        const at = document.activeElement;
        const style = getComputedStyle(at);
        const composer = at.closest('.composer');
        return at === document.body || style.outlineStyle !== 'none' || (composer && getComputedStyle(composer).borderColor !== getComputedStyle(document.body).color);
      });
      expect(shown, `a mark on the ${i}th element`);
    }
  });
  await runner.slow('the theme is chosen and kept', async (visit) => {
    const {page} = await visit(browser, relay.address, {colorScheme: 'light'});
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.getByRole('navigation').locator('footer summary').click();
    await page.getByRole('button', {name: /^Theme/}).click();
    await page.getByRole('button', {name: 'Theme: light'}).click();
    await page.getByRole('button', {name: 'Theme: dark'}).waitFor();
    expect(await ground() !== light, 'a dark page');
    await page.reload();
    expect(await ground() !== light, 'a dark page after reloading');
  });
  await runner.slow('a reply is followed to its end unless one scrolls up', async (visit) => {
    answering(relay, Array.from({length: 80}, (_, i) => `Line ${i}`).join('\n\n'), 50);
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Long');
    const gap = () => page.locator('.messages').evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
    await page.waitForFunction(() => {
      const box = document.querySelector('.messages');
      return box.scrollHeight - box.scrollTop - box.clientHeight < 80;
    });
    await page.locator('.messages').hover();
    await page.mouse.wheel(0, -2000);
    await page.getByRole('button', {name: 'To the newest message'}).click();
    await page.getByRole('button', {name: 'To the newest message'}).waitFor({state: 'detached'});
    expect(await gap() < 80, 'the end in view');
  });
}

export async function looks(runner, parts) {
  await views(runner, parts);
  await keyboard(runner, parts);
}
