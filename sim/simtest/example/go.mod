module github.com/OWNER/csi-proxy/sim/simtest/example

go 1.25.0

require (
	github.com/OWNER/csi-proxy/sim/simtest v0.0.0
	github.com/kubernetes-csi/csi-proxy/client v1.3.0
	google.golang.org/grpc v1.83.1
)

require (
	golang.org/x/net v0.55.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
	golang.org/x/text v0.37.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260526163538-3dc84a4a5aaa // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/OWNER/csi-proxy/sim/simtest => ../
