package main

// variables are the names in the tables of this client and what they stand for on the node that node.toml describes.
var variables = map[string]string{
	"work": `C:\var\lib\kubelet\plugins\go-client`,
	// The same as some drivers send it, without its drive.
	"raw":  `\var\lib\kubelet\plugins\go-client`,
	"pods": `C:\var\lib\kubelet\pods\go-client`,

	// A raw disk for the calls of every group-version, and the last word of its page-83 identifier.
	"disk":     "1",
	"diskName": "go-client-1",

	"share":         `\\files.example.com\share`,
	"secondShare":   `\\files.example.com\second`,
	"user":          `example\alice`,
	"password":      "correct horse battery staple",
	"otherUser":     `example\bob`,
	"otherPassword": "Tr0ub4dor&3",

	"portal": "192.0.2.10",
	"iqn":    "iqn.2004-10.com.example:disk-1",

	// A target that requires CHAP.
	"chapPortal": "192.0.2.11",
	"chapIqn":    "iqn.2004-10.com.example:disk-2",
	"chapUser":   "initiator",
	"chapSecret": "fourteen bytes",

	"service": "MSiSCSI",
	"serial":  "VMware-56 4d 1c 5c 7a 8b 9c 0d-1e 2f 3a 4b 5c 6d 7e 8f",
}
