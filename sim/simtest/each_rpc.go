package simtest

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
)

// mostRPCs ends AtEachRPC if -run leaves out its subtests.
const mostRPCs = 1000

// disturbances has what AtEachRPC does to an RPC.
var disturbances = []struct {
	name   string
	inject func(*Node, ...FaultOption) *Fault
}{
	{"status", func(n *Node, options ...FaultOption) *Fault { return n.FailRPC("*", codes.Internal, options...) }},
	{"cut", func(n *Node, options ...FaultOption) *Fault { return n.CutRPC("*", options...) }},
	{"crash", func(n *Node, options ...FaultOption) *Fault { return n.CrashAt("*", options...) }},
}

// Disturbed is a call of kubelet to the driver that AtEachRPC disturbs.
type Disturbed struct {
	// Node is a node for this call alone, in the state in which kubelet makes the call.
	Node *Node
	// Call is the call of kubelet.
	Call func() error
	// Check checks what must hold when kubelet has repeated the call until it succeeded.
	Check func()
}

// AtEachRPC makes each RPC of a call of kubelet fail, cuts its connection, and makes csi-proxy crash, before the RPC has its
// effect and after it. Kubelet then repeats the call until it succeeds. Each case is a subtest with a node of its own, which
// `start` starts: `cut-after/3` cuts the connection after the fourth RPC.
//
// The disturbed call itself may succeed: a driver may repeat an RPC, or do without its answer.
func AtEachRPC(t *testing.T, start func(*testing.T) Disturbed) {
	t.Helper()
	effects := []struct {
		name    string
		options []FaultOption
	}{{"before", nil}, {"after", []FaultOption{AfterEffect()}}}
	for _, disturbance := range disturbances {
		for _, effect := range effects {
			isHit := true
			for rpc := uint64(0); isHit && rpc < mostRPCs; rpc++ {
				t.Run(fmt.Sprintf("%s-%s/%d", disturbance.name, effect.name, rpc), func(t *testing.T) {
					isHit = false // If the subtest fails.
					disturbed := start(t)
					fault := disturbance.inject(disturbed.Node, append(effect.options, Skip(rpc), Times(1), MayMiss())...)
					err := disturbed.Call()
					fault.Clear()
					isHit = fault.Hits() > 0
					switch {
					case !isHit && err != nil:
						t.Fatalf("the call fails without a disturbance: %v", err)
					case !isHit && rpc == 0:
						t.Fatal("the call makes no RPC")
					case err != nil:
						disturbed.Node.repeat(disturbed.Call)
					}
					disturbed.Check()
					if t.Failed() {
						t.Logf("disturbed: %s; kubelet saw: %v", fault.LastHit(), err)
					}
				})
			}
		}
	}
}
