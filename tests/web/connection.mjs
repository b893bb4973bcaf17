// SPDX-License-Identifier: Apache-2.0
// Streams that stop, break and go on; servers that refuse or are gone.
import {ask, chatsOf, event, expect, field, finish, idle, isChat, replies, same, say, startEvents, type, newChat} from './rig.mjs';

// Answers the chats in turn, each by its function; the last one again and again.
function inTurn(relay, ...answers) {
  let at = 0;
  relay.rules.length = 0;
  relay.requests.length = 0;
  relay.rules.push((request, response, pass) => {
    if (!isChat(request)) return false;
    const answer = answers[Math.min(at, answers.length - 1)];
    at += 1;
    answer(request, response, pass);
    return true;
  });
}
const refuse = (status, error, headers = {}) => (request, response) => {
  response.writeHead(status, {'content-type': 'application/json', ...headers});
  response.end(JSON.stringify({error: {message: error}}));
};
// Says the events; the connection is cut when the page shows what came: what is still on its way then
// would be lost with it.
const open = [];
const cutLater = (text) => (request, response) => {
  startEvents(response);
  response.write(text);
  open.push(response);
};
async function cutOnce(page, text) {
  await page.getByText(text).first().waitFor();
  open.splice(0).forEach((response) => response.destroy());
}
const whole = (text) => (request, response) => {
  startEvents(response);
  response.end(say(text) + finish());
};
const resumes = (relay) => relay.requests.filter(isChat).map((request) => request.headers['last-event-id']);

async function stopping(runner, {browser, relay}) {
  await runner.run('a reply is stopped and what came is kept', async (visit) => {
    let isGone = false;
    inTurn(relay, (request, response) => {
      startEvents(response);
      response.write(say('Never ending'));
      response.on('close', () => { isGone = true; });
    });
    const {page} = await visit(browser, relay.address);
    await type(page, 'Go');
    await page.getByText('Never ending').waitFor();
    await page.getByRole('button', {name: 'Stop', exact: true}).click();
    await page.getByText('Stopped.').waitFor();
    await idle(page);
    await page.getByText('Never ending').waitFor();
    while (!isGone) await page.evaluate(() => new Promise(requestAnimationFrame));
  });
  await runner.run('Escape stops, Continue goes on where it ended', async (visit) => {
    inTurn(relay, (request, response) => {
      startEvents(response);
      response.write(say('Once upon'));
    }, whole(' a time.'));
    const {page} = await visit(browser, relay.address);
    await type(page, 'A story');
    await page.getByText('Once upon').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', {name: 'Continue'}).click();
    await page.getByText('Once upon a time.').waitFor();
    await idle(page);
    const sent = chatsOf(relay).at(-1).messages;
    same(sent.at(-1), {role: 'assistant', content: 'Once upon'}, 'what is continued');
    same(await replies(page).count(), 1, 'replies');
  });
  await runner.slow('while a reply runs another chat can be read', async (visit) => {
    let send;
    inTurn(relay, whole('Old.'), (request, response) => {
      startEvents(response);
      response.write(say('Begun'));
      send = response;
    });
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Old chat');
    await newChat(page);
    await type(page, 'Slow chat');
    await page.getByText('Begun').waitFor();
    await page.getByRole('link', {name: 'Old chat'}).click();
    await page.getByText('Old.', {exact: true}).waitFor();
    send.end(say(' and done.') + finish());
    await page.getByRole('link', {name: 'Slow chat'}).click();
    await page.getByText('Begun and done.').waitFor();
  });
}

async function breaking(runner, {browser, relay}) {
  await runner.run('a cut stream with numbered events is taken up again', async (visit) => {
    inTurn(relay,
      cutLater(say('one ', 'r-1') + say('two ', 'r-2')),
      (request, response) => {
        startEvents(response);
        response.end(say('three ', 'r-3') + say('four', 'r-4') + finish());
      });
    const {page} = await visit(browser, relay.address);
    await type(page, 'Count');
    await cutOnce(page, 'one two');
    await page.getByText('one two three four').waitFor();
    await idle(page);
    same(resumes(relay), [undefined, 'r-2'], 'last-event-id of the requests');
    same(new Set(chatsOf(relay).map((body) => JSON.stringify(body))).size, 1, 'bodies of the two requests');
    same(await page.getByRole('button', {name: 'Continue'}).count(), 0, 'offers to continue');
  });
  await runner.slow('a stream that is cut many times still arrives whole', async (visit) => {
    const words = Array.from({length: 12}, (_, i) => `w${i} `);
    let at = 0;
    inTurn(relay, (request, response) => {
      const seen = request.headers['last-event-id'];
      at = seen === undefined ? 0 : Number(seen) + 1;
      if (at >= words.length) {
        startEvents(response);
        response.end(finish());
        return;
      }
      cutLater(say(words[at], at))(request, response);
    });
    const {page} = await visit(browser, relay.address);
    await type(page, 'Count');
    for (const word of words) await cutOnce(page, new RegExp(`${word.trim()}\\b`));
    await idle(page);
    await page.getByText(words.join('').trim()).waitFor();
  });
  await runner.run('a cut stream without numbers offers to continue', async (visit) => {
    inTurn(relay, cutLater(say('Half')), whole(' and half.'));
    const {page} = await visit(browser, relay.address);
    await type(page, 'Go');
    await cutOnce(page, 'Half');
    await page.getByText('The connection was lost.').waitFor();
    await page.getByRole('button', {name: 'Continue'}).click();
    await page.getByText('Half and half.').waitFor();
    await page.getByText('The connection was lost.').waitFor({state: 'detached'});
  });
  await runner.slow('a stream that the server has forgotten offers to continue', async (visit) => {
    inTurn(relay, cutLater(say('Half', 7)), refuse(404, 'no such stream'));
    const {page} = await visit(browser, relay.address);
    await type(page, 'Go');
    await cutOnce(page, 'Half');
    await page.getByText('The connection was lost.').waitFor();
    await page.getByText('Half').waitFor();
  });
  await runner.slow('a page that is closed while a reply runs keeps what came', async (visit) => {
    inTurn(relay, (request, response) => {
      startEvents(response);
      response.write(say('Partly'));
    });
    const {page} = await visit(browser, relay.address);
    await type(page, 'Go');
    await page.getByText('Partly').waitFor();
    await page.reload();
    await page.getByText('Partly').waitFor();
    await page.getByText('The reply was interrupted.').waitFor();
  });
}

async function refusals(runner, {browser, relay}) {
  await runner.run('an error of the server is told, and trying again works', async (visit) => {
    inTurn(relay, refuse(400, 'prompt and reply do not fit: 9000 tokens'), whole('Now it fits.'));
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Too long');
    await page.getByText('prompt and reply do not fit: 9000 tokens').first().waitFor();
    await page.getByRole('button', {name: 'Try again'}).click();
    await page.getByText('Now it fits.').waitFor();
  });
  await runner.slow('a busy server is told with the time to wait', async (visit) => {
    inTurn(relay, refuse(429, 'the queue is full', {'retry-after': '7'}));
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Hi');
    await page.getByText('the queue is full (try again in 7 s)').first().waitFor();
  });
  await runner.slow('an error at the end of a stream keeps the text before it', async (visit) => {
    inTurn(relay, (request, response) => {
      startEvents(response);
      response.end(say('So far.') + event({error: {message: 'the grammar cannot be kept to'}}));
    });
    const {page} = await visit(browser, relay.address);
    await ask(page, 'Hi');
    await page.getByText('So far.').waitFor();
    await page.getByText('the grammar cannot be kept to').first().waitFor();
  });
  await runner.slow('a server that is gone is told', async (visit) => {
    inTurn(relay, (request, response) => response.destroy());
    const {page} = await visit(browser, relay.address);
    await type(page, 'Hi');
    await page.getByText('The server could not be reached.').first().waitFor();
    await idle(page);
    expect(await field(page).isEnabled(), 'a field to write in');
  });
  await runner.slow('how much of the prompt is read is shown', async (visit) => {
    let send;
    inTurn(relay, (request, response) => {
      startEvents(response);
      response.write(event({choices: [], prompt_progress: {total: 200, cache: 0, processed: 50}}));
      send = response;
    });
    const {page} = await visit(browser, relay.address);
    await type(page, 'Long prompt');
    await page.getByText('Reading the prompt…').waitFor();
    await page.getByText('25 %').last().waitFor();
    send.end(say('Done.') + finish());
    await page.getByText('Done.').waitFor();
  });
}

export async function connection(runner, parts) {
  await stopping(runner, parts);
  await breaking(runner, parts);
  await refusals(runner, parts);
}
