# SPDX-License-Identifier: Apache-2.0
"""A real browser with a page of somebody else open: it must get nothing out of hearth serve, and
make it do nothing, whether it asks plainly, with the tricks that need no permission, or under a
name of its own for this machine. The same page may ask where --allow-origin names it."""
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "server"))

from serving import expect, same, serving, work_model

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage"]
# Asks in every way that a page can, and tells its own server what came of it.
PAGE = """<!doctype html><title>evil</title><script>
const api = new URLSearchParams(location.search).get('api');
const body = JSON.stringify({messages: [{role: 'user', content: 'x'}], max_tokens: 1});
const json = {'content-type': 'application/json'};
const ways = {
  get: () => fetch(api + '/v1/models'),
  get_no_cors: () => fetch(api + '/v1/models', {mode: 'no-cors'}),
  post: () => fetch(api + '/v1/chat/completions', {method: 'POST', headers: json, body}),
  post_text: () => fetch(api + '/v1/chat/completions', {method: 'POST', body}),
  post_no_cors: () => fetch(api + '/v1/chat/completions', {method: 'POST', mode: 'no-cors', body}),
  with_cookies: () => fetch(api + '/v1/models', {credentials: 'include'}),
};
const beacon = () => navigator.sendBeacon(api + '/v1/chat/completions', new Blob([body]));
const script = () => new Promise((resolve) => {
  const tag = document.createElement('script');
  tag.onload = () => resolve('loaded');
  tag.onerror = () => resolve('error');
  tag.src = api + '/v1/models';
  document.head.append(tag);
});
const form = () => {
  const tag = document.createElement('form');
  const frame = document.createElement('iframe');
  const field = document.createElement('input');
  frame.name = tag.target = 'hidden';
  tag.method = 'POST';
  tag.enctype = 'text/plain';
  tag.action = api + '/v1/chat/completions';
  field.name = body.slice(0, -1) + ', "user": "';
  field.value = '"}';
  tag.append(field);
  document.documentElement.append(frame, tag);
  tag.submit();
  return new Promise((resolve) => setTimeout(() => resolve('sent'), 1500));
};
(async () => {
  const told = {};
  for (const [name, ask] of Object.entries(ways)) {
    try {
      const reply = await ask();
      told[name] = [reply.type, reply.status, (await reply.text()).length];
    } catch (error) {
      told[name] = error.name;
    }
  }
  beacon();
  told.script = await script();
  told.form = await form();
  await fetch('/told', {method: 'POST', body: JSON.stringify(told)});
})();
</script>"""


class Site(http.server.BaseHTTPRequestHandler):
    """Somebody else's web server, on this machine for the test's sake."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        if self.server.is_open:
            self.send_header("access-control-allow-origin", "*")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def do_POST(self):
        length = int(self.headers["content-length"])
        self.server.told = json.loads(self.rfile.read(length))
        self.send_response(204)
        self.end_headers()
        self.server.has_told.set()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def site(is_open=False, port=0):
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Site) as server:
        server.is_open = is_open
        server.has_told = threading.Event()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def visit(page, api, rules="", port=0):
    """What a page of the origin `page` could do to `api`, by its own account."""
    browser = shutil.which("chromium")
    expect(browser, "chromium (./dev setup installs it)")
    # The browser's children outlive it for a moment and still write to its profile.
    leftovers = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with site(port=port) as server, leftovers as profile:
        query = urllib.parse.urlencode({"api": api})
        url = f"http://{page}:{server.server_port}/?{query}"
        more = [f"--host-resolver-rules={rules}"] if rules else []
        process = subprocess.Popen([browser, *FLAGS, *more, f"--user-data-dir={profile}",
                                    "--remote-debugging-port=0", url],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            expect(server.has_told.wait(90), "the page to tell")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
        return server.told


def generated(control):
    page = urllib.request.urlopen(f"{control}/metrics?names=hearth").read().decode()
    return float(re.search(r"^hearth_requests_admitted_total (\S+)$", page, re.MULTILINE).group(1))


def names_nothing(told):
    """Nothing that the page could read, and nothing that was done."""
    for way in ("get", "post", "post_text", "with_cookies"):
        same(told[way], "TypeError", f"{way} of a foreign page")
    for way in ("get_no_cors", "post_no_cors"):
        expect(told[way] in ("TypeError", ["opaque", 0, 0]), f"{way} shows nothing: {told[way]}")
    same(told["script"], "error", "an answer taken for a script")


def check_page():
    """A server that lets everybody in is read by the same page: its ways are real."""
    with site(is_open=True) as server:
        told = visit("127.0.0.1", f"http://127.0.0.1:{server.server_port}")
    same(told["get"], ["cors", 200, len(PAGE)], "what a page reads where it may")
    print("ok      the page can read what is open to it")


def check_allowed(program, model):
    """A page that is allowed reads what it asked for, errors too; a page of another origin still
    gets nothing."""
    with site() as unused:
        port = unused.server_port
    with serving(program, model, "--allow-origin", f"http://127.0.0.1:{port}") as server:
        told = visit("127.0.0.1", server.address, port=port)
        for way in ("get", "post"):
            same(told[way][:2], ["cors", 200], f"{way} of an allowed page")
        same(told["post_text"][:2], ["cors", 415], "a body that is not marked as JSON")
        same(told["with_cookies"], "TypeError", "cookies, which nobody asked for")
        names_nothing(visit("127.0.0.1", server.address))
    print("ok      an allowed origin")


def main(program):
    check_page()
    model = work_model("tiny-oss-o200k.gguf")
    check_allowed(program, model)
    with serving(program, model, "--control-port", "0") as server:
        control = re.search(r"control on (\S+)", "".join(server.log)).group(1)
        # Another port is another origin.
        names_nothing(visit("127.0.0.1", server.address))
        same(generated(control), 0, "requests that a foreign page got in")
        print("ok      another origin")
        # A name of the attacker's that has come to mean this machine: same origin for the browser,
        # except for the port; only Host can tell.
        told = visit("rebound.example", f"http://rebound.example:{server.port}",
                     "MAP rebound.example 127.0.0.1")
        names_nothing(told)
        same(generated(control), 0, "requests under another host's name")
        print("ok      another host's name")
        status, _, _ = server.request("GET", "/v1/models", None, {"host": "rebound.example"})
        same(status, 403, "a rebound name without an origin")
        # The control port is no way around it.
        told = visit("127.0.0.1", control)
        names_nothing(told)
        print("ok      the control port")
    print("a page of somebody else gets nothing and does nothing")


if __name__ == "__main__":
    main(sys.argv[1])
