// A first call from Linux: go run ./firstcall FOLDER, with the folder of csi-proxy-sim's sockets.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: firstcall FOLDER")
	}
	connection, err := grpc.NewClient("unix://"+os.Args[1]+"/csi-proxy-disk-v1.sock",
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	disks, err := disk.NewDiskClient(connection).ListDiskIDs(context.Background(), &disk.ListDiskIDsRequest{})
	if err != nil {
		log.Fatal(err)
	}
	for number, ids := range disks.GetDiskIDs() {
		fmt.Printf("disk %d: serial number %q, page 83 %q\n", number, ids.GetSerialNumber(), ids.GetPage83())
	}
}
