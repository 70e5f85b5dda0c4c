//! The gRPC server of csi-proxy.
