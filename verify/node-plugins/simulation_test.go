package nodeplugins

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// simulation changes a simulated node while it runs. It learns the messages by reflection, as grpcurl does.
type simulation struct {
	connection *grpc.ClientConn
	service    protoreflect.ServiceDescriptor
}

// connectSimulation connects to the control API of the csi-proxy-sim that serves in a folder.
func connectSimulation(t *testing.T, sockets string) *simulation {
	t.Helper()
	connection := connect(t, "unix:"+filepath.Join(sockets, "sim-control.sock"))
	symbol := &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "csi_proxy_sim.v1.Simulation"}
	stream, err := reflection.NewServerReflectionClient(connection).ServerReflectionInfo(within(t))
	if err == nil {
		err = stream.Send(&reflection.ServerReflectionRequest{MessageRequest: symbol})
	}
	if err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil || len(answer.GetFileDescriptorResponse().GetFileDescriptorProto()) != 1 {
		t.Fatalf("reflection of the control API: %v %v", answer, err)
	}
	file := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(answer.GetFileDescriptorResponse().GetFileDescriptorProto()[0], file); err != nil {
		t.Fatal(err)
	}
	described, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &simulation{connection, described.Services().ByName("Simulation")}
}

// call calls an RPC. The fields of its request and response have the names of protobuf's JSON form.
func (s *simulation) call(ctx context.Context, rpc string, request map[string]any, response any) error {
	method := s.service.Methods().ByName(protoreflect.Name(rpc))
	input, output := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	text, err := json.Marshal(request)
	if err == nil {
		err = protojson.Unmarshal(text, input)
	}
	if err == nil {
		err = s.connection.Invoke(ctx, "/"+string(s.service.FullName())+"/"+rpc, input, output)
	}
	if err == nil {
		text, err = protojson.Marshal(output)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, response)
}
