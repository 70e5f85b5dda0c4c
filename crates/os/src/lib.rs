//! What Windows can do: the primitives csi-proxy stands on, as traits.
