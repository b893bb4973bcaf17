# SPDX-License-Identifier: Apache-2.0
"""The chart of deploy/helm with the real Helm: no complaint of `helm lint`, sound objects for many sets of
values, wrong values refused in words, and, with --server, all of it taken by a real Kubernetes API server."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools/fleet"))
sys.path.insert(0, str(ROOT / "tests/support"))
import parts  # pylint: disable=wrong-import-position
import yaml  # pylint: disable=wrong-import-position
from checking import expect, same  # pylint: disable=wrong-import-position

CHART = ROOT / "deploy/helm/hearth"
KEYS = {"keys": {"secret": "hearth-keys"}}
CLAIM = {"model": {"path": "/models/model.gguf", "volume": {"claim": "models"}}}

# What is set, and which kinds that makes beside the replicas and their Service.
SETS = {
    "least": ({}, {"PodDisruptionBudget"}),
    "claim": (CLAIM, {"PodDisruptionBudget"}),
    "hostPath": ({"model": {"volume": {"hostPath": "/srv/models"}}}, {"PodDisruptionBudget"}),
    "init": ({"model": {"volume": {"emptyDir": True},
                        "init": {"image": "curl:8", "command": ["curl", "-o", "/models/model.gguf"]}}},
             {"PodDisruptionBudget"}),
    "statefulSet": ({"kind": "StatefulSet", "cache": {"disk": {"enabled": True, "storageClass": "fast"}}},
                    {"PodDisruptionBudget"}),
    "deploymentWithDisk": ({"cache": {"disk": {"enabled": True, "size": "8Gi"}}}, {"PodDisruptionBudget"}),
    "redis": ({"cache": {"redis": {"addresses": "redis://redis:6379"}, "keySecret": "cache"},
               "networkPolicy": {"enabled": True}}, {"PodDisruptionBudget", "NetworkPolicy"}),
    "hpa": ({"autoscaling": {"kind": "hpa", "min": 1, "max": 4}},
            {"PodDisruptionBudget", "HorizontalPodAutoscaler"}),
    "keda": ({"autoscaling": {"kind": "keda", "waiting": 2.5}}, {"PodDisruptionBudget", "ScaledObject"}),
    "pool": ({"pool": {"enabled": True}},
             {"PodDisruptionBudget", "InferencePool", "ConfigMap", "ServiceAccount", "Role", "RoleBinding"}),
    "gateway": ({"pool": {"enabled": True, "gateway": "outside", "replicas": 2, "failureMode": "FailClose"}},
                {"PodDisruptionBudget", "InferencePool", "ConfigMap", "ServiceAccount", "Role", "RoleBinding",
                 "HTTPRoute"}),
    "monitoring": ({"monitoring": {"serviceMonitor": True, "rules": True, "grafana": True}},
                   {"PodDisruptionBudget", "ServiceMonitor", "PrometheusRule", "ConfigMap"}),
    "closed": ({"networkPolicy": {"enabled": True,
                                  "from": [{"namespaceSelector": {"matchLabels": {"name": "edge"}}}]},
                "pdb": {"enabled": False}}, {"NetworkPolicy"}),
    "placed": ({"nodeSelector": {"cpu": "amx"}, "tolerations": [{"operator": "Exists"}], "spread": False,
                "priorityClassName": "high", "podLabels": {"team": "a"}, "podAnnotations": {"b": "c"},
                "affinity": {"nodeAffinity": {}}, "imagePullSecrets": [{"name": "pull"}]},
               {"PodDisruptionBudget"}),
    "flags": ({"server": {"args": ["--kv-type=int8", "--context=8192"], "port": 9000, "overloadStatus": 529,
                          "hostNames": ["api.example.com"]}, "service": {"type": "LoadBalancer", "port": 443}},
              {"PodDisruptionBudget"}),
}

# What is wrong, and a word that the refusal must have.
WRONG = [
    ({"replicas": 0}, "replicas"), ({"replicas": "two"}, "replicas"), ({"kind": "DaemonSet"}, "kind"),
    ({"repliccas": 3}, "repliccas"), ({"server": {"port": 80}}, "port"), ({"server": {"args": ["kv"]}}, "args"),
    ({"server": {"overloadStatus": 500}}, "overloadStatus"), ({"model": {"path": "model.gguf"}}, "path"),
    ({"cache": {"disk": {"size": "lots"}}}, "size"), ({"autoscaling": {"kind": "magic"}}, "kind"),
    ({"pool": {"failureMode": "Maybe"}}, "failureMode"), ({"keys": {"secret": ""}}, "keys.secret"),
    ({"cache": {"redis": {"addresses": "redis://a:1"}}}, "cache.keySecret"),
    ({"autoscaling": {"kind": "hpa", "min": 5, "max": 2}}, "autoscaling.min"),
    ({"model": {"volume": {"claim": "a", "hostPath": "/b"}}}, "at most one"),
    ({"model": {"volume": {"emptyDir": True}}}, "model.init"), ({"shutdown": {"preStop": 0}}, "preStop"),
]


def merged(values):
    return {**KEYS, **values}


def helm(*words, values=None, check=True):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values or {}, file)
        file.flush()
        done = subprocess.run([parts.find("helm"), *words, "--values", file.name], capture_output=True,
                              text=True, check=False, timeout=120)
    if check:
        same(done.returncode, 0, f"helm {words[:2]}: {done.stderr}")
    return done


def rendered(values):
    text = helm("template", "chat", str(CHART), "--namespace", "llm", "--kube-version", "1.33.0",
                values=merged(values)).stdout
    return [each for each in yaml.safe_load_all(text) if each]


def replicas_of(objects):
    found = [each for each in objects if each["metadata"]["name"] == "chat"
             and each["kind"] in ("Deployment", "StatefulSet")]
    same(len(found), 1, "the replicas")
    return found[0]


def check_objects(name, objects, kinds):
    whole = replicas_of(objects)
    found = {each["kind"] for each in objects} - {"Deployment", "StatefulSet", "Service"}
    same(found, kinds, f"{name}: kinds")
    for each in objects:
        same(each["metadata"]["labels"]["app.kubernetes.io/instance"], "chat", f"{name}: {each['kind']}")
    pod = whole["spec"]["template"]
    expect(whole["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items(), "its pods")
    server, spec = pod["spec"]["containers"][0], pod["spec"]
    mounts = {each["name"] for each in server["volumeMounts"]}
    volumes = {each["name"] for each in spec["volumes"]}
    volumes |= {each["metadata"]["name"] for each in whole["spec"].get("volumeClaimTemplates", [])}
    expect(mounts <= volumes, f"{name}: mounts {mounts} of volumes {volumes}")
    expect(server["securityContext"]["readOnlyRootFilesystem"] and spec["securityContext"]["runAsNonRoot"],
           f"{name}: confined")
    drain = next(int(each[8:]) for each in server["args"] if each.startswith("--drain="))
    sleep = server["lifecycle"]["preStop"]["sleep"]["seconds"]
    expect(spec["terminationGracePeriodSeconds"] > drain + sleep, f"{name}: time to end")
    for probe, path in (("startupProbe", "/readyz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
        same(server[probe]["httpGet"], {"path": path, "port": "http"}, f"{name}: {probe}")
    same("replicas" in whole["spec"], not kinds & {"HorizontalPodAutoscaler", "ScaledObject"},
         f"{name}: an autoscaler's number is its own")


def check_flags(program, objects):
    """The server's flags are those of the program."""
    help_text = subprocess.run([program, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    for word in replicas_of(objects)["spec"]["template"]["spec"]["containers"][0]["args"][1:]:
        expect(word.split("=")[0] in help_text, f"{word} is a flag of `hearth serve`")


def check_copies():
    """The chart can read only its own folder: what it has of deploy/ is the same."""
    for copy, original in (("hearth.rules.yml", "prometheus/hearth.rules.yml"), ("hearth.json", "grafana/hearth.json")):
        same((CHART / "files" / copy).read_text("utf-8"), (ROOT / "deploy" / original).read_text("utf-8"),
             f"{copy}: a copy of deploy/{original}")
    board = next(each for each in rendered(SETS["monitoring"][0])
                 if each["kind"] == "ConfigMap")["data"]["hearth.json"]
    same(json.loads(board), json.loads((ROOT / "deploy/grafana/hearth.json").read_text("utf-8")), "the board")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--server", action="store_true", help="also with a real API server")
    options = parser.parse_args()
    done = helm("lint", "--strict", str(CHART), values=KEYS)
    expect("0 chart(s) failed" in done.stdout and "[WARNING]" not in done.stdout, done.stdout)
    for name, (values, kinds) in SETS.items():
        objects = rendered(values)
        check_objects(name, objects, kinds)
        check_flags(options.program, objects)
    for values, word in WRONG:
        done = helm("template", "chat", str(CHART), "--kube-version", "1.33.0", values=merged(values), check=False)
        expect(done.returncode != 0 and word in done.stderr, f"{values}: {done.stderr}")
    check_copies()
    print(f"the chart: {len(SETS)} sets of values, {len(WRONG)} mistakes refused")
    if options.server:
        from kubernetes_api import check_server  # pylint: disable=import-outside-toplevel
        check_server(CHART, {name: merged(values) for name, (values, _) in SETS.items()}, options.program)


if __name__ == "__main__":
    main()
