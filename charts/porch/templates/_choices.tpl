{{- /* What follows from the values, and what does not go together. */}}

{{- /* "true" where a PostgreSQL database is named: then replicas may be many, and what a server keeps on disk is a cache. */}}
{{- define "porch.onPostgres" -}}
{{- if .Values.database.existingSecret.name }}true{{ end -}}
{{- end }}

{{- define "porch.serverReplicas" -}}
{{- if kindIs "invalid" .Values.server.replicas -}}
{{- ternary 1 2 (empty (include "porch.onPostgres" .)) -}}
{{- else -}}
{{- int .Values.server.replicas -}}
{{- end -}}
{{- end }}

{{- /* Fewest servers that there are: of a single one a budget would hold up every drain of its node. */}}
{{- define "porch.fewestServers" -}}
{{- ternary (int .Values.server.autoscaling.minReplicas) (int (include "porch.serverReplicas" .)) .Values.server.autoscaling.enabled -}}
{{- end }}

{{- /* Whether more than one server can be there at once. */}}
{{- define "porch.serverIsReplicated" -}}
{{- if or (gt (int (include "porch.serverReplicas" .)) 1) .Values.server.autoscaling.enabled }}true{{ end -}}
{{- end }}

{{- define "porch.check" -}}
{{- if not (regexMatch "^[a-z]" (include "porch.fullname" .)) -}}
{{- fail (printf "%s cannot be the name of a Service, which begins with a letter: set fullnameOverride" (include "porch.fullname" .)) -}}
{{- end -}}
{{- if and (include "porch.serverIsReplicated" .) (not (include "porch.onPostgres" .)) -}}
{{- fail "server.replicas above 1 and server.autoscaling need PostgreSQL: name a Secret with its URL in database.existingSecret.name, or run one replica" -}}
{{- end -}}
{{- if gt (int .Values.server.autoscaling.minReplicas) (int .Values.server.autoscaling.maxReplicas) -}}
{{- fail "server.autoscaling.minReplicas is above server.autoscaling.maxReplicas: raise the latter" -}}
{{- end -}}
{{- $ending := add (ceil .Values.server.shutdownDelaySeconds) (max 10 (ceil (float64 (.Values.server.settings.PORCH_REQUEST_TIMEOUT | default 60)))) 5 -}}
{{- if and .Values.server.enabled (lt (int .Values.server.terminationGracePeriodSeconds) (int $ending)) -}}
{{- fail (printf "server.terminationGracePeriodSeconds is below the %d s that a server may take to end (shutdownDelaySeconds, PORCH_REQUEST_TIMEOUT and 5 s): raise it, or requests are cut off" (int $ending)) -}}
{{- end -}}
{{- if and (eq .Values.certificates.source "existing") (not .Values.certificates.existing.secretName) -}}
{{- fail "certificates.source is existing: name a Secret of type kubernetes.io/tls in certificates.existing.secretName" -}}
{{- end -}}
{{- if and .Values.certificates.existing.caBundle (ne .Values.certificates.source "existing") -}}
{{- fail "certificates.existing.caBundle has a meaning only with certificates.source existing: set that, or remove the bundle" -}}
{{- end -}}
{{- end }}

{{- /* Whether a Job migrates the database; SQLite is migrated by its server. */}}
{{- define "porch.migrates" -}}
{{- if and .Values.migrations.enabled .Values.server.enabled (include "porch.onPostgres" .) }}true{{ end -}}
{{- end }}
