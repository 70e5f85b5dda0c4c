package main

var ofSmb = in("smb/v1")

// onShare returns the calls for a share that two users may use, and a second share of the same server.
func onShare() driver {
	const link = `"localPath":"$work\\smb"`
	const right = `"username":"$user","password":"$password"`
	const other = `"username":"$otherUser","password":"$otherPassword"`
	return driver{"share", variables, []phase{
		{"wrong password", []step{
			ofFiles("Mkdir", `{"path":"$work"}`),
			ofSmb("NewSmbGlobalMapping", `{"remotePath":"$share","username":"$user","password":"wrong",`+link+`}`).fails("PermissionDenied"),
			ofFiles("PathExists", `{"path":"$work\\smb"}`).wants(`{"exists":false}`),
			ofSmb("RemoveSmbGlobalMapping", `{"remotePath":"$share"}`).fails("NotFound"),
		}},
		{"right password", []step{
			ofSmb("NewSmbGlobalMapping", `{"remotePath":"$share",`+right+`,`+link+`}`),
			ofSmb("NewSmbGlobalMapping", `{"remotePath":"$share",`+right+`,`+link+`}`),
			ofFiles("IsSymlink", `{"path":"$work\\smb"}`).wants(`{"isSymlink":true}`),
			ofSmb("NewSmbGlobalMapping", `{"remotePath":"$secondShare",`+right+`}`),
			ofSmb("RemoveSmbGlobalMapping", `{"remotePath":"$secondShare"}`),
		}},
		{"second user", []step{
			ofSmb("NewSmbGlobalMapping", `{"remotePath":"$share",`+other+`}`).fails("FailedPrecondition.* is mapped for another user"),
			ofSmb("NewSmbGlobalMapping", `{"remotePath":"$secondShare",`+other+`}`).fails("FailedPrecondition.* Windows allows one user per server"),
			ofFiles("IsSymlink", `{"path":"$work\\smb"}`).wants(`{"isSymlink":true}`),
		}},
	}}
}

// offShare returns the calls that undo those of onShare.
func offShare() driver {
	return driver{"share", variables, []phase{
		{"removal", []step{
			ofFiles("Rmdir", `{"path":"$work\\smb","force":true}`),
			ofSmb("RemoveSmbGlobalMapping", `{"remotePath":"$share"}`),
			ofSmb("RemoveSmbGlobalMapping", `{"remotePath":"$share"}`).fails("NotFound"),
		}},
	}}
}
