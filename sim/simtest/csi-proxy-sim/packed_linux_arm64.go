package main

import _ "embed"

//go:embed csi-proxy-sim-linux-arm64.gz
var packed []byte
