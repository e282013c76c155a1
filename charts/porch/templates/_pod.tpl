{{- /* Parts of Pods that all Deployments and Jobs share. Each takes a dict of root and component, unless it says otherwise. */}}

{{- /* Environment variables; takes a mapping. Numbers are written out, never as 1e+06. */}}
{{- define "porch.environment" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  {{- if and (kindIs "float64" $value) (eq (floor $value) $value) }}
  value: {{ int64 $value | quote }}
  {{- else }}
  value: {{ $value | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* The database's URL, from the Secret; nothing without one. Takes the root context. */}}
{{- define "porch.databaseEnvironment" -}}
{{- if include "porch.onPostgres" . }}
- name: PORCH_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret.name }}
      key: {{ .Values.database.existingSecret.key }}
{{- end }}
{{- end }}

{{- /* Whom the Pod runs as and where it may run; the fields of a Pod's spec beside containers and volumes. */}}
{{- define "porch.podSpec" -}}
{{- $own := index .root.Values .component -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
serviceAccountName: {{ include "porch.serviceAccountName" . }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
terminationGracePeriodSeconds: {{ $own.terminationGracePeriodSeconds }}
{{- with $own.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $own.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- if $own.topologySpreadConstraints }}
  {{- toYaml $own.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "porch.selector" $ | nindent 8 }}
  {{- end }}
  {{- end }}
{{- end }}

{{- define "porch.podMetadata" -}}
{{- $own := index .root.Values .component -}}
labels:
  {{- include "porch.labels" . | nindent 2 }}
  {{- with $own.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $own.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Image, rights and resources of a container. */}}
{{- define "porch.container" -}}
image: {{ include "porch.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.containerSecurityContext | nindent 2 }}
{{- with (index .root.Values .component).resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
