package v2pipe

import (
	"context"

	wire "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	v2 "github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"google.golang.org/grpc"
)

type systemClient struct{ pipe wire.SystemClient }

func systemOver(connection grpc.ClientConnInterface) v2.Interface {
	return systemClient{wire.NewSystemClient(connection)}
}

func (c systemClient) GetBIOSSerialNumber(ctx context.Context, _ *v2.GetBIOSSerialNumberRequest) (*v2.GetBIOSSerialNumberResponse, error) {
	got, err := c.pipe.GetBIOSSerialNumber(ctx, &wire.GetBIOSSerialNumberRequest{})
	return answer(&v2.GetBIOSSerialNumberResponse{SerialNumber: got.GetSerialNumber()}, err)
}

func (c systemClient) GetService(ctx context.Context, request *v2.GetServiceRequest) (*v2.GetServiceResponse, error) {
	got, err := c.pipe.GetService(ctx, &wire.GetServiceRequest{Name: request.Name})
	response := &v2.GetServiceResponse{DisplayName: got.GetDisplayName(), Status: v2.ServiceStatus(got.GetStatus())}
	setNumber(&response.StartType, got.GetStartType())
	return answer(response, err)
}

// setNumber sets a field whose type has another name in each version of the library.
func setNumber[T ~uint32](field *T, value wire.StartType) { *field = T(value) }

func (c systemClient) StartService(ctx context.Context, request *v2.StartServiceRequest) (*v2.StartServiceResponse, error) {
	_, err := c.pipe.StartService(ctx, &wire.StartServiceRequest{Name: request.Name})
	return answer(&v2.StartServiceResponse{}, err)
}

func (c systemClient) StopService(ctx context.Context, request *v2.StopServiceRequest) (*v2.StopServiceResponse, error) {
	_, err := c.pipe.StopService(ctx, &wire.StopServiceRequest{Name: request.Name, Force: request.Force})
	return answer(&v2.StopServiceResponse{}, err)
}
