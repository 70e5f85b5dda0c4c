module csi-proxy.local/go-program

go 1.24.3

godebug winsymlink=0

require github.com/kubernetes-csi/csi-proxy v1.3.0

require (
	github.com/kubernetes-csi/csi-proxy/client v1.3.0
	google.golang.org/genproto v0.0.0-20240123012728-ef4313101c80
)
