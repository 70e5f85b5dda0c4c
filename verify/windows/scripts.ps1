# Checks that the scripts in deploy\windows replace the csi-proxy written in Go, go back, restore a program if its successor does
# not serve the pipes, and install and remove the service; that they may be repeated; and that an ordinary user's folder, file or
# pipe does not mislead them.
#
# Needs dist\csi-proxy.exe, dist\csi-proxyctl.exe, and target\go\csi-proxy-go.exe, which is the program written in Go.
$ErrorActionPreference = 'Stop'

$tree = Resolve-Path "$PSScriptRoot\..\.."
$scripts = "$tree\deploy\windows"
$ours = "$tree\dist\csi-proxy.exe"
$go = "$tree\target\go\csi-proxy-go.exe"
$folder = 'C:\csi-proxy-scripts'
$installed = "$folder\csi-proxy.exe"

function Assert-Installed([string] $Program) {
    $found = (Get-FileHash $installed).Hash
    if ($found -ne (Get-FileHash $Program).Hash) { throw "$installed is not $Program" }
    if ((Get-Service csiproxy).Status -ne 'Running') { throw "the service does not run $Program" }
}

function Assert-Fails([scriptblock] $Script, [string] $Message) {
    try { & $Script } catch {
        if ("$_" -like "*$Message*") { return }
        throw
    }
    throw "no error with '$Message'"
}

New-Item -ItemType Directory -Force $folder | Out-Null
New-Item -ItemType Directory -Force C:\var\lib\kubelet | Out-Null
Copy-Item $go $installed
New-Service csiproxy -BinaryPathName "$installed -windows-service -log_file=$folder\go.log -logtostderr=false" | Out-Null
Start-Service csiproxy

$digest = (Get-FileHash $ours).Hash
# Users may write in a new folder of drive C:.
Assert-Fails { & "$scripts\upgrade.ps1" -Program $ours -Sha256 $digest } 'The program was not replaced'
Assert-Installed $go
if (Test-Path "$folder\csi-proxy-next.exe") { throw 'the copy of a refused program remains' }
& icacls.exe $folder /inheritance:r /grant '*S-1-5-18:(OI)(CI)F' '*S-1-5-32-544:(OI)(CI)F' '*S-1-5-32-545:(OI)(CI)RX' | Out-Null
# A file that everyone may change.
Set-Content "$folder\csi-proxy-next.exe" 'an old file'
& icacls.exe "$folder\csi-proxy-next.exe" /grant '*S-1-1-0:F' | Out-Null
# A pipe that csi-proxy does not serve, and that vanishes when this script ends.
$foreign = [IO.Pipes.NamedPipeServerStream]::new('csi-proxy-disk-v9')
Assert-Fails { & "$scripts\upgrade.ps1" -Program $ours -Sha256 ('0' * 64) } 'has the SHA-256 digest'
Assert-Installed $go
& "$scripts\upgrade.ps1" -Program $ours -Sha256 $digest
Assert-Installed $ours
if ((Get-Acl $installed).Access.IdentityReference.Translate([Security.Principal.SecurityIdentifier]).Value -contains 'S-1-1-0') { throw 'everyone may change the program' }
& "$scripts\upgrade.ps1" -Program $ours -Sha256 $digest
Assert-Installed $ours
& "$scripts\upgrade.ps1" -Rollback
Assert-Installed $go
& "$scripts\upgrade.ps1" -Rollback
Assert-Installed $ours
Copy-Item "$env:SystemRoot\System32\whoami.exe" "$folder\csi-proxy-previous.exe"
Assert-Fails { & "$scripts\upgrade.ps1" -Rollback } 'The program was not replaced'
Assert-Installed $ours
& "$scripts\uninstall.ps1" -RemoveProgram
& "$scripts\uninstall.ps1"
if (Get-Service csiproxy -ErrorAction SilentlyContinue) { throw 'the service still exists' }
if (Test-Path "$folder\*.exe") { throw 'programs remain' }

$folder = 'C:\csi-proxy-installed\bin'
$installed = "$folder\csi-proxy.exe"
$toolDigest = (Get-FileHash "$tree\dist\csi-proxyctl.exe").Hash
& "$scripts\install.ps1" -Program $ours -Sha256 $digest -ToolSha256 $toolDigest -Folder $folder -LogFolder C:\csi-proxy-installed\logs -Flags '-v=5'
if (-not (Test-Path "$folder\csi-proxyctl.exe")) { throw 'csi-proxyctl.exe is not installed' }
Assert-Installed $ours
& "$scripts\install.ps1" -Program $ours -Folder $folder
if (-not (& $ours service flags).Contains('-v=5')) { throw 'an installation without flags has dropped those of the service' }
& "$scripts\install.ps1" -Program $ours -Folder $folder -LogFolder C:\csi-proxy-installed\logs -Flags '-v=2'
if (-not (& $ours service flags).EndsWith('-v=2')) { throw 'the flags of the service have not changed' }
Assert-Fails { & "$scripts\install.ps1" -Program $go } 'Use upgrade.ps1'
Assert-Installed $ours
& "$scripts\uninstall.ps1" -RemoveProgram
