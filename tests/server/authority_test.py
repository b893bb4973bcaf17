# SPDX-License-Identifier: Apache-2.0
"""Host headers that a server takes for its own, made from pieces that confuse readers of URLs, against
two readers that share no code with ours, Python's and Node's: a host that is served must be this
machine's for them as well, and every plain way to write it must be served."""
import http.client
import ipaddress
import json
import random
import subprocess
import sys
import urllib.parse

from serving import expect, same, serving, work_model

PIECES = ["localhost", "LOCALHOST", "127.0.0.1", "127.1", "127.0.0.1.", "[::1]", "::1", "[0::1]", "[::ffff:127.0.0.1]",
          "evil.example", ".evil.example", "@", ":", "80", "8080", "65536", ":80", "::", "[", "]", "/", "\\", "?", "#",
          ",", ";", "%", "%2e", "%00", " ", "\t", ".", "..", "-", "_", "0", "00", "0x7f.1", "2130706433", "1", "user",
          "=", "*", "!", "(", "é", "。", "[::1%lo]", "127.255.0.9", "017700000001", "+", "e5", "xn--a"]
PLAIN = ["localhost", "localhost:8080", "LocalHost:1", "127.0.0.1", "127.0.0.1:65535", "127.255.255.254:0", "[::1]",
         "[::1]:9", "[0:0:0:0:0:0:0:1]"]
NODE = """
const hosts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(hosts.map((host) => {
  try { const url = new URL('http://' + host); return [url.hostname, url.username + url.password + url.search + url.hash]; }
  catch { return null; }
})));
"""


def hosts(seed, count):
    pick = random.Random(seed)
    made = {"", "[::1].evil.example", "[::1]evil", "127.0.0.1:80@evil.example", "localhost:80@evil.example"}
    while len(made) < count:
        text = "".join(pick.choice(PIECES) for _ in range(pick.randint(1, 4)))
        if pick.random() < 0.5:  # nearly right
            text = pick.choice(PLAIN).split(":80")[0] + pick.choice(["", f":{pick.randrange(70000)}", ""]) + pick.choice(PIECES + [""] * 20)
        made.add(text.strip(" \t"))  # blanks around a value are no part of it
    return sorted(made)


def status_of(port, host):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.putrequest("GET", "/livez", skip_host=True)
        connection.putheader("Host", host.encode())
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def is_here(name):
    """Whether a host that somebody else read is this machine."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def by_python(host):
    try:
        parts = urllib.parse.urlsplit("http://" + host)
        port = parts.port
    except ValueError:
        return None
    rest = (parts.username, parts.password, parts.path, parts.query, parts.fragment)
    return parts.hostname if not any(rest) and (port is None or 0 <= port <= 65535) else None


def main(program):
    with serving(program, work_model("tiny-oss-o200k.gguf"), "--threads", "1") as server:
        for host in PLAIN:
            same(status_of(server.port, host), 200, host)
            expect(is_here(by_python(host) or ""), f"the other reader to agree on {host}")
        tried = hosts(1, 1500)
        served = []
        for host in tried:
            status = status_of(server.port, host)
            expect(status in (200, 400, 403), f"{host!r}: {status}")
            if status == 200:
                served.append(host)
    said = subprocess.run(["node", "-e", NODE], input=json.dumps(served), capture_output=True, text=True, check=True)
    for host, node in zip(served, json.loads(said.stdout), strict=True):
        expect(is_here(by_python(host) or ""), f"{host!r} was served, and Python reads {by_python(host)!r}")
        expect(node is not None and is_here(node[0]) and not node[1], f"{host!r} was served, and Node reads {node}")
    expect(10 <= len(served) < len(tried) / 2, f"some of each: {len(served)} of {len(tried)} were served")
    print(f"{len(tried)} hosts, {len(served)} served, each of them this machine's for Python and Node too")


if __name__ == "__main__":
    main(sys.argv[1])
