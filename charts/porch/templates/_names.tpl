{{- /* Names and labels. Each takes the root context; those with "component" a dict of root and component. */}}

{{- define "porch.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "porch.componentName" -}}
{{ include "porch.fullname" .root }}-{{ .component }}
{{- end }}

{{- /* What selectors hold: it must never change, or an upgrade could not change a Deployment. */}}
{{- define "porch.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "porch.labels" -}}
{{ include "porch.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: porch
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* metadata of a namespaced object; takes root, component and, where it is another than the component's, name. */}}
{{- define "porch.metadata" -}}
name: {{ .name | default (include "porch.componentName" .) }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "porch.labels" . | nindent 2 }}
{{- end }}

{{- /* The same of a cluster-scoped object. */}}
{{- define "porch.clusterMetadata" -}}
name: {{ .name | default (include "porch.componentName" .) }}
labels:
  {{- include "porch.labels" . | nindent 2 }}
{{- end }}

{{- define "porch.serviceAccountName" -}}
{{- $own := index .root.Values .component "serviceAccount" -}}
{{- $own.name | default (include "porch.componentName" .) -}}
{{- end }}

{{- define "porch.image" -}}
{{- $image := .Values.image -}}
{{- $name := compact (list $image.registry $image.repository) | join "/" -}}
{{- if $image.digest -}}
{{ $name }}@{{ $image.digest }}
{{- else -}}
{{ $name }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* The Secret with the serving certificate. */}}
{{- define "porch.certificateSecret" -}}
{{- if eq .Values.certificates.source "existing" -}}
{{- .Values.certificates.existing.secretName -}}
{{- else if eq .Values.certificates.source "self-managed" -}}
{{- include "porch.fullname" . }}-certificates
{{- else -}}
{{- include "porch.fullname" . }}-tls
{{- end -}}
{{- end }}

{{- /* Under which names the server is reached in the cluster, as JSON. */}}
{{- define "porch.serviceNames" -}}
{{- $service := include "porch.componentName" (dict "root" . "component" "server") -}}
{{- $inNamespace := printf "%s.%s" $service .Release.Namespace -}}
{{- list $service $inNamespace (printf "%s.svc" $inNamespace) (printf "%s.svc.cluster.local" $inNamespace) | toJson -}}
{{- end }}
