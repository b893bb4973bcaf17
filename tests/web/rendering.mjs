// SPDX-License-Identifier: Apache-2.0
// What replies look like, and what they must never do: the text of a model is text of a stranger.
import {answering, ask, event, expect, finish, idle, isChat, replies, same, say, startEvents, type} from './rig.mjs';

const reply = (page) => replies(page).last();

async function asked(visit, {browser, relay}, text, size) {
  answering(relay, text, size);
  const visitor = await visit(browser, relay.address);
  await ask(visitor.page, 'Go');
  return visitor.page;
}

// A page that waits for its reply, and the stream that the reply is to be written to.
async function waiting(visit, {browser, relay}) {
  let send;
  relay.rules.length = 0;
  relay.rules.push((request, response) => {
    if (!isChat(request)) return false;
    startEvents(response);
    send = response;
    return true;
  });
  const {page} = await visit(browser, relay.address);
  await type(page, 'Go');
  await page.getByText('Waiting for the first token').waitFor();
  return {page, send};
}

// Each would set the title, leave the page or load something if it had its way.
const ATTACKS = {
  'a script': '<script>document.title="bad"</script>',
  'an image with a handler': '<img src=x onerror="document.title=\'bad\'">',
  'an image from elsewhere': '![x](http://evil.example/pixel.png) <img src="http://evil.example/2.png">',
  'a frame': '<iframe src="http://evil.example/" srcdoc="<script>parent.document.title=1</script>"></iframe>',
  'a style': '<style>body{display:none} @import "http://evil.example/a.css"</style><link rel=stylesheet href=http://evil.example/b.css>',
  'a style attribute': '<div style="background:url(http://evil.example/c.png);position:fixed;inset:0">x</div>',
  'script addresses': '[a](javascript:document.title="bad") [b](JaVaScRiPt:alert(1)) [c](java&#115;cript:alert(1)) [d](data:text/html,<script>1</script>) [e](vbscript:x) [f](file:///etc/passwd) <javascript:alert(1)>',
  'a form': '<form action=http://evil.example/><input autofocus onfocus="document.title=\'bad\'"></form>',
  'svg and math': '<svg onload="document.title=\'bad\'"><script>document.title="bad"</script></svg><math><mtext><img src=x onerror=document.title="bad">',
  'a meta refresh and a base': '<meta http-equiv=refresh content="0;url=http://evil.example/"><base href=http://evil.example/>',
  'media': '<video src=http://evil.example/v><audio src=http://evil.example/a><object data=http://evil.example/o><embed src=http://evil.example/e>',
  'TeX that would link': '$\\href{javascript:document.title="bad"}{x}$ $$\\includegraphics{http://evil.example/i.png}$$ $\\class{menu}{x}\\style{background:url(http://evil.example/t)}{x}$',
  'a fence with markup': '```html"><img/src=x onerror=document.title="bad">\n<script>document.title="bad"</script>\n```',
  'a table and a list of markup': '| <img src=x onerror=document.title="bad"> |\n|---|\n| <script>document.title="bad"</script> |\n\n- <img src=http://evil.example/l.png>',
  'a reference to elsewhere': '[x]: javascript:document.title="bad"\n\n[x] ![y][x]',
  'an autolink with tricks': 'http://evil.example/"onmouseover="document.title=1 <http://evil.example/%22%3E%3Cscript%3E>',
};

async function harmless(page, {relay}) {
  same(await page.title(), 'Hearth', 'the title');
  same(new URL(page.url()).origin, relay.address, 'where the page is');
  const bad = 'script,iframe,img,style,link,form,object,embed,video,audio,base,meta,svg:not(.icon),[onerror],[onload],[onfocus]';
  same(await page.locator('article.assistant .markdown').locator(bad).count(), 0, 'dangerous elements');
  const links = await page.locator('article.assistant a').evaluateAll((list) => list.map((a) => [a.protocol, a.rel, a.target]));
  for (const [protocol, rel, target] of links) {
    expect(['http:', 'https:', 'mailto:'].includes(protocol), `a harmless link, not ${protocol}`);
    expect(rel.includes('noopener') && rel.includes('noreferrer') && target === '_blank', 'a link that tells nothing');
  }
}

async function attacks(runner, parts) {
  for (const [name, text] of Object.entries(ATTACKS)) {
    await runner.slow(`${name} in a reply neither runs nor loads`, async (visit) => {
      const page = await asked(visit, parts, `${text}\n\nthe end`, 7);
      await reply(page).getByText('the end').waitFor();
      await harmless(page, parts);
    });
  }
  // The same in one conversation, for every change's run.
  await runner.run('no hostile reply runs or loads anything', async (visit) => {
    const text = Object.values(ATTACKS).join('\n\n');
    const page = await asked(visit, parts, `${text}\n\nthe end`, 200);
    await reply(page).getByText('the end').waitFor();
    await reply(page).locator('.formula').first().waitFor();
    await harmless(page, parts);
    expect((await reply(page).innerText()).includes('<script>document.title="bad"</script>'), 'markup shown as text');
  });
}

async function policy(runner, {browser, relay}) {
  await runner.run('the policy holds even if the page had a hole', async (visit) => {
    const {page, errors, foreign} = await visit(browser, relay.address);
    const told = await page.evaluate(async () => {
      const out = {};
      const script = document.createElement('script');
      try {
        script.textContent = 'document.title = "bad"';
        document.head.append(script);
      } catch (error) { out.script = error.name; }
      try { document.body.innerHTML += '<img src=x onerror="document.title=1">'; } catch (error) { out.html = error.name; }
      out.fetch = await fetch('http://evil.example/').then(() => 'sent', (error) => error.name);
      const image = new Image();
      out.image = await new Promise((resolve) => {
        image.onload = () => resolve('loaded');
        image.onerror = () => resolve('refused');
        image.src = 'http://evil.example/x.png';
      });
      out.title = document.title;
      return out;
    });
    same(told.title, 'Hearth', 'the title');
    same(told.html, 'TypeError', 'text as markup');
    same([told.fetch, told.image], ['TypeError', 'refused'], 'requests to elsewhere');
    foreign.length = errors.length = 0;  // provoked here
  });
}

async function looks(runner, parts) {
  await runner.run('Markdown: headings, lists, tables, quotes, tasks, links', async (visit) => {
    const page = await asked(visit, parts,
      '# Top\n\n- one\n- **two**\n  1. inner\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n\n> quote\n\n- [x] done\n\n[home](https://example.org/a) and `code` &amp; ~~old~~', 5);
    same(await reply(page).locator('h3').innerText(), 'Top', 'the heading');
    same(await reply(page).locator('ul > li > ol > li').count(), 1, 'a list in a list');
    same(await reply(page).locator('td').count(), 2, 'cells');
    same(await reply(page).locator('blockquote').innerText(), 'quote', 'the quote');
    same(await reply(page).locator('input[type=checkbox]:checked').count(), 1, 'done tasks');
    same(await reply(page).locator('a').getAttribute('href'), 'https://example.org/a', 'the link');
    expect((await reply(page).innerText()).includes('& old'), 'entities decoded');
  });
  await runner.run('code is coloured and can be copied', async (visit) => {
    const page = await asked(visit, parts, '```python\ndef f(x):\n    return x + 1\n```');
    await reply(page).locator('.hljs-keyword').first().waitFor();
    same(await reply(page).locator('pre').innerText(), 'def f(x):\n    return x + 1', 'the code');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await reply(page).getByRole('button', {name: 'Copy code'}).click();
    await reply(page).getByRole('button', {name: 'Copied'}).waitFor();
    same(await page.evaluate(() => navigator.clipboard.readText()), 'def f(x):\n    return x + 1', 'the clipboard');
  });
  await runner.run('math becomes MathML, prices stay prices', async (visit) => {
    const page = await asked(visit, parts, 'It is $x^2$ and \\(y\\), costs $5 or $6.\n\n$$\\frac{1}{2}$$\n\n\\[ z \\]');
    await reply(page).locator('math').nth(3).waitFor();
    same(await reply(page).locator('math').count(), 4, 'formulas');
    same(await reply(page).locator('mfrac').count(), 1, 'fractions');
    expect((await reply(page).innerText()).includes('costs $5 or $6.'), 'prices');
  });
  await runner.slow('a text that streams ends up as the same text at once', async (visit) => {
    const text = '# A\n\npara one\n\n- a\n\n- b\n\n  more\n\nTitle\n===\n\n```js\nlet a = 1;\n\nlet b;\n```\n\n1. x\n2. y\n\n> q\n> r\n\nend';
    const page = await asked(visit, parts, text, 1);
    const streamed = await reply(page).locator('.markdown').innerText();
    await page.reload();
    await replies(page).first().waitFor();
    same(await reply(page).locator('.markdown').innerText(), streamed, 'after reloading');
  });
  await runner.slow('while it streams, no block is lost or doubled', async (visit) => {
    const {page, send} = await waiting(visit, parts);
    for (let i = 0; i < 30; ++i) send.write(say(`Paragraph ${i}.\n\n`));
    await page.getByText('Paragraph 29.').waitFor();
    same(await reply(page).locator('p').count(), 30, 'paragraphs');
    send.end(finish());
    await idle(page);
    same(await reply(page).locator('.markdown p').count(), 30, 'paragraphs at the end');
  });
  await runner.run('what a reply has so far is not drawn again', async (visit) => {
    const {page, send} = await waiting(visit, parts);
    const block = (i) => `Paragraph ${i} with $x_${i}$.\n\n- a\n- b\n\n\`\`\`js\nlet a = ${i};\n\`\`\`\n\n`;
    for (let i = 0; i < 10; ++i) send.write(say(block(i)));
    await page.getByText('let a = 9;').waitFor();
    await reply(page).locator('math').nth(9).waitFor();
    await reply(page).locator('.hljs-keyword').nth(9).waitFor();
    // Changes below blocks that were there before the last two, and callbacks of frames that saw a change.
    await page.evaluate(() => {
      const all = [...document.querySelectorAll('article.assistant .part > *')];
      const settled = new Set(all.slice(0, -2));
      globalThis.redrawn = [];
      new MutationObserver((list) => list.forEach(({target, type}) => {
        for (let node = target; node; node = node.parentNode) if (settled.has(node)) globalThis.redrawn.push(`${type} in ${node.outerHTML.slice(0, 80)}`);
      })).observe(document.querySelector('article.assistant'), {subtree: true, childList: true, characterData: true, attributes: true});
      settled.forEach((node) => { node.kept = true; });
    });
    for (let i = 10; i < 20; ++i) send.write(say(block(i)));
    await page.getByText('let a = 19;').waitFor();
    send.end(finish());
    await idle(page);
    same(await page.evaluate(() => globalThis.redrawn), [], 'changes in settled blocks');
    const kept = await page.evaluate(() => [...document.querySelectorAll('article.assistant .part > *')].filter((node) => node.kept).length);
    same(kept, 28, 'blocks that are still the same elements');
  });
  await runner.slow('right-to-left text runs right to left', async (visit) => {
    const page = await asked(visit, parts, 'שלום עולם\n\nHello world');
    const directions = await reply(page).locator('.markdown p').evaluateAll((list) => list.map((p) => getComputedStyle(p).direction));
    same(directions, ['rtl', 'ltr'], 'directions');
  });
  await runner.slow('very deep and very long texts are shown, not fatal', async (visit) => {
    const page = await asked(visit, parts, `${'>'.repeat(3000)} deep\n\nafter`, 100_000);
    await reply(page).getByText('after').waitFor();
    const long = await asked(visit, parts, `${'word '.repeat(60_000)}END`, 50_000);
    await reply(long).getByText('END').waitFor();
    const odd = await asked(visit, parts, `${'*a_ `['.repeat(3000)}\n\nEND`, 50_000);
    await reply(odd).getByText('END', {exact: true}).waitFor();
  });
  await runner.slow('odd events are passed over', async (visit) => {
    const {relay, browser} = parts;
    relay.rules.length = 0;
    relay.rules.push((request, response) => {
      if (!isChat(request)) return false;
      startEvents(response);
      response.write(': comment\r\n\r\n' + event('{broken') + event({choices: [{}]}) + 'retry: 5\n\nfoo\n\n');
      response.write('data: {"choices":[{"delta":{"content":"two\ndata: ');
      response.write('lines"}}]}\r\n\r\n');
      response.end(say('Fine.') + finish());
      return true;
    });
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Go');
    await reply(page).getByText('Fine.').waitFor();
  });
}

export async function rendering(runner, parts) {
  await attacks(runner, parts);
  await policy(runner, parts);
  await looks(runner, parts);
}
