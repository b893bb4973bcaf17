# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes API server with etcd on the loopback, without nodes: it takes or refuses objects, and
an endpoint picker finds pods in it whose status the test writes."""
import atexit
import json
import os
import pathlib
import subprocess
import tempfile

import parts
from checking import expect, same, work_model
from envoy import EnvoyFleet, Program, accepts
from fleet import Replica, admitted, admitted_since, ask, free_port, get

MODULES = pathlib.Path(os.environ.get("GOMODCACHE", pathlib.Path.home() / "go/pkg/mod"))
# Kinds of others, of which the chart has objects: any content is taken.
OTHERS = [("keda.sh", "v1alpha1", "ScaledObject"), ("monitoring.coreos.com", "v1", "ServiceMonitor"),
          ("monitoring.coreos.com", "v1", "PrometheusRule"), ("gateway.networking.k8s.io", "v1", "HTTPRoute")]


def crd(group, version, kind):
    plural = kind.lower() + "s"
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}",
                         "annotations": {"api-approved.kubernetes.io": "https://example.com"}},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                     "versions": [{"name": version, "served": True, "storage": True, "schema": {
                         "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


class ApiServer:
    """Up when it is made; gone with the test."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        store, peer, self.port = free_port(), free_port(), free_port()
        self.etcd = Program(folder, "etcd", [
            parts.find("etcd"), "--data-dir", "etcd", "--unsafe-no-fsync",
            "--listen-client-urls", f"http://127.0.0.1:{store}",
            "--advertise-client-urls", f"http://127.0.0.1:{store}",
            "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-cluster", f"default=http://127.0.0.1:{peer}"])
        self.etcd.wait_for(lambda: accepts(store))
        subprocess.run(["openssl", "genrsa", "-out", self.folder / "accounts.key", "2048"], check=True,
                       stderr=subprocess.DEVNULL)
        (self.folder / "tokens.csv").write_text("secret,admin,1,system:masters\n", encoding="utf-8")
        self.server = Program(folder, "apiserver", [
            parts.find("kube-apiserver"), "--etcd-servers", f"http://127.0.0.1:{store}",
            "--secure-port", str(self.port), "--bind-address", "127.0.0.1", "--cert-dir", "certificates",
            "--service-cluster-ip-range", "10.96.0.0/16", "--token-auth-file", "tokens.csv",
            "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-signing-key-file", "accounts.key",
            "--service-account-key-file", "accounts.key", "--authorization-mode", "RBAC",
            "--disable-admission-plugins", "ServiceAccount"])
        self.config = self.folder / "kubeconfig"
        self.config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{self.port}",
                                                      "insecure-skip-tls-verify": True}}],
            "users": [{"name": "test", "user": {"token": "secret"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}), encoding="utf-8")
        self.server.wait_for(lambda: self.kubectl("get", "--raw", "/readyz", check=False).stdout == "ok")

    def run(self, *words, check=True, text=None):
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=False, timeout=120,
                              env={**os.environ, "KUBECONFIG": str(self.config)})
        if check:
            same(done.returncode, 0, f"{words[:4]}: {done.stderr}")
        return done

    def kubectl(self, *words, check=True, text=None):
        return self.run(parts.find("kubectl"), *words, check=check, text=text)

    def helm(self, *words, check=True):
        return self.run(parts.find("helm"), *words, check=check)

    def define(self):
        """The kinds that a cluster with a gateway, KEDA and Prometheus has."""
        module, version = parts.PICKER
        crds = MODULES / f"{module}@{version}" / "config/crd/bases"
        expect(crds.is_dir(), f"{crds}: run ./dev setup fleet")
        for path in crds.glob("*.yaml"):
            self.kubectl("apply", "--server-side", "-f", str(path))
        for each in OTHERS:
            self.kubectl("apply", "-f", "-", text=json.dumps(crd(*each)))
        for each in crds.glob("*.yaml"):
            name = ".".join(each.stem.split("_")[1:] + each.stem.split("_")[:1])
            self.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{name}")
        for group, _, kind in OTHERS:
            self.kubectl("wait", "--for=condition=Established", "--timeout=60s",
                         f"crd/{kind.lower()}s.{group}")


def check_server(chart, sets, program):
    """Every set of values is taken by the server as a trial, three are installed, upgraded and removed."""
    for name in ("etcd", "kube-apiserver", "kubectl", "helm"):
        parts.find(name)
    with tempfile.TemporaryDirectory() as folder:
        api = ApiServer(folder)
        api.define()
        for name, values in sets.items():
            path = api.folder / f"{name}.json"
            path.write_text(json.dumps(values), encoding="utf-8")
            text = api.helm("template", "chat", str(chart), "--kube-version", "1.36.0", "--values", str(path)).stdout
            done = api.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=text)
            expect("server dry run" in done.stdout, f"{name}: {done.stdout}")
        bad = text.replace("terminationGracePeriodSeconds:", "terminationGracePeriod:")
        done = api.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=bad, check=False)
        expect(done.returncode != 0 and "terminationGracePeriod" in done.stderr, "an unknown field is refused")
        for name in ("least", "gateway", "statefulSet"):
            path = str(api.folder / f"{name}.json")
            api.helm("install", name.lower(), str(chart), "--values", path)
            api.helm("upgrade", name.lower(), str(chart), "--values", path, "--set", "server.maxSequences=8")
            got = json.loads(api.kubectl("get", "deployments,statefulsets", "-l",
                                         f"app.kubernetes.io/instance={name.lower()},app.kubernetes.io/name=hearth",
                                         "-o", "json").stdout)
            args = [each for item in got["items"] for each in
                    item["spec"]["template"]["spec"]["containers"][0].get("args", [])]
            expect("--max-sequences=8" in args, f"{name}: upgraded: {args}")
            if name != "gateway":
                api.helm("uninstall", name.lower())
        check_picker(api, chart, program)
        api.server.stop()
        api.etcd.stop()
    print(f"a real API server takes all {len(sets)} sets of values; three were installed and upgraded")


def show_pod(api, name, host, is_ready):
    """A pod of the chart's pool as a kubelet would show it."""
    labels = {"app.kubernetes.io/name": "hearth", "app.kubernetes.io/instance": "gateway"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
           "spec": {"nodeName": "n", "automountServiceAccountToken": False,
                    "containers": [{"name": "hearth", "image": "hearth"}]}}
    api.kubectl("apply", "-f", "-", text=json.dumps(pod))
    status = {"status": {"phase": "Running", "podIP": host, "podIPs": [{"ip": host}],
                         "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}]}}
    api.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps(status))


def check_picker(api, chart, program):
    """The real picker, with the chart's own pool and configuration, finds the pods that are ready, and Envoy sends
    requests to the one it picks: real replicas, at the port that the pool names."""
    port = free_port()
    model = work_model("tiny-chatml.gguf")
    replicas = {name: Replica(program, model, host=host, port=port)
                for name, host in (("one", "127.0.0.21"), ("two", "127.0.0.22"))}
    for name, each in replicas.items():
        atexit.register(each.kill)
        show_pod(api, name, each.host, True)
    api.helm("upgrade", "gateway", str(chart), "--values", str(api.folder / "gateway.json"), "--set",
             f"server.port={port}")
    front = api.folder / "front"
    front.mkdir()
    config = front / "picker.yaml"
    config.write_text(api.kubectl("get", "configmap", "gateway-picker", "-o",
                                  "jsonpath={.data.picker\\.yaml}").stdout, encoding="utf-8")
    fleet = EnvoyFleet(front, [each.host for each in replicas.values()], port, "gateway", config, api.config)

    def sees(count):
        try:
            text = get(fleet.metrics, "/metrics")[1]
        except OSError:
            return False
        return f'inference_pool_ready_pods{{name="gateway"}} {count}' in text

    def ask_all(what):
        before = admitted(replicas.values())
        for number in range(12):
            ask(fleet.port, {"model": "tiny-chatml", "max_tokens": 4, "temperature": 0, "logprobs": True,
                             "messages": [{"role": "user", "content": f"{what} {number}"}]})
        return dict(zip(replicas, admitted_since(before, replicas.values(), 12)))

    fleet.picker.wait_for(lambda: sees(2))
    sent = ask_all("both are ready")
    same(sum(sent.values()), 12.0, "requests that arrived")
    # Envoy itself would go on sending to both, as both are well: only the picker knows.
    for gone, other in (("one", "two"), ("two", "one")):
        show_pod(api, other, replicas[other].host, True)
        fleet.picker.wait_for(lambda: sees(2))
        show_pod(api, gone, replicas[gone].host, False)
        fleet.picker.wait_for(lambda: sees(1))
        same(ask_all(f"{gone} is not ready"), {gone: 0.0, other: 12.0}, "requests by the picker's choice")
    expect(fleet.stats(r"http\.picked\.ext_proc\.streams_started") >= 36, "the picker was asked")
    fleet.stop()
    for each in replicas.values():
        each.kill()
    print(f"the picker of the chart's pool: {sent} with two pods, all to the other when one is not ready")
