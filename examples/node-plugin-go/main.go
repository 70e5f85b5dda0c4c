// An example of a CSI node plugin for Windows, which stages disks with csi-proxy.
//
// It serves csi.sock to kubelet. The controller of such a driver attaches a disk to the node, whose serial number is the ID of
// the volume; this plugin finds the disk by the number, and has csi-proxy partition, format and mount the disk.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driverName is the name of the CSIDriver object.
const driverName = "driver.example.com"

func main() {
	endpoint := flag.String("endpoint", `unix://C:\csi\csi.sock`, "where to serve CSI: unix://PATH or tcp://HOST:PORT")
	nodeID := flag.String("node-id", "", "the name by which the controller knows this node")
	registrationSocket := flag.String("registration-socket", "",
		"a socket in kubelet's folder plugins_registry; empty if the sidecar node-driver-registrar creates it")
	kubeletPath := flag.String("kubelet-registration-path", "", "the path of csi.sock as kubelet sees it")
	sockets := flag.String("csi-proxy-sockets", "", "the folder of csi-proxy-sim's sockets (not on Windows)")
	flag.Parse()
	if *nodeID == "" || (*registrationSocket != "" && *kubeletPath == "") {
		log.Fatal("--node-id is required, and with --registration-socket also --kubelet-registration-path")
	}

	proxy, err := connect(*sockets)
	if err != nil {
		log.Fatal(err)
	}
	plugin := grpc.NewServer(grpc.UnaryInterceptor(logFailure))
	csi.RegisterIdentityServer(plugin, &identity{proxy: proxy})
	csi.RegisterNodeServer(plugin, &node{proxy: proxy, id: *nodeID})
	listener, err := listen(*endpoint)
	if err != nil {
		log.Fatal(err)
	}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	go func() {
		<-stop.Done()
		plugin.GracefulStop()
	}()
	if *registrationSocket != "" {
		// Last: kubelet connects to csi.sock as soon as this socket appears.
		socket, err := listen("unix://" + *registrationSocket)
		if err != nil {
			log.Fatal(err)
		}
		registrar := grpc.NewServer()
		registerapi.RegisterRegistrationServer(registrar, &registration{endpoint: *kubeletPath})
		go registrar.Serve(socket)
		defer registrar.Stop()
	}
	log.Printf("%s serves %s", driverName, *endpoint)
	if err := plugin.Serve(listener); err != nil {
		log.Fatal(err)
	}
}

// logFailure logs calls that fail. Requests are not logged, since they may have secrets.
func logFailure(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	response, err := handler(ctx, req)
	if err != nil {
		log.Printf("%s: %v", info.FullMethod, err)
	}
	return response, err
}
