package main

import _ "embed"

//go:embed csi-proxy-sim-linux-amd64.gz
var packed []byte
