//go:build program

// Package program names the Go csi-proxy and its integration tests as dependencies, so that its module and those it needs
// are listed in go.sum.
package program

import (
	_ "github.com/kubernetes-csi/csi-proxy/cmd/csi-proxy"
	_ "github.com/kubernetes-csi/csi-proxy/integrationtests"
)
