{{- define "csi-proxy.selector" -}}
app.kubernetes.io/name: csi-proxy
{{- end -}}
{{- define "csi-proxy.ownLabels" -}}
{{ include "csi-proxy.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}
{{- define "csi-proxy.labels" -}}
{{ toYaml (merge (include "csi-proxy.ownLabels" . | fromYaml) .Values.commonLabels) }}
{{- end -}}
{{- define "csi-proxy.monitorLabels" -}}
{{ toYaml (merge (include "csi-proxy.ownLabels" . | fromYaml) .Values.metrics.monitorLabels .Values.commonLabels) }}
{{- end -}}
{{- define "csi-proxy.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}
{{- define "csi-proxy.probe" -}}
httpGet:
  host: 127.0.0.1
  port: {{ .root.Values.metrics.port }}
  path: {{ .path }}
{{- end -}}
