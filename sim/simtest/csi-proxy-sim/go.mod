module github.com/OWNER/csi-proxy/sim/simtest/csi-proxy-sim

go 1.25.0
