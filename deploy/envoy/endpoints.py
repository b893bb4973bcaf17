#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file of addresses, for Envoy and for an endpoint picker that knows Kubernetes alone: Envoy gets its
file of endpoints, the picker what it asks of an API server: one InferencePool, its pods, and changes."""
import argparse
import http.server
import ipaddress
import json
import pathlib
import socketserver
import sys
import threading
import time
import urllib.parse


class Endpoints:
    """The addresses of the file, as of its last change."""

    def __init__(self, path, port, envoy):
        self.path, self.port, self.envoy = pathlib.Path(path), port, pathlib.Path(envoy)
        self.changed = threading.Condition()
        self.version, self.pods, self.text = 1, {}, None
        self.read()

    def read(self):
        """True when the list has changed. A line that is no address is told and left out."""
        text = self.path.read_text(encoding="utf-8")
        if text == self.text:
            return False
        addresses = []
        for number, line in enumerate(text.splitlines(), 1):
            word = line.split("#")[0].strip()
            if not word:
                continue
            try:
                addresses.append(str(ipaddress.ip_address(word)))
            except ValueError:
                print(f"{self.path}:{number}: expected an IP address, found {word!r}", file=sys.stderr)
        with self.changed:
            self.text = text
            self.version += 1
            self.pods = {address: self.pods.get(address) or pod(address, self.version)
                         for address in addresses}
            self.write_envoy()
            self.changed.notify_all()
        print(f"{len(addresses)} replicas", file=sys.stderr, flush=True)
        return True

    def write_envoy(self):
        endpoints = [{"endpoint": {"address": {"socket_address": {
            "address": address, "port_value": self.port}}}} for address in self.pods]
        resource = {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
                    "cluster_name": "replicas", "endpoints": [{"lb_endpoints": endpoints}]}
        new = self.envoy.with_name(self.envoy.name + ".new")
        new.write_text(json.dumps({"version_info": str(self.version), "resources": [resource]}),
                       encoding="utf-8")
        new.rename(self.envoy)  # Envoy looks when the file is replaced, not when it is written

    def watch(self):
        while True:
            time.sleep(0.2)
            try:
                self.read()
            except OSError as error:  # the list as it was goes on
                print(error, file=sys.stderr)


def pod(address, version):
    name = "replica-" + address.replace(".", "-").replace(":", "-")
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version),
                         "labels": {"app": "hearth"}},
            "spec": {"containers": [{"name": "hearth", "image": "hearth"}]},
            "status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
                       "conditions": [{"type": "Ready", "status": "True"}]}}


POOLS = "/apis/inference.networking.k8s.io/v1"


def pool(port):
    return {"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
            "metadata": {"name": "hearth", "namespace": "default", "uid": "hearth", "resourceVersion": "1"},
            "spec": {"selector": {"matchLabels": {"app": "hearth"}}, "targetPorts": [{"number": port}],
                     "endpointPickerRef": {"name": "picker", "port": {"number": 9002}}}}


def kinds():
    """What an API server says that it has."""
    verbs = ["get", "list", "watch"]
    version = {"groupVersion": "inference.networking.k8s.io/v1", "version": "v1"}
    return {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": verbs}]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
            {"name": "inference.networking.k8s.io", "versions": [version], "preferredVersion": version}]},
        POOLS: {"kind": "APIResourceList", "groupVersion": version["groupVersion"], "resources": [
            {"name": "inferencepools", "singularName": "inferencepool", "namespaced": True,
             "kind": "InferencePool", "verbs": verbs}]},
        "/version": {"major": "1", "minor": "30", "gitVersion": "v1.30.0"}}


class Handler(http.server.BaseHTTPRequestHandler):
    """GET of what kinds there are, and of pods, as a list or as changes."""
    protocol_version = "HTTP/1.1"
    endpoints = None

    def log_message(self, *args):
        pass

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        follows = query.get("watch", [""])[0] in ("1", "true")
        for name in ("pods", "inferencepools"):
            if url.path.endswith("/" + name):
                return self.watch(name, query) if follows else self.list(name)
        if url.path.endswith("/inferencepools/hearth"):
            return self.answer(200, pool(self.endpoints.port))
        known = kinds().get(url.path)
        if known:
            return self.answer(200, known)
        return self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                 "reason": "NotFound", "code": 404})

    def things(self, name):
        """Of a kind, by name, and as of which version."""
        with self.endpoints.changed:
            pods, version = dict(self.endpoints.pods), self.endpoints.version
        return (pods if name == "pods" else {"hearth": pool(self.endpoints.port)}), version

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def list(self, name):
        things, version = self.things(name)
        kind, api = ("PodList", "v1") if name == "pods" else (
            "InferencePoolList", "inference.networking.k8s.io/v1")
        self.answer(200, {"kind": kind, "apiVersion": api, "items": list(things.values()),
                          "metadata": {"resourceVersion": str(version)}})

    def event(self, kind, thing):
        data = json.dumps({"type": kind, "object": thing}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def bookmark(self, name, version, initial):
        notes = {"k8s.io/initial-events-end": "true"} if initial else {}
        kind, api = ("Pod", "v1") if name == "pods" else (
            "InferencePool", "inference.networking.k8s.io/v1")
        self.event("BOOKMARK", {"kind": kind, "apiVersion": api, "metadata": {
            "resourceVersion": str(version), "annotations": notes}})

    def watch(self, name, query):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        begins = query.get("sendInitialEvents", [""])[0] == "true"
        known, version = self.things(name)
        try:
            if begins:
                for thing in known.values():
                    self.event("ADDED", thing)
                self.bookmark(name, version, True)
            elif query.get("resourceVersion", ["0"])[0] not in ("", "0", str(version)):
                # Changed since it listed: it must list anew.
                self.event("ERROR", {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                     "reason": "Expired", "code": 410})
                self.wfile.write(b"0\r\n\r\n")
                return
            self.follow(name, known, version)
        except OSError:  # it has gone
            pass

    def follow(self, name, known, version):
        endpoints = self.endpoints
        while True:
            with endpoints.changed:
                endpoints.changed.wait_for(lambda seen=version: endpoints.version != seen, timeout=30)
            now, version = self.things(name)
            for each in known.keys() - now.keys():
                gone = {**known[each], "metadata": {**known[each]["metadata"],
                                                    "resourceVersion": str(version)}}
                self.event("DELETED", gone)
            for each in now.keys() - known.keys():
                self.event("ADDED", now[each])
            self.bookmark(name, version, False)
            known = now


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="one address a line; read again when it changes")
    parser.add_argument("--port", type=int, default=8080, help="of all replicas")
    parser.add_argument("--envoy", default="replicas.yaml", help="file to write for Envoy")
    parser.add_argument("--listen", type=int, default=9003, help="port on 127.0.0.1 for the picker")
    parser.add_argument("--kubeconfig", help="file to write for the picker's KUBECONFIG")
    options = parser.parse_args()
    Handler.endpoints = Endpoints(options.file, options.port, options.envoy)
    threading.Thread(target=Handler.endpoints.watch, daemon=True).start()
    server = Server(("127.0.0.1", options.listen), Handler)
    if options.kubeconfig:
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "file",
                  "clusters": [{"name": "file", "cluster": {
                      "server": f"http://127.0.0.1:{server.server_port}"}}],
                  "contexts": [{"name": "file", "context": {"cluster": "file", "user": "file"}}],
                  "users": [{"name": "file", "user": {}}]}
        pathlib.Path(options.kubeconfig).write_text(json.dumps(config), encoding="utf-8")
    server.serve_forever()


if __name__ == "__main__":
    main()
