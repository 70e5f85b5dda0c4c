//! The Go module for driver authors, fetched by its path as from the repository: from git alone, and
//! into a module whose line `go` stays.

use std::process::Command;

use crate::summary::Summary;
use crate::{Error, workspace};

const NAME: &str = "go get fetches the module for driver authors";

/// Gets the module of the commit `$3` with the path `$2/sim/simtest` from the checkout `$0`, in the
/// folder `$1`. Other modules come from those that the tests have downloaded.
const FETCH: &str = "
rm -rf \"$1\"
mkdir -p \"$1\"
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=\"url.file://$0.insteadOf\" GIT_CONFIG_VALUE_0=\"https://$2\"
export GOPROXY=\"file://$(go env GOMODCACHE)/cache/download\" GOPRIVATE=\"$2\" GONOSUMDB='*'
export GOPATH=\"$1/gopath\" GOFLAGS=-modcacherw GOTOOLCHAIN=local
cd \"$1\"
printf 'module example.com/driver\\n\\ngo 1.25.0\\n' >go.mod
printf 'package driver\\n\\nimport _ \"%s/sim/simtest\"\\n' \"$2\" >driver.go
go get \"$2/sim/simtest@$3\"
go vet .
grep -x 'go 1.25.0' go.mod";

pub(super) fn test() -> Result<Summary, Error> {
    let Some(commit) = workspace::git(&["rev-parse", "HEAD"]) else {
        return Ok(Summary::skipped(NAME, "the tree is not a git checkout"));
    };
    let repository = workspace::repository()?;
    let path = repository.trim_start_matches("https://");
    let mut sh = Command::new("sh");
    sh.args(["-ec", FETCH])
        .arg(workspace::root())
        .arg(workspace::target().join("go/fetched"))
        .args([path, &commit]);
    Ok(Summary::of_check(NAME, &mut sh))
}
