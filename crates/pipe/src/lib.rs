//! What both ends of a csi-proxy connection need.
