# SPDX-License-Identifier: Apache-2.0
"""nginx and HAProxy as Debian ships them, on sockets of a folder: each answers by itself on one of them
(beside), and passes on to a server on another (in front). A log tells what each has passed on."""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time

from serving import expect

NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.error;
events {{ worker_connections 256; }}
http {{
  log_format passed '$status "$upstream_status"';
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  client_max_body_size 64m; keepalive_requests 100000;
  upstream hearth {{ server 127.0.0.1:{upstream}; keepalive 4; }}
  server {{ listen unix:{folder}/beside; location / {{ return 200 "beside\\n"; }} }}
  server {{
    listen unix:{folder}/front;
    access_log {folder}/nginx.passed passed;
    location / {{
      proxy_pass http://hearth; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $http_host; proxy_request_buffering off; proxy_buffering off;
      proxy_ignore_client_abort on; proxy_next_upstream off; proxy_read_timeout 20s;
    }}
  }}
}}
"""

HAPROXY = """
global
  log stdout format raw local0
defaults
  mode http
  timeout client 20s
  timeout server 20s
  timeout connect 5s
  retries 0
frontend beside
  bind unix@{folder}/beside
  http-request return status 200 content-type text/plain string beside
frontend front
  bind unix@{folder}/front
  log global
  log-format "%ST \\"%s\\""
  default_backend hearth
backend hearth
  http-reuse always
  server hearth 127.0.0.1:{upstream}
"""


def connect(path):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(30)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock


def program(name):
    found = shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    expect(found, f"{name}; get it with: ./dev setup")
    return found


class Relay:
    """Between a proxy and the server: counts the answers that the server gives, one for every request
    that it sees."""

    def __init__(self, port):
        self.to, self.lock, self.answers, self.sockets = port, threading.Lock(), 0, []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.to))
            self.sockets += [near, far]
            for pair in ((near, far, False), (far, near, True)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, target, is_counted):
        tail = b""
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_counted:
                    # A head may come in pieces; what was counted is not looked at again.
                    text = tail + data
                    found = list(re.finditer(rb"HTTP/1\.[01] [2-5]\d\d ", text))
                    tail = text[found[-1].end() if found else 0:][-12:]
                    with self.lock:
                        self.answers += len(found)
                target.sendall(data)
        for sock in (source, target):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        for sock in self.sockets:
            sock.close()


class Proxy:
    def __init__(self, name, folder, port):
        self.name, self.relay = name, Relay(port)
        self.beside, self.front = f"{folder}/beside", f"{folder}/front"
        text = NGINX if name == "nginx" else HAPROXY
        config = pathlib.Path(folder, f"{name}.conf")
        config.write_text(text.format(folder=folder, upstream=self.relay.port), encoding="utf-8")
        self.log = pathlib.Path(folder, f"{name}.passed")
        run = [program(name), "-c", str(config), "-e", f"{folder}/nginx.error"] if name == "nginx" else [
            program(name), "-db", "-f", str(config)]
        with open(self.log, "wb") as out, open(f"{folder}/{name}.stderr", "wb") as err:
            self.process = subprocess.Popen(run, stdout=None if name == "nginx" else out, stderr=err)
        self.errors = pathlib.Path(folder, f"{name}.stderr")
        self.wait_until_up()

    def wait_until_up(self):
        for path in (self.beside, self.front):
            until = time.monotonic() + 20
            while True:
                expect(self.process.poll() is None, f"{self.name} to run: {self.errors.read_text('utf-8')}")
                with contextlib.suppress(OSError), connect(path):
                    break
                expect(time.monotonic() < until, f"{self.name} to listen")
                time.sleep(0.02)

    def passed_on(self):
        """How many requests it has passed on, by its own log. Those of a connection that sent nothing
        are not requests."""
        lines = self.log.read_text("utf-8", errors="replace").splitlines()
        return sum(1 for line in lines if re.match(r'\S+ "(?!-"|<NOSRV>|")', line))

    def version(self):
        said = subprocess.run([program(self.name), "-v"], capture_output=True, text=True, check=True)
        return re.search(r"(\d+\.\d+\.\d+)", said.stdout + said.stderr).group(1)

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.relay.close()


def exchange(path, data, stops=True):
    """The statuses that come back, until the other side closes: this one says that it will send no more,
    which both proxies answer to the end of what was asked."""
    with connect(path) as sock:
        got = b""
        with contextlib.suppress(ConnectionError):
            sock.sendall(data)
        if stops:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while piece := sock.recv(65536):
                got += piece
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] ([2-5]\d\d) ", got)]


@contextlib.contextmanager
def proxies(folder, port):
    started = []
    try:
        for name in ("nginx", "haproxy"):
            os.makedirs(f"{folder}/{name}", exist_ok=True)
            started.append(Proxy(name, f"{folder}/{name}", port))
        yield started
    finally:
        for each in started:
            each.stop()
