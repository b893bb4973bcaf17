{{- define "hearth.name" -}}
{{- printf "%s" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "hearth.selector" -}}
app.kubernetes.io/name: hearth
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hearth.labels" -}}
{{ include "hearth.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* What a schema cannot say. */}}
{{- define "hearth.check" -}}
{{- $sources := 0 -}}
{{- if .Values.model.volume.claim }}{{ $sources = add $sources 1 }}{{ end -}}
{{- if .Values.model.volume.hostPath }}{{ $sources = add $sources 1 }}{{ end -}}
{{- if .Values.model.volume.emptyDir }}{{ $sources = add $sources 1 }}{{ end -}}
{{- if gt (int $sources) 1 }}{{ fail "model.volume: expected at most one of claim, hostPath and emptyDir" }}{{ end -}}
{{- if and .Values.model.volume.emptyDir (not .Values.model.init) }}{{ fail "model.volume.emptyDir needs model.init, which fills it" }}{{ end -}}
{{- if not .Values.keys.secret }}{{ fail "keys.secret: expected the name of a Secret with the file that `hearth key NAME --keys keys.json` writes" }}{{ end -}}
{{- if and .Values.cache.redis.addresses (not .Values.cache.keySecret) }}{{ fail "cache.redis.addresses needs cache.keySecret: what replicas share is encrypted" }}{{ end -}}
{{- if and (ne .Values.autoscaling.kind "none") (gt (int .Values.autoscaling.min) (int .Values.autoscaling.max)) }}{{ fail "autoscaling.min: expected no more than autoscaling.max" }}{{ end -}}
{{- end -}}

{{- define "hearth.pod" -}}
metadata:
  labels:
    {{- include "hearth.labels" . | nindent 4 }}
    llm-d.ai/engine-type: vllm
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  automountServiceAccountToken: false
  # The notice before the drain, the drain, and a little for the end itself.
  terminationGracePeriodSeconds: {{ add .Values.shutdown.preStop .Values.shutdown.drain 15 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if .Values.model.init }}
  initContainers:
  - name: model
    image: {{ required "model.init.image" .Values.model.init.image | quote }}
    command: {{ required "model.init.command" .Values.model.init.command | toJson }}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts:
    - {name: model, mountPath: {{ dir .Values.model.path }}}
  {{- end }}
  containers:
  - name: hearth
    image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args:
    - serve
    - --model={{ .Values.model.path }}
    {{- with .Values.model.name }}
    - --name={{ . }}
    {{- end }}
    - --host=0.0.0.0
    - --port={{ .Values.server.port }}
    - --keys=/run/hearth/keys/{{ .Values.keys.item }}
    - --public-metrics
    # Probes and pickers ask by the pod's address, clients by the Service's names.
    - --host-name=$(POD_IP)
    - --host-name={{ include "hearth.name" . }}
    - --host-name={{ include "hearth.name" . }}.{{ .Release.Namespace }}
    - --host-name={{ include "hearth.name" . }}.{{ .Release.Namespace }}.svc
    {{- range .Values.server.hostNames }}
    - --host-name={{ . }}
    {{- end }}
    - --max-sequences={{ .Values.server.maxSequences }}
    - --itl-target={{ .Values.server.itlTarget }}
    - --overload-status={{ .Values.server.overloadStatus }}
    - --drain={{ .Values.shutdown.drain }}
    - --log=-
    {{- if .Values.cache.disk.enabled }}
    - --cache-dir=/var/cache/hearth
    {{- end }}
    {{- with .Values.cache.redis.addresses }}
    - --cache-redis={{ . }}
    {{- end }}
    {{- if .Values.cache.keySecret }}
    - --cache-key=/run/hearth/cache/cache.key
    {{- end }}
    {{- range .Values.server.args }}
    - {{ . | quote }}
    {{- end }}
    env:
    - name: POD_IP
      valueFrom: {fieldRef: {fieldPath: status.podIP}}
    ports:
    - {name: http, containerPort: {{ .Values.server.port }}}
    # Loading takes as long as the disk needs; only then do the other probes begin.
    startupProbe:
      httpGet: {path: /readyz, port: http}
      periodSeconds: 5
      failureThreshold: {{ max 1 (div .Values.startup.seconds 5) }}
    readinessProbe:
      httpGet: {path: /readyz, port: http}
      periodSeconds: 2
      failureThreshold: 2
      timeoutSeconds: 2
    livenessProbe:
      httpGet: {path: /livez, port: http}
      periodSeconds: 10
      failureThreshold: 6
      timeoutSeconds: 5
    lifecycle:
      # The image has no shell: the kubelet itself sleeps.
      preStop: {sleep: {seconds: {{ .Values.shutdown.preStop }}}}
    resources:
      {{- toYaml .Values.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
    - {name: keys, mountPath: /run/hearth/keys, readOnly: true}
    - {name: state, mountPath: /var/lib/hearth}
    {{- if or .Values.model.volume.claim .Values.model.volume.hostPath .Values.model.volume.emptyDir }}
    - {name: model, mountPath: {{ dir .Values.model.path }}, readOnly: true}
    {{- end }}
    {{- if .Values.cache.disk.enabled }}
    - {name: cache, mountPath: /var/cache/hearth}
    {{- end }}
    {{- if .Values.cache.keySecret }}
    - {name: cache-key, mountPath: /run/hearth/cache, readOnly: true}
    {{- end }}
  volumes:
  - name: keys
    secret: {secretName: {{ .Values.keys.secret }}, defaultMode: 0440}  # root:65532
  - name: state
    emptyDir: {}
  {{- with .Values.model.volume }}
  {{- if .claim }}
  - name: model
    persistentVolumeClaim: {claimName: {{ .claim }}, readOnly: true}
  {{- else if .hostPath }}
  - name: model
    hostPath: {path: {{ .hostPath }}, type: Directory}
  {{- else if .emptyDir }}
  - name: model
    emptyDir: {}
  {{- end }}
  {{- end }}
  {{- if and .Values.cache.disk.enabled (eq .Values.kind "Deployment") }}
  - name: cache
    emptyDir: {sizeLimit: {{ .Values.cache.disk.size }}}
  {{- end }}
  {{- with .Values.cache.keySecret }}
  - name: cache-key
    secret: {secretName: {{ . }}, defaultMode: 0440}
  {{- end }}
  {{- if .Values.spread }}
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {{ include "hearth.selector" . | fromYaml | toJson }}}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
