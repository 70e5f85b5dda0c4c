package v2pipe

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	disk "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	filesystem "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	iscsi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	smb "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	system "github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	volume "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// recorder is a connection that keeps the request of a call, and answers with a value of its own in each field.
type recorder struct {
	grpc.ClientConnInterface
	method            string
	request, response proto.Message
}

func (r *recorder) Invoke(_ context.Context, method string, request, response any, _ ...grpc.CallOption) error {
	// Upstream generated some of the messages with an old compiler.
	r.method = method
	r.request = protoadapt.MessageV2Of(request.(protoadapt.MessageV1))
	r.response = protoadapt.MessageV2Of(response.(protoadapt.MessageV1))
	next := 0
	fillMessage(r.response.ProtoReflect(), &next)
	return nil
}

// failing is a connection whose calls fail.
type failing struct{ grpc.ClientConnInterface }

func (failing) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return status.Error(codes.FailedPrecondition, "disk 3 is offline")
}

// TestEveryFieldArrives calls each method of each interface with a value of its own in each field, and compares what is
// on the wire, and what the wire answers, by the names of the fields.
func TestEveryFieldArrives(t *testing.T) {
	connection := &recorder{}
	interfaces := map[reflect.Type]any{
		reflect.TypeFor[disk.Interface]():       diskOver(connection),
		reflect.TypeFor[filesystem.Interface](): filesystemOver(connection),
		reflect.TypeFor[iscsi.Interface]():      iscsiOver(connection),
		reflect.TypeFor[smb.Interface]():        smbOver(connection),
		reflect.TypeFor[system.Interface]():     systemOver(connection),
		reflect.TypeFor[volume.Interface]():     volumeOver(connection),
	}
	methods := 0
	for kind, client := range interfaces {
		for i := range kind.NumMethod() {
			methods++
			name := kind.Method(i).Name
			if name == "PathValid" {
				continue // No RPC does what this method does.
			}
			request := reflect.New(kind.Method(i).Type.In(1).Elem())
			next := 0
			fillValue(request.Elem(), &next)
			results := reflect.ValueOf(client).MethodByName(name).Call([]reflect.Value{reflect.ValueOf(t.Context()), request})
			if err := results[1].Interface(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !strings.EqualFold(connection.method[strings.LastIndex(connection.method, "/")+1:], name) {
				t.Errorf("%s calls %s", name, connection.method)
			}
			sent, onWire := map[string]string{}, map[string]string{}
			flattenValue(request.Elem(), "", sent)
			flattenMessage(connection.request.ProtoReflect(), "", onWire)
			if !maps.Equal(sent, onWire) {
				t.Errorf("%s: the request %v is %v on the wire", name, sent, onWire)
			}
			answered, received := map[string]string{}, map[string]string{}
			flattenMessage(connection.response.ProtoReflect(), "", answered)
			flattenValue(results[0].Elem(), "", received)
			if !maps.Equal(answered, received) {
				t.Errorf("%s: the wire answers %v, and the driver receives %v", name, answered, received)
			}
		}
	}
	if methods != 39 {
		t.Errorf("the library has %d methods", methods)
	}
}

// TestAFailedCallHasNoResponse calls each method over a connection whose calls fail.
func TestAFailedCallHasNoResponse(t *testing.T) {
	for _, client := range []any{
		diskOver(failing{}), filesystemOver(failing{}), iscsiOver(failing{}), smbOver(failing{}), systemOver(failing{}), volumeOver(failing{}),
	} {
		kind := reflect.TypeOf(client)
		for i := range kind.NumMethod() {
			request := reflect.New(kind.Method(i).Type.In(2).Elem())
			results := reflect.ValueOf(client).Method(i).Call([]reflect.Value{reflect.ValueOf(t.Context()), request})
			err, _ := results[1].Interface().(error)
			if kind.Method(i).Name == "PathValid" {
				if status.Code(err) != codes.Unimplemented {
					t.Errorf("PathValid: %v", err)
				}
			} else if status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != "disk 3 is offline" || !results[0].IsNil() {
				t.Errorf("%s: %v, %v", kind.Method(i).Name, results[0], err)
			}
		}
	}
}

// fillValue sets each field of a struct of the library to a value that no other field has.
func fillValue(value reflect.Value, next *int) {
	*next++
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			fillValue(value.Field(i), next)
		}
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fillValue(value.Elem(), next)
	case reflect.String:
		value.SetString(fmt.Sprint("text ", *next))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int64:
		value.SetInt(int64(*next))
	case reflect.Uint32:
		value.SetUint(uint64(*next))
	default:
		panic(value.Type())
	}
}

// fillMessage sets each field of a message to a value that no other field has; lists and maps get two elements.
func fillMessage(message protoreflect.Message, next *int) {
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.IsMap():
			for range 2 {
				*next++
				element := message.Mutable(field).Map().NewValue()
				fillMessage(element.Message(), next)
				message.Mutable(field).Map().Set(protoreflect.ValueOfUint32(uint32(*next)).MapKey(), element)
			}
		case field.IsList():
			list := message.Mutable(field).List()
			for range 2 {
				*next++
				if field.Message() != nil {
					fillMessage(list.AppendMutable().Message(), next)
				} else {
					list.Append(scalar(field, *next))
				}
			}
		default:
			*next++
			message.Set(field, scalar(field, *next))
		}
	}
}

func scalar(field protoreflect.FieldDescriptor, number int) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprint("text ", number))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(number))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(number))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(number))
	}
	panic(field.FullName())
}

// flattenValue adds the fields of a struct of the library, by their names.
func flattenValue(value reflect.Value, name string, to map[string]string) {
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			flattenValue(value.Field(i), name+"."+plain(value.Type().Field(i).Name), to)
		}
	case reflect.Pointer:
		flattenValue(value.Elem(), name, to)
	case reflect.Map:
		for _, key := range value.MapKeys() {
			flattenValue(value.MapIndex(key), fmt.Sprint(name, ".", key), to)
		}
	case reflect.Slice:
		for i := range value.Len() {
			flattenValue(value.Index(i), fmt.Sprint(name, ".", i), to)
		}
	default:
		to[name] = fmt.Sprintf("%v", value)
	}
}

// flattenMessage adds the fields of a message, by their names.
func flattenMessage(message protoreflect.Message, name string, to map[string]string) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name := name + "." + plain(string(field.Name()))
		add := func(name string, value protoreflect.Value) {
			if field.Message() != nil {
				flattenMessage(value.Message(), name, to)
			} else if field.Enum() != nil {
				to[name] = fmt.Sprint(int(value.Enum()))
			} else {
				to[name] = fmt.Sprint(value.Interface())
			}
		}
		switch {
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				add(name+"."+key.String(), value)
				return true
			})
		case field.IsList():
			for i := range value.List().Len() {
				add(fmt.Sprint(name, ".", i), value.List().Get(i))
			}
		default:
			add(name, value)
		}
		return true
	})
}

// plain returns the name of a field as both sides have it.
func plain(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}
