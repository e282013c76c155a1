{{- /* The controllers and the approver differ in what they run and in what they may do; this is the rest. Takes root and component. */}}

{{- define "porch.controllerDeployment" -}}
{{- $own := index .root.Values .component -}}
{{- $settings := dict
  "PORCH_CONTROLLERS_RUN" (ternary "approval" "variants" (eq .component "approval"))
  "PORCH_CONTROLLERS_LEASE_NAMESPACE" .root.Release.Namespace
  "PORCH_CONTROLLERS_HOST" $own.host
  "PORCH_CONTROLLERS_PORT" 8080
}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "porch.metadata" . | nindent 2 }}
spec:
  replicas: {{ $own.replicas }}
  revisionHistoryLimit: 3
  selector:
    matchLabels:
      {{- include "porch.selector" . | nindent 6 }}
  template:
    metadata:
      {{- include "porch.podMetadata" . | nindent 6 }}
    spec:
      {{- include "porch.podSpec" . | nindent 6 }}
      containers:
        - name: {{ .component }}
          {{- include "porch.container" . | nindent 10 }}
          args: [controllers]
          env:
            {{- include "porch.environment" (merge (deepCopy $own.settings) $settings) | nindent 12 }}
            {{- with $own.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            - {name: metrics, containerPort: 8080, protocol: TCP}
          # Ready means that everything was read that decisions are made of; before the server is there, that takes as long as it takes.
          readinessProbe:
            httpGet: {path: /readyz, port: metrics}
            periodSeconds: 5
            timeoutSeconds: 3
          livenessProbe:
            httpGet: {path: /healthz, port: metrics}
            initialDelaySeconds: 10
            periodSeconds: 30
            timeoutSeconds: 10
          volumeMounts:
            - {name: temporary, mountPath: /tmp}
            {{- with $own.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: temporary
          emptyDir:
            sizeLimit: 256Mi
        {{- with $own.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- if .root.Values.metrics.enabled }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "porch.metadata" . | nindent 2 }}
spec:
  type: ClusterIP
  clusterIP: None
  selector:
    {{- include "porch.selector" . | nindent 4 }}
  ports:
    - {name: metrics, port: 8080, targetPort: metrics, protocol: TCP}
{{- end }}
{{- if gt (int $own.replicas) 1 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "porch.metadata" . | nindent 2 }}
spec:
  minAvailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "porch.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{- define "porch.serviceAccount" -}}
{{- $own := (index .root.Values .component).serviceAccount -}}
{{- if $own.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "porch.metadata" (merge (dict "name" (include "porch.serviceAccountName" .)) .) | nindent 2 }}
  {{- with $own.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* Binds the component's account to the ClusterRole "role", by default that of its own name; "name" is the binding's, by default the role's. */}}
{{- define "porch.clusterRoleBinding" -}}
{{- $role := .role | default (include "porch.componentName" .) -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  {{- include "porch.clusterMetadata" (merge (dict "name" (.name | default $role)) .) | nindent 2 }}
subjects:
  - {kind: ServiceAccount, name: {{ include "porch.serviceAccountName" . }}, namespace: {{ .root.Release.Namespace }}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $role }}}
{{- end }}

{{- /* The Lease in the release's namespace; "verbs" say what its holder does with it. */}}
{{- define "porch.leaseRole" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- include "porch.metadata" (merge (dict "name" (printf "%s-lease" (include "porch.componentName" .))) .) | nindent 2 }}
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: {{ toJson .verbs }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "porch.metadata" (merge (dict "name" (printf "%s-lease" (include "porch.componentName" .))) .) | nindent 2 }}
subjects:
  - {kind: ServiceAccount, name: {{ include "porch.serviceAccountName" . }}, namespace: {{ .root.Release.Namespace }}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ include "porch.componentName" . }}-lease}
{{- end }}
