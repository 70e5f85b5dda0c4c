{{- define "csi-proxy.selector" -}}
app.kubernetes.io/name: csi-proxy
{{- end -}}
{{- define "csi-proxy.labels" -}}
{{ include "csi-proxy.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}
{{- define "csi-proxy.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}
{{- define "csi-proxy.probe" -}}
{{- with .root.Values.metrics -}}
httpGet:
  {{- if eq .address "loopback" }}
  host: 127.0.0.1
  {{- end }}
  port: {{ .port }}
  path: {{ $.path }}
{{- end -}}
{{- end -}}
