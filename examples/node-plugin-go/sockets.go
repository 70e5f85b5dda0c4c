package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
)

// listen serves an address such as unix://C:\csi\csi.sock. Windows has Unix sockets too, from Windows Server 2019 on.
func listen(endpoint string) (net.Listener, error) {
	network, address, ok := strings.Cut(endpoint, "://")
	if !ok || (network != "unix" && network != "tcp") {
		return nil, fmt.Errorf("%q is neither unix://PATH nor tcp://HOST:PORT", endpoint)
	}
	if network == "unix" {
		// A plugin that was killed leaves its socket behind.
		if err := os.Remove(address); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return net.Listen(network, address)
}
