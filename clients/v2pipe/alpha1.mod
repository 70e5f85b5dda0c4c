module csi-proxy.local/v2pipe

go 1.24.3

require (
	github.com/Microsoft/go-winio v0.6.2
	github.com/kubernetes-csi/csi-proxy/client v1.3.0
	github.com/kubernetes-csi/csi-proxy/v2 v2.0.0-alpha.1
	golang.org/x/sys v0.32.0
	google.golang.org/grpc v1.63.0
	google.golang.org/protobuf v1.33.0
)

require (
	github.com/go-logr/logr v0.4.0 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/stretchr/testify v1.7.0 // indirect
	golang.org/x/net v0.21.0 // indirect
	golang.org/x/text v0.14.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240227224415-6ceb2ff114de // indirect
	gopkg.in/yaml.v3 v3.0.0 // indirect
	k8s.io/klog/v2 v2.9.0 // indirect
)
