package main

import (
	"strings"
	"testing"
)

const folder = "../../sim/csi-proxy-sim/drivers"

func TestEverySequenceIsReadInOrder(t *testing.T) {
	drivers, err := readDrivers(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range drivers {
		names = append(names, d.name)
		for _, p := range d.phases {
			for _, s := range p.calls {
				if _, ok := clients("")[s.api]; !ok {
					t.Errorf("%s %s: the published client has no %s", d.name, p.name, s.api)
				}
			}
		}
	}
	want := "azuredisk, azuredisk v1beta, smb, trident, azurefile, azurefile v1beta, gce-pd, " +
		"gce-pd v1beta, aws-ebs, vsphere, longhorn-fork, local-static-provisioner"
	if got := strings.Join(names, ", "); got != want {
		t.Error(got)
	}
}

func TestAMistakeInASequenceIsAnErrorThatNamesIt(t *testing.T) {
	for step, want := range map[string]string{
		`{"call": "disk/v1/Rescan", "wants": {}}`:                          `unknown key "wants"`,
		`{"call": "disk/v1/Rescan", "find": {"kept": "x"}}`:                `unknown field "kept"`,
		`{"call": "filesystem/v1/Mkdir", "request": {"path": "$missing"}}`: `unknown variable $missing`,
		`{"as": "kubelet", "do": "Chmod", "path": "x"}`:                    `unknown action "Chmod"`,
		`{"as": "kubelet", "do": "MkdirAll", "mode": "x"}`:                 `unknown key "mode"`,
		`{"check": "clean"}`: `unknown check "clean"`,
		`{"part": "stage"}`:  `unknown part "stage"`,
		`{"note": "x"}`:      `neither a call`,
	} {
		_, err := parseDriver([]byte(`{"driver": "x", "phases": [{"name": "x", "steps": [` + step + `]}]}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", step, err)
		}
	}
}
