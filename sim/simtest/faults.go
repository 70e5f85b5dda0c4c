package simtest

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/OWNER/csi-proxy/sim/simtest/simcontrol"
)

// Fault is a fault that was injected. It fails the test if it has disturbed no call when the test ends, because the test
// would otherwise pass without having tested anything.
type Fault struct {
	node *Node
	id   uint64
	// last is the fault as it was when it was cleared.
	last      *simcontrol.InjectedFault
	isCleared bool
	mayMiss   bool
}

// FaultOption changes which calls a fault disturbs, or when.
type FaultOption func(*simcontrol.Fault, *Fault)

// Times disturbs at most this many calls.
func Times(count uint64) FaultOption { return func(f *simcontrol.Fault, _ *Fault) { f.Count = count } }

// Skip lets this many calls pass first.
func Skip(count uint64) FaultOption { return func(f *simcontrol.Fault, _ *Fault) { f.Skip = count } }

// AfterEffect disturbs a call after it has had its effect on the node.
func AfterEffect() FaultOption { return func(f *simcontrol.Fault, _ *Fault) { f.After = true } }

// On disturbs only calls whose request, except for secrets, contains this text, such as a path or a volume id.
func On(object string) FaultOption { return func(f *simcontrol.Fault, _ *Fault) { f.Object = object } }

// Message is the message of the status of FailRPC.
func Message(text string) FaultOption {
	return func(f *simcontrol.Fault, _ *Fault) {
		if status := f.GetStatus(); status != nil {
			status.Message = text
		}
	}
}

// Probability disturbs each call with this probability. Equal seeds choose the same calls.
func Probability(probability float64, seed uint64) FaultOption {
	return func(f *simcontrol.Fault, _ *Fault) { f.Probability, f.Seed = probability, seed }
}

// MayMiss allows that the fault disturbs no call.
func MayMiss() FaultOption { return func(_ *simcontrol.Fault, fault *Fault) { fault.mayMiss = true } }

// FailRPC makes an RPC, such as "volume/MountVolume", "volume/v1/MountVolume" or "volume/*", fail with a code.
func (n *Node) FailRPC(rpc string, code codes.Code, opts ...FaultOption) *Fault {
	n.t.Helper()
	status := &simcontrol.RpcStatus{Code: uint32(code)}
	return n.Inject(&simcontrol.Fault{Rpc: rpc, Action: &simcontrol.Fault_Status{Status: status}}, opts...)
}

// CutRPC cuts the connection of the driver during an RPC.
func (n *Node) CutRPC(rpc string, opts ...FaultOption) *Fault {
	n.t.Helper()
	return n.Inject(&simcontrol.Fault{Rpc: rpc, Action: &simcontrol.Fault_Cut{Cut: true}}, opts...)
}

// HoldRPC holds an RPC until Clear releases it.
func (n *Node) HoldRPC(rpc string, opts ...FaultOption) *Fault {
	n.t.Helper()
	return n.Inject(&simcontrol.Fault{Rpc: rpc, Action: &simcontrol.Fault_Hold{Hold: true}}, opts...)
}

// DelayRPC makes an RPC take longer, on the clock of the node.
func (n *Node) DelayRPC(rpc string, span time.Duration, opts ...FaultOption) *Fault {
	n.t.Helper()
	delay := &simcontrol.Fault_DelayMilliseconds{DelayMilliseconds: uint64(span.Milliseconds())}
	return n.Inject(&simcontrol.Fault{Rpc: rpc, Action: delay}, opts...)
}

// CrashAt makes csi-proxy crash at an RPC and start again. Without Times, it crashes once.
func (n *Node) CrashAt(rpc string, opts ...FaultOption) *Fault {
	n.t.Helper()
	return n.Inject(&simcontrol.Fault{Rpc: rpc, Count: 1, Action: &simcontrol.Fault_Crash{Crash: true}}, opts...)
}

// FailCall makes a call of Windows, such as "wmi call MSFT_Volume.Format", fail with a Windows code. Primitives lists the
// names. If csi-proxy repeats the call, or makes another one instead, the driver does not notice the failure.
func (n *Node) FailCall(primitive string, code uint32, opts ...FaultOption) *Fault {
	n.t.Helper()
	return n.Inject(&simcontrol.Fault{Primitive: primitive, Action: &simcontrol.Fault_Code{Code: code}}, opts...)
}

// Primitives returns the names of the calls of Windows that csi-proxy has made on the node.
func (n *Node) Primitives() []string {
	n.t.Helper()
	list, err := n.Simulation.ListPrimitives(within(n.t), &simcontrol.ListPrimitivesRequest{})
	n.must(err)
	var names []string
	for _, primitive := range list.GetPrimitives() {
		names = append(names, primitive.GetName())
	}
	return names
}

// Inject injects a fault of any kind.
func (n *Node) Inject(fault *simcontrol.Fault, opts ...FaultOption) *Fault {
	n.t.Helper()
	f := &Fault{node: n}
	for _, option := range opts {
		option(fault, f)
	}
	injected, err := n.Simulation.InjectFault(within(n.t), &simcontrol.InjectFaultRequest{Fault: fault})
	n.must(err)
	f.id = injected.GetId()
	n.t.Cleanup(func() {
		n.t.Helper() // An error is that of the line that has injected the fault.
		if !f.isCleared {
			f.Clear()
		}
		if !f.mayMiss && !n.t.Failed() && f.last.GetHits() == 0 {
			n.t.Errorf("the fault has disturbed no call: %v", fault)
		}
	})
	return f
}

// Wait waits until the fault has disturbed this many calls. A call that is held counts when it begins to wait.
func (f *Fault) Wait(hits uint64) {
	f.node.t.Helper()
	f.WaitContext(within(f.node.t), hits)
}

// WaitContext does as Wait does, and fails the test when the context ends.
func (f *Fault) WaitContext(ctx context.Context, hits uint64) {
	f.node.t.Helper()
	_, err := f.node.Simulation.WaitForFault(ctx, &simcontrol.WaitForFaultRequest{Id: f.id, Hits: hits})
	if err != nil {
		f.node.t.Fatalf("the fault has disturbed %d of %d calls: %v", f.Hits(), max(hits, 1), err)
	}
}

// Hits returns how many calls the fault has disturbed.
func (f *Fault) Hits() uint64 { f.node.t.Helper(); return f.now().GetHits() }

// LastHit returns the last call that the fault has disturbed: the RPC or the call of Windows, and its object.
func (f *Fault) LastHit() string { f.node.t.Helper(); return f.now().GetLastHit() }

// now returns the fault as it is now; nil if somebody else has cleared it.
func (f *Fault) now() *simcontrol.InjectedFault {
	f.node.t.Helper()
	if f.isCleared {
		return f.last
	}
	list, err := f.node.Simulation.ListFaults(within(f.node.t), &simcontrol.ListFaultsRequest{})
	f.node.must(err)
	for _, fault := range list.GetFaults() {
		if fault.GetId() == f.id {
			return fault
		}
	}
	return nil
}

// Clear removes the fault, and releases the calls that it holds or delays.
func (f *Fault) Clear() {
	f.node.t.Helper()
	f.last = f.now()
	_, err := f.node.Simulation.ClearFaults(within(f.node.t), &simcontrol.ClearFaultsRequest{Id: f.id})
	f.node.must(err)
	f.isCleared = true
}
