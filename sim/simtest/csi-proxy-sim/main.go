// Program csi-proxy-sim is the simulated Windows node for the tests of CSI drivers, as a Go module: it unpacks the static
// program of this release into the user's cache, and becomes that program.
//
//	go install github.com/OWNER/csi-proxy/sim/simtest/csi-proxy-sim@v0.1.0
//
// Only the module of a release has the programs; see docs/releases.md.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"syscall"
)

func main() {
	program, err := unpack()
	if err != nil {
		log.Fatalf("cannot unpack csi-proxy-sim: %v", err)
	}
	log.Fatal(syscall.Exec(program, os.Args, os.Environ()))
}

// unpack returns the path of the program, which is named after its contents.
func unpack() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // CI may have no home directory.
	}
	folder := filepath.Join(cache, "csi-proxy-sim")
	program := filepath.Join(folder, fmt.Sprintf("%x", sha256.Sum256(packed)))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	// Several tests may begin at the same time: a file of its own, then one rename.
	file, err := os.CreateTemp(folder, "new-")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name()) // Fails after the rename.
	if _, err := io.Copy(file, unpacked); err != nil {
		return "", err
	}
	if err := file.Chmod(0o700); err != nil {
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	return program, os.Rename(file.Name(), program)
}
