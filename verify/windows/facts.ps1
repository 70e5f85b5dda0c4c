# Proves, for each fact about Windows that needs no second machine, whether it holds: gives the checks two shares of this
# machine with two users, two iSCSI targets, and services, and runs them. verify/facts/src/local.rs describes the
# variables; csi-proxy-selftest adds the disks. docs/facts.md then has the results on Windows.
#
# Runs in Windows PowerShell, for which the module of the target server is made. What it creates, it leaves behind.
$ErrorActionPreference = 'Stop'

function Set-FactVariable([string] $name, [string] $value) {
    Set-Item "env:CSI_PROXY_FACTS_$name" $value
}

# An address for documentation, which no machine has.
Set-FactVariable SMB_SILENT '192.0.2.1'
Set-FactVariable ISCSI_SILENT '192.0.2.1:3260'

$folder = (New-Item -ItemType Directory -Force "$env:TEMP\facts-share").FullName
New-Item -ItemType Directory -Force "$folder\a", "$folder\b" | Out-Null
# The name of the group Everyone in the language of Windows.
$everyone = ([Security.Principal.SecurityIdentifier] 'S-1-1-0').Translate([Security.Principal.NTAccount]).Value
foreach ($number in 1, 2) {
    # `net user` asks a question if a password is longer than 14 characters.
    $password = 'Aa1-' + [guid]::NewGuid().ToString('N').Substring(0, 10)
    net.exe user "facts-$number" $password /add | Out-Null
    if ($LASTEXITCODE -ne 0) { throw "the account facts-$number is not created" }
    Set-FactVariable "SMB_USER_$number" "facts-$number"
    Set-FactVariable "SMB_PASSWORD_$number" $password
    icacls.exe $folder /grant "facts-${number}:(OI)(CI)M" | Out-Null
    New-SmbShare -Name "facts-share-$number" -Path $folder -FullAccess $everyone -EncryptData $true | Out-Null
}
# Not localhost: the checks open shares of localhost as the account that runs them.
Set-FactVariable SMB_HOST $env:COMPUTERNAME
Set-FactVariable SMB_SHARES 'facts-share-1,facts-share-2'

try {
    Install-WindowsFeature FS-iSCSITarget-Server -IncludeManagementTools | Out-Null
    Start-Service MSiSCSI, WinTarget
    foreach ($kind in 'OPEN', 'CHAP') {
        $file = "$env:TEMP\facts-$kind.vhdx"
        New-IscsiVirtualDisk -Path $file -SizeBytes 1GB | Out-Null
        $target = New-IscsiServerTarget -TargetName "facts-$kind" -InitiatorIds 'IQN:*'
        Add-IscsiVirtualDiskTargetMapping -TargetName "facts-$kind" -Path $file
        Set-FactVariable "ISCSI_$kind" $target.TargetIqn
    }
    $secret = [guid]::NewGuid().ToString('N').Substring(0, 14)
    $chap = New-Object PSCredential 'facts-user', (ConvertTo-SecureString $secret -AsPlainText -Force)
    Set-IscsiServerTarget -TargetName facts-CHAP -EnableChap $true -Chap $chap
    Set-FactVariable ISCSI_CHAP_USER 'facts-user'
    Set-FactVariable ISCSI_CHAP_SECRET $secret
    $address = Get-NetIPAddress -AddressFamily IPv4 -AddressState Preferred |
        Where-Object IPAddress -NotLike '127.*' | Select-Object -First 1
    Set-FactVariable ISCSI_PORTAL "$($address.IPAddress):3260"
} catch {
    # The facts about iSCSI are then skipped, and say so.
    Write-Output "::warning::skipped: the iSCSI target: $_"
}

cargo build -p csi-proxy-os-win32 --examples
if ($LASTEXITCODE -ne 0) { throw 'the service for tests is not built' }
$program = Resolve-Path "$PSScriptRoot\..\..\target\debug\examples\idle_service.exe"
$services = @(
    @('plain'), @('first', 'facts-plain'), @('second', 'facts-plain'), @('third', 'facts-first'),
    @('disabled'), @('needsdisabled', 'facts-disabled'), @('needsmissing', 'facts-none')
)
foreach ($service in $services) {
    $name = "facts-$($service[0])"
    $more = @()
    if ($service.Count -eq 2) { $more = @('depend=', $service[1]) }
    sc.exe create $name binPath= "$program $name 0" start= demand @more | Out-Null
    if ($LASTEXITCODE -ne 0) { throw "the service $name is not created" }
    Set-FactVariable "SERVICE_$($service[0].ToUpper())" $name
}
sc.exe config facts-disabled start= disabled | Out-Null

cargo run -p csi-proxy-selftest -- create-disks-for cargo xtask facts
if ($LASTEXITCODE -ne 0) { throw 'some facts do not hold: see the lines above, and docs/facts.md' }
