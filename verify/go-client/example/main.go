// Calls csi-proxy-sim from Go on Linux: go run ./example FOLDER, with the folder of its sockets.
//
// A driver links the packages client/groups/..., which dial named pipes and build only for Windows. Their stubs are in
// client/api/..., which builds everywhere and works over any connection.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: example FOLDER")
	}
	// The socket has the name of the pipe: csi-proxy-<group>-<version>.
	socket := filepath.Join(os.Args[1], "csi-proxy-filesystem-v1.sock")
	connection, err := grpc.Dial("unix://"+socket, grpc.WithInsecure())
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	files := filesystem.NewFilesystemClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	path := `C:\var\lib\kubelet\plugins\driver.example.com\globalmount`
	if _, err := files.Mkdir(ctx, &filesystem.MkdirRequest{Path: path}); err != nil {
		log.Fatal(err)
	}
	response, err := files.PathExists(ctx, &filesystem.PathExistsRequest{Path: path})
	if err != nil || !response.Exists {
		log.Fatalf("%s was created and does not exist: %v", path, err)
	}
	fmt.Println(path, "exists")
}
